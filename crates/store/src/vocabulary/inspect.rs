//! Inspection: the messages that wait for an instance, the state of its activities, and how long the oldest
//! message and the oldest activity have waited.

use steadfast_core::{CallTerms, SessionKey, WorkItem};

use crate::Tries;

/// The messages that wait for the turns of an instance, and its lease.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnState {
    /// The number of messages that are visible and that no live lease holds.
    pub waiting: u64,
    /// The earliest visible time among the waiting messages, in milliseconds since the Unix epoch; `None` if
    /// there are none.
    pub oldest_ms: Option<u64>,
    /// The number of messages that are not visible yet: timers, delayed messages, messages to be retried
    /// later. Timers that the code dropped are not counted.
    pub delayed: u64,
    /// The number of messages that the live lease holds.
    pub leased: u64,
    /// The end of the live lease, in milliseconds since the Unix epoch; `None` if the instance is not leased.
    pub leased_until_ms: Option<u64>,
    /// The sessions that the current execution watches: it gets a message when a worker claims one anew. In
    /// the order of keys.
    pub watched: Vec<SessionKey>,
    /// The ids of the events that created timers of the current execution which the code does not await any
    /// more and whose messages are queued, in rising order, at most [`MAX_PAGE`](crate::MAX_PAGE).
    pub dropped_timers: Vec<u64>,
    /// The store's time, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// The start of an execution that waits for its first turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingStart {
    /// The name that the orchestration is registered under.
    pub orchestration: String,
    /// The version that the start asks for; `None` leaves the choice to the registry.
    pub version: Option<String>,
}

impl WaitingStart {
    /// Describes a message that starts an execution; `None` for another message.
    pub fn of(item: &WorkItem) -> Option<Self> {
        match item {
            WorkItem::StartOrchestration { orchestration, version, .. }
            | WorkItem::ContinueAsNew { orchestration, version, .. }
            | WorkItem::ContinueAsNewWithSessions { orchestration, version, .. } => {
                Some(Self { orchestration: orchestration.clone(), version: version.clone() })
            }
            _ => None,
        }
    }
}

/// The state of a queued or leased activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkState {
    /// The id of the event that scheduled the activity.
    pub activity_id: u64,
    /// The name of the activity; `None` if the stored text cannot be read (S15).
    pub name: Option<String>,
    /// The tag that routes the activity to a pool of workers; `None` for the default pool.
    pub tag: Option<String>,
    /// The session that the activity runs on.
    pub session: Option<SessionKey>,
    /// How often the activity was fetched since its last try ended, without deliveries that do not count.
    pub attempts: u32,
    /// How often the activity was fetched.
    pub deliveries: u32,
    /// The key and the policy of the call; `None` if the work was queued without them.
    pub call: Option<Box<CallTerms>>,
    /// The tries of the call that have ended.
    pub tries: Tries,
    /// Whether the activity is held back, waits, or is leased.
    pub phase: WorkPhase,
}

/// Whether an activity is held back, waits, or is leased. Times are the store's, in milliseconds since the
/// Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkPhase {
    /// No fetch can lease the activity yet: it was abandoned with a delay, or could not be read and is tried
    /// again later.
    Delayed {
        /// The time at which the activity becomes visible to fetches.
        until_ms: u64,
    },
    /// A fetch can lease the activity now.
    Waiting {
        /// Since when the activity can be leased: the time at which it became visible, or its last lease
        /// ended.
        since_ms: u64,
    },
    /// A worker holds a live lease of the activity.
    Leased {
        /// The name that the worker gave in its request; empty if it gave none.
        worker_id: String,
        /// When the lease ends unless it is renewed.
        until_ms: u64,
    },
}

/// Since when the oldest runnable instance and the oldest runnable activity wait. Times are the store's, in
/// milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OldestWaiting {
    /// Since when some instance could have been leased; `None` if no instance can be leased now.
    pub message_ms: Option<u64>,
    /// Since when some activity could have been leased; `None` if no activity can be leased now.
    pub work_ms: Option<u64>,
    /// The store's time at which the answer was made.
    pub now_ms: u64,
}
