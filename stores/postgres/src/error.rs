//! What an error of the database means for the caller. Decided by SQLSTATE, never by text.

use steadfast_store::{ProviderError, ProviderErrorKind};
use tokio_postgres::error::SqlState;

/// Says what an error of the driver means.
pub(crate) fn provider_error(operation: &str, error: tokio_postgres::Error) -> ProviderError {
    if let Some(raised) = crate::exception::raised(operation, &error) {
        return raised;
    }
    let kind = kind_of(&error);
    let text = match error.as_db_error() {
        Some(db) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        None => format!("the database cannot be reached: {}", chain(&error)),
    };
    ProviderError::new(kind, operation, text).with_source(error)
}

fn kind_of(error: &tokio_postgres::Error) -> ProviderErrorKind {
    let Some(code) = error.code() else { return ProviderErrorKind::Unavailable };
    match code.code() {
        "40001" | "40P01" | "55P03" | "57014" => ProviderErrorKind::Busy,
        "23505" => ProviderErrorKind::Conflict,
        "42501" | "25006" | "28000" | "28P01" => ProviderErrorKind::Refused,
        "22021" | "22P05" => ProviderErrorKind::Invalid,
        "53100" | "53200" => ProviderErrorKind::Full,
        text if text.starts_with("08") || text.starts_with("57P") || text == "53300" => {
            ProviderErrorKind::Unavailable
        }
        _ => ProviderErrorKind::Other,
    }
}

/// Would the same statement succeed if it were sent again at once? Its transaction was rolled back.
pub(crate) fn is_conflict(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        *code == SqlState::T_R_DEADLOCK_DETECTED || *code == SqlState::T_R_SERIALIZATION_FAILURE
    })
}

/// The text of an error and of those underneath.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        source = error.source();
    }
    text
}
