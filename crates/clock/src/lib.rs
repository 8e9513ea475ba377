//! Clocks and random numbers: those of the machine, and those that tests decide.
//!
//! Only this crate reads the system clock and draws random numbers. Everything else in the workspace takes a
//! [`Clock`], so that the same code runs on [`SystemClock`] in production and on [`VirtualClock`] in tests,
//! where hours pass in one call; and a [`Random`], so that a run follows from a seed ([`SeededRandom`]).
//!
//! A clock has three readings that must not be mixed. [`Clock::now_ms`] is *wall time*: it is what gets
//! recorded and shown to people, and an operator or NTP may move it either way. [`Clock::monotonic`] never
//! goes back; every wait is measured with it, so a wall clock that jumps neither shortens nor lengthens a
//! sleep. [`Clock::machine`] is the time of the machine, which its processes read alike: two of them that
//! share a file agree by it, and learn by it how long the machine slept.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use steadfast_clock::{Clock, VirtualClock};
//!
//! let virtual_clock = VirtualClock::new(1_700_000_000_000);
//! let clock: Arc<dyn Clock> = Arc::new(virtual_clock.clone());
//!
//! virtual_clock.advance(Duration::from_secs(3600));
//! assert_eq!(clock.now_ms(), 1_700_003_600_000);
//! assert_eq!(clock.monotonic(), Duration::from_secs(3600));
//! ```

mod machine_time;
mod random;
mod system_clock;
mod virtual_clock;

use std::{fmt::Debug, pin::Pin, time::Duration};

pub use machine_time::{BootId, MachineTime};
pub use random::{Random, SeededRandom, SystemRandom};
pub use system_clock::SystemClock;
pub use virtual_clock::VirtualClock;

/// Tells the time and waits for it.
///
/// The trait is object safe: options hold an `Arc<dyn Clock>`.
pub trait Clock: Debug + Send + Sync {
    /// Reads wall time, in milliseconds since the Unix epoch.
    ///
    /// Two readings may go backwards. Use [`monotonic`](Clock::monotonic) to measure how long something took.
    fn now_ms(&self) -> u64;

    /// Reads the time since an origin that is arbitrary but fixed for this clock. Readings never go
    /// backwards.
    fn monotonic(&self) -> Duration;

    /// Reads the time of the machine since it was started.
    ///
    /// By default [`monotonic`](Clock::monotonic) is the time awake, and the machine never sleeps. That suits
    /// a clock whose monotonic time has one origin for all processes that share a store, such as one that
    /// wraps [`SystemClock`] on Linux.
    fn machine(&self) -> MachineTime {
        MachineTime { awake: self.monotonic(), slept: Duration::ZERO, boot: None }
    }

    /// Tells whether time passes without being told, as it does by default. Threads that measure how long the
    /// process stood still are of use only then.
    fn passes_by_itself(&self) -> bool {
        true
    }

    /// Waits until [`monotonic`](Clock::monotonic) reads `deadline` or more; a deadline in the past is ready
    /// at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the wait and leaves nothing behind.
    fn sleep_until(&self, deadline: Duration) -> Sleep;

    /// Waits for `duration`, counted from this call and not from the first poll.
    ///
    /// A duration too long to be represented as a deadline waits for the longest one that can be.
    ///
    /// # Cancel safety
    ///
    /// As [`sleep_until`](Clock::sleep_until).
    fn sleep(&self, duration: Duration) -> Sleep {
        self.sleep_until(self.monotonic().saturating_add(duration))
    }
}

/// Completes when a clock reaches a deadline.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;
