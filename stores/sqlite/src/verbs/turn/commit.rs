//! Committing a turn: its messages are consumed, its decisions recorded.

use rusqlite::params;
use steadfast_core::Event;
use steadfast_store::rules::{fires_at_ms, no_such_lease, to_json};
use steadfast_store::{Committed, ProviderError, RunId, TurnCommit};

use crate::link::db::{Db, sql, time, unsigned};
use crate::link::error::DbResult;
use crate::verbs::message::WorkTexts;
use crate::verbs::message::life::ConsumedStarts;
use crate::verbs::torn::Removal;
use crate::verbs::turn::{HeldTurn, places_in};

/// A commit with its JSON texts, made by the caller, so that the writer only stores them.
pub(crate) struct PreparedCommit {
    pub(crate) commit: TurnCommit,
    events: Vec<String>,
    work: Vec<WorkTexts>,
    messages: Vec<String>,
    dropped_timers: Vec<String>,
    failure: Option<String>,
}

impl PreparedCommit {
    pub(crate) fn new(commit: TurnCommit) -> Result<Self, ProviderError> {
        const OPERATION: &str = "commit_turn";
        commit.check()?;
        Ok(Self {
            events: texts(OPERATION, commit.events.iter())?,
            work: commit.work.iter().map(|work| WorkTexts::of(OPERATION, work)).collect::<Result<_, _>>()?,
            messages: texts(OPERATION, commit.messages.iter().map(|message| &message.item))?,
            dropped_timers: texts(OPERATION, commit.dropped_timers.iter())?,
            failure: commit.failure().map(|details| to_json(OPERATION, details)).transpose()?,
            commit,
        })
    }
}

/// The messages that a lease holds, when its turn is committed (S3).
const CONSUMED: Removal =
    Removal { remove: sql!("turn/lease/consume"), give_up: sql!("torn/message/instead/of_lease") };

impl Db<'_> {
    /// Commits a turn. An error rolls the whole request back (S3).
    pub(crate) fn commit_turn(&self, token: &str, commit: &PreparedCommit) -> DbResult<Committed> {
        let HeldTurn { key, instance, pin, batch, .. } = self.turn_holder("commit_turn", token)?;
        let starts = self.consumed_starts(key, token, &commit.commit)?;
        let parent = commit.commit.metadata.parent_instance_id.as_deref();
        if self.begins_for_former_life(key, parent, &starts)? {
            return Err(no_such_lease("commit_turn", token).into());
        }
        self.consume(key, token, batch.as_deref())?;
        let run = self.record(key, commit, &starts)?;
        if pin < 0 && !commit.commit.ends_execution() {
            self.keep_route(key, pin)?;
        }
        self.append(
            "commit_turn",
            key,
            &instance,
            commit.commit.execution_id,
            &commit.commit.events,
            &commit.events,
        )?;
        self.record_kv(key, &commit.commit.events, commit.commit.ends_execution())?;
        self.record_sessions(key, &instance, &commit.commit)?;
        for (work, texts) in commit.commit.work.iter().zip(&commit.work) {
            self.insert_work(work, texts)?;
        }
        for activity in &commit.commit.cancelled {
            self.withdraw(activity)?;
        }
        for (message, item) in commit.commit.messages.iter().zip(&commit.messages) {
            let due = fires_at_ms(&message.item).map_or(self.now, time);
            let life = self.life_of(key, &instance, &message.item, &starts)?;
            self.insert_message_of(message, item, due, life)?;
        }
        for (timer, item) in commit.commit.dropped_timers.iter().zip(&commit.dropped_timers) {
            let due = fires_at_ms(timer).map_or(self.now, time);
            self.run(sql!("message/drop_timer"), params![key, due, item])
                .map_err(|fault| self.torn_fault_of_instance(key, fault))?;
        }
        self.free_turn(key, self.now)?;
        let mut woken = self.woken.borrow_mut();
        let changed = if commit.commit.ends_instance() { &mut woken.ended } else { &mut woken.instances };
        changed.push(instance);
        Ok(Committed { run: Some(run) })
    }

    /// Removes the messages that a lease holds. Those that cannot be read are consumed too.
    fn consume(&self, key: i64, token: &str, batch: Option<&str>) -> DbResult<()> {
        let removed = self
            .remove_rows(&CONSUMED, params![key, token])
            .map_err(|fault| self.torn_fault_of_instance(key, fault))?;
        let held = places_in(batch, token);
        if removed < held.len() { self.give_up_consumed(&held) } else { Ok(()) }
    }

    /// Updates the rows of the instance and of its execution.
    fn record(&self, key: i64, prepared: &PreparedCommit, starts: &ConsumedStarts) -> DbResult<RunId> {
        let commit = &prepared.commit;
        let metadata = &commit.metadata;
        let execution = time(commit.execution_id);
        let change = self.next()?;
        if let (Some(name), Some(version)) = (&metadata.orchestration_name, &metadata.orchestration_version) {
            let parent = &metadata.parent_instance_id;
            let parent_life = starts.life_of_parent(parent.as_deref());
            self.run(
                sql!("instance/name_row"),
                params![key, name, version, parent, self.now, change, execution, parent_life],
            )?;
        }
        self.run(sql!("instance/touch"), params![key, execution, self.now, change])?;
        if let Some(status) = commit.custom_status() {
            self.run(sql!("instance/custom_status"), params![key, status])?;
        }
        let pinned = metadata.pinned_duroxide_version.as_ref().map(ToString::to_string);
        if let Some(pinned) = &pinned {
            self.number(sql!("turn/ready/pin_id"), [pinned])?;
        }
        let run = self.next()?;
        let columns = params![
            key,
            execution,
            run,
            metadata.status,
            metadata.output,
            prepared.failure,
            pinned,
            self.now
        ];
        let run = self.number(sql!("execution/upsert"), columns)?;
        self.run(sql!("instance/set_pin"), [key])?;
        Ok(RunId(unsigned(run)))
    }

    /// Makes the rows of an execution that is imported from another engine.
    pub(crate) fn record_import(
        &self,
        key: i64,
        execution: i64,
        events: &[Event],
        metadata: &steadfast_core::ExecutionMetadata,
    ) -> DbResult<()> {
        let commit = TurnCommit {
            execution_id: unsigned(execution),
            events: events.to_vec(),
            metadata: metadata.clone(),
            ..TurnCommit::default()
        };
        self.record(key, &PreparedCommit::new(commit)?, &ConsumedStarts::default()).map(drop)
    }
}

fn texts<'a, T: serde::Serialize + 'a>(
    operation: &'static str,
    items: impl Iterator<Item = &'a T>,
) -> Result<Vec<String>, ProviderError> {
    items.map(|item| to_json(operation, item)).collect()
}
