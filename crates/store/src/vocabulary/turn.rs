//! Turns: leasing an instance with the messages that wait for it, and committing the decisions.

use std::collections::HashMap;
use std::time::Duration;

use steadfast_core::{
    CallTerms, DispatcherCapabilityFilter, Event, ExecutionMetadata, Failure, KvEntry,
    ScheduledActivityIdentifier, SessionKey, WorkItem,
};

use crate::{LeaseToken, WorkerId};

/// Identifies one run of one execution. Run ids are never reused: an instance that was deleted and started
/// again has another run id, although its execution has the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// Bounds the messages of one turn, because they are held in memory and committed in one transaction. Further
/// messages wait for the next turn.
pub const MAX_TURN_MESSAGES: usize = 1_000;

/// Asks for an instance that has a message to process.
#[derive(Clone, Copy)]
pub struct TurnRequest<'a> {
    /// How long the lease lasts unless it is renewed. A holder that takes longer loses the instance to
    /// another.
    pub lock_timeout: Duration,
    /// How long the call waits for an instance; zero answers at once.
    pub poll_timeout: Duration,
    /// The engine versions that the caller can run; `None` means all. A filter without a version gets no
    /// instance.
    pub filter: Option<&'a DispatcherCapabilityFilter>,
    /// The executions that the caller holds in memory; their leases bring only new events.
    pub warm: &'a dyn Warm,
    /// The worker that asks ([`report_worker`](crate::Store::report_worker)). It is given no work that was
    /// refused and that other live workers list (S21). `None` is given all.
    pub worker: Option<&'a WorkerId>,
}

/// Tells a store which executions the caller keeps in memory, so that it sends only the events that are new.
///
/// The store asks when the lease is taken, not when the call begins to wait: the answer may change meanwhile.
pub trait Warm: Send + Sync {
    /// Returns the run that the caller holds of this instance, and the last event it knows.
    fn held(&self, instance: &str) -> Option<Held>;
}

/// The run of an instance that a caller holds in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The run that the caller holds; a lease of another run brings the whole history.
    pub run: RunId,
    /// The id of the last event that the caller knows; the lease brings the events after it.
    pub last_event_id: u64,
}

/// A caller that holds no execution in memory: every lease brings the whole history.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cold;

impl Warm for Cold {
    fn held(&self, _instance: &str) -> Option<Held> {
        None
    }
}

/// An instance that is leased for one turn, with everything that the turn needs.
#[derive(Debug, Clone)]
pub struct TurnLease {
    /// The proof of the lease for [`commit_turn`](crate::Store::commit_turn), `renew` and `abandon`.
    pub token: LeaseToken,
    /// The id of the leased instance.
    pub instance: String,
    /// The name of the orchestration; `unknown` if no row, event or start says it.
    pub name: String,
    /// The version of the handler that runs the current execution; `unknown` if no row, event or start says
    /// it.
    pub version: String,
    /// The number of the current execution; 1 for an instance that has not begun.
    pub execution_id: u64,
    /// The run of that execution; `None` before its first commit, or if the store does not tell runs apart.
    pub run: Option<RunId>,
    /// The id of the last event of that execution, 0 if it has none.
    pub last_event_id: u64,
    /// The events of that execution, without those that the caller holds ([`Warm`]).
    pub history: History,
    /// The messages to process, in the order in which they were due, then of arrival.
    pub messages: Vec<Message>,
    /// The places in `messages` of starts whose parent is another life of the one that started the instance
    /// (S17): the instance is not the child that they ask for. Empty if the store does not tell lives apart.
    pub rival_starts: Vec<usize>,
    /// The highest delivery count among `messages`, this fetch included.
    pub attempt: u32,
    /// The key-value state at the end of the previous execution. Empty with [`History::Tail`]: it does not
    /// change during an execution, so a caller that holds the execution holds this state too.
    pub kv: HashMap<String, KvEntry>,
    /// The store's time at which the lease was taken, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// The events of an execution, as far as the caller needs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum History {
    /// All events of the execution, in order.
    Whole(Vec<Event>),
    /// The events after the last one that the caller holds.
    Tail {
        /// The id of the last event that the caller holds.
        after: u64,
        /// The events with a higher id than `after`, in order.
        events: Vec<Event>,
    },
    /// The events cannot be read, for this reason. A commit can still append to them (S15).
    Unreadable(String),
    /// The database cannot read the events, for this reason: a page is torn, or the disk fails. Unlike a text
    /// that is no event, they may be readable again later. A commit can still append to them (S15).
    Damaged(String),
}

/// A message to an instance, with the trace context and the failure, for which the JSON form has no fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The content of the message: any item but an `ActivityExecute`.
    pub item: WorkItem,
    /// The W3C trace context of the sender; `None` if the sender gave none. The store keeps it beside the
    /// message and returns it with the lease.
    pub traceparent: Option<String>,
    /// How an activity failed, beside the error in the item; `None` for any other message, and if there is
    /// nothing to tell. The store keeps it beside the message and returns it with the lease.
    pub failure: Option<Box<Failure>>,
}

impl From<WorkItem> for Message {
    fn from(item: WorkItem) -> Self {
        Self { item, traceparent: None, failure: None }
    }
}

/// Everything that a turn decided. A store commits all of it or nothing.
///
/// Changes of key-value state, custom status and sessions are read from the events.
#[derive(Debug, Clone, Default)]
pub struct TurnCommit {
    /// The number of the execution that the events belong to.
    pub execution_id: u64,
    /// The events to append; their ids must be new and above 0.
    pub events: Vec<Event>,
    /// The activities to queue for workers, in order.
    pub work: Vec<NewWork>,
    /// The messages to send. A `TimerFired` becomes visible at its time, any other message at once.
    pub messages: Vec<Message>,
    /// The name, version, parent, status and output of the execution, as far as this turn changes them.
    pub metadata: ExecutionMetadata,
    /// The activities to withdraw, queued or running; activities that this commit queues may be among them.
    pub cancelled: Vec<ScheduledActivityIdentifier>,
    /// The sessions that the execution watches from now on: it gets a message when a process claims one of
    /// them anew.
    pub watched: Vec<SessionKey>,
    /// The messages of timers that the code does not await any more, each a `TimerFired`; messages that this
    /// commit sends may be among them. They stay queued and fire, and [`turn_of`](crate::Store::turn_of)
    /// tells them apart.
    pub dropped_timers: Vec<WorkItem>,
}

impl TurnCommit {
    /// Returns a commit that only removes the leased messages.
    pub fn empty(execution_id: u64) -> Self {
        Self { execution_id, ..Self::default() }
    }
}

/// An activity to queue, with its session, trace context and terms, for which the JSON form has no fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWork {
    /// The activity: an `ActivityExecute`.
    pub item: WorkItem,
    /// The session that the activity runs on. `None` means the shared session that the item names, or no
    /// session if it names none.
    pub session: Option<SessionKey>,
    /// The W3C trace context of the orchestration, which the lease of the activity brings; `None` if the
    /// orchestration has none.
    pub traceparent: Option<String>,
    /// The key and the policy of the call, which the lease of the activity brings (S22). `None` for work that
    /// older builds may run too.
    pub call: Option<Box<CallTerms>>,
}

impl NewWork {
    /// Returns the session that the activity runs on.
    pub fn session_key(&self) -> Option<SessionKey> {
        self.session.clone().or_else(|| match &self.item {
            WorkItem::ActivityExecute { session_id: Some(id), .. } => Some(SessionKey::shared(id)),
            _ => None,
        })
    }
}

impl From<WorkItem> for NewWork {
    fn from(item: WorkItem) -> Self {
        Self { item, session: None, traceparent: None, call: None }
    }
}

/// The answer of the store to a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The run that the events belong to; `None` if the store does not tell runs apart.
    pub run: Option<RunId>,
}

/// One leased instance in the compatible form.
#[derive(Debug, Clone)]
pub struct OrchestrationItem {
    /// The id of the leased instance.
    pub instance: String,
    /// The name of the orchestration; `unknown` if no row, event or start says it.
    pub orchestration_name: String,
    /// The number of the current execution, from 1.
    pub execution_id: u64,
    /// The version of the handler that runs the current execution; `unknown` if no row, event or start says
    /// it.
    pub version: String,
    /// All events of the current execution, in order; empty if they cannot be read.
    pub history: Vec<Event>,
    /// The messages to process, in the order in which they were due, then of arrival.
    pub messages: Vec<WorkItem>,
    /// Why the history cannot be read; `None` if it was read.
    pub history_error: Option<String>,
    /// The key-value state at the end of the previous execution.
    pub kv_snapshot: HashMap<String, KvEntry>,
}
