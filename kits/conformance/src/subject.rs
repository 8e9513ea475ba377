//! The store under test.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_clock::Clock;
use steadfast_store::Provider;

/// Holds any error of setting a store up.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Opens stores for the kit.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Names the store in reports.
    fn name(&self) -> &str;

    /// Opens a fresh, empty store whose only clock is `clock`.
    async fn open(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>, BoxError>;

    /// Opens the store again that `open` made, as after a restart of the process: nothing in memory is kept.
    /// `None` for a store that has nothing to open again.
    async fn reopen(
        &self,
        _provider: Arc<dyn Provider>,
        _clock: Arc<dyn Clock>,
    ) -> Option<Result<Arc<dyn Provider>, BoxError>> {
        None
    }

    /// Overwrites stored rows with `text`, behind the store's back. Returns how many there were; `None` when
    /// the kit cannot reach them.
    async fn damage(&self, _provider: &Arc<dyn Provider>, _what: Damage<'_>, _text: &str) -> Option<usize> {
        None
    }

    /// Counts the work that the store has done since it was opened, in a unit of its own that does not depend
    /// on the machine; `None` when it cannot.
    async fn cost(&self, _provider: &Arc<dyn Provider>) -> Option<u64> {
        None
    }

    /// Bounds, in real time, how long a case waits for a call that should return by itself, and by six times as much how long
    /// it takes in all. Time is told, so only a store that breaks a clause comes near it, and then the case fails instead of
    /// hanging.
    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// Names rows to overwrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage<'a> {
    /// Every message to an instance.
    Messages {
        /// Names the instance.
        instance: &'a str,
    },
    /// Every queued activity of an instance.
    Work {
        /// Names the instance.
        instance: &'a str,
    },
    /// One event.
    Event {
        /// Names the instance.
        instance: &'a str,
        /// Numbers the execution.
        execution_id: u64,
        /// Numbers the event.
        event_id: u64,
    },
}
