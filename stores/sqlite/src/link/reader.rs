//! Reading beside the writer, on connections of its own, so that a read never delays a commit.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use steadfast_store::{ProviderError, ProviderErrorKind};
use tokio::sync::{Semaphore, oneshot};

use crate::link::clock::FileClock;
use crate::link::connection::{Location, open_reader};
use crate::link::db::Db;
use crate::link::error::{DbResult, Fault};
use crate::link::open::OpenError;
use crate::link::options::{SqliteOptions, Threads};
use crate::merge::writer::Writer;

/// Reads a database on its own connections, or through the writer if there can be no second connection.
#[derive(Debug)]
pub(crate) enum Reader {
    Own { connections: Connections, free: Arc<Semaphore>, clock: FileClock, threads: Threads },
    ThroughWriter,
}

/// The connections of a reader. Dropping them closes them all, those too that are in use.
#[derive(Debug)]
pub(crate) struct Connections {
    shared: Arc<SharedConnections>,
    count: usize,
}

#[derive(Debug)]
struct SharedConnections {
    idle: Mutex<Vec<Connection>>,
    returned: Condvar,
}

impl SharedConnections {
    /// Locks the idle connections. Each is whole, so a poisoned lock is still good.
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bounds the wait for reads whose callers are gone, when a store is closed. A read that takes longer closes
/// its connection later, and the log of the file may stay.
const LAST_READS: Duration = Duration::from_secs(1);

impl Drop for Connections {
    fn drop(&mut self) {
        let idle = self.shared.idle();
        let waited =
            self.shared.returned.wait_timeout_while(idle, LAST_READS, |idle| idle.len() < self.count);
        waited.unwrap_or_else(PoisonError::into_inner).0.clear();
    }
}

/// A connection that is in use, and is returned when this is dropped.
struct Lent {
    connection: Option<Connection>,
    from: Arc<SharedConnections>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.from.idle().extend(self.connection.take());
        self.from.returned.notify_one();
    }
}

impl Reader {
    pub(crate) fn open(
        place: &Location,
        options: &SqliteOptions,
        clock: FileClock,
    ) -> Result<Self, OpenError> {
        let Location::File(path) = place else { return Ok(Self::ThroughWriter) };
        let count = options.readers.max(1);
        let connections = (0..count).map(|_| open_reader(path, options)).collect::<Result<Vec<_>, _>>()?;
        let shared = SharedConnections { idle: Mutex::new(connections), returned: Condvar::new() };
        let connections = Connections { shared: Arc::new(shared), count };
        let threads = options.threads;
        Ok(Self::Own { connections, free: Arc::new(Semaphore::new(count)), clock, threads })
    }

    /// Runs a function on the last committed state.
    pub(crate) async fn read<R, F>(
        &self,
        writer: &Writer,
        operation: &'static str,
        look: F,
    ) -> Result<R, ProviderError>
    where
        R: Send + 'static,
        F: FnOnce(&Db<'_>) -> DbResult<R> + Send + 'static,
    {
        let Self::Own { connections, free, clock, threads } = self else {
            return writer.write(operation, look).await;
        };
        let closed = || ProviderError::new(ProviderErrorKind::Unavailable, operation, "the store is closed");
        let permit = Arc::clone(free).acquire_owned().await.map_err(|_| closed())?;
        let connection = connections.shared.idle().pop();
        let lent = Lent { connection, from: Arc::clone(&connections.shared) };
        let clock = clock.clone();
        let (reply, answer) = oneshot::channel();
        let job = move || {
            let Some(connection) = &lent.connection else { return };
            let result = in_one_view(connection, &clock, look);
            drop(lent);
            drop(permit);
            // The caller may have been dropped; a read changes nothing.
            drop(reply.send(result.map_err(|fault| fault.of(operation))));
        };
        match threads {
            // A statement can take as long as the disk does, so it runs on a blocking thread.
            Threads::Own => drop(tokio::task::spawn_blocking(job)),
            Threads::Caller => job(),
        }
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}

/// Runs a function in one read transaction, so that all its statements see one state.
fn in_one_view<R>(
    connection: &Connection,
    clock: &FileClock,
    look: impl FnOnce(&Db<'_>) -> DbResult<R>,
) -> DbResult<R> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let moment = clock.look(connection);
    let result = moment.map_err(Fault::from).and_then(|moment| look(&Db::new(connection, clock.at(&moment))));
    // A failed read may have ended the transaction; its error is the one that counts.
    let ended = match connection.is_autocommit() {
        true => Ok(0),
        false => connection.prepare_cached("ROLLBACK").and_then(|mut statement| statement.execute([])),
    };
    let result = result?;
    ended?;
    Ok(result)
}
