//! The readable store: the contract as code.
//!
//! Maps behind one lock. Every method holds the lock while it works, so every method is one transaction. The
//! other stores are compared with this one, and users run their tests on it. Its content ends with the
//! process.
//!
//! Its one clock (S16) is the [`Clock`] that it is opened with: the wall time at which the store is opened,
//! moved on by monotonic time, so that a wall clock that jumps changes nothing.

mod admin;
mod execution;
mod inspect;
mod instance;
mod lease;
mod message;
mod poll;
mod session;
mod set_aside;
mod state;
mod store;
mod turn;
mod work;
mod worker;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use tokio::sync::Notify;

pub use set_aside::Damage;
use state::State;

/// A store in memory. It is empty when it is opened, and its content is lost when it is dropped.
///
/// ```
/// # mod steadfast {
/// #     pub mod providers { pub use {steadfast_memory as memory, steadfast_store::Store}; }
/// # }
/// use steadfast::providers::{Store, memory::MemoryStore};
///
/// let store = MemoryStore::new();
/// assert_eq!(store.name(), "memory");
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    /// Notified after every change; every waiting call looks again.
    changed: Notify,
    clock: Arc<dyn Clock>,
    opened_at_ms: u64,
    opened_at: Duration,
}

impl MemoryStore {
    /// Opens an empty store that follows the system clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// Opens an empty store that follows the given clock; with a `VirtualClock` a test decides when time
    /// passes.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let (opened_at_ms, opened_at) = (clock.now_ms(), clock.monotonic());
        Self { state: Mutex::default(), changed: Notify::new(), clock, opened_at_ms, opened_at }
    }

    /// Returns the store's time, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        let elapsed = self.clock.monotonic().saturating_sub(self.opened_at);
        self.opened_at_ms.saturating_add(millis(elapsed))
    }

    /// Locks the state. A panic under the lock would be a bug of this crate; the state is used as it is then.
    fn read(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one transaction, at one time, and wakes all waiting calls.
    fn change<R>(&self, transaction: impl FnOnce(&mut State, u64) -> R) -> R {
        let now = self.now_ms();
        let result = transaction(&mut self.read(), now);
        self.changed.notify_waiters();
        result
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the whole milliseconds of a duration, at most `u64::MAX`.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
