//! Errors of the database as errors of the contract. The SQLSTATE decides, never the text.

use deadpool_postgres::{PoolError, TimeoutType};
use steadfast_clock::{Clock, SystemClock};
use steadfast_store::{LineThrottle, ProviderError, ProviderErrorKind};
use tokio_postgres::error::{Severity, SqlState};

/// Makes the error of the contract from the error of a statement.
pub(crate) fn provider_error(operation: &str, error: tokio_postgres::Error) -> ProviderError {
    if let Some(raised) = crate::link::exception::raised(operation, &error) {
        return raised;
    }
    let known = meaning(error.code());
    if known.is_none() {
        tell_unknown(operation, &error);
    }
    let (kind, remedy) = known.unwrap_or(UNKNOWN);
    let said = match error.as_db_error() {
        Some(db) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        None => chain(&error),
    };
    let text = if remedy.is_empty() { said } else { format!("{said}; {remedy}") };
    ProviderError::new(kind, operation, text).with_source(error)
}

/// Makes the error of the contract for a connection that could not be had. No statement was sent, so the
/// caller may always try again.
pub(crate) fn pool_error(operation: &str, error: &PoolError) -> ProviderError {
    let kind = match error {
        PoolError::Timeout(TimeoutType::Wait) => ProviderErrorKind::Busy,
        _ => ProviderErrorKind::Unavailable,
    };
    ProviderError::new(kind, operation, unreached(error))
}

/// Explains why the pool gave no connection, and what to do.
pub(crate) fn unreached(error: &PoolError) -> String {
    match error {
        PoolError::Timeout(TimeoutType::Wait) => {
            "every connection of the pool is in use and none became free in time; raise max_connections, or \
             connect_timeout"
                .to_owned()
        }
        PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
            "no connection was made in time; check host and port, and that no firewall drops the \
             packets"
                .to_owned()
        }
        PoolError::Backend(error) => unconnected(error),
        PoolError::Closed => "the pool was closed".to_owned(),
        PoolError::NoRuntimeSpecified => "the pool has no runtime for its timeouts".to_owned(),
        PoolError::PostCreateHook(error) => format!("a hook of the pool failed: {}", chain(error)),
    }
}

/// Explains why connecting to the server failed, and what to do.
fn unconnected(error: &tokio_postgres::Error) -> String {
    let Some(db) = error.as_db_error() else {
        let said = chain(error);
        return format!("{said}; {}", remedy_without_code(error));
    };
    let remedy = match db.code().code() {
        "28P01" => "check user and password",
        "28000" => {
            "check that the role exists and may log in, and that pg_hba.conf of the server lets it in from \
             here"
        }
        "3D000" => "create the database first, for instance with createdb, or name another one",
        "42501" => "grant the role the right to connect to this database",
        "53300" => {
            "the server has no connection left: lower max_connections of this and other processes, or raise \
             the server's"
        }
        "57P03" => "the server is starting or stopping: try again soon",
        _ => "check the connection URL and the log of the server",
    };
    format!("{} (SQLSTATE {}); {remedy}", db.message(), db.code().code())
}

fn remedy_without_code(error: &tokio_postgres::Error) -> &'static str {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(system) = inner.downcast_ref::<std::io::Error>() {
            // An I/O error wraps a TLS error without giving it as its source.
            return match system.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                Some(rustls::Error::InvalidCertificate(_)) => {
                    "the certificate of the server was refused: name its authority with sslrootcert and the \
                     host as the certificate does, or lower sslmode"
                }
                Some(_) => "TLS failed: check sslmode, and the log of the server",
                None => "check host and port, and that the server runs",
            };
        }
        source = inner.source();
    }
    "check the connection URL, its password and its sslmode"
}

/// What an error means that the store cannot name: it is no one's fault as far as the store knows (G8).
const UNKNOWN: (ProviderErrorKind, &str) =
    (ProviderErrorKind::Unavailable, "this store does not know that error; it is tried again");

/// Returns the kind of an error of a statement, and what to do if that is not obvious; `None` for an error
/// that the store cannot name. Only what can never succeed is final: a value that cannot be stored, and an id
/// that exists. Everything that a person can mend is worth another try (G8).
fn meaning(code: Option<&SqlState>) -> Option<(ProviderErrorKind, &'static str)> {
    use ProviderErrorKind::{Busy, Conflict, Corrupt, Full, Invalid, Unavailable};
    let Some(code) = code else {
        return Some((Unavailable, "the connection is lost; what was asked may have happened or not"));
    };
    Some(match code.code() {
        // The transaction lost against another one, or waited for it too long: nothing happened.
        "40001" | "40P01" | "55006" => (Busy, ""),
        "55P03" => (
            Busy,
            "another transaction holds it, perhaps one of your own that is still open; nothing happened",
        ),
        "57014" => {
            (Busy, "it took longer than statement_timeout, or somebody cancelled it; nothing happened")
        }
        "25P04" => (Busy, "it took longer than the server's transaction_timeout; nothing happened"),
        "23505" => (Conflict, ""),
        "42501" => (Unavailable, "grant the role what it needs in this schema"),
        // A primary that became a standby: another connection may find the new primary.
        "25006" => (Unavailable, "this server only reads; connect to the primary"),
        "28000" | "28P01" => (Unavailable, "check the role and its password"),
        "53100" => (Full, "free space on the disk of the server"),
        "53200" | "53000" | "53400" => (Full, "the server has no room for this now"),
        "53300" => (Unavailable, "the server has no connection left"),
        "57P03" => (Unavailable, "the server is starting or stopping; nothing happened"),
        "40003" => (Unavailable, "what was asked may have happened or not"),
        "3F000" | "42P01" | "42883" | "42703" => {
            (Unavailable, "the schema was dropped or changed; open it again, which makes what is missing")
        }
        "XX001" | "XX002" => (Corrupt, "the database is damaged; see the log of the server"),
        code => match &code[..code.len().min(2)] {
            "08" => (Unavailable, ""),
            "57" => (
                Unavailable,
                "the server ended the connection; what was asked may have happened or not: read the state of \
                 the instance, or ask again (a repeated start of one id makes no second instance)",
            ),
            "25" if code == "25P03" => (Unavailable, ""),
            "58" => (Unavailable, "the server has trouble with its files; see its log"),
            // The function of the server ran out of stack: that depends on the server, not on the value.
            "54" if code == "54001" => (Unavailable, "raise max_stack_depth of the server"),
            // A value that cannot be stored: malformed, or too long for an index.
            "22" | "54" => (Invalid, ""),
            _ => return None,
        },
    })
}

/// Writes the log line of an error that the store cannot name.
fn tell_unknown(operation: &str, error: &tokio_postgres::Error) {
    static LINES: LineThrottle = LineThrottle::new();
    let error = chain(error);
    if let Some(left_out) = LINES.tell(&error, SystemClock.monotonic()) {
        tracing::warn!(
            target: "steadfast::store",
            operation,
            %error,
            left_out,
            "the database answered with an error that this store does not know; it is tried again"
        );
    }
}

/// Tells whether the database says that it cannot read what it stored: a page is damaged, or a part of a long
/// value is missing.
pub(crate) fn is_damage(error: &ProviderError) -> bool {
    state_of(error).is_some_and(|code| matches!(code.code(), "XX001" | "XX002"))
}

/// Tells whether what was to be read cannot be read by the database: it is damaged, too long for the memory
/// of the server, or not read in time.
pub(crate) fn is_unreadable(error: &ProviderError) -> bool {
    let is_too_much = |code: &SqlState| code.code() == "53200";
    is_too_slow(error) || is_damage(error) || state_of(error).is_some_and(is_too_much)
}

/// Tells whether a statement took longer than it may: the server ended it, or did not answer in time.
pub(crate) fn is_too_slow(error: &ProviderError) -> bool {
    let is_late = error.source.as_deref().is_some_and(|source| source.is::<NoAnswer>());
    is_late || is_cancelled(error)
}

/// Tells whether the server ended a statement before it was done: its time was up, or a person cancelled it.
pub(crate) fn is_cancelled(error: &ProviderError) -> bool {
    state_of(error).is_some_and(|code| code.code() == "57014")
}

/// The source of an error of a statement that was not answered in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer in time; what was asked may have happened or not")]
pub(crate) struct NoAnswer;

fn state_of(error: &ProviderError) -> Option<&SqlState> {
    let source = error.source.as_deref()?.downcast_ref::<tokio_postgres::Error>()?;
    source.code()
}

/// Tells whether the same statement may succeed if it is sent again at once. Its transaction was rolled back.
///
/// A function that is replaced by one with more parameters gets another oid. A statement that looked up the
/// old function a moment before fails: with an undefined function, with an internal error inside a function,
/// or with a cached plan whose result would change. Sent again, it finds the new function.
pub(crate) fn is_conflict(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        [
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::UNDEFINED_FUNCTION,
            SqlState::INTERNAL_ERROR,
            SqlState::FEATURE_NOT_SUPPORTED,
        ]
        .contains(code)
    })
}

/// Tells whether a call failed because it met a lock of another transaction, or lost against it. Such a call
/// has changed nothing, and what it asked for may succeed when the other one has ended.
pub(crate) fn is_in_the_way(error: &ProviderError) -> bool {
    let states =
        [SqlState::LOCK_NOT_AVAILABLE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
    state_of(error).is_some_and(|code| states.contains(code))
}

/// Tells whether a connection must not be used again although it may still look open: the server has closed
/// it, or the server has become read-only, and a new connection may reach the new primary.
pub(crate) fn is_spent(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_none_or(|db| {
        matches!(db.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
            || *db.code() == SqlState::READ_ONLY_SQL_TRANSACTION
    })
}

/// Returns the texts of an error and of its sources.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: &str) -> ProviderErrorKind {
        meaning(Some(&SqlState::from_code(code))).unwrap_or(UNKNOWN).0
    }

    #[test]
    fn what_may_succeed_later_is_retryable() {
        for code in [
            "40001", "40P01", "55P03", "57014", "57P01", "57P03", "53300", "53100", "08006", "25006", "58030",
        ] {
            assert!(kind(code).is_retryable(), "{code}");
        }
        assert!(meaning(None).is_some_and(|(kind, _)| kind.is_retryable()));
    }

    #[test]
    fn g45_a_connection_that_was_ended_says_that_the_outcome_is_unknown_and_how_to_find_out() {
        for code in ["57P01", "57P02", "57P05"] {
            let (_, text) = meaning(Some(&SqlState::from_code(code))).expect("a known code");
            assert!(
                text.contains("may have happened or not") && text.contains("ask again"),
                "{code}: {text}"
            );
        }
        let starting = meaning(Some(&SqlState::from_code("57P03")));
        assert!(starting.is_some_and(|(_, text)| text.contains("nothing happened")));
    }

    #[test]
    fn what_never_succeeds_is_not() {
        for (code, expected) in [
            ("23505", ProviderErrorKind::Conflict),
            ("22021", ProviderErrorKind::Invalid),
            ("54000", ProviderErrorKind::Invalid),
            ("XX001", ProviderErrorKind::Corrupt),
        ] {
            assert_eq!(kind(code), expected, "{code}");
            assert!(!kind(code).is_retryable(), "{code}");
        }
    }

    #[test]
    fn g8_an_error_that_the_store_cannot_name_or_that_a_person_can_mend_means_try_again() {
        for code in ["P0001", "XX000", "0A000", "23514", "42501", "42P01", "3F000", "54001", "ZZ999"] {
            assert_eq!(kind(code), ProviderErrorKind::Unavailable, "{code}");
        }
    }
}
