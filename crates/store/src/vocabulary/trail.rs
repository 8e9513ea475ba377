//! The trail of a session: which process owned it, from when to when, and why that changed.

use std::time::Duration;

use crate::Owner;

/// Bounds the trail of one session: only its newest entries are kept, and only so many.
pub const MAX_SESSION_TRAIL: usize = 100;

/// Bounds the trails of all sessions of a store together: clean-up removes what is older than so many
/// changes.
pub const MAX_TRAIL: u64 = 100_000;

/// How long entries of trails are kept where nobody says it: by the runtime's option
/// `session_trail_retention` as it is by default, and by the compatible clean-up of sessions.
pub const TRAIL_KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// One change of the owner of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTrailEntry {
    /// The number of the claim that began or ended.
    pub epoch: u64,
    /// The process that made the claim.
    pub owner: Owner,
    /// When the claim began or ended, in milliseconds since the Unix epoch by the store's clock. The end of a
    /// lease that expired is the moment at which it expired, however much later another process claimed the
    /// session.
    pub at_ms: u64,
    /// What happened to the claim, and why.
    pub change: SessionChange,
}

/// What happened to a claim of a session. Each claim begins once and ends once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionChange {
    /// The process claimed the session.
    Claimed,
    /// The claim was released before its lease expired.
    Released(ReleaseReason),
    /// The lease expired: the process died, was paused, or could not reach the store.
    Expired,
    /// A newer process of the same node claimed the session while the lease lasted.
    Lost,
    /// The orchestration closed the session, or ended.
    Closed,
}

/// Why a session was released.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ReleaseReason {
    /// The caller of the store gave no reason: a release through `release_sessions`, or by a process of an
    /// older build.
    #[default]
    Unstated,
    /// The session had no work for its idle time.
    Idle,
    /// The process was drained.
    Drained,
    /// The process was shut down.
    ShutDown,
    /// A person released it with `Client::release_session`.
    ByHand,
    /// The process kept more sessions than `max_attached_sessions`.
    OverTheLimit,
    /// The process did not take work of the session that waited.
    Untaken,
    /// The process lacked the handler of an activity of the session.
    UnregisteredHandler,
    /// The process dropped the fetch that had claimed the session, or could not read the work: it never
    /// served the session.
    Unused,
}

impl SessionChange {
    /// Lists all changes, each with the text by which it is stored.
    const STORED: [(Self, &'static str); 13] = [
        (Self::Claimed, "claimed"),
        (Self::Released(ReleaseReason::Unstated), "released"),
        (Self::Released(ReleaseReason::Idle), "idle"),
        (Self::Released(ReleaseReason::Drained), "drained"),
        (Self::Released(ReleaseReason::ShutDown), "shut down"),
        (Self::Released(ReleaseReason::ByHand), "by hand"),
        (Self::Released(ReleaseReason::OverTheLimit), "over the limit"),
        (Self::Released(ReleaseReason::Untaken), "untaken"),
        (Self::Released(ReleaseReason::UnregisteredHandler), "unregistered handler"),
        (Self::Released(ReleaseReason::Unused), "unused"),
        (Self::Expired, "expired"),
        (Self::Lost, "lost"),
        (Self::Closed, "closed"),
    ];

    /// Returns the text by which the change is stored and told: `claimed`, `drained`, `expired` and so on.
    pub fn as_str(self) -> &'static str {
        Self::STORED.iter().find(|(change, _)| *change == self).map_or("released", |(_, text)| text)
    }

    /// Reads a change from its text. A reason that only a newer build knows is read as
    /// [`Unstated`](ReleaseReason::Unstated).
    pub fn from_stored(text: &str) -> Self {
        let stored = Self::STORED.iter().find(|(_, stored)| *stored == text);
        stored.map_or(Self::Released(ReleaseReason::Unstated), |(change, _)| *change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_read_back_from_its_text() {
        for (change, text) in SessionChange::STORED {
            assert_eq!(change.as_str(), text);
            assert_eq!(SessionChange::from_stored(text), change);
        }
    }

    #[test]
    fn a_reason_of_a_newer_build_is_read_as_unstated() {
        let unstated = SessionChange::Released(ReleaseReason::Unstated);
        assert_eq!(SessionChange::from_stored("out of memory"), unstated);
    }
}
