//! The readable store: the contract as code.
//!
//! Maps and one lock. Every method takes the lock, does all it does, and lets go; so every method is one
//! transaction. It is the oracle that other stores are compared with, and the test mode of users. Nothing
//! survives the process.
//!
//! Its one clock (S16) is the [`Clock`] that it is opened with: wall time when the store is opened, moved on by
//! monotonic time, so that a wall clock which jumps changes nothing.

mod admin;
mod damage;
mod execution;
mod instance;
mod kv;
mod message;
mod session;
mod set_aside;
mod state;
mod store;
mod turn;
mod wait;
mod waiting;
mod work;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use tokio::sync::Notify;

pub use damage::Damage;
use state::State;

/// Keeps everything in memory.
///
/// ```
/// use steadfast_memory::MemoryStore;
/// use steadfast_store::Store;
///
/// let store = MemoryStore::new();
/// assert_eq!(store.name(), "memory");
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<State>,
    /// Told after every change; whoever waits looks again.
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

    /// Opens an empty store that follows a clock of yours.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let (opened_at_ms, opened_at) = (clock.now_ms(), clock.monotonic());
        Self { state: Mutex::default(), changed: Notify::new(), clock, opened_at_ms, opened_at }
    }

    /// Reads the store's time, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> u64 {
        let elapsed = self.clock.monotonic().saturating_sub(self.opened_at);
        self.opened_at_ms.saturating_add(millis(elapsed))
    }

    /// Locks the state for reading. A panic under the lock would be a bug of this crate; the state is then as
    /// good as it was.
    fn read(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one transaction: all of it happens at one time, and whoever waits is told.
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

/// Whole milliseconds of a duration; one too long for the type is as good as for ever.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
