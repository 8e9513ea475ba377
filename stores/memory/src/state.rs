//! The rows that the store keeps, and queries on them that several methods of the store share.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_core::{CallTerms, Event, Failure, ScheduledActivityIdentifier, SessionKey, WorkItem};
use steadfast_store::{NeededHandler, RunId, Tries, WorkerId};

use crate::execution::ExecutionRow;
use crate::instance::InstanceRow;
use crate::instance::kv::Kv;
use crate::session::trail::SessionTrails;
use crate::session::{ClosedClaim, NodeRow, SessionRow, Watcher};
use crate::set_aside::Aside;
use crate::worker::WorkerRow;

/// All rows of the store.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) instances: BTreeMap<String, InstanceRow>,
    pub(crate) executions: BTreeMap<(String, u64), ExecutionRow>,
    /// Events by execution. They are not part of `instances` and `executions`, because a history can exist
    /// without rows there (S15).
    pub(crate) histories: BTreeMap<(String, u64), BTreeMap<u64, Stored<Event>>>,
    pub(crate) kv: BTreeMap<String, Kv>,
    /// Messages by their place in the queue, which is the order of arrival.
    pub(crate) messages: BTreeMap<u64, MessageRow>,
    /// Activities by their place in the queue, which is the order of arrival.
    pub(crate) work: BTreeMap<u64, WorkRow>,
    /// The leases of instances. A lease that was neither committed nor abandoned stays here after its end.
    pub(crate) turns: BTreeMap<String, Lock>,
    /// The time at which the last lease of an instance was ended, for instances that have messages.
    pub(crate) freed: BTreeMap<String, u64>,
    pub(crate) sessions: BTreeMap<SessionKey, SessionRow>,
    /// Claims of sessions that were closed while their leases lasted.
    pub(crate) closed: BTreeMap<SessionKey, ClosedClaim>,
    pub(crate) watchers: BTreeMap<SessionKey, BTreeSet<Watcher>>,
    pub(crate) trails: SessionTrails,
    /// The newest incarnation of each named node.
    pub(crate) nodes: BTreeMap<String, NodeRow>,
    pub(crate) set_aside: BTreeMap<u64, Aside>,
    /// The tokens of activities that were withdrawn while their lease lasted, and until when each is known.
    pub(crate) withdrawn: BTreeMap<String, u64>,
    pub(crate) workers: BTreeMap<WorkerId, WorkerRow>,
    /// The handlers that routed instances need (S21).
    pub(crate) routes: BTreeMap<String, NeededHandler>,
    /// How much of the time for which the machine slept is counted in the time of the store.
    pub(crate) slept_ms: u64,
    counter: u64,
}

/// The content of a row: readable, or a text that cannot be read.
#[derive(Debug, Clone)]
pub(crate) enum Stored<T> {
    Readable(T),
    Unreadable { text: String, reason: String },
}

/// The row of a message to an instance.
#[derive(Debug)]
pub(crate) struct MessageRow {
    pub(crate) instance: String,
    pub(crate) item: Stored<WorkItem>,
    /// Whether it is a start or a continue-as-new: known even if `item` cannot be read.
    pub(crate) starts: bool,
    pub(crate) traceparent: Option<String>,
    /// How an activity failed, beside its error.
    pub(crate) failure: Option<Box<Failure>>,
    /// The life of the parent that started the child, or that the child answers; `None` if no turn sent the
    /// message, or if it needs none.
    pub(crate) life: Option<u64>,
    /// The moment at which the message first became due: the order within a turn. An abandon does not change
    /// it.
    pub(crate) due_ms: u64,
    pub(crate) visible_at_ms: u64,
    pub(crate) attempts: u32,
    /// The token of the last lease that included this message. The message is leased only while that lease
    /// lasts.
    pub(crate) token: Option<String>,
    /// The tokens of expired leases that included this message, whose delivery is still counted (S5).
    pub(crate) expired: Vec<String>,
    /// Whether a worker refused the message at its last delivery, and no live worker listed the handler.
    pub(crate) is_refused: bool,
    /// Whether it is the message of a timer that the code does not await any more.
    pub(crate) is_dropped: bool,
}

/// The row of an activity, queued or leased.
#[derive(Debug)]
pub(crate) struct WorkRow {
    /// The instance, execution and event that scheduled the activity: known even if `item` cannot be read.
    pub(crate) identity: ScheduledActivityIdentifier,
    pub(crate) item: Stored<WorkItem>,
    pub(crate) session: Option<SessionKey>,
    pub(crate) tag: Option<String>,
    pub(crate) traceparent: Option<String>,
    /// The key and the policy of the call (S22).
    pub(crate) call: Option<Box<CallTerms>>,
    pub(crate) visible_at_ms: u64,
    /// How many deliveries count since the last try ended.
    pub(crate) attempts: u32,
    /// How often the activity was leased.
    pub(crate) deliveries: u32,
    pub(crate) tries: Tries,
    pub(crate) lock: Option<WorkLock>,
    /// The tokens of expired leases of this activity, whose delivery is still counted (S5).
    pub(crate) expired: Vec<String>,
    /// The handler that the activity needs, once a worker has refused it (S21).
    pub(crate) route: Option<NeededHandler>,
    /// Whether a worker refused the activity at its last delivery, and no live worker listed the handler.
    pub(crate) is_refused: bool,
}

/// A lease: its token and its end.
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

/// The lease of an activity, with the worker that holds it and the epoch of its session at the fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkLock {
    pub(crate) lock: Lock,
    pub(crate) worker: String,
    pub(crate) epoch: Option<u64>,
    /// Whether the lease was abandoned, or its delivery was excused: its end does not count any more.
    pub(crate) is_settled: bool,
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

    /// Returns the time since which the activity can be leased.
    pub(crate) fn waiting_since(&self) -> u64 {
        self.lock.as_ref().map_or(0, |held| held.lock.until_ms).max(self.visible_at_ms)
    }
}

impl State {
    /// Returns a number that was never given before: places, runs, epochs, tokens and changes come from one
    /// counter.
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

    /// Tells whether the instance exists: it has a row, any history, or a start that is not consumed yet
    /// (S17).
    pub(crate) fn exists(&self, instance: &str) -> bool {
        self.instances.contains_key(instance)
            || self.has_history(instance)
            || self.has_pending_start(instance)
    }

    pub(crate) fn has_history(&self, instance: &str) -> bool {
        let executions = (instance.to_owned(), 0)..=(instance.to_owned(), u64::MAX);
        self.histories.range(executions).any(|(_, events)| !events.is_empty())
    }

    /// Tells whether a start waits that can make the instance exist: one of a former life does not.
    pub(crate) fn has_pending_start(&self, instance: &str) -> bool {
        let starts = |row: &MessageRow| row.instance == instance && row.starts;
        self.messages.values().any(|row| starts(row) && self.is_of_this_life(row))
    }

    /// Tells whether a start waits, of whatever life.
    pub(crate) fn has_queued_start(&self, instance: &str) -> bool {
        self.messages.values().any(|row| row.instance == instance && row.starts)
    }

    /// Returns the number of the latest execution, 1 if there is none.
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
