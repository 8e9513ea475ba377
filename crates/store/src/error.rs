//! Store errors: what a store answers when it cannot do what it was asked.

use std::error::Error;
use std::sync::Arc;

use steadfast_core::ErrorDetails;

/// Says that a store operation failed, how, and whether another try may succeed.
///
/// Code decides by [`kind`](Self::kind); the text is for people.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{operation}: {message}")]
pub struct ProviderError {
    /// Names the operation that failed.
    pub operation: String,
    /// Says how.
    pub message: String,
    /// Tells whether another try may succeed.
    pub retryable: bool,
    /// Says what kind of failure it is.
    pub kind: ProviderErrorKind,
    /// Holds the error underneath, if there is one.
    #[source]
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

/// Says what kind of failure a store met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderErrorKind {
    /// Others hold what is needed; trying again soon may succeed.
    Busy,
    /// The store cannot be reached, or did not answer in time.
    Unavailable,
    /// The lease ended, was replaced, or never was; somebody else may hold the item.
    LeaseLost,
    /// Something that must be unique is there already.
    Conflict,
    /// What was named does not exist.
    NotFound,
    /// The store understood and does not do it: it would break a rule.
    Refused,
    /// There is no room left.
    Full,
    /// What is stored cannot be read.
    Corrupt,
    /// What was asked makes no sense: a bad value or a bad combination.
    Invalid,
    /// This store cannot do it.
    Unsupported,
    /// Anything else.
    Other,
}

impl ProviderErrorKind {
    /// Tells whether another try may succeed.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Busy | Self::Unavailable | Self::Full => true,
            Self::LeaseLost
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
    /// Builds an error of a kind, which says whether another try may succeed.
    pub fn new(kind: ProviderErrorKind, operation: impl Into<String>, message: impl Into<String>) -> Self {
        let (operation, message) = (operation.into(), message.into());
        Self { operation, message, retryable: kind.is_retryable(), kind, source: None }
    }

    /// Builds an error that another try may cure, such as a lost connection.
    pub fn retryable(operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ProviderErrorKind::Unavailable, operation, message)
    }

    /// Builds an error that no other try will cure.
    pub fn permanent(operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ProviderErrorKind::Other, operation, message)
    }

    /// Builds the answer to a token that holds nothing: it was never given, has ended, or was replaced.
    pub fn lease_lost(operation: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Self::new(ProviderErrorKind::LeaseLost, operation, format!("Invalid lock token: {why}"))
    }

    /// Adds the error underneath.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Tells whether another try may succeed.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// Tells whether somebody else may hold the item now: whoever is told so does nothing further.
    ///
    /// Errors made by code that knows no kinds are recognised by the text that the compatible contract fixes.
    pub fn is_lease_lost(&self) -> bool {
        match self.kind {
            ProviderErrorKind::LeaseLost => true,
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

/// Two errors are equal when they say the same; what lies underneath does not count.
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
    fn what_lies_underneath_can_be_asked_for() {
        let error =
            ProviderError::retryable("fetch", "down").with_source(std::io::Error::other("socket closed"));
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("socket closed"));
        assert_eq!(error, ProviderError::retryable("fetch", "down"));
    }
}
