//! The clock of the machine.

use std::{
    sync::OnceLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::{Clock, Sleep};

/// Reads the clock of the machine and waits with tokio's timer.
///
/// All values share one monotonic origin per process, so a deadline computed with one is good for another.
///
/// ```
/// use steadfast_clock::{Clock, SystemClock};
///
/// let before = SystemClock.monotonic();
/// assert!(SystemClock.monotonic() >= before);
/// ```
///
/// # Panics
///
/// A sleep may be created anywhere, but one that has to wait panics when polled outside a tokio runtime with
/// time enabled, as every tokio timer does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads wall time")]
    fn now_ms(&self) -> u64 {
        // A machine set to a time before 1970 reads as 1970: there is no earlier value to give.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic(&self) -> Duration {
        origin().elapsed()
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        Box::pin(async move {
            // Tokio rounds a deadline up to its next tick, even one that has passed.
            if deadline <= SystemClock.monotonic() {
                return;
            }
            match origin().checked_add(deadline) {
                Some(instant) => wait_until(instant).await,
                // The platform cannot name this instant, and no process lives to see it.
                None => std::future::pending().await,
            }
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that waits for real")]
async fn wait_until(instant: Instant) {
    tokio::time::sleep_until(instant.into()).await;
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads monotonic time")]
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const YEAR_2020_MS: u64 = 1_577_836_800_000;

    #[test]
    fn wall_time_is_in_milliseconds_since_the_epoch() {
        let now = SystemClock.now_ms();
        assert!(now > YEAR_2020_MS, "{now} is too early for milliseconds");
        assert!(now < YEAR_2020_MS * 10, "{now} is too late for milliseconds");
    }

    #[test]
    fn monotonic_readings_of_two_values_share_an_origin() {
        let (one, other) = (SystemClock, SystemClock);
        let readings = [one.monotonic(), other.monotonic(), one.monotonic()];
        assert!(readings.is_sorted(), "{readings:?}");
    }

    #[test]
    fn a_sleep_can_be_created_and_dropped_outside_a_runtime() {
        drop(SystemClock.sleep(Duration::from_secs(1)));
        drop(SystemClock.sleep(Duration::MAX));
    }

    #[test]
    fn a_deadline_in_the_past_is_ready_at_once_even_outside_a_runtime() {
        let past = SystemClock.monotonic();
        assert_eq!(SystemClock.sleep_until(past).now_or_never(), Some(()));
        assert_eq!(SystemClock.sleep_until(Duration::ZERO).now_or_never(), Some(()));
    }

    #[tokio::test]
    async fn the_longest_sleep_is_pending_and_does_not_overflow() {
        assert_eq!(SystemClock.sleep(Duration::MAX).now_or_never(), None);
        assert_eq!(SystemClock.sleep(Duration::from_secs(u64::from(u32::MAX))).now_or_never(), None);
    }

    // Sleeps for real: that the machine's timer is wired to `monotonic` cannot be shown with a told clock.
    #[tokio::test]
    async fn a_sleep_ends_at_its_deadline_and_not_before() {
        let deadline = SystemClock.monotonic() + Duration::from_millis(5);
        SystemClock.sleep_until(deadline).await;
        assert!(SystemClock.monotonic() >= deadline);
    }
}
