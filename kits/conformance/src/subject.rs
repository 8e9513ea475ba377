//! The store under test.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_clock::Clock;
use steadfast_store::Provider;

/// Any error of setting a store up.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Opens stores for the kit.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Returns the name of the store, for reports.
    fn name(&self) -> &str;

    /// Opens a fresh, empty store whose only clock is `clock`.
    async fn open(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>, BoxError>;

    /// Opens a fresh, empty store for a case that counts its cost: no other program may add to it. By default
    /// it is one that `open` makes.
    async fn open_to_count(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>, BoxError> {
        self.open(clock).await
    }

    /// Opens the store again that `open` made, as after a restart of the process: nothing in memory is kept.
    /// `None` for a store that has nothing to open again.
    async fn reopen(
        &self,
        _provider: Arc<dyn Provider>,
        _clock: Arc<dyn Clock>,
    ) -> Option<Result<Arc<dyn Provider>, BoxError>> {
        None
    }

    /// Removes what `open` or `reopen` made: the case has ended. What a store keeps outside the process (a
    /// file, a schema) would otherwise pile up, and slow down the cases after it.
    fn close(&self, _provider: Arc<dyn Provider>) {}

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

    /// Returns how many random walks each of the eight tests of walks takes: 10 by default, fewer for a store
    /// whose calls are slow. `STEADFAST_CASES` in the environment multiplies it.
    fn walks(&self) -> u64 {
        10
    }

    /// Bounds, in real time, how long a case waits for a call that should return by itself; six times as long
    /// bounds the whole case. Time is told, so only a store that breaks a clause comes near the bound, and
    /// then the case fails instead of hanging.
    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// A store that is closed with this value.
pub(crate) struct OpenStore {
    subject: Arc<dyn Subject>,
    /// `None` after the store was taken to be opened again.
    provider: Option<Arc<dyn Provider>>,
}

impl OpenStore {
    pub(crate) async fn new(subject: &Arc<dyn Subject>, clock: Arc<dyn Clock>) -> Result<Self, BoxError> {
        let provider = subject.open(clock).await?;
        Ok(Self { subject: Arc::clone(subject), provider: Some(provider) })
    }

    /// Opens a store whose cost is counted.
    pub(crate) async fn to_count(
        subject: &Arc<dyn Subject>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, BoxError> {
        let provider = subject.open_to_count(clock).await?;
        Ok(Self { subject: Arc::clone(subject), provider: Some(provider) })
    }

    /// Opens the store again; `None` if it has nothing to open again.
    pub(crate) async fn reopen(mut self, clock: Arc<dyn Clock>) -> Option<Result<Self, BoxError>> {
        let provider = self.provider.take()?;
        let reopened = self.subject.reopen(provider, clock).await?;
        Some(reopened.map(|provider| Self { subject: Arc::clone(&self.subject), provider: Some(provider) }))
    }

    pub(crate) fn subject(&self) -> &dyn Subject {
        &*self.subject
    }

    #[expect(clippy::expect_used, reason = "only `reopen` takes the provider, and it consumes the value")]
    pub(crate) fn provider(&self) -> &Arc<dyn Provider> {
        self.provider.as_ref().expect("the store is open")
    }
}

impl Drop for OpenStore {
    fn drop(&mut self) {
        if let Some(provider) = self.provider.take() {
            self.subject.close(provider);
        }
    }
}

/// Rows to overwrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage<'a> {
    /// Every message to an instance.
    Messages {
        /// The instance that the messages were sent to.
        instance: &'a str,
    },
    /// Every queued activity of an instance.
    Work {
        /// The instance that scheduled the activities.
        instance: &'a str,
    },
    /// One event.
    Event {
        /// The instance whose history the event is in.
        instance: &'a str,
        /// The execution, counted from 1.
        execution_id: u64,
        /// The event, counted from 1 in its execution.
        event_id: u64,
    },
}
