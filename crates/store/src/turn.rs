//! Turns: leasing an instance with what arrived for it, and committing what was decided.

use std::collections::HashMap;
use std::time::Duration;

use steadfast_core::{
    DispatcherCapabilityFilter, Event, ExecutionMetadata, KvEntry, ScheduledActivityIdentifier, SessionKey,
    WorkItem,
};

use crate::LeaseToken;

/// Names one run of one execution. Never reused: an instance that was deleted and started again has another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// Bounds the messages of one turn, because they are held in memory and committed in one transaction. What
/// is beyond it waits for the next turn.
pub const MAX_TURN_MESSAGES: usize = 1_000;

/// Asks for an instance that has something to do.
#[derive(Clone, Copy)]
pub struct TurnRequest<'a> {
    /// Says how long the lease lasts.
    pub lock_timeout: Duration,
    /// Says how long to wait for an instance; zero answers at once.
    pub poll_timeout: Duration,
    /// Names the engine versions that the caller can run; `None` means all.
    pub filter: Option<&'a DispatcherCapabilityFilter>,
    /// Tells what the caller holds warm.
    pub warm: &'a dyn Warm,
}

/// Tells a store which executions the caller keeps in memory, so that it sends only what is new.
///
/// Asked when the lease is taken, not when the call begins to wait: what is held may change meanwhile.
pub trait Warm: Send + Sync {
    /// Returns the run that is held of this instance, and its last event.
    fn held(&self, instance: &str) -> Option<Held>;
}

/// Names what is held warm of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Names the run.
    pub run: RunId,
    /// Holds the id of the last event that it knows.
    pub last_event_id: u64,
}

/// Holds nothing warm: every lease brings the whole history.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cold;

impl Warm for Cold {
    fn held(&self, _instance: &str) -> Option<Held> {
        None
    }
}

/// Holds an instance for one turn.
#[derive(Debug, Clone)]
pub struct TurnLease {
    /// Proves the lease.
    pub token: LeaseToken,
    /// Names the instance.
    pub instance: String,
    /// Names the orchestration, or `unknown`.
    pub name: String,
    /// Names the version of its handler, or `unknown`.
    pub version: String,
    /// Numbers the current execution.
    pub execution_id: u64,
    /// Names its run; `None` when the store does not tell runs apart, or when there is none yet.
    pub run: Option<RunId>,
    /// Holds the id of its last event, 0 when there is none.
    pub last_event_id: u64,
    /// Holds its events, or those that the caller does not know.
    pub history: History,
    /// Holds what arrived, in order of arrival.
    pub messages: Vec<Message>,
    /// Counts the fetches of the message that was fetched most often, this one included.
    pub attempt: u32,
    /// Holds the key-value state that the previous execution left; empty with [`History::Tail`], because it does not
    /// change during an execution and who holds the execution holds it too.
    pub kv: HashMap<String, KvEntry>,
    /// Holds the store's time, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// Holds the events of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum History {
    /// Holds all events.
    Whole(Vec<Event>),
    /// Holds the events after the one that the caller knows.
    Tail {
        /// Names the last event that the caller knows.
        after: u64,
        /// Holds what came later.
        events: Vec<Event>,
    },
    /// Says why the events cannot be read. They can still be added to.
    Unreadable(String),
}

/// Carries a message, and beside it what its JSON has no room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Holds the message.
    pub item: WorkItem,
    /// Holds the W3C trace context it belongs to.
    pub traceparent: Option<String>,
}

impl From<WorkItem> for Message {
    fn from(item: WorkItem) -> Self {
        Self { item, traceparent: None }
    }
}

/// Holds everything that a turn decided. It is committed as a whole or not at all.
///
/// Changes of key-value state, custom status and sessions are read from the events.
#[derive(Debug, Clone, Default)]
pub struct TurnCommit {
    /// Numbers the execution that the events belong to.
    pub execution_id: u64,
    /// Holds the events to append.
    pub events: Vec<Event>,
    /// Holds the activities to queue.
    pub work: Vec<NewWork>,
    /// Holds the messages to send. A `TimerFired` becomes visible at its time, any other at once.
    pub messages: Vec<Message>,
    /// Describes the execution beside its events.
    pub metadata: ExecutionMetadata,
    /// Names activities to withdraw, queued or running; also ones that this commit queues.
    pub cancelled: Vec<ScheduledActivityIdentifier>,
    /// Names sessions whose next attachments the execution wants to hear of.
    pub watched: Vec<SessionKey>,
}

impl TurnCommit {
    /// Decides nothing: the leased messages are removed and that is all.
    pub fn empty(execution_id: u64) -> Self {
        Self { execution_id, ..Self::default() }
    }

    /// Tells whether the instance ends with it, for those who wait for that. One that continues as new goes on.
    pub fn ends_instance(&self) -> bool {
        matches!(self.metadata.status.as_deref(), Some("Completed" | "Failed"))
    }
}

/// Carries an activity to queue, and beside it what its JSON has no room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWork {
    /// Holds the activity.
    pub item: WorkItem,
    /// Names its session; `None` reads a shared one from the item.
    pub session: Option<SessionKey>,
    /// Holds the W3C trace context it belongs to.
    pub traceparent: Option<String>,
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
        Self { item, session: None, traceparent: None }
    }
}

/// Says what a commit made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// Names the run that the events belong to; `None` when the store does not tell runs apart.
    pub run: Option<RunId>,
}

/// Holds one leased instance in the compatible form.
#[derive(Debug, Clone)]
pub struct OrchestrationItem {
    /// Names the instance.
    pub instance: String,
    /// Names the orchestration.
    pub orchestration_name: String,
    /// Numbers the current execution.
    pub execution_id: u64,
    /// Names the version of its handler.
    pub version: String,
    /// Holds the events of the current execution.
    pub history: Vec<Event>,
    /// Holds the messages in queue order.
    pub messages: Vec<WorkItem>,
    /// Says why the history cannot be read; then it is empty.
    pub history_error: Option<String>,
    /// Holds the key-value store as the previous execution left it.
    pub kv_snapshot: HashMap<String, KvEntry>,
}
