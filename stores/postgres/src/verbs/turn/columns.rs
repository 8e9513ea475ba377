//! Commits of many turns as the arguments of one call.

use steadfast_core::WorkItem;
use steadfast_store::rules::{fires_at_ms, is_start, stored_scope, stored_tag};

use crate::link::db::time;
use crate::link::escape::escape;
use crate::link::statement::calls;
use crate::verbs::turn::commit::PreparedCommit;

calls! {
    /// Commits turns. The first arrays have one element for each commit. The others hold the elements of all
    /// commits, and the array that ends in `_of` says to which commit an element belongs, counted from 1.
    #[derive(Default)]
    CommitTurns<'a> => commit_turns on CommitTurns {
        now_ms: Option<i64>,
        tokens: Vec<String>,
        executions: Vec<i64>,
        names: Vec<Option<String>>,
        versions: Vec<Option<String>>,
        parents: Vec<Option<String>>,
        statuses: Vec<Option<String>>,
        outputs: Vec<Option<String>>,
        failures: Vec<Option<String>>,
        majors: Vec<Option<i32>>,
        minors: Vec<Option<i32>>,
        patches: Vec<Option<i32>>,
        /// Whether the commit changes the custom status, to the element of `custom_statuses`; `None` removes
        /// it.
        shows: Vec<bool>,
        custom_statuses: Vec<Option<String>>,
        /// Whether the commit clears all keys before it sets some.
        kv_clears: Vec<bool>,

        event_of: Vec<i32>,
        event_ids: Vec<i64>,
        event_kinds: Vec<&'static str>,
        event_texts: Vec<String>,

        kv_of: Vec<i32>,
        kv_keys: Vec<String>,
        kv_values: Vec<Option<String>>,
        kv_updated: Vec<i64>,

        session_of: Vec<i32>,
        session_ops: Vec<&'static str>,
        session_ids: Vec<Option<String>>,
        session_idle: Vec<Option<i64>>,
        session_serial: Vec<Option<bool>>,

        watch_of: Vec<i32>,
        watch_scopes: Vec<String>,
        watch_sessions: Vec<String>,

        work_of: Vec<i32>,
        work_items: Vec<String>,
        work_instances: Vec<String>,
        work_executions: Vec<i64>,
        work_activities: Vec<i64>,
        work_tags: Vec<String>,
        work_scopes: Vec<String>,
        work_sessions: Vec<Option<String>>,
        work_traceparents: Vec<Option<String>>,

        /// Cancelled work, which is removed.
        gone_of: Vec<i32>,
        gone_instances: Vec<String>,
        gone_executions: Vec<i64>,
        gone_activities: Vec<i64>,

        message_of: Vec<i32>,
        message_instances: Vec<String>,
        message_items: Vec<String>,
        /// When a message becomes visible; `None` for at once.
        message_visible: Vec<Option<i64>>,
        message_starts: Vec<bool>,
        message_traceparents: Vec<Option<String>>,

        notify: Option<String>,
        me: &'a str,
        /// The first id of the events of a commit, if their ids rise from there.
        rising: Vec<Option<i64>>,
        /// The parent of a call that a message belongs to; `None` for a message that belongs to no call.
        message_parents: Vec<Option<String>>,
        message_parent_executions: Vec<Option<i64>>,
        message_parent_events: Vec<Option<i64>>,
        /// Timers that the code does not await any more: the texts of their messages, and when they are due.
        dropped_of: Vec<i32>,
        dropped_items: Vec<String>,
        dropped_due: Vec<i64>,
        /// The terms of the calls of new work, as JSON.
        work_calls: Vec<Option<String>>,
        /// The failures beside messages, as JSON.
        message_failures: Vec<Option<String>>,
    }
}

impl CommitTurns<'_> {
    /// Adds a commit to the call, and moves its texts out. The ids that stay in `prepared` are enough to
    /// explain a refusal.
    pub(crate) fn push(&mut self, prepared: &mut PreparedCommit) {
        self.tokens.push(stored(&prepared.token));
        let of = i32::try_from(self.tokens.len()).unwrap_or(i32::MAX);
        self.push_execution(prepared);
        self.push_events(of, prepared);
        self.push_kv(of, prepared);
        self.push_sessions(of, prepared);
        self.push_work(of, prepared);
        self.push_messages(of, prepared);
    }

    fn push_execution(&mut self, prepared: &mut PreparedCommit) {
        let metadata = &prepared.commit.metadata;
        self.executions.push(prepared.execution);
        self.names.push(metadata.orchestration_name.as_deref().map(stored));
        self.versions.push(metadata.orchestration_version.as_deref().map(stored));
        self.parents.push(metadata.parent_instance_id.as_deref().map(stored));
        self.statuses.push(metadata.status.as_deref().map(stored));
        self.outputs.push(metadata.output.as_deref().map(stored));
        self.failures.push(prepared.failure.take());
        let pinned = metadata.pinned_duroxide_version.as_ref();
        let part = |part: u64| i32::try_from(part).unwrap_or(i32::MAX);
        self.majors.push(pinned.map(|version| part(version.major)));
        self.minors.push(pinned.map(|version| part(version.minor)));
        self.patches.push(pinned.map(|version| part(version.patch)));
        self.shows.push(prepared.custom_status.is_some());
        self.custom_statuses.push(prepared.custom_status.take().flatten().as_deref().map(stored));
        self.kv_clears.push(prepared.kv.clears);
    }

    fn push_events(&mut self, of: i32, prepared: &mut PreparedCommit) {
        self.rising.push(prepared.events.rising());
        let (ids, kinds, texts) = prepared.events.take();
        self.event_of.extend(ids.iter().map(|_| of));
        self.event_ids.extend(ids);
        self.event_kinds.extend(kinds);
        self.event_texts.extend(texts);
    }

    fn push_kv(&mut self, of: i32, prepared: &mut PreparedCommit) {
        for (key, (value, updated)) in std::mem::take(&mut prepared.kv.keys) {
            self.kv_of.push(of);
            self.kv_keys.push(key);
            self.kv_values.push(value);
            self.kv_updated.push(updated);
        }
    }

    fn push_sessions(&mut self, of: i32, prepared: &mut PreparedCommit) {
        for effect in prepared.sessions.drain(..) {
            self.session_of.push(of);
            self.session_ops.push(effect.op);
            self.session_ids.push(effect.session_id);
            self.session_idle.push(effect.idle_timeout);
            self.session_serial.push(effect.serial);
        }
        for watched in &prepared.commit.watched {
            self.watch_of.push(of);
            self.watch_scopes.push(stored(stored_scope(watched)));
            self.watch_sessions.push(stored(&watched.session_id));
        }
    }

    fn push_work(&mut self, of: i32, prepared: &mut PreparedCommit) {
        let texts = prepared.work.drain(..).zip(prepared.work_calls.drain(..));
        for (work, (item, call)) in prepared.commit.work.iter().zip(texts) {
            let WorkItem::ActivityExecute { instance, execution_id, id, tag, .. } = &work.item else {
                continue;
            };
            let session = work.session_key();
            self.work_of.push(of);
            self.work_items.push(item);
            self.work_instances.push(stored(instance));
            self.work_executions.push(time(*execution_id));
            self.work_activities.push(time(*id));
            self.work_tags.push(stored(&stored_tag(tag.as_deref())));
            self.work_scopes.push(stored(session.as_ref().map_or("", stored_scope)));
            self.work_sessions.push(session.map(|session| stored(&session.session_id)));
            self.work_traceparents.push(work.traceparent.as_deref().map(stored));
            self.work_calls.push(call);
        }
        for cancelled in &prepared.commit.cancelled {
            self.gone_of.push(of);
            self.gone_instances.push(stored(&cancelled.instance));
            self.gone_executions.push(time(cancelled.execution_id));
            self.gone_activities.push(time(cancelled.activity_id));
        }
    }

    fn push_messages(&mut self, of: i32, prepared: &mut PreparedCommit) {
        let texts = prepared.messages.drain(..).zip(prepared.message_failures.drain(..));
        for (message, (item, failure)) in prepared.commit.messages.iter().zip(texts) {
            self.message_of.push(of);
            self.message_instances.push(stored(message.item.instance()));
            self.message_items.push(item);
            self.message_visible.push(fires_at_ms(&message.item).map(time));
            self.message_starts.push(is_start(&message.item));
            self.message_traceparents.push(message.traceparent.as_deref().map(stored));
            self.message_failures.push(failure);
            let call = call_of(&message.item);
            self.message_parents.push(call.map(|call| stored(call.parent)));
            self.message_parent_executions.push(call.and_then(|call| call.execution).map(time));
            self.message_parent_events.push(call.map(|call| time(call.event)));
        }
        for (timer, item) in prepared.commit.dropped_timers.iter().zip(prepared.dropped_timers.drain(..)) {
            self.dropped_of.push(of);
            self.dropped_items.push(item);
            self.dropped_due.push(fires_at_ms(timer).map_or(0, time));
        }
    }
}

/// The call of a parent that started a child.
#[derive(Debug, Clone, Copy)]
struct ParentCall<'a> {
    parent: &'a str,
    /// The execution of the parent; `None` in messages of older engines.
    execution: Option<u64>,
    event: u64,
}

/// Returns the call that the start of a child, or an answer to its parent, belongs to.
fn call_of(item: &WorkItem) -> Option<ParentCall<'_>> {
    match item {
        WorkItem::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. } => {
            let (parent, event) = (parent_instance.as_deref()?, (*parent_id)?);
            Some(ParentCall { parent, execution: *parent_execution_id, event })
        }
        WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, .. }
        | WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, .. } => {
            Some(ParentCall {
                parent: parent_instance,
                execution: Some(*parent_execution_id),
                event: *parent_id,
            })
        }
        _ => None,
    }
}

fn stored(text: &str) -> String {
    escape(text).into_owned()
}
