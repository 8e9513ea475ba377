//! Errors: the conversion of SQLite's codes to [`ProviderErrorKind`].

use rusqlite::{Error, ErrorCode};
use steadfast_store::{ProviderError, ProviderErrorKind};

/// A failure inside a transaction: an error of SQLite, or a refusal by the rules of the store.
#[derive(Debug)]
pub(crate) enum Fault {
    Sqlite(Error),
    Refused(ProviderError),
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
        }
    }
}

/// Returns the kind of a SQLite error, by its code and never by its text.
pub(crate) fn kind_of(error: &Error) -> ProviderErrorKind {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ProviderErrorKind::Busy,
        Some(ErrorCode::DiskFull) => ProviderErrorKind::Full,
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::OperationInterrupted) => {
            ProviderErrorKind::Unavailable
        }
        Some(ErrorCode::ConstraintViolation) => ProviderErrorKind::Conflict,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => ProviderErrorKind::Corrupt,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => ProviderErrorKind::Refused,
        Some(ErrorCode::TooBig) => ProviderErrorKind::Invalid,
        _ => ProviderErrorKind::Other,
    }
}

pub(crate) fn provider_error(operation: &str, error: Error) -> ProviderError {
    let text = match kind_of(&error) {
        ProviderErrorKind::Busy => {
            format!("another process is writing to the file, and went on for too long: {error}")
        }
        ProviderErrorKind::Full => format!("there is no room left for the file: {error}"),
        _ => error.to_string(),
    };
    ProviderError::new(kind_of(&error), operation, text).with_source(error)
}
