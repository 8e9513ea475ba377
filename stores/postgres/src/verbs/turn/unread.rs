//! Messages and activities whose text is not read before the time of the statement is up (G6).
//!
//! Such a text fails the whole fetch. The next fetch reads each text by itself and goes on without those that
//! it has no time for ([`SlowRead`]).

use std::time::Duration;

use steadfast_store::{MAX_UNREADABLE_ATTEMPTS, UNREADABLE_RETRY};

/// What a fetch knows about texts that are not read in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlowRead {
    /// How long a statement may take.
    pub(crate) limit: Duration,
}

impl SlowRead {
    pub(crate) const REASON: &str = "the database does not read its text in the time of a statement";

    /// Returns the length of a lease that lasts although its fetch, and what comes after it, take all their
    /// time.
    pub(crate) fn lease(self, wanted: Duration) -> Duration {
        wanted.saturating_add(self.limit.saturating_mul(2))
    }
}

/// How rows are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PassOver {
    /// How long a row waits for its next delivery.
    pub(crate) retry: Duration,
    /// After how many deliveries a row is set aside; `None` if they do not count.
    pub(crate) max_attempts: Option<i32>,
}

impl PassOver {
    /// Returns how rows are passed over. One that was not read in time may be whole: it is kept, and waits so
    /// long that the fetches that it delays are few.
    pub(crate) fn of(slow: Option<SlowRead>) -> Self {
        match slow {
            Some(slow) => {
                Self { retry: UNREADABLE_RETRY.max(slow.limit.saturating_mul(4)), max_attempts: None }
            }
            None => Self {
                retry: UNREADABLE_RETRY,
                max_attempts: Some(i32::try_from(MAX_UNREADABLE_ATTEMPTS).unwrap_or(i32::MAX)),
            },
        }
    }
}
