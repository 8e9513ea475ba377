//! Errors: the conversion of SQLite's codes to [`ProviderErrorKind`].

use rusqlite::{Error, ErrorCode};
use steadfast_store::{ProviderError, ProviderErrorKind, Queue};

/// A failure inside a transaction: an error of SQLite, or a refusal by the rules of the store.
#[derive(Debug)]
pub(crate) enum Fault {
    Sqlite(Error),
    Refused(ProviderError),
    /// Rows of the queues cannot be read. They must be listed, and the request run again.
    Torn(TornRows),
    /// A row of a queue cannot be removed, because a page beside it is torn. The request must run again and
    /// leave the rows that it removes where they are.
    Stuck,
    /// SQLite has rolled the transaction back by itself, after an error that an earlier statement met.
    RolledBack,
    /// An event cannot be stored behind the others, because the last leaf of the histories is torn. The
    /// request must run again and store it in front of them.
    TornEnd,
    /// The trail of a session cannot be written, because a page of it is torn. The request must run again
    /// without it.
    TornTrail,
}

/// Tells that a row of a queue cannot be removed, because a page beside it is torn.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("a row of a queue cannot be removed")]
struct StuckRow;

/// Tells that an event cannot be stored behind the others, because the last leaf of the histories is torn.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("an event cannot be stored behind the others")]
struct TornLastLeaf;

/// Tells that the trail of a session cannot be written, because a page of it is torn.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the trail of a session cannot be written")]
struct TornTrailPage;

/// Rows of the queues that cannot be read, because a page of the file is torn.
#[derive(Debug, Clone, thiserror::Error)]
#[error("rows of the queues cannot be read")]
pub(crate) struct TornRows(pub(crate) Vec<TornRow>);

/// A row of a queue that cannot be read.
#[derive(Debug, Clone)]
pub(crate) struct TornRow {
    pub(crate) queue: Queue,
    pub(crate) row: i64,
    /// The key of its instance, if it is known.
    pub(crate) key: Option<i64>,
    /// The session and the tag of an activity, if they can be read.
    pub(crate) place: Option<(Option<i64>, String)>,
    pub(crate) reason: String,
}

/// Returns the torn rows that an error tells of.
pub(crate) fn torn_rows(error: &ProviderError) -> Option<&[TornRow]> {
    let TornRows(rows) = error.source.as_ref()?.downcast_ref()?;
    Some(rows)
}

/// Tells whether an error is that of a row that cannot be removed.
pub(crate) fn is_stuck(error: &ProviderError) -> bool {
    error.source.as_ref().is_some_and(|source| source.downcast_ref::<StuckRow>().is_some())
}

/// Tells whether an error is that of an event that cannot be stored behind the others.
pub(crate) fn is_torn_end(error: &ProviderError) -> bool {
    error.source.as_ref().is_some_and(|source| source.downcast_ref::<TornLastLeaf>().is_some())
}

/// Tells whether an error is that of a trail of a session that cannot be written.
pub(crate) fn is_torn_trail(error: &ProviderError) -> bool {
    error.source.as_ref().is_some_and(|source| source.downcast_ref::<TornTrailPage>().is_some())
}

/// The result of a step inside a transaction.
pub(crate) type DbResult<T> = Result<T, Fault>;

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<ProviderError> for Fault {
    fn from(error: ProviderError) -> Self {
        Self::Refused(error)
    }
}

impl Fault {
    pub(crate) fn invalid(operation: &'static str, text: impl Into<String>) -> Self {
        ProviderError::new(ProviderErrorKind::Invalid, operation, text).into()
    }

    /// Returns the fault as an error of the operation that met it.
    pub(crate) fn of(self, operation: &str) -> ProviderError {
        match self {
            Self::Sqlite(error) => provider_error(operation, error),
            Self::Refused(error) => error,
            Self::Torn(rows) => damaged(operation).with_source(rows),
            Self::Stuck => damaged(operation).with_source(StuckRow),
            Self::RolledBack => {
                let text = "an error has rolled the transaction back; nothing was changed";
                ProviderError::new(ProviderErrorKind::Unavailable, operation, text)
            }
            Self::TornEnd => damaged(operation).with_source(TornLastLeaf),
            Self::TornTrail => damaged(operation).with_source(TornTrailPage),
        }
    }
}

/// Returns the kind of a SQLite error, by its code and never by its text. An error that the store cannot name
/// is no one's fault as far as it knows, so the call may be tried again: `Unavailable`.
pub(crate) fn kind_of(error: &Error) -> ProviderErrorKind {
    named_kind_of(error).unwrap_or(ProviderErrorKind::Unavailable)
}

fn named_kind_of(error: &Error) -> Option<ProviderErrorKind> {
    match error {
        Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Some(ProviderErrorKind::Busy),
            ErrorCode::DiskFull => Some(ProviderErrorKind::Full),
            // A file that cannot be read or written now: a disk that fails, a mount that went read-only.
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::OperationInterrupted
            | ErrorCode::OutOfMemory
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied => Some(ProviderErrorKind::Unavailable),
            ErrorCode::ConstraintViolation if is_repeated(failure.extended_code) => {
                Some(ProviderErrorKind::Conflict)
            }
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Some(ProviderErrorKind::Corrupt),
            ErrorCode::TooBig => Some(ProviderErrorKind::Invalid),
            _ => None,
        },
        // A column that does not hold what the schema says.
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::Utf8Error(..)
        | Error::InvalidColumnType(..) => Some(ProviderErrorKind::Corrupt),
        _ => None,
    }
}

/// Tells whether a constraint was broken by a value that must be unique and is there already.
fn is_repeated(extended_code: i32) -> bool {
    use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_ROWID, SQLITE_CONSTRAINT_UNIQUE};
    [SQLITE_CONSTRAINT_UNIQUE, SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_ROWID].contains(&extended_code)
}

/// Tells whether an error of a read says that the database cannot read what is stored: a page that is torn,
/// or one that the disk does not return.
pub(crate) fn is_damage(error: &ProviderError) -> bool {
    error.kind == ProviderErrorKind::Corrupt || driver_error(error).is_some_and(is_io)
}

/// Tells whether the disk failed a read or a write.
pub(crate) fn is_io(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
}

/// Tells whether an error is that of a torn page which the call has not led back to a row.
pub(crate) fn is_of_torn_page(error: &ProviderError) -> bool {
    error.kind == ProviderErrorKind::Corrupt && driver_error(error).is_some()
}

/// Tells whether a fault is a page that is torn. A read that the disk fails is not: SQLite has then rolled
/// the transaction back, and the call may be tried again.
pub(crate) fn is_torn(fault: &Fault) -> bool {
    matches!(fault, Fault::Sqlite(error) if kind_of(error) == ProviderErrorKind::Corrupt)
}

fn is_damaged(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Returns the error of a file that is damaged, with the remedy.
pub(crate) fn damaged(operation: &str) -> ProviderError {
    let text = format!("a part of the file is damaged; {REMEDY}");
    ProviderError::new(ProviderErrorKind::Corrupt, operation, text)
}

/// What helps a file with a torn page.
pub(crate) const REMEDY: &str = "stop all processes, and restore a backup or make a new file of what can \
                                 be read: `sqlite3 damaged.db .recover > all.sql`, and if that prints no \
                                 error, `sqlite3 new.db < all.sql`";

fn driver_error(error: &ProviderError) -> Option<&Error> {
    error.source.as_ref()?.downcast_ref()
}

pub(crate) fn provider_error(operation: &str, error: Error) -> ProviderError {
    let kind = kind_of(&error);
    if named_kind_of(&error).is_none() {
        tracing::warn!(
            target: "steadfast::store",
            operation,
            %error,
            "SQLite failed in a way that the store does not know; the call may be tried again"
        );
    }
    let text = match kind {
        ProviderErrorKind::Busy => {
            format!("another process is writing to the file, and went on for too long: {error}")
        }
        ProviderErrorKind::Full => format!("there is no room left for the file: {error}"),
        ProviderErrorKind::Corrupt if is_damaged(&error) => {
            format!("{error}: a part of the file is damaged; {REMEDY}")
        }
        _ => error.to_string(),
    };
    ProviderError::new(kind, operation, text).with_source(error)
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn kind(code: i32) -> ProviderErrorKind {
        kind_of(&Error::SqliteFailure(ffi::Error::new(code), None))
    }

    /// G8: only what the store can name is final.
    #[test]
    fn an_error_that_the_store_cannot_name_may_be_tried_again() {
        for code in [
            ffi::SQLITE_ERROR,
            ffi::SQLITE_INTERNAL,
            ffi::SQLITE_PROTOCOL,
            ffi::SQLITE_SCHEMA,
            ffi::SQLITE_MISUSE,
            ffi::SQLITE_NOMEM,
            ffi::SQLITE_READONLY,
            ffi::SQLITE_PERM,
            ffi::SQLITE_IOERR,
            ffi::SQLITE_CONSTRAINT_DATATYPE,
            4_711,
        ] {
            assert_eq!(kind(code), ProviderErrorKind::Unavailable, "{code}");
        }
        assert_eq!(kind_of(&Error::InvalidQuery), ProviderErrorKind::Unavailable);
    }

    /// S3: SQLite rolls the transaction back after such an error, so no row is looked at for it.
    #[test]
    fn a_failed_read_or_write_is_no_torn_row_and_may_be_tried_again() {
        let fault = |code| Fault::from(Error::SqliteFailure(ffi::Error::new(code), None));
        for code in [
            ffi::SQLITE_IOERR_READ,
            ffi::SQLITE_IOERR_SHORT_READ,
            ffi::SQLITE_IOERR_DATA,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_IOERR_FSYNC,
            ffi::SQLITE_IOERR,
        ] {
            assert!(!is_torn(&fault(code)), "{code}");
            assert_eq!(kind(code), ProviderErrorKind::Unavailable, "{code}");
        }
        assert!(is_torn(&fault(ffi::SQLITE_CORRUPT)));
    }

    #[test]
    fn errors_that_the_store_can_name_keep_their_kinds() {
        for (code, expected) in [
            (ffi::SQLITE_BUSY, ProviderErrorKind::Busy),
            (ffi::SQLITE_FULL, ProviderErrorKind::Full),
            (ffi::SQLITE_CORRUPT, ProviderErrorKind::Corrupt),
            (ffi::SQLITE_NOTADB, ProviderErrorKind::Corrupt),
            (ffi::SQLITE_TOOBIG, ProviderErrorKind::Invalid),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, ProviderErrorKind::Conflict),
        ] {
            assert_eq!(kind(code), expected, "{code}");
        }
    }
}
