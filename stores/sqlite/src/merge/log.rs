//! Keeping the write-ahead log bounded: it is written back after a commit is answered, so that no caller
//! waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use crate::link::options::SqliteOptions;

/// A log of this many times its bound is emptied even if the writer must wait for readers: they stop using it
/// one by one, and rarely all at the same time.
const LONG: u32 = 3;

/// Bounds the wait for readers, during which no commit can run. After a failure the log is tried again when
/// it has grown further.
const PATIENCE: Duration = Duration::from_millis(100);

/// Keeps track of the length of the write-ahead log, and writes it back when it gets long.
#[derive(Debug)]
pub(crate) struct Log {
    pages: Arc<AtomicU32>,
    bound: u32,
    /// The length, in pages, from which the log is written back the next time.
    next: u32,
    busy_timeout: Duration,
}

impl Log {
    /// Installs a hook that records the length of the log at each commit. The hook replaces SQLite's
    /// automatic checkpoints, which would run inside a commit: [`tidy`](Self::tidy) runs them instead.
    pub(crate) fn watch(connection: &mut Connection, options: &SqliteOptions) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicU32::new(0));
        let length = Arc::clone(&pages);
        connection.wal_hook(Some(move |_: &mut _, pages| {
            length.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        let bound = options.wal_pages.max(1);
        Ok(Self { pages, bound, next: bound, busy_timeout: options.busy_timeout })
    }

    /// Writes the log back into the file if it has reached `next`, so that a later commit can start the log
    /// from the beginning. Call this between two transactions.
    pub(crate) fn tidy(&mut self, connection: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.bound {
            self.next = self.bound;
        }
        if pages < self.next {
            return;
        }
        self.next = pages.saturating_add(self.bound.div_ceil(4));
        let written = if pages < self.bound.saturating_mul(LONG) {
            connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE)
        } else {
            self.empty(connection)
        };
        if let Err(error) = written {
            tracing::debug!(
                target: "steadfast::store",
                %error,
                pages,
                "the log could not be written back yet"
            );
        }
    }

    fn empty(&self, connection: &Connection) -> rusqlite::Result<(i32, i32)> {
        connection.busy_timeout(PATIENCE.min(self.busy_timeout))?;
        let written = connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::RESTART);
        connection.busy_timeout(self.busy_timeout)?;
        written
    }
}
