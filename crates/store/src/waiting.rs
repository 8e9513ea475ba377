//! Waiting: what the store knows of messages and activities that nobody has dealt with yet.

use steadfast_core::SessionKey;

/// Tells what waits for the turns of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnState {
    /// Counts the messages that are visible and that no live lease holds.
    pub waiting: u64,
    /// Holds the earliest visible time among those, in milliseconds since the Unix epoch.
    pub oldest_ms: Option<u64>,
    /// Counts the messages that are not visible yet: timers, delayed ones, ones that are tried again later.
    pub delayed: u64,
    /// Counts the messages that the live lease holds.
    pub leased: u64,
    /// Holds the end of the live lease; `None` when nobody holds the instance.
    pub leased_until_ms: Option<u64>,
    /// Names the sessions whose next attachment the current execution wants to hear of, in the order of keys.
    pub watched: Vec<SessionKey>,
    /// Holds the store's time, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// Tells how an activity in the queue stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkState {
    /// Numbers the event that scheduled it.
    pub activity_id: u64,
    /// Names the activity; `None` when what is stored cannot be read (S15).
    pub name: Option<String>,
    /// Names the pool of workers that it runs in.
    pub tag: Option<String>,
    /// Names the session that it runs on.
    pub session: Option<SessionKey>,
    /// Counts its fetches.
    pub attempts: u32,
    /// Says who has it, or since when nobody does.
    pub phase: WorkPhase,
}

/// Says who has an activity, or since when nobody does. Times are the store's, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkPhase {
    /// It is held back.
    Delayed {
        /// Holds the time at which it becomes visible.
        until_ms: u64,
    },
    /// It could be taken.
    Waiting {
        /// Holds the time since which it could: it became visible then, or its last lease ended.
        since_ms: u64,
    },
    /// It is leased.
    Leased {
        /// Names the worker; empty when that gave no name.
        worker_id: String,
        /// Holds the end of the lease.
        until_ms: u64,
    },
}

/// Tells since when the oldest runnable things wait. Times are the store's, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OldestWaiting {
    /// Holds the time since which some instance could have been leased; `None` when none can be now.
    pub message_ms: Option<u64>,
    /// Holds the time since which some activity could have been leased; `None` when none can be now.
    pub work_ms: Option<u64>,
    /// Holds the store's time.
    pub now_ms: u64,
}
