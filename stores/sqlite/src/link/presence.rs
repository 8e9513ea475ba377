//! Telling whether other live processes have the file open: each holds a lock on a file beside the database
//! for as long as it has the database open. The system takes the lock back when a process ends, however it
//! ends.
//!
//! The lock is not on the database file, because SQLite's own locks are there, and on some systems the two
//! kinds meet.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::link::connection::{Location, open};

/// Shows other processes that this one has the file open, until it is dropped.
#[derive(Debug)]
pub(crate) struct Presence {
    _lock: Option<PresenceLock>,
}

/// What holds the lock for as long as it is kept.
#[derive(Debug)]
enum PresenceLock {
    OfSystem {
        _file: File,
    },
    /// A VFS has no other locks than those of SQLite: a read transaction on an empty database is a lock that
    /// is shared.
    OfVfs {
        _connection: Connection,
    },
}

/// Who else has the file open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    /// No other process.
    Alone,
    /// At least one other process.
    Others,
    /// The file system has no locks, or the file beside the database cannot be opened.
    Unknown,
}

impl Presence {
    /// Takes the lock of this process and tells who else has the file open. Call this inside a write
    /// transaction: it keeps two processes from judging at the same time, so that an exclusive lock can be
    /// exchanged for a shared one.
    pub(crate) fn enter(place: &Location, vfs: Option<&str>) -> (Self, Company) {
        let judged = match (place, vfs) {
            (Location::Memory, _) => return (Self { _lock: None }, Company::Alone),
            (Location::File(path), None) => enter_system(path),
            (Location::File(path), Some(vfs)) => enter_vfs(path, vfs).map_err(std::io::Error::other),
        };
        match judged {
            Ok((lock, company)) => (Self { _lock: Some(lock) }, company),
            Err(error) => {
                tracing::debug!(
                    target: "steadfast::store",
                    %error,
                    "it cannot be told whether other processes have {place} open"
                );
                (Self { _lock: None }, Company::Unknown)
            }
        }
    }
}

fn enter_system(path: &Path) -> std::io::Result<(PresenceLock, Company)> {
    let file = open_beside(path)?;
    let company = judge(&file)?;
    Ok((PresenceLock::OfSystem { _file: file }, company))
}

/// Opens the file beside the database, and creates it if it is missing. It stays there: a process that
/// removed it could not be seen by one that has it open.
fn open_beside(path: &Path) -> std::io::Result<File> {
    // SQLite follows links in the same way to find its log.
    let mut name = path.canonicalize()?.into_os_string();
    name.push("-presence");
    let mut writing = OpenOptions::new();
    // A lock needs no right to write: the file may belong to another user.
    writing.read(true).write(true).create(true).truncate(false).open(&name).or_else(|_| File::open(&name))
}

/// Tries the lock for this process alone, and ends with a lock that it shares.
fn judge(file: &File) -> std::io::Result<Company> {
    let company = match file.try_lock() {
        Ok(()) => {
            file.unlock()?;
            Company::Alone
        }
        Err(TryLockError::WouldBlock) => Company::Others,
        Err(TryLockError::Error(error)) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(company),
        Err(TryLockError::WouldBlock) => Err(std::io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Does the same with the locks of SQLite on a file that a VFS keeps.
fn enter_vfs(path: &Path, vfs: &str) -> rusqlite::Result<(PresenceLock, Company)> {
    let mut name = path.as_os_str().to_owned();
    name.push("-presence");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = open(Path::new(&name), flags, Some(vfs))?;
    connection.busy_timeout(std::time::Duration::ZERO)?;
    let company = match connection.execute_batch("BEGIN EXCLUSIVE; ROLLBACK") {
        Ok(()) => Company::Alone,
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Company::Others,
        Err(error) => return Err(error),
    };
    connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
    Ok((PresenceLock::OfVfs { _connection: connection }, company))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alone_until_another_enters_and_after_it_has_left() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("store.db");
        std::fs::write(&path, "").expect("a file");
        let place = Location::File(path);
        let (first, company) = Presence::enter(&place, None);
        assert_eq!(company, Company::Alone);
        let (second, company) = Presence::enter(&place, None);
        assert_eq!(company, Company::Others);
        drop(first);
        assert_eq!(Presence::enter(&place, None).1, Company::Others, "the second is there");
        drop(second);
        assert_eq!(Presence::enter(&place, None).1, Company::Alone);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_the_file_is_the_same_file() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let (path, link) = (folder.path().join("store.db"), folder.path().join("link.db"));
        std::fs::write(&path, "").expect("a file");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        let _first = Presence::enter(&Location::File(path), None);
        assert_eq!(Presence::enter(&Location::File(link), None).1, Company::Others);
    }

    #[test]
    fn where_there_can_be_no_lock_nothing_is_known() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let place = Location::File(folder.path().join("missing").join("store.db"));
        assert_eq!(Presence::enter(&place, None).1, Company::Unknown);
        assert_eq!(Presence::enter(&Location::Memory, None).1, Company::Alone);
    }
}
