//! Looks at a file on connections that have read nothing yet: what a page cache holds, or what a failed read
//! did to a transaction, does not reach them.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use steadfast_store::{ProviderError, ProviderErrorKind};

use crate::link::connection::{Location, open};
use crate::link::error::{DbResult, provider_error};
use crate::link::options::{SqliteOptions, Threads};

/// Opens connections that have read nothing yet.
#[derive(Debug, Clone)]
pub(crate) struct Looks {
    /// `None` for a database in memory, which has one connection and no pages that can be torn.
    path: Option<PathBuf>,
    vfs: Option<String>,
    busy_timeout: Duration,
    threads: Threads,
}

impl Looks {
    pub(crate) fn of(place: &Location, options: &SqliteOptions) -> Self {
        let path = match place {
            Location::Memory => None,
            Location::File(path) => Some(path.clone()),
        };
        let (vfs, busy_timeout, threads) = (options.vfs.clone(), options.busy_timeout, options.threads);
        Self { path, vfs, busy_timeout, threads }
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
