//! Store errors: the kinds of failure of a store call, and their texts.

use std::error::Error;
use std::sync::Arc;

use steadfast_core::ErrorDetails;

/// A store operation failed. Code decides by [`kind`](Self::kind); the text is for people.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{operation}: {message}")]
pub struct ProviderError {
    /// The method that failed, such as `commit_turn`.
    pub operation: String,
    /// The error text, in words for people.
    pub message: String,
    /// Whether the same call may succeed later; follows from the kind.
    pub retryable: bool,
    /// The kind of failure, by which callers decide whether to retry, give up or stop.
    pub kind: ProviderErrorKind,
    /// The error of the driver or the operating system that caused this one; not compared by `==`.
    #[source]
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The kinds of failure of a store call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderErrorKind {
    /// Another transaction or process holds a lock that the call needs; another try soon may succeed.
    Busy,
    /// The store cannot be reached, or did not answer in time.
    Unavailable,
    /// The lease has ended, was replaced, or was never given. Another worker may hold the instance or the
    /// activity: do nothing further with it.
    LeaseLost,
    /// The activity was withdrawn while its lease lasted: its orchestration cancelled it, or was deleted. The
    /// lease is lost.
    Withdrawn,
    /// The call would store something again that must be unique, such as an event id.
    Conflict,
    /// The instance, execution or row that the call names does not exist.
    NotFound,
    /// The call would break a rule, such as deleting an instance that runs; the message says which.
    Refused,
    /// There is no room left, on the disk or in a bounded queue; another try later may succeed.
    Full,
    /// A stored row cannot be read.
    Corrupt,
    /// An argument has a bad value, or arguments do not go together.
    Invalid,
    /// The store does not implement the call.
    Unsupported,
    /// Any other failure; another try will not help.
    Other,
}

impl ProviderErrorKind {
    /// Tells whether the same call may succeed later: true for `Busy`, `Unavailable` and `Full`.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Busy | Self::Unavailable | Self::Full => true,
            Self::LeaseLost
            | Self::Withdrawn
            | Self::Conflict
            | Self::NotFound
            | Self::Refused
            | Self::Corrupt
            | Self::Invalid
            | Self::Unsupported
            | Self::Other => false,
        }
    }
}

impl ProviderError {
    /// Builds an error of a kind; the kind decides whether it is retryable.
    pub fn new(kind: ProviderErrorKind, operation: impl Into<String>, message: impl Into<String>) -> Self {
        let (operation, message) = (operation.into(), message.into());
        Self { operation, message, retryable: kind.is_retryable(), kind, source: None }
    }

    /// Builds a retryable error of the kind `Unavailable`, such as a lost connection.
    pub fn retryable(operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ProviderErrorKind::Unavailable, operation, message)
    }

    /// Builds an error of the kind `Other`, which is not retryable.
    pub fn permanent(operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ProviderErrorKind::Other, operation, message)
    }

    /// Builds the answer to a token whose lease was never given, has ended, or was replaced (S4).
    pub fn lease_lost(operation: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Self::new(ProviderErrorKind::LeaseLost, operation, format!("Invalid lock token: {why}"))
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Tells whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// Tells whether another worker may hold the instance or the activity now; the caller then does nothing
    /// further with it.
    ///
    /// An error of the kind `Other`, as foreign code makes them, counts if it has the text that the
    /// compatible contract fixes (`Invalid lock token`).
    pub fn is_lease_lost(&self) -> bool {
        match self.kind {
            ProviderErrorKind::LeaseLost | ProviderErrorKind::Withdrawn => true,
            ProviderErrorKind::Other => self.message.contains("Invalid lock token"),
            _ => false,
        }
    }

    /// Returns this error in the form that history records.
    pub fn to_infrastructure_error(&self) -> ErrorDetails {
        ErrorDetails::Infrastructure {
            operation: self.operation.clone(),
            message: self.message.clone(),
            retryable: self.retryable,
        }
    }
}

/// Errors are equal if all fields but the source are equal.
impl PartialEq for ProviderError {
    fn eq(&self, other: &Self) -> bool {
        self.operation == other.operation
            && self.message == other.message
            && self.retryable == other.retryable
            && self.kind == other.kind
    }
}

impl Eq for ProviderError {}

impl From<String> for ProviderError {
    fn from(message: String) -> Self {
        Self::retryable("unknown", message)
    }
}

impl From<&str> for ProviderError {
    fn from(message: &str) -> Self {
        Self::retryable("unknown", message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_the_operation() {
        let error = ProviderError::lease_lost("ack", "it ended");
        assert_eq!(error.to_string(), "ack: Invalid lock token: it ended");
    }

    #[test]
    fn a_bare_text_is_an_unknown_retryable_error() {
        let expected = ProviderError::retryable("unknown", "busy");
        assert_eq!(ProviderError::from("busy"), expected);
        assert_eq!(ProviderError::from("busy".to_owned()), expected);
        assert!(expected.is_retryable());
    }

    #[test]
    fn the_recorded_form_keeps_every_field() {
        assert_eq!(
            ProviderError::permanent("ack", "gone").to_infrastructure_error(),
            ErrorDetails::Infrastructure {
                operation: "ack".to_owned(),
                message: "gone".to_owned(),
                retryable: false
            }
        );
    }

    #[test]
    fn a_lost_lease_of_foreign_code_is_known_by_its_text() {
        assert!(ProviderError::permanent("ack", "Invalid lock token").is_lease_lost());
        assert!(!ProviderError::permanent("ack", "no room").is_lease_lost());
        assert!(!ProviderError::retryable("ack", "Invalid lock token").is_lease_lost());
    }

    #[test]
    fn the_source_can_be_asked_for_and_is_not_compared() {
        let error =
            ProviderError::retryable("fetch", "down").with_source(std::io::Error::other("socket closed"));
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("socket closed"));
        assert_eq!(error, ProviderError::retryable("fetch", "down"));
    }
}
