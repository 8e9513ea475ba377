//! Opening a store: from a URL to a file, and the errors on the way.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::link::connection::Location;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL names neither a file nor `:memory:`.
    #[error("'{url}' is no SQLite URL: use sqlite:./app.db, sqlite:/path/app.db or sqlite::memory:")]
    Url {
        /// The URL as it was given.
        url: String,
    },
    /// The folder of the file does not exist.
    #[error("the folder {} does not exist: create it first, or open a file elsewhere", folder.display())]
    MissingFolder {
        /// The folder that is missing, as the path of the file names it.
        folder: PathBuf,
    },
    /// The path is a folder.
    #[error("{} is a folder, not a file", path.display())]
    IsFolder {
        /// The path that was given for the file.
        path: PathBuf,
    },
    /// The file cannot be opened for writing: it or its folder is read-only, or access is denied.
    #[error("{} cannot be written: the file or its folder is read-only", path.display())]
    ReadOnly {
        /// The path of the database file.
        path: PathBuf,
        /// The error as SQLite reported it.
        #[source]
        source: rusqlite::Error,
    },
    /// The file is no SQLite database.
    #[error("{} is no SQLite database", path.display())]
    NotADatabase {
        /// The path of the file that is no database.
        path: PathBuf,
        /// The error as SQLite reported it.
        #[source]
        source: rusqlite::Error,
    },
    /// The disk has no room for the schema or the log.
    #[error("there is no room left for {}", path.display())]
    Full {
        /// The path of the database file.
        path: PathBuf,
        /// The error as SQLite reported it.
        #[source]
        source: rusqlite::Error,
    },
    /// Another process keeps the file locked.
    #[error("{} is locked by another process", path.display())]
    Busy {
        /// The path of the database file.
        path: PathBuf,
        /// The error as SQLite reported it.
        #[source]
        source: rusqlite::Error,
    },
    /// The file holds the tables of `duroxide`, which this store does not read.
    #[error(
        "{place} was written by duroxide, whose tables are its own. Open a new file, read the histories with \
         duroxide (read_with_execution, as JSON), and bring each over with \
         SqliteProvider::import_history(instance, execution, events)"
    )]
    Duroxide {
        /// The file, or the database in memory.
        place: String,
    },
    /// The database has tables of another program.
    #[error("{place} holds the tables of another program ({found}): give Steadfast a file of its own")]
    Foreign {
        /// The file, or the database in memory.
        place: String,
        /// The name of one of its tables.
        found: String,
    },
    /// The database was written by a newer version of this store.
    #[error(
        "{place} has schema version {found}, and this build knows versions up to {known}: use a newer build"
    )]
    TooNew {
        /// The file, or the database in memory.
        place: String,
        /// The schema version of the file.
        found: i64,
        /// The newest schema version that this build knows.
        known: i64,
    },
    /// A migration that was applied differs from the one that this build has.
    #[error(
        "migration {version} of {place} differs from the one of this build: \
         the file or the build was tampered with"
    )]
    Changed {
        /// The file, or the database in memory.
        place: String,
        /// The number of the migration in the order of their application, from 1.
        version: i64,
    },
    /// A migration failed and was rolled back: the database is at the schema version before it.
    #[error("migration {version} of {place} failed, and the database was left as it was")]
    Migration {
        /// The file, or the database in memory.
        place: String,
        /// The number of the migration in the order of their application, from 1.
        version: i64,
        /// The error as SQLite reported it.
        #[source]
        source: rusqlite::Error,
    },
    /// SQLite did not take a setting.
    #[error("SQLite did not take the setting {name}: asked for {expected}, found {found}")]
    Setting {
        /// The name of the PRAGMA.
        name: String,
        /// The value that was asked for.
        expected: String,
        /// The value that is in force.
        found: String,
    },
    /// The writing thread could not be started.
    #[error("the writing thread could not be started")]
    Thread(#[from] std::io::Error),
    /// SQLite failed in a way that no other variant describes.
    #[error("SQLite failed")]
    Driver(#[source] rusqlite::Error),
}

impl OpenError {
    pub(crate) fn driver(error: rusqlite::Error) -> Self {
        Self::Driver(error)
    }

    /// Makes the error for a file that SQLite could not open, by SQLite's code.
    pub(crate) fn file(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Self::NotADatabase { path, source },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path, source },
            Some(ErrorCode::CannotOpen) => Self::ReadOnly { path, source },
            Some(ErrorCode::DiskFull) => Self::Full { path, source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path, source },
            _ => Self::Driver(source),
        }
    }
}

/// Reads a URL and checks what can be checked before SQLite is asked.
///
/// The folder of a file that a VFS keeps is not looked for: the system does not know it.
pub(crate) fn location_of(url: &str, vfs: Option<&str>) -> Result<Location, OpenError> {
    let bad = || OpenError::Url { url: url.to_owned() };
    let rest = url.strip_prefix("sqlite:").ok_or_else(bad)?;
    if rest == ":memory:" || rest == "//:memory:" {
        return Ok(Location::Memory);
    }
    let path = rest.strip_prefix("//").unwrap_or(rest);
    // Parameters of other drivers, such as ?mode=rwc, ask for what happens here anyway.
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    if path.is_empty() || path.contains('\0') {
        return Err(bad());
    }
    let path = PathBuf::from(path);
    if vfs.is_some() {
        return Ok(Location::File(path));
    }
    if path.is_dir() {
        return Err(OpenError::IsFolder { path });
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            Err(OpenError::MissingFolder { folder: folder.to_path_buf() })
        }
        _ => Ok(Location::File(path)),
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory => write!(f, "the in-memory database"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}
