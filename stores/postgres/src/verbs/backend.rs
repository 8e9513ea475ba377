//! What every verb needs: the database, the waiters of this process, and its name among the processes that
//! listen.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use steadfast_store::{ProviderError, Waiters, Woken};

use crate::link::db::Db;
use crate::merge::undelivered::Undelivered;
use crate::verbs::notify::payload;

/// The store behind its contract.
#[derive(Debug, Clone)]
pub(crate) struct Backend {
    pub(crate) db: Db,
    pub(crate) waiters: Arc<Waiters>,
    /// The name of this process among those that listen.
    pub(crate) me: Arc<str>,
    pub(crate) undelivered: Arc<Undelivered>,
    /// How many roots the next statement deletes of those that ended long ago.
    pub(crate) deletion_step: Arc<AtomicU32>,
}

impl Backend {
    /// Writes the notification that tells other processes what a call makes runnable.
    pub(crate) fn payload(&self, woken: &Woken) -> Option<String> {
        payload(&self.me, woken)
    }

    /// Passes an answer on. If it is an error after which the call may have happened or not, the waiters are
    /// woken as if it had.
    pub(crate) fn wake_if_unsure<T>(
        &self,
        answered: Result<T, ProviderError>,
        woken: &Woken,
    ) -> Result<T, ProviderError> {
        answered.inspect_err(|error| {
            if error.is_retryable() {
                self.waiters.wake(woken);
            }
        })
    }

    /// Notifies other processes of runnable rows that became known only after the commit. It is a hint: the
    /// caller does not wait for it, and it may fail.
    pub(crate) fn notify_others(&self, woken: Woken) {
        let this = self.clone();
        tokio::spawn(async move {
            if let Err(error) = this.db.notify(this.payload(&woken), &this.me).await {
                tracing::debug!(
                    target: "steadfast::store",
                    %error,
                    "others could not be told; they will look by themselves"
                );
            }
        });
    }
}
