//! Looks at a file on connections that have read nothing yet: what a page cache holds, or what a failed read
//! did to a transaction, does not reach them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use steadfast_store::{ProviderError, ProviderErrorKind};

use crate::link::connection::{Location, open};
use crate::link::error::{DbResult, provider_error};
use crate::link::options::{SqliteOptions, Threads};

/// Opens connections that have read nothing yet, and knows what the last looks have found.
#[derive(Debug, Clone)]
pub(crate) struct Looks {
    /// `None` for a database in memory, which has one connection and no pages that can be torn.
    path: Option<PathBuf>,
    vfs: Option<String>,
    busy_timeout: Duration,
    threads: Threads,
    /// Until when this process writes no trails of sessions, because a page of them is torn; by the time of
    /// the file.
    trails_rest_until: Arc<AtomicI64>,
}

impl Looks {
    pub(crate) fn of(place: &Location, options: &SqliteOptions) -> Self {
        let path = match place {
            Location::Memory => None,
            Location::File(path) => Some(path.clone()),
        };
        let (vfs, busy_timeout, threads) = (options.vfs.clone(), options.busy_timeout, options.threads);
        let trails_rest_until = Arc::new(AtomicI64::new(i64::MIN));
        Self { path, vfs, busy_timeout, threads, trails_rest_until }
    }

    /// Tells whether trails of sessions are left out now.
    pub(crate) fn leaves_out_trails(&self, now: i64) -> bool {
        now < self.trails_rest_until.load(Ordering::Relaxed)
    }

    /// Leaves out trails of sessions until a moment. True for the first time.
    pub(crate) fn leave_out_trails(&self, until: i64) -> bool {
        self.trails_rest_until.swap(until, Ordering::Relaxed) == i64::MIN
    }

    /// Opens a connection that only reads. `None` for a database in memory.
    pub(crate) fn fresh(&self) -> rusqlite::Result<Option<Connection>> {
        let Some(path) = &self.path else { return Ok(None) };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = open(path, flags, self.vfs.as_deref())?;
        connection.busy_timeout(self.busy_timeout)?;
        Ok(Some(connection))
    }

    /// Runs a function on a fresh connection. `None` for a database in memory.
    pub(crate) async fn look<R, F>(
        &self,
        operation: &'static str,
        look: F,
    ) -> Result<Option<R>, ProviderError>
    where
        R: Send + 'static,
        F: FnOnce(&Connection) -> DbResult<R> + Send + 'static,
    {
        let looks = self.clone();
        let job = move || {
            let fresh = looks.fresh().map_err(|error| provider_error(operation, error))?;
            fresh.map(|fresh| look(&fresh).map_err(|fault| fault.of(operation))).transpose()
        };
        match self.threads {
            Threads::Own => tokio::task::spawn_blocking(job).await.unwrap_or_else(|_| {
                let text = "the look was cut short";
                Err(ProviderError::new(ProviderErrorKind::Unavailable, operation, text))
            }),
            Threads::Caller => job(),
        }
    }
}
