//! Commits of many turns as the columns of one call.

use steadfast_core::WorkItem;
use steadfast_store::ProviderError;
use tokio_postgres::Row;

use crate::link::db::{Db, sql, time};
use crate::link::escape::escape;
use crate::link::statement::params;
use crate::merge::lanes::Lane;
use crate::verbs::history::EventColumns;
use crate::verbs::message::{is_start, stored_tag};
use crate::verbs::turn::{Prepared, SessionChange};

/// The columns: those in front have one place for each commit, the others say whose a place is.
#[derive(Default)]
pub(crate) struct Columns {
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
    shows: Vec<bool>,
    custom_statuses: Vec<Option<String>>,
    kv_clears: Vec<bool>,
    /// The first id of the events, if they rise from there.
    rising: Vec<Option<i64>>,
    events: EventColumns,
    kv: KvColumns,
    sessions: SessionColumns,
    watched: WatchColumns,
    work: WorkColumns,
    gone: GoneColumns,
    messages: MessageColumns,
}

#[derive(Default)]
struct KvColumns {
    of: Vec<i32>,
    keys: Vec<String>,
    values: Vec<Option<String>>,
    updated: Vec<i64>,
}

#[derive(Default)]
struct SessionColumns {
    of: Vec<i32>,
    ops: Vec<&'static str>,
    ids: Vec<Option<String>>,
    idle: Vec<Option<i64>>,
    serial: Vec<Option<bool>>,
}

#[derive(Default)]
struct WatchColumns {
    of: Vec<i32>,
    scopes: Vec<String>,
    sessions: Vec<String>,
}

#[derive(Default)]
struct WorkColumns {
    of: Vec<i32>,
    items: Vec<String>,
    instances: Vec<String>,
    executions: Vec<i64>,
    activities: Vec<i64>,
    tags: Vec<String>,
    scopes: Vec<String>,
    sessions: Vec<Option<String>>,
    traceparents: Vec<Option<String>>,
}

#[derive(Default)]
struct GoneColumns {
    of: Vec<i32>,
    instances: Vec<String>,
    executions: Vec<i64>,
    activities: Vec<i64>,
}

#[derive(Default)]
struct MessageColumns {
    of: Vec<i32>,
    instances: Vec<String>,
    items: Vec<String>,
    visible: Vec<Option<i64>>,
    starts: Vec<bool>,
    traceparents: Vec<Option<String>>,
}

impl Columns {
    /// Takes the texts of a commit; what is left of it can still tell why it is refused.
    pub(crate) fn push(&mut self, token: &str, prepared: &mut Prepared) {
        self.tokens.push(stored(token));
        let of = i32::try_from(self.tokens.len()).unwrap_or(i32::MAX);
        self.push_execution(prepared);
        self.rising.push(prepared.events.rising());
        self.events.push(of, &mut prepared.events);
        self.push_kv(of, prepared);
        self.push_sessions(of, prepared);
        self.push_work(of, prepared);
        self.push_messages(of, prepared);
    }

    fn push_execution(&mut self, prepared: &mut Prepared) {
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

    fn push_kv(&mut self, of: i32, prepared: &mut Prepared) {
        for (key, (value, updated)) in std::mem::take(&mut prepared.kv.keys) {
            self.kv.of.push(of);
            self.kv.keys.push(key);
            self.kv.values.push(value);
            self.kv.updated.push(updated);
        }
    }

    fn push_sessions(&mut self, of: i32, prepared: &mut Prepared) {
        for change in prepared.sessions.drain(..) {
            let (op, id, idle, serial) = match change {
                SessionChange::Open { id, idle_timeout, serial } => ("open", Some(id), idle_timeout, serial),
                SessionChange::Close { id } => ("close", Some(id), None, None),
                SessionChange::End => ("end", None, None, None),
            };
            self.sessions.of.push(of);
            self.sessions.ops.push(op);
            self.sessions.ids.push(id.as_deref().map(stored));
            self.sessions.idle.push(idle);
            self.sessions.serial.push(serial);
        }
        for watched in &prepared.commit.watched {
            self.watched.of.push(of);
            self.watched.scopes.push(stored(watched.instance.as_deref().unwrap_or_default()));
            self.watched.sessions.push(stored(&watched.session_id));
        }
    }

    fn push_work(&mut self, of: i32, prepared: &mut Prepared) {
        for (work, item) in prepared.commit.work.iter().zip(prepared.work.drain(..)) {
            let WorkItem::ActivityExecute { instance, execution_id, id, tag, .. } = &work.item else {
                continue;
            };
            let session = work.session_key();
            let scope = session.as_ref().and_then(|session| session.instance.as_deref());
            self.work.of.push(of);
            self.work.items.push(item);
            self.work.instances.push(stored(instance));
            self.work.executions.push(time(*execution_id));
            self.work.activities.push(time(*id));
            self.work.tags.push(stored(&stored_tag(tag.as_deref())));
            self.work.scopes.push(stored(scope.unwrap_or_default()));
            self.work.sessions.push(session.map(|session| stored(&session.session_id)));
            self.work.traceparents.push(work.traceparent.as_deref().map(stored));
        }
        for gone in &prepared.commit.cancelled {
            self.gone.of.push(of);
            self.gone.instances.push(stored(&gone.instance));
            self.gone.executions.push(time(gone.execution_id));
            self.gone.activities.push(time(gone.activity_id));
        }
    }

    fn push_messages(&mut self, of: i32, prepared: &mut Prepared) {
        for (message, item) in prepared.commit.messages.iter().zip(prepared.messages.drain(..)) {
            self.messages.of.push(of);
            self.messages.instances.push(stored(message.item.instance()));
            self.messages.items.push(item);
            self.messages.visible.push(match &message.item {
                WorkItem::TimerFired { fire_at_ms, .. } => Some(time(*fire_at_ms)),
                _ => None,
            });
            self.messages.starts.push(is_start(&message.item));
            self.messages.traceparents.push(message.traceparent.as_deref().map(stored));
        }
    }

    pub(crate) async fn send(
        &self,
        db: &Db,
        operation: &'static str,
        notify: Option<String>,
        me: &str,
    ) -> Result<Vec<Row>, ProviderError> {
        let Self { events, kv, sessions, watched, work, gone, messages, .. } = self;
        let now = db.now();
        #[rustfmt::skip]
        let params = params![
            now, self.tokens, self.executions, self.names, self.versions, self.parents,
            self.statuses, self.outputs, self.failures, self.majors, self.minors, self.patches,
            self.shows, self.custom_statuses, self.kv_clears,
            events.of, events.ids, events.kinds, events.texts,
            kv.of, kv.keys, kv.values, kv.updated,
            sessions.of, sessions.ops, sessions.ids, sessions.idle, sessions.serial,
            watched.of, watched.scopes, watched.sessions,
            work.of, work.items, work.instances, work.executions, work.activities, work.tags, work.scopes,
            work.sessions, work.traceparents,
            gone.of, gone.instances, gone.executions, gone.activities,
            messages.of, messages.instances, messages.items, messages.visible, messages.starts,
            messages.traceparents,
            notify, me, self.rising,
        ];
        db.rows_of(Lane::CommitTurns, operation, sql!("turn/commit"), params).await
    }
}

fn stored(text: &str) -> String {
    escape(text).into_owned()
}
