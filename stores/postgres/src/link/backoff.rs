//! Pauses between tries to connect.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_clock::{Clock, Random, SystemRandom};

const FIRST: Duration = Duration::from_millis(50);
/// The longest pause. It is short, so that a server that is back is used soon.
const LONGEST: Duration = Duration::from_secs(2);

/// Delays tries to connect after a failure: longer after each failure, and by a random part, so that many
/// processes do not try at the same moment.
#[derive(Debug)]
pub(crate) struct ConnectBackoff {
    longest: Duration,
    state: Mutex<Tries>,
}

/// The failures since the last success.
#[derive(Debug, Default)]
struct Tries {
    failures: u32,
    not_before: Duration,
}

impl ConnectBackoff {
    /// `limit` is the time that a caller waits for a connection; no pause takes more than half of it.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { longest: LONGEST.min(limit / 2), state: Mutex::default() }
    }

    /// Waits until the next try is due. It returns at once if the last try succeeded.
    pub(crate) async fn wait(&self, clock: &dyn Clock) {
        let not_before = self.state().not_before;
        clock.sleep_until(not_before).await;
    }

    pub(crate) fn succeeded(&self) {
        *self.state() = Tries::default();
    }

    pub(crate) fn failed(&self, clock: &dyn Clock) {
        let mut state = self.state();
        let whole = self.longest.min(FIRST.saturating_mul(1 << state.failures.min(16)));
        state.failures = state.failures.saturating_add(1);
        state.not_before = clock.monotonic().saturating_add(whole.mul_f64(0.5 + 0.5 * random()));
    }

    fn state(&self) -> MutexGuard<'_, Tries> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a random number from 0 to 1.
fn random() -> f64 {
    f64::from(SystemRandom.draw() as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use steadfast_clock::VirtualClock;

    use super::*;

    fn wait_of(backoff: &ConnectBackoff, clock: &VirtualClock) -> Duration {
        backoff.state().not_before.saturating_sub(clock.monotonic())
    }

    #[test]
    fn a_wait_grows_with_the_failures_and_is_bounded() {
        let (clock, backoff) = (VirtualClock::new(0), ConnectBackoff::new(Duration::from_secs(10)));
        let waits: Vec<Duration> = (0..40)
            .map(|_| {
                backoff.failed(&clock);
                wait_of(&backoff, &clock)
            })
            .collect();
        assert!((FIRST / 2..=FIRST).contains(&waits[0]), "{waits:?}");
        assert!(waits[6..].iter().all(|wait| (LONGEST / 2..=LONGEST).contains(wait)), "{waits:?}");
        assert!(waits[10..].iter().any(|wait| *wait != waits[10]), "none differs: {waits:?}");
    }

    #[test]
    fn a_success_ends_the_waiting() {
        let (clock, backoff) = (VirtualClock::new(0), ConnectBackoff::new(Duration::from_secs(10)));
        backoff.failed(&clock);
        backoff.succeeded();
        assert_eq!(wait_of(&backoff, &clock), Duration::ZERO);
    }

    #[test]
    fn a_wait_leaves_time_to_connect() {
        let (clock, backoff) = (VirtualClock::new(0), ConnectBackoff::new(Duration::from_millis(20)));
        backoff.failed(&clock);
        assert!(wait_of(&backoff, &clock) <= Duration::from_millis(10));
    }
}
