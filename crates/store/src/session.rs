//! Sessions: who holds them, for how long, and what the store knows of them.

use std::time::Duration;

use steadfast_core::{SessionConcurrency, SessionKey, TagFilter};

use crate::Owner;

/// Names one attachment of a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionRef {
    /// Names the session.
    pub key: SessionKey,
    /// Holds the fencing token of the attachment.
    pub epoch: u64,
}

/// Asks to extend the leases of the sessions that a process holds.
#[derive(Debug, Clone)]
pub struct RenewSessions {
    /// Names the process.
    pub owner: Owner,
    /// Says how long the leases last from now.
    pub extend_for: Duration,
    /// Says after how long without work a session counts as idle. An owned session has its own time.
    pub idle_timeout: Duration,
    /// Says after how long an untaken item moves its session on.
    pub untaken_after: Duration,
    /// Says which tags the worker serves: an item of another tag will not be taken soon.
    pub tags: TagFilter,
    /// Says whether the process takes work of sessions that it holds and does not serve now.
    pub appetite: Appetite,
    /// Names what the process believes to hold, so that it learns what it lost.
    pub held: Vec<SessionRef>,
}

/// Says whether a process will soon take work of the sessions that it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appetite {
    /// It will, also when all its slots are busy now.
    Hungry,
    /// It will not: it serves as many sessions as it may, or is being drained.
    Full,
}

/// Says what became of the sessions of a process. Each list is in the order of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionsRenewed {
    /// Names those whose lease was extended.
    pub renewed: Vec<SessionRef>,
    /// Names those that went idle: their lease was not extended.
    pub idle: Vec<SessionRef>,
    /// Names those with work that the process does not take: their lease was ended.
    pub untaken: Vec<SessionRef>,
    /// Names those that the process believed to hold and does not.
    pub lost: Vec<SessionRef>,
}

/// Tells what the store knows of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Names the session.
    pub key: SessionKey,
    /// Names the process that held it last, if any did.
    pub owner: Option<Owner>,
    /// Holds the fencing token of its last attachment, 0 before the first.
    pub epoch: u64,
    /// Holds the end of its lease, in milliseconds since the Unix epoch.
    pub locked_until_ms: u64,
    /// Holds the time of its last work, in milliseconds since the Unix epoch.
    pub last_activity_at_ms: u64,
    /// Counts its queued and running activities.
    pub queued: u64,
    /// Bounds how long an owned session stays attached without work.
    pub idle_timeout_ms: Option<u64>,
    /// Says how many activities of an owned session may run at a time.
    pub concurrency: SessionConcurrency,
}
