//! Turns: leasing an instance, and committing the decisions of its turn.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use semver::Version;
use steadfast_core::{DispatcherCapabilityFilter, KvEntry, WorkItem};
use steadfast_store::rules::{
    ended_turn_lease, fires_at_ms, holds_run, is_rival, no_such_lease, runs_engine, started_by,
    tell_of_strays,
};
use steadfast_store::{
    Abandon, Attempt, Committed, LeaseToken, MAX_TURN_MESSAGES, Message, ProviderError, RunId, TurnCommit,
    TurnLease, TurnRequest, WorkerId,
};

use crate::execution::ExecutionRow;
use crate::instance::InstanceRow;
use crate::message::after;
use crate::message::life::{ConsumedStart, life_of_parent};
use crate::millis;
use crate::state::{Lock, MessageRow, State, Stored};

/// The messages that a lease holds.
#[derive(Default)]
struct Stamped {
    messages: Vec<Message>,
    /// The places of starts that ask for another instance (S17).
    rival_starts: Vec<usize>,
    /// The highest delivery count.
    attempt: u32,
}

impl State {
    /// Leases the instance with the oldest visible message that the caller can run (S1, S2, S18).
    pub(crate) fn fetch_turn(&mut self, request: TurnRequest<'_>, now: u64) -> Option<TurnLease> {
        self.pass_over_unreadable_messages(request, now);
        self.open_terminated(now);
        while let Some(instance) = self.next_instance(request.filter, request.worker, now) {
            if self.settle_former_lives(&instance, now) {
                continue;
            }
            if self.exists(&instance) {
                return Some(self.lease_turn(&instance, request, now));
            }
            self.settle_strays(&instance, now);
        }
        None
    }

    /// Returns the instance with the oldest message that the caller can run; it may be one that does not
    /// exist.
    fn next_instance(
        &self,
        filter: Option<&DispatcherCapabilityFilter>,
        worker: Option<&WorkerId>,
        now: u64,
    ) -> Option<String> {
        let mut visible = self.messages.values().filter(|message| message.visible_at_ms <= now);
        let next = visible.find(|message| {
            !self.is_leased(&message.instance, now)
                && self.is_compatible(&message.instance, filter)
                && self.may_take_turn(worker, &message.instance, now)
                && !self.waits_for_its_start(&message.instance, now)
                && matches!(message.item, Stored::Readable(_))
        });
        next.map(|message| message.instance.clone())
    }

    /// Tells whether some caller could lease a turn.
    pub(crate) fn has_turn(&self, now: u64) -> bool {
        self.next_instance(None, None, now).is_some()
    }

    pub(crate) fn is_leased(&self, instance: &str, now: u64) -> bool {
        self.turns.get(instance).is_some_and(|lock| lock.is_live(now))
    }

    /// Tells whether the caller can run the current execution. An execution that has not begun runs anywhere.
    pub(crate) fn is_compatible(&self, instance: &str, filter: Option<&DispatcherCapabilityFilter>) -> bool {
        runs_engine(filter, self.pinned(instance))
    }

    /// Returns the engine version that the current execution is pinned to; `None` before it has begun.
    pub(crate) fn pinned(&self, instance: &str) -> Option<&Version> {
        let execution = self.executions.get(&(instance.to_owned(), self.current_execution(instance)));
        execution.and_then(|row| row.pinned.as_ref())
    }

    /// Tells whether the messages of an instance wait for its start, which is not visible yet.
    pub(crate) fn waits_for_its_start(&self, instance: &str, now: u64) -> bool {
        let begun = self.instances.contains_key(instance) || self.has_history(instance);
        let mut starts =
            self.messages.values().filter(|message| message.instance == instance && message.starts);
        !begun && self.has_pending_start(instance) && !starts.any(|start| start.visible_at_ms <= now)
    }

    /// Drops the visible messages to an instance that does not exist (S17).
    fn settle_strays(&mut self, instance: &str, now: u64) {
        let mut dropped = 0_u64;
        self.messages.retain(|_, message| {
            let stray = message.instance == instance && message.visible_at_ms <= now;
            dropped += u64::from(stray);
            !stray
        });
        self.routes.remove(instance);
        tell_of_strays(instance, dropped);
    }

    fn lease_turn(&mut self, instance: &str, request: TurnRequest<'_>, now: u64) -> TurnLease {
        self.note_expired_turn(instance);
        let token = self.next_token("turn");
        let lock = Lock { token: token.clone(), until_ms: after(now, Some(request.lock_timeout)) };
        self.turns.insert(instance.to_owned(), lock);
        let Stamped { messages, rival_starts, attempt } = self.stamp(instance, &token, now);

        let execution_id = self.current_execution(instance);
        let run = self.executions.get(&(instance.to_owned(), execution_id)).map(|row| row.run);
        let last_event_id = self.last_event_id(instance, execution_id);
        let held = request.warm.held(instance).filter(|held| holds_run(held, run, last_event_id));
        let (name, version) = self.identity(instance, execution_id, &messages);
        TurnLease {
            token: LeaseToken::Turn(token),
            instance: instance.to_owned(),
            name,
            version,
            execution_id,
            run,
            last_event_id,
            history: self.history_after(instance, execution_id, held.map(|held| held.last_event_id)),
            messages,
            rival_starts,
            attempt,
            kv: if held.is_some() { HashMap::new() } else { self.kv_snapshot(instance) },
            now_ms: now,
        }
    }

    fn kv_snapshot(&self, instance: &str) -> HashMap<String, KvEntry> {
        self.kv.get(instance).map(|kv| kv.snapshot()).unwrap_or_default()
    }

    /// Marks the visible messages of an instance as leased and counts the delivery of each, in the order in
    /// which they first became due, then of arrival. Their number is bounded; a start is always among them,
    /// wherever it stands.
    fn stamp(&mut self, instance: &str, token: &str, now: u64) -> Stamped {
        let is_ready = |row: &MessageRow| {
            row.instance == instance && row.visible_at_ms <= now && matches!(row.item, Stored::Readable(_))
        };
        let ready = || self.messages.iter().filter(|(_, row)| is_ready(row));
        let in_order = |of_starts: bool| {
            let rows = ready().filter(move |(_, row)| row.starts == of_starts);
            rows.map(|(place, row)| (row.due_ms, *place)).collect::<BTreeSet<_>>()
        };
        let (starts, others) = (in_order(true).into_iter(), in_order(false).into_iter());
        let places: BTreeSet<(u64, u64)> = starts.chain(others).take(MAX_TURN_MESSAGES).collect();

        let own = self.instances.get(instance).and_then(|row| row.parent_life);
        let mut stamped = Stamped::default();
        for (_, place) in places {
            let Some(row) = self.messages.get_mut(&place) else { continue };
            let Stored::Readable(item) = &row.item else { continue };
            row.token = Some(token.to_owned());
            row.is_refused = false;
            row.attempts = row.attempts.saturating_add(1);
            stamped.attempt = stamped.attempt.max(row.attempts);
            if row.starts && is_rival(own, row.life) {
                stamped.rival_starts.push(stamped.messages.len());
            }
            let (traceparent, failure) = (row.traceparent.clone(), row.failure.clone());
            stamped.messages.push(Message { item: item.clone(), traceparent, failure });
        }
        stamped
    }

    /// Returns the current execution of an instance; an instance without a row is in its first.
    fn current_execution(&self, instance: &str) -> u64 {
        self.instances.get(instance).map_or(1, |row| row.current_execution)
    }

    /// Returns name and version: from the row, else from the history, else from the start among the messages.
    fn identity(&self, instance: &str, execution: u64, messages: &[Message]) -> (String, String) {
        if let Some(row) = self.instances.get(instance) {
            return (row.name.clone(), row.version.clone());
        }
        if let Some((name, version, _)) = self.started(instance, execution) {
            return (name, version);
        }
        started_by(messages)
    }

    /// Commits a turn. Everything is checked first, so that a refused commit changes nothing (S3, S4, S8).
    pub(crate) fn commit_turn(
        &mut self,
        token: &str,
        commit: TurnCommit,
        now: u64,
    ) -> Result<Committed, ProviderError> {
        let instance = self.leased_instance("commit_turn", token, now)?;
        self.check_append("commit_turn", &instance, commit.execution_id, &commit.events)?;
        commit.check()?;
        if self.begins_for_former_life(&instance, token, commit.metadata.parent_instance_id.as_deref()) {
            return Err(no_such_lease("commit_turn", token));
        }

        let starts = self.consumed_starts(token);
        self.messages.retain(|_, message| message.token.as_deref() != Some(token));
        let run = self.record(&instance, &commit, &starts, now);
        self.record_sessions(&instance, &commit, now);
        if commit.ends_execution() {
            self.routes.remove(&instance);
        }
        let TurnCommit { execution_id, events, work, messages, cancelled, dropped_timers, .. } = commit;
        self.append(&instance, execution_id, events);
        for new in work {
            self.push_work(new, now);
        }
        self.withdraw(|row| cancelled.contains(&row.identity), now);
        for message in messages {
            let visible_at_ms = fires_at_ms(&message.item).unwrap_or(now);
            let life = self.life_of(&instance, &message.item, &starts);
            self.push_message_of(message, visible_at_ms, life);
        }
        self.mark_dropped(&instance, &dropped_timers);
        self.open_terminated(now);
        self.end_turn(&instance, now);
        Ok(Committed { run: Some(run) })
    }

    /// Marks the messages of timers of this instance that its code does not await any more. They fire all the
    /// same.
    fn mark_dropped(&mut self, instance: &str, timers: &[WorkItem]) {
        if timers.is_empty() {
            return;
        }
        for row in self.messages.values_mut().filter(|row| row.instance == instance) {
            row.is_dropped |= matches!(&row.item, Stored::Readable(item) if timers.contains(item));
        }
    }

    /// Updates the rows of the instance and of its execution.
    fn record(&mut self, instance: &str, commit: &TurnCommit, starts: &[ConsumedStart], now: u64) -> RunId {
        let metadata = &commit.metadata;
        let change = self.next();
        if let (Some(name), Some(version)) = (&metadata.orchestration_name, &metadata.orchestration_version) {
            let row = self.instances.entry(instance.to_owned()).or_insert_with(|| InstanceRow {
                name: name.clone(),
                version: version.clone(),
                current_execution: commit.execution_id,
                parent: metadata.parent_instance_id.clone(),
                parent_life: life_of_parent(metadata.parent_instance_id.as_deref(), starts),
                custom_status: None,
                custom_status_version: 0,
                created_at_ms: now,
                updated_at_ms: now,
                order: change,
                change,
            });
            (row.name, row.version) = (name.clone(), version.clone());
        }
        if let Some(row) = self.instances.get_mut(instance) {
            row.current_execution = row.current_execution.max(commit.execution_id);
            (row.updated_at_ms, row.change) = (now, change);
            if let Some(status) = commit.custom_status() {
                row.custom_status = status.map(str::to_owned);
                row.custom_status_version += 1;
            }
        }
        let run = self.next_run();
        let key = (instance.to_owned(), commit.execution_id);
        let execution = self.executions.entry(key).or_insert_with(|| ExecutionRow::new(run, now));
        execution.update(commit, now);
        let (run, has_ended) = (execution.run, !execution.is_running());
        let kv = self.kv.entry(instance.to_owned()).or_default();
        kv.record(&commit.events);
        if has_ended {
            kv.merge();
        }
        run
    }

    pub(crate) fn renew_turn(
        &mut self,
        token: &str,
        extend_for: Duration,
        now: u64,
    ) -> Result<(), ProviderError> {
        let instance = self.leased_instance("renew", token, now)?;
        if let Some(lock) = self.turns.get_mut(&instance) {
            lock.until_ms = now.saturating_add(millis(extend_for));
        }
        Ok(())
    }

    /// Abandons a lease: the leased messages, and only those, can be fetched again (S6).
    pub(crate) fn abandon_turn(&mut self, token: &str, how: Abandon, now: u64) -> Result<(), ProviderError> {
        let instance = self.leased_instance("abandon", token, now)?;
        self.end_turn(&instance, now);
        for message in self.messages.values_mut().filter(|message| message.token.as_deref() == Some(token)) {
            message.token = None;
            if how.attempt == Attempt::Uncounted {
                message.attempts = message.attempts.saturating_sub(1);
            }
            if let Some(delay) = how.retry_after {
                message.visible_at_ms = after(now, Some(delay));
            }
        }
        Ok(())
    }

    /// Ends a lease. If the instance still has messages, it can be leased again since now.
    pub(crate) fn end_turn(&mut self, instance: &str, now: u64) {
        self.turns.remove(instance);
        if self.messages.values().any(|message| message.instance == instance) {
            self.freed.insert(instance.to_owned(), now);
        } else {
            self.freed.remove(instance);
        }
    }

    /// Returns the instance that the token holds, if its lease has not ended (S4).
    pub(crate) fn leased_instance(
        &self,
        operation: &str,
        token: &str,
        now: u64,
    ) -> Result<String, ProviderError> {
        match self.turns.iter().find(|(_, lock)| lock.token == token) {
            Some((instance, lock)) if lock.is_live(now) => Ok(instance.clone()),
            Some((instance, _)) => Err(ended_turn_lease(operation, instance)),
            None => Err(no_such_lease(operation, token)),
        }
    }
}
