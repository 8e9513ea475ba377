//! The time of a store: one clock, which does not jump when the machine's clock is set.

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::Clock;

/// Tells the time of a store: the wall time at which it was opened, moved on by monotonic time. A wall clock
/// that is set while the process runs therefore ends no lease and fires no timer (S16).
#[derive(Debug, Clone)]
pub struct StoreClock {
    clock: Arc<dyn Clock>,
    opened_at_ms: u64,
    opened_at: Duration,
}

impl StoreClock {
    /// Takes the wall time now and follows monotonic time from here on.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let (opened_at_ms, opened_at) = (clock.now_ms(), clock.monotonic());
        Self { clock, opened_at_ms, opened_at }
    }

    /// Returns the time in milliseconds since the Unix epoch, at most `i64::MAX`.
    pub fn now_ms(&self) -> i64 {
        let elapsed = self.clock.monotonic().saturating_sub(self.opened_at).as_millis();
        let now = self.opened_at_ms.saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX));
        i64::try_from(now).unwrap_or(i64::MAX)
    }

    /// Returns the clock that this one follows, for waiting.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}
