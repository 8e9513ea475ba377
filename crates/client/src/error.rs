//! The errors of a client's calls.

use steadfast_store::{ProviderError, ProviderErrorKind};

/// Tells why a client's call failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// The store failed. The error tells the kind, and whether another try may succeed.
    #[error("{0}")]
    Provider(#[from] ProviderError),
    /// The store has no management interface, which the call needs.
    #[error("Management features not available - provider doesn't implement ProviderAdmin")]
    ManagementNotAvailable,
    /// An argument is not valid, or a stored value cannot be decoded as the asked type.
    #[error("Invalid input: {message}")]
    InvalidInput {
        /// Which argument is wrong, and why.
        message: String,
    },
    /// The wait did not end within its time-out.
    #[error("Operation timed out")]
    Timeout,
    /// The instance to delete has not ended.
    #[error("Instance {instance_id} is still running. Use force=true or cancel first.")]
    InstanceStillRunning {
        /// The id of the instance that has not ended.
        instance_id: String,
    },
    /// The instance to delete is a child of another one, and is deleted with its root.
    #[error("Cannot delete sub-orchestration {instance_id} directly. Delete the root orchestration instead.")]
    CannotDeleteSubOrchestration {
        /// The instance id of the child that the call names.
        instance_id: String,
    },
    /// No instance has this id.
    #[error("Instance {instance_id} not found")]
    InstanceNotFound {
        /// The id that was asked for.
        instance_id: String,
    },
}

impl ClientError {
    /// Tells whether the same call may succeed later: true for a time-out and for transient errors of the
    /// store.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Provider(error) => error.is_retryable(),
            Self::Timeout => true,
            Self::ManagementNotAvailable
            | Self::InvalidInput { .. }
            | Self::InstanceStillRunning { .. }
            | Self::CannotDeleteSubOrchestration { .. }
            | Self::InstanceNotFound { .. } => false,
        }
    }

    pub(crate) fn not_found(instance: &str) -> Self {
        Self::InstanceNotFound { instance_id: instance.to_owned() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidInput { message: message.into() }
    }

    /// Makes the error of a refused deletion. The stores of this project answer with a kind; foreign
    /// providers answer with texts, which the compatible contract fixes. `is_child` tells the two refusals by
    /// kind apart.
    pub(crate) fn of_deletion(error: ProviderError, instance: &str, is_child: bool) -> Self {
        let instance_id = instance.to_owned();
        match error.kind {
            ProviderErrorKind::NotFound => Self::InstanceNotFound { instance_id },
            ProviderErrorKind::Refused if is_child => Self::CannotDeleteSubOrchestration { instance_id },
            ProviderErrorKind::Refused => Self::InstanceStillRunning { instance_id },
            ProviderErrorKind::Other | ProviderErrorKind::Unavailable => {
                let text = error.message.to_lowercase();
                if text.contains("not found") {
                    Self::InstanceNotFound { instance_id }
                } else if text.contains("still running") {
                    Self::InstanceStillRunning { instance_id }
                } else if text.contains("sub-orchestration") || text.contains("delete the root") {
                    Self::CannotDeleteSubOrchestration { instance_id }
                } else {
                    Self::Provider(error)
                }
            }
            _ => Self::Provider(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(message: &str) -> ClientError {
        ClientError::of_deletion(ProviderError::permanent("delete", message), "a", false)
    }

    #[test]
    fn the_refusals_of_a_foreign_provider_are_known_by_their_texts() {
        assert!(matches!(refused("Instance a Not Found"), ClientError::InstanceNotFound { .. }));
        assert!(matches!(refused("it is STILL RUNNING"), ClientError::InstanceStillRunning { .. }));
        for text in ["a Sub-Orchestration", "Delete the root instead"] {
            assert!(matches!(refused(text), ClientError::CannotDeleteSubOrchestration { .. }), "{text}");
        }
        assert!(matches!(refused("disk full"), ClientError::Provider(_)));
    }

    #[test]
    fn the_refusals_of_our_stores_are_known_by_their_kinds() {
        let of =
            |kind, is_child| ClientError::of_deletion(ProviderError::new(kind, "delete", ""), "a", is_child);
        assert!(matches!(of(ProviderErrorKind::NotFound, false), ClientError::InstanceNotFound { .. }));
        assert!(matches!(of(ProviderErrorKind::Refused, false), ClientError::InstanceStillRunning { .. }));
        let child = of(ProviderErrorKind::Refused, true);
        assert!(matches!(child, ClientError::CannotDeleteSubOrchestration { .. }));
        assert!(matches!(of(ProviderErrorKind::Busy, false), ClientError::Provider(_)));
    }
}
