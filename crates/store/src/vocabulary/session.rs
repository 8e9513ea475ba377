//! Sessions: their owners, their leases, and the rows that a store keeps for them.

use std::time::Duration;

use steadfast_core::{SessionConcurrency, SessionKey, TagFilter};

use crate::{Owner, WorkerId};

/// One claim of a session. A session that is claimed again has another epoch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionRef {
    /// The key of the session: its id, and its instance if it is owned.
    pub key: SessionKey,
    /// The number of the claim, by which a store refuses calls of earlier claims. A later claim of any
    /// session has a higher one.
    pub epoch: u64,
}

/// Asks to extend the leases of the sessions that a process owns.
#[derive(Debug, Clone)]
pub struct RenewSessions {
    /// The process whose sessions are renewed.
    pub owner: Owner,
    /// How long the leases last from now on. Too short a time loses sessions whenever a renewal is late.
    pub extend_for: Duration,
    /// After how long without work a shared session is idle and its lease is not extended. A session that
    /// belongs to an instance has its own time.
    pub idle_timeout: Duration,
    /// After how long the lease of a session ends while the session has ready work that this process will not
    /// take: `appetite` is `Full`, or `tags` does not accept the work. Another process can then claim the
    /// session. [`Duration::MAX`] never ends a lease for this reason.
    pub untaken_after: Duration,
    /// The tags that the process serves: it will not take work of any other tag.
    pub tags: TagFilter,
    /// Whether the process will soon take work of the sessions that it owns.
    pub appetite: Appetite,
    /// The worker that asks: it will not take work that was refused and that only other workers list (S21).
    /// `None` takes all.
    pub worker: Option<WorkerId>,
    /// The claims that the process believes to hold; those that it does not hold come back as
    /// [`lost`](SessionsRenewed::lost).
    pub held: Vec<SessionRef>,
}

/// Whether a process will soon take work of the sessions that it owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appetite {
    /// The process takes such work as soon as it has a free slot.
    Hungry,
    /// The process takes no such work: it serves as many sessions as it may, or it is being drained.
    Full,
}

/// The result of a renewal: the claims of the process, by what happened to them. Each list is in the order of
/// keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionsRenewed {
    /// Claims whose lease was extended: it ends `extend_for` after the time of the call.
    pub renewed: Vec<SessionRef>,
    /// Claims whose session is idle: their lease was not extended and ends by itself.
    pub idle: Vec<SessionRef>,
    /// Claims whose session has had work for longer than `untaken_after` that the process did not take. The
    /// store has ended their lease, so that another process can claim the session.
    pub untaken: Vec<SessionRef>,
    /// Claims in [`RenewSessions::held`] that the process does not hold: the lease ended, or the session was
    /// released or claimed anew.
    pub lost: Vec<SessionRef>,
}

/// The row of a session, and the number of its activities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The key of the session: its id, and its instance if it is owned.
    pub key: SessionKey,
    /// The process that claimed the session last; `None` if it was never claimed. It is the owner only while
    /// the lease lasts.
    pub owner: Option<Owner>,
    /// The number of the last claim, which rises with each claim; 0 before the first.
    pub epoch: u64,
    /// The end of the lease, in milliseconds since the Unix epoch by the store's clock; in the past for a
    /// session without an owner.
    pub locked_until_ms: u64,
    /// When work of the session was last fetched, renewed or completed, in milliseconds since the Unix epoch.
    pub last_activity_at_ms: u64,
    /// The number of activities of the session that are queued or leased.
    pub queued: u64,
    /// After how long without work a session of an instance is idle, in milliseconds; `None` means never.
    /// Shared sessions follow the worker's option and have `None` here.
    pub idle_timeout_ms: Option<u64>,
    /// How many activities of a session of an instance may run at a time; always `Unbounded` for a shared
    /// session.
    pub concurrency: SessionConcurrency,
}
