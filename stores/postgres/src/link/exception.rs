//! The exceptions that functions of the database raise, each by its own SQLSTATE.
//!
//! Class `SF` belongs to this store. Code decides by the SQLSTATE; the texts are for people.

use steadfast_store::{ProviderError, ProviderErrorKind};

use crate::link::escape::unescape;

/// Every SQLSTATE of class `SF`, and what it means for a caller.
pub(crate) const EXCEPTIONS: &[(&str, ProviderErrorKind)] = &[
    // Invalid lock token
    ("SF001", ProviderErrorKind::LeaseLost),
    // Worker queue item not found or already processed
    ("SF002", ProviderErrorKind::LeaseLost),
    // p_instance_id is required when p_completion_json is provided
    ("SF003", ProviderErrorKind::Invalid),
    // Lock token invalid, expired, or already acked
    ("SF004", ProviderErrorKind::LeaseLost),
    // an instance is still running
    ("SF005", ProviderErrorKind::Refused),
    // a child of an instance is not among those to delete
    ("SF006", ProviderErrorKind::Refused),
    // an instance was not found
    ("SF007", ProviderErrorKind::NotFound),
    // an instance is a sub-orchestration
    ("SF008", ProviderErrorKind::Refused),
    // an event id exists already
    ("SF009", ProviderErrorKind::Conflict),
    // an event of a history delta lacks something
    ("SF010", ProviderErrorKind::Invalid),
    // an item that is no activity was to be queued as work
    ("SF011", ProviderErrorKind::Invalid),
    // an activity was to be sent as a message
    ("SF012", ProviderErrorKind::Invalid),
    // the length of a lease is missing
    ("SF013", ProviderErrorKind::Invalid),
];

/// Makes the error of the contract from an exception of class `SF`; `None` for any other error.
pub(crate) fn raised(operation: &str, error: &tokio_postgres::Error) -> Option<ProviderError> {
    let said = error.as_db_error()?;
    let (_, kind) = EXCEPTIONS.iter().find(|(code, _)| *code == said.code().code())?;
    Some(ProviderError::new(*kind, operation, unescape(said.message().to_owned())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The SQLSTATEs of class `SF` that a text raises.
    fn raised(text: &str) -> impl Iterator<Item = &str> {
        text.split("ERRCODE = '").skip(1).filter_map(|rest| rest.split('\'').next())
    }

    #[test]
    fn what_functions_raise_and_what_is_known_are_the_same() {
        let known: BTreeSet<&str> = EXCEPTIONS.iter().map(|(code, _)| *code).collect();
        let areas = [crate::verbs::admin::FUNCTIONS, crate::schema::compat::FUNCTIONS];
        let texts = areas.iter().flat_map(|area| area.iter()).map(|function| function.text);
        let raised: BTreeSet<&str> = texts.flat_map(raised).collect();
        assert_eq!(raised, known);
    }
}
