//! Leases: the right to a turn or a piece of work, until it ends.

use std::time::Duration;

/// Proves a lease that a fetch gave. Its holder shows it to commit, renew or abandon.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LeaseToken {
    /// The lease of an instance for one turn.
    Turn(String),
    /// The lease of one activity.
    Work(String),
}

impl LeaseToken {
    /// Returns the text of the token, as the compatible methods carry it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Turn(token) | Self::Work(token) => token,
        }
    }
}

/// Says how a lease is abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abandon {
    /// Holds the leased messages, or the leased activity, back for this long; `None` leaves their visible
    /// time as it was, so that the next fetch may take them at once.
    pub retry_after: Option<Duration>,
    /// Whether the delivery counts. An orchestration or activity that was delivered too often is given up as
    /// poison.
    pub attempt: Attempt,
}

/// Says whether a delivery that ended without an outcome counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The delivery counts: the holder tried and failed.
    Counts,
    /// The delivery does not count: the holder did not try.
    Uncounted,
}
