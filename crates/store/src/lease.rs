//! Leases: the right to a turn or a piece of work, until it ends.

use std::time::Duration;

/// Names a lease that a fetch gave. It is the proof a holder shows to commit, renew or abandon.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LeaseToken {
    /// Holds an instance for one turn.
    Turn(String),
    /// Holds one piece of work.
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

/// Says how a lease is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abandon {
    /// Holds back what was leased for this long; `None` leaves its visible time as it was.
    pub retry_after: Option<Duration>,
    /// Says whether the fetch counts as an attempt.
    pub attempt: Attempt,
}

/// Says whether a fetch that came to nothing counts as an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// It counts: the holder tried and failed.
    Counts,
    /// It does not: the holder never tried.
    Uncounted,
}
