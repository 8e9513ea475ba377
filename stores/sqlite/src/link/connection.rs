//! Connections and their settings. Every setting is read back, because SQLite ignores unknown values silently
//! (F10).

use std::path::Path;
use std::sync::atomic::Ordering;

use rusqlite::config::DbConfig;
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use rusqlite::{Connection, OpenFlags};
use steadfast_store::{ProviderError, ProviderErrorKind};

use crate::link::error::DbResult;
use crate::link::open::OpenError;
use crate::link::options::{Durability, SqliteOptions};
use crate::merge::others::DATA_VERSION;

/// The place of a database: a file or memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    Memory,
    File(std::path::PathBuf),
}

/// Opens the one writing connection.
pub(crate) fn open_writer(place: &Location, options: &SqliteOptions) -> Result<Connection, OpenError> {
    let mut connection = match place {
        Location::Memory => Connection::open_in_memory().map_err(OpenError::driver)?,
        Location::File(path) => {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            open(path, flags, options.vfs.as_deref()).map_err(|error| OpenError::file(path, error))?
        }
    };
    set(&mut connection, options).map_err(|error| place.explain(error))?;
    if let Location::File(path) = place {
        let mode = set_journal_mode(&connection).map_err(|error| OpenError::file(path, error))?;
        expect("journal_mode", "wal", &mode)?;
        let (name, number) = match options.durability {
            Durability::PowerLoss => ("FULL", 2),
            Durability::ProcessCrash => ("NORMAL", 1),
        };
        pragma(&connection, "synchronous", name, number)?;
        if options.durability == Durability::PowerLoss {
            // On macOS `fsync` does not empty the drive's cache; these do. Elsewhere they change nothing.
            pragma(&connection, "fullfsync", "ON", 1)?;
            pragma(&connection, "checkpoint_fullfsync", "ON", 1)?;
        }
    }
    pragma(&connection, "foreign_keys", "ON", 1)?;
    // What a savepoint needs to roll back is small and short-lived: not worth a file.
    pragma(&connection, "temp_store", "MEMORY", 2)?;
    if let Some(pages) = options.max_pages {
        pragma(&connection, "max_page_count", &pages.to_string(), i64::from(pages))?;
    }
    if let Some(commits) = options.count_commits.clone() {
        let count = move || {
            commits.fetch_add(1, Ordering::Relaxed);
            false
        };
        connection.commit_hook(Some(count)).map_err(OpenError::driver)?;
    }
    Ok(connection)
}

/// Switches a file to a write-ahead log and returns the mode. The statement tells the mode before its change
/// is committed, so it must run to its end: a commit that fails leaves the file with a rollback journal,
/// under which a power failure can undo an acknowledged commit.
fn set_journal_mode(connection: &Connection) -> rusqlite::Result<String> {
    let mut statement = connection.prepare("PRAGMA journal_mode = WAL")?;
    let told: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(told.into_iter().next_back().unwrap_or_default())
}

/// Opens a connection that only reads.
pub(crate) fn open_reader(path: &Path, options: &SqliteOptions) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection =
        open(path, flags, options.vfs.as_deref()).map_err(|error| OpenError::file(path, error))?;
    set(&mut connection, options).map_err(|error| OpenError::file(path, error))?;
    pragma(&connection, "query_only", "ON", 1)?;
    Ok(connection)
}

/// Opens a connection through a VFS, or through that of the system.
pub(crate) fn open(path: &Path, flags: OpenFlags, vfs: Option<&str>) -> rusqlite::Result<Connection> {
    match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    }
}

/// Writes the log back into the file and empties it.
pub(crate) fn checkpoint(connection: &Connection) -> DbResult<()> {
    let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if busy == 0 {
        return Ok(());
    }
    let text = "somebody reads from the log; what was committed is safe, and a later checkpoint empties it";
    Err(ProviderError::new(ProviderErrorKind::Busy, "checkpoint", text).into())
}

impl Location {
    pub(crate) fn explain(&self, error: rusqlite::Error) -> OpenError {
        match self {
            Self::Memory => OpenError::driver(error),
            Self::File(path) => OpenError::file(path, error),
        }
    }
}

/// Bounds the prepared statements that a connection keeps: more than there are, so that each is prepared
/// once.
const STATEMENTS: usize = 256;

fn set(connection: &mut Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Without this SQLite prepares some statements again for every value, in search of a better plan.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    if let Some(steps) = options.count_steps.clone() {
        let count = move || {
            steps.fetch_add(1, Ordering::Relaxed);
            false
        };
        connection.progress_handler(1, Some(count))?;
    }
    if let Some(statements) = options.count_statements.clone() {
        let count = move |event: TraceEvent<'_>| {
            if let TraceEvent::Stmt(statement, _) = event
                && statement.sql() != DATA_VERSION
            {
                statements.fetch_add(1, Ordering::Relaxed);
            }
        };
        connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(count))?;
    }
    connection.busy_timeout(options.busy_timeout)
}

fn pragma(connection: &Connection, name: &str, value: &str, expected: i64) -> Result<(), OpenError> {
    connection.pragma_update(None, name, value).map_err(OpenError::driver)?;
    let found: i64 =
        connection.pragma_query_value(None, name, |row| row.get(0)).map_err(OpenError::driver)?;
    expect(name, &expected.to_string(), &found.to_string())
}

fn expect(name: &str, expected: &str, found: &str) -> Result<(), OpenError> {
    if expected == found {
        return Ok(());
    }
    Err(OpenError::Setting { name: name.to_owned(), expected: expected.to_owned(), found: found.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F10: SQLite accepts a value that it does not know silently, and sets another one.
    #[test]
    fn a_setting_that_is_not_taken_fails_the_start() {
        let connection = Connection::open_in_memory().expect("a database in memory");
        let refused = pragma(&connection, "synchronous", "WAL", 2).expect_err("there is no such value");
        assert!(matches!(refused, OpenError::Setting { .. }), "{refused}");
    }

    #[test]
    fn every_connection_has_the_settings_that_were_asked_for() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("store.db");
        let setting = |connection: &Connection, name: &str| -> i64 {
            connection.pragma_query_value(None, name, |row| row.get(0)).expect("a setting")
        };
        for (durability, synchronous) in [(Durability::PowerLoss, 2), (Durability::ProcessCrash, 1)] {
            let options = SqliteOptions { durability, ..SqliteOptions::default() };
            let writer = open_writer(&Location::File(path.clone()), &options).expect("a writer");
            let reader = open_reader(&path, &options).expect("a reader");
            assert_eq!(setting(&writer, "synchronous"), synchronous);
            let full = i64::from(durability == Durability::PowerLoss);
            let fsyncs = (setting(&writer, "fullfsync"), setting(&writer, "checkpoint_fullfsync"));
            assert_eq!(fsyncs, (full, full), "G19: a synced commit reaches the disk on macOS too");
            assert_eq!((setting(&writer, "foreign_keys"), setting(&reader, "query_only")), (1, 1));
            assert_eq!((setting(&writer, "busy_timeout"), setting(&reader, "busy_timeout")), (5000, 5000));
        }
    }
}
