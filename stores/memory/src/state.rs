//! Everything that the store keeps.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_core::{Event, ScheduledActivityIdentifier, SessionKey, WorkItem};
use steadfast_store::RunId;

use crate::execution::ExecutionRow;
use crate::instance::InstanceRow;
use crate::kv::Kv;
use crate::session::{Session, Watcher};
use crate::set_aside::Aside;

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) instances: BTreeMap<String, InstanceRow>,
    pub(crate) executions: BTreeMap<(String, u64), ExecutionRow>,
    /// Events by execution. Kept apart from the rows above: history can exist without either (S15).
    pub(crate) histories: BTreeMap<(String, u64), BTreeMap<u64, Stored<Event>>>,
    pub(crate) kv: BTreeMap<String, Kv>,
    /// Messages by order of arrival.
    pub(crate) messages: BTreeMap<u64, MessageRow>,
    /// Activities by order of arrival.
    pub(crate) work: BTreeMap<u64, WorkRow>,
    /// Leases of instances.
    pub(crate) turns: BTreeMap<String, Lock>,
    /// When instances with messages were last given back.
    pub(crate) freed: BTreeMap<String, u64>,
    pub(crate) sessions: BTreeMap<SessionKey, Session>,
    pub(crate) watchers: BTreeMap<SessionKey, BTreeSet<Watcher>>,
    /// The newest incarnation of each named node.
    pub(crate) nodes: BTreeMap<String, u64>,
    pub(crate) set_aside: BTreeMap<u64, Aside>,
    counter: u64,
}

/// A row as it is stored: its content, or the text that is no longer any.
#[derive(Debug, Clone)]
pub(crate) enum Stored<T> {
    Readable(T),
    Unreadable { text: String, reason: String },
}

/// A message to an instance.
#[derive(Debug)]
pub(crate) struct MessageRow {
    pub(crate) instance: String,
    pub(crate) item: Stored<WorkItem>,
    pub(crate) traceparent: Option<String>,
    pub(crate) visible_at_ms: u64,
    pub(crate) attempts: u32,
    /// The lease that holds it; worth something only while that lease lasts.
    pub(crate) token: Option<String>,
}

/// An activity for a worker.
#[derive(Debug)]
pub(crate) struct WorkRow {
    /// Whose it is, also when the item cannot be read.
    pub(crate) identity: ScheduledActivityIdentifier,
    pub(crate) item: Stored<WorkItem>,
    pub(crate) session: Option<SessionKey>,
    pub(crate) tag: Option<String>,
    pub(crate) traceparent: Option<String>,
    pub(crate) visible_at_ms: u64,
    pub(crate) attempts: u32,
    pub(crate) lock: Option<WorkLock>,
}

/// A lease with its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) token: String,
    pub(crate) until_ms: u64,
}

impl Lock {
    pub(crate) fn is_live(&self, now: u64) -> bool {
        self.until_ms > now
    }
}

/// The lease of an activity, with its holder and the attachment of its session that the holder had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkLock {
    pub(crate) lock: Lock,
    pub(crate) worker: String,
    pub(crate) epoch: Option<u64>,
}

impl WorkRow {
    pub(crate) fn is_readable(&self) -> bool {
        matches!(self.item, Stored::Readable(_))
    }

    pub(crate) fn is_leased(&self, now: u64) -> bool {
        self.lock.as_ref().is_some_and(|held| held.lock.is_live(now))
    }

    pub(crate) fn is_waiting(&self, now: u64) -> bool {
        self.visible_at_ms <= now && !self.is_leased(now)
    }

    /// Since when the row could have been taken.
    pub(crate) fn waiting_since(&self) -> u64 {
        self.lock.as_ref().map_or(0, |held| held.lock.until_ms).max(self.visible_at_ms)
    }
}

impl State {
    /// A number that was never given before: arrival orders, runs, epochs, tokens and changes all rise with it.
    pub(crate) fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    pub(crate) fn next_run(&mut self) -> RunId {
        RunId(self.next())
    }

    pub(crate) fn next_token(&mut self, what: &str) -> String {
        format!("{what}-{}", self.next())
    }

    /// Does the instance exist: has it a row, any history, or a start that is still to come (S17)?
    pub(crate) fn exists(&self, instance: &str) -> bool {
        self.instances.contains_key(instance)
            || self.has_history(instance)
            || self.has_pending_start(instance)
    }

    pub(crate) fn has_history(&self, instance: &str) -> bool {
        let executions = (instance.to_owned(), 0)..=(instance.to_owned(), u64::MAX);
        self.histories.range(executions).any(|(_, events)| !events.is_empty())
    }

    pub(crate) fn has_pending_start(&self, instance: &str) -> bool {
        self.messages.values().any(|message| message.instance == instance && message.starts())
    }

    /// The number of the latest execution, 1 if there is none.
    pub(crate) fn latest_execution(&self, instance: &str) -> u64 {
        let executions = (instance.to_owned(), 0)..=(instance.to_owned(), u64::MAX);
        self.executions.range(executions).next_back().map_or(1, |((_, execution), _)| *execution)
    }

    pub(crate) fn executions_of(&self, instance: &str) -> impl Iterator<Item = (u64, &ExecutionRow)> {
        let executions = (instance.to_owned(), 0)..=(instance.to_owned(), u64::MAX);
        self.executions.range(executions).map(|((_, execution), row)| (*execution, row))
    }

    pub(crate) fn events(&self, instance: &str, execution: u64) -> impl Iterator<Item = &Stored<Event>> {
        self.histories.get(&(instance.to_owned(), execution)).into_iter().flat_map(BTreeMap::values)
    }
}

impl MessageRow {
    pub(crate) fn starts(&self) -> bool {
        matches!(
            &self.item,
            Stored::Readable(
                WorkItem::StartOrchestration { .. }
                    | WorkItem::ContinueAsNew { .. }
                    | WorkItem::ContinueAsNewWithSessions { .. }
            )
        )
    }
}
