//! Leases: the right to a turn or a piece of work, until it ends.

use std::time::Duration;

/// Proves a lease that a fetch gave. The holder shows it to commit, renew or abandon.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// How long after the end of its lease a withdrawn activity is known as withdrawn, at least (S12).
pub const WITHDRAWN_KNOWN_FOR: Duration = Duration::from_secs(60 * 60);

/// How a lease is abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abandon {
    /// How long the leased messages, or the leased activity, are held back; `None` leaves their visible time
    /// as it was, so that the next fetch may take them at once.
    pub retry_after: Option<Duration>,
    /// Whether this delivery stays in the delivery count of the messages or the activity. The runtime fails
    /// messages and activities that were delivered more often than `max_attempts` as poison.
    pub attempt: Attempt,
}

/// Whether a delivery that ended without an outcome counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The delivery count stays as it is: the holder tried and failed.
    Counts,
    /// The delivery is taken off the count again: the holder did not try.
    Uncounted,
}
