//! The clock of the machine.

use std::{
    sync::OnceLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

#[cfg(target_os = "linux")]
use crate::BootId;
use crate::{Clock, MachineTime, Sleep};

/// Reads the clock of the machine and waits with tokio's timer.
///
/// All values share one monotonic origin, so a deadline computed with one is good for another. On Linux it is
/// the start of the machine, elsewhere the first use in the process.
///
/// [`machine`](Clock::machine) tells all of a [`MachineTime`] on Linux only. On other Unix systems it tells
/// the system's monotonic time, which counts sleep as time awake where the system does (macOS); elsewhere it
/// has the origin of the process.
///
/// ```
/// # mod steadfast { pub use steadfast_clock as runtime; }
/// use steadfast::runtime::{Clock, SystemClock};
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
        kernel::monotonic()
    }

    fn machine(&self) -> MachineTime {
        kernel::machine()
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        Box::pin(async move {
            // Tokio rounds a deadline up to its next tick, even one that has passed.
            let Some(left) = deadline.checked_sub(SystemClock.monotonic()).filter(|left| !left.is_zero())
            else {
                return;
            };
            match now().checked_add(left) {
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
fn now() -> Instant {
    Instant::now()
}

/// The readings of Linux: the time since the start of the machine, with and without sleep.
#[cfg(target_os = "linux")]
mod kernel {
    use rustix::time::ClockId;

    use super::{BootId, Duration, MachineTime, OnceLock, read};

    /// Reads the clock that `Instant` reads too.
    pub(super) fn monotonic() -> Duration {
        read(ClockId::Monotonic)
    }

    pub(super) fn machine() -> MachineTime {
        MachineTime { awake: monotonic(), slept: slept(), boot: boot() }
    }

    /// Bounds how often two clocks are read in the hope that the thread is not interrupted in between.
    const TRIES: u32 = 4;

    /// Two readings that are as close as this are of one moment.
    const CLOSE: Duration = Duration::from_micros(50);

    /// Returns the difference of the clock that counts sleep and the one that does not. An interruption
    /// between their readings makes it smaller, never larger.
    fn slept() -> Duration {
        let mut slept = Duration::ZERO;
        for _ in 0..TRIES {
            let before = monotonic();
            let with_sleep = read(ClockId::Boottime);
            let after = monotonic();
            slept = slept.max(with_sleep.saturating_sub(after));
            if after.saturating_sub(before) <= CLOSE {
                break;
            }
        }
        slept
    }

    /// Reads the name that the kernel gave to this run of the machine, and the time namespace of the process.
    fn boot() -> Option<BootId> {
        static BOOT: OnceLock<Option<BootId>> = OnceLock::new();
        *BOOT.get_or_init(|| {
            let run = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
            let namespace = std::fs::read_link("/proc/self/ns/time").ok();
            boot_of(&run, namespace.as_ref().and_then(|link| link.to_str()))
        })
    }

    /// Names a run of the machine as the processes of one time namespace see it: a container may have an
    /// origin of the machine's clocks of its own. A kernel that knows no time namespaces has one for all.
    pub(super) fn boot_of(run: &str, namespace: Option<&str>) -> Option<BootId> {
        let run = u128::from_str_radix(&run.trim().replace('-', ""), 16).ok()?;
        let number = |link: &str| link.strip_prefix("time:[")?.strip_suffix(']')?.parse::<u64>().ok();
        Some(BootId(run ^ u128::from(namespace.and_then(number).unwrap_or(0))))
    }
}

/// The readings of the standard library, and of the system where it has a clock for all processes.
#[cfg(not(target_os = "linux"))]
mod kernel {
    use super::{Duration, Instant, MachineTime, OnceLock, now};

    pub(super) fn monotonic() -> Duration {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        now().saturating_duration_since(*ORIGIN.get_or_init(now))
    }

    pub(super) fn machine() -> MachineTime {
        MachineTime { awake: awake(), slept: Duration::ZERO, boot: None }
    }

    #[cfg(unix)]
    fn awake() -> Duration {
        super::read(rustix::time::ClockId::Monotonic)
    }

    #[cfg(not(unix))]
    fn awake() -> Duration {
        monotonic()
    }
}

#[cfg(unix)]
fn read(clock: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
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

    #[cfg(target_os = "linux")]
    #[test]
    fn the_time_of_the_machine_is_that_of_its_other_processes() {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        let MachineTime { awake, slept, boot } = SystemClock.machine();
        // The file counts in hundredths of a second.
        assert!((awake + slept).as_secs_f64() >= uptime - 0.01, "{awake:?} {slept:?} {uptime}");
        assert_eq!((boot.is_some(), boot), (true, SystemClock.machine().boot));
    }

    /// G2: the clocks of a container may have another origin, although the machine is the same.
    #[cfg(target_os = "linux")]
    #[test]
    fn processes_of_different_time_namespaces_are_not_taken_for_readers_of_one_clock() {
        const RUN: &str = "0a4c5f6e-1111-2222-3333-444455556666\n";
        let boot = |namespace| kernel::boot_of(RUN, namespace).unwrap();
        let all = [Some("time:[4026531834]"), Some("time:[4026532281]"), None].map(boot);
        assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2], "{all:?}");
        assert_eq!(all[0], boot(Some("time:[4026531834]")));
        assert_eq!(kernel::boot_of("no name", None), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_time_awake_is_the_time_that_waits_are_measured_by() {
        let before = SystemClock.monotonic();
        let awake = SystemClock.machine().awake;
        assert!(before <= awake && awake <= SystemClock.monotonic());
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
