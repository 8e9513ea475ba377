//! Waits after errors of the store: longer each time, up to a bound, and not the same for all loops.

use std::time::Duration;

/// Counts the failures of one loop in a row, and tells how long to wait after each.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    seed: u64,
}

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3);

impl Backoff {
    pub(crate) fn new(seed: u64) -> Self {
        Self { failures: 0, seed }
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the wait after one more failure in a row. It stays at the longest wait, because an outage may
    /// last for days (F5).
    pub(crate) fn next(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let doublings = self.failures.min(16);
        let wait = FIRST.saturating_mul(1_u32 << doublings).min(LONGEST);
        wait - wait.mul_f64(0.1 * self.jitter())
    }

    /// Returns a pseudo-random number between 0 and 1, from a seed that differs from loop to loop.
    fn jitter(&mut self) -> f64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 40) as f64 / (1_u64 << 24) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_and_saturates() {
        let mut backoff = Backoff::new(7);
        let waits: Vec<Duration> = (0..1_000).map(|_| backoff.next()).collect();
        assert!(waits[0] <= Duration::from_millis(200) && waits[0] >= Duration::from_millis(180));
        assert!(waits.iter().all(|wait| *wait <= LONGEST));
        assert!(waits[999] >= LONGEST.mul_f64(0.9));
    }

    #[test]
    fn a_success_begins_anew() {
        let mut backoff = Backoff::new(7);
        for _ in 0..10 {
            backoff.next();
        }
        backoff.reset();
        assert!(backoff.next() <= Duration::from_millis(200));
    }

    #[test]
    fn two_loops_do_not_wait_alike() {
        assert_ne!(Backoff::new(1).next(), Backoff::new(2).next());
    }
}
