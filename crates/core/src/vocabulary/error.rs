//! Recorded errors: the form in which history holds a failure.
//!
//! [`ErrorDetails`] is data, written into events and work items, and is matched by kind. The texts of
//! [`ErrorDetails::display_message`] reach orchestrations and clients, which match on them, so they are
//! part of the interface too.

use serde::{Deserialize, Serialize};

/// The recorded form of a failure, by category.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub enum ErrorDetails {
    /// A fault of a store or of the runtime itself.
    Infrastructure {
        /// The name of the operation that failed, such as `commit_turn`.
        operation: String,
        /// The error text of the store or the runtime, in words for people.
        message: String,
        /// Whether another try may succeed.
        retryable: bool,
    },
    /// A fault of the deployment: code and history do not fit.
    Configuration {
        /// The kind of fault: the code does not repeat what history records.
        kind: ConfigErrorKind,
        /// The name of the handler that does not fit; empty in errors that this engine makes.
        resource: String,
        /// The difference between code and history, in words; with `None` the shown text names the resource
        /// instead.
        message: Option<String>,
    },
    /// A fault of the application: a handler returned an error, panicked or was cancelled.
    Application {
        /// The kind of fault: a returned error, a panic, a cancellation, a lost session or a termination.
        kind: AppErrorKind,
        /// The text of the returned error, the panic or the broken limit; empty for a cancellation.
        message: String,
        /// Whether another try may succeed.
        retryable: bool,
    },
    /// A turn or an activity that was delivered to workers too often without an outcome, so that it is given
    /// up.
    Poison {
        /// The number of deliveries, the last one included; higher than `max_attempts`.
        attempt_count: u32,
        /// The number of deliveries that the runtime allows (`RuntimeOptions::max_attempts`).
        max_attempts: u32,
        /// The turn or the activity that was delivered too often.
        message_type: PoisonMessageType,
        /// The messages of the turn, or the activity, as JSON, for people.
        message: String,
    },
}

impl ErrorDetails {
    /// Returns the category: `infrastructure`, `configuration`, `application` or `poison`.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Infrastructure { .. } => "infrastructure",
            Self::Configuration { .. } => "configuration",
            Self::Application { .. } => "application",
            Self::Poison { .. } => "poison",
        }
    }

    /// Tells whether another try may succeed; never for configuration and poison.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Infrastructure { retryable, .. } | Self::Application { retryable, .. } => *retryable,
            Self::Configuration { .. } | Self::Poison { .. } => false,
        }
    }

    /// Tells whether the in-memory state of a session was not found: the kind says so, or, for a failure that
    /// passed such an error on under another kind, the beginning of its message
    /// ([`is_session_lost`](crate::is_session_lost)).
    pub fn is_session_lost(&self) -> bool {
        match self {
            Self::Application { kind: AppErrorKind::SessionLost, .. } => true,
            Self::Application { message, .. } => crate::is_session_lost(message),
            Self::Infrastructure { .. } | Self::Configuration { .. } | Self::Poison { .. } => false,
        }
    }

    /// Returns the text that orchestrations and clients see.
    pub fn display_message(&self) -> String {
        match self {
            Self::Infrastructure { operation, message, .. } => {
                format!("infrastructure:{operation}: {message}")
            }
            Self::Configuration { kind: ConfigErrorKind::Nondeterminism, resource, message } => match message
            {
                Some(message) => format!("nondeterministic: {message}"),
                None => format!("nondeterministic in {resource}"),
            },
            Self::Application { kind, message, .. } => kind.display_message(message),
            Self::Poison { attempt_count, max_attempts, message_type, .. } => {
                message_type.display_message(*attempt_count, *max_attempts)
            }
        }
    }
}

/// Identifies the turn or the activity that was delivered too often.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub enum PoisonMessageType {
    /// The messages of one turn, which was delivered to workers too often.
    Orchestration {
        /// The id of the instance that the messages are for.
        instance: String,
        /// The number of the current execution of that instance, from 1.
        execution_id: u64,
    },
    /// An activity that was delivered to workers too often.
    Activity {
        /// The id of the instance that scheduled the activity.
        instance: String,
        /// The number of the execution that scheduled the activity.
        execution_id: u64,
        /// The name that the activity is registered under.
        activity_name: String,
        /// The id of the event that scheduled the activity.
        activity_id: u64,
    },
    /// An instance whose history cannot be read.
    FailedDeserialization {
        /// The id of the instance whose history cannot be read.
        instance: String,
        /// The number of the execution whose events cannot be read, from 1.
        execution_id: u64,
        /// Why the history cannot be read, as the store said it.
        error: String,
    },
}

impl PoisonMessageType {
    fn display_message(&self, attempt_count: u32, max_attempts: u32) -> String {
        match self {
            Self::Orchestration { instance, .. } => format!(
                "poison: orchestration {instance} exceeded {attempt_count} attempts (max {max_attempts})"
            ),
            Self::Activity { activity_name, activity_id, .. } => format!(
                "poison: activity {activity_name}#{activity_id} exceeded {attempt_count} attempts \
                 (max {max_attempts})"
            ),
            Self::FailedDeserialization { instance, error, .. } => format!(
                "poison: orchestration {instance} history deserialization failed after {attempt_count} \
                 attempts (max {max_attempts}): {error}"
            ),
        }
    }
}

/// The ways in which code and history can differ.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub enum ConfigErrorKind {
    /// The code asks for something else than history records.
    Nondeterminism,
}

/// The ways in which the application can fail.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub enum AppErrorKind {
    /// An activity returned an error.
    ActivityFailed,
    /// An orchestration returned an error or broke a limit.
    OrchestrationFailed,
    /// A handler panicked.
    Panicked,
    /// The instance was cancelled.
    Cancelled {
        /// Why the instance was cancelled, in words for people.
        reason: String,
    },
    /// An activity did not find the in-memory state of its session.
    SessionLost,
    /// An operator ended the instance without running its code.
    Terminated {
        /// Why the operator ended the instance, in words for people.
        reason: String,
    },
}

impl AppErrorKind {
    fn display_message(&self, message: &str) -> String {
        match self {
            Self::Cancelled { reason } => format!("canceled: {reason}"),
            Self::Terminated { reason } => format!("terminated: {reason}"),
            Self::Panicked => format!("orchestration panicked: {message}"),
            Self::ActivityFailed | Self::OrchestrationFailed | Self::SessionLost => message.to_owned(),
        }
    }
}

/// The failure of an execution that broke a rule or a limit.
pub(crate) fn application_error(message: impl Into<String>) -> ErrorDetails {
    ErrorDetails::Application {
        kind: AppErrorKind::OrchestrationFailed,
        message: message.into(),
        retryable: false,
    }
}

/// The failure of an execution whose code panicked.
pub(crate) fn panicked(message: String) -> ErrorDetails {
    ErrorDetails::Application { kind: AppErrorKind::Panicked, message, retryable: false }
}

/// The failure of an execution that does not repeat its history.
pub(crate) fn nondeterminism(message: impl Into<String>) -> ErrorDetails {
    ErrorDetails::Configuration {
        kind: ConfigErrorKind::Nondeterminism,
        resource: String::new(),
        message: Some(message.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(kind: AppErrorKind) -> ErrorDetails {
        ErrorDetails::Application { kind, message: "boom".to_owned(), retryable: true }
    }

    fn mismatch(message: Option<&str>) -> ErrorDetails {
        ErrorDetails::Configuration {
            kind: ConfigErrorKind::Nondeterminism,
            resource: "order".to_owned(),
            message: message.map(str::to_owned),
        }
    }

    fn poison(message_type: PoisonMessageType) -> ErrorDetails {
        ErrorDetails::Poison { attempt_count: 11, max_attempts: 10, message_type, message: "[]".to_owned() }
    }

    fn infrastructure(retryable: bool) -> ErrorDetails {
        ErrorDetails::Infrastructure {
            operation: "ack".to_owned(),
            message: "disk full".to_owned(),
            retryable,
        }
    }

    #[test]
    fn an_infrastructure_text_names_the_operation() {
        assert_eq!(infrastructure(true).display_message(), "infrastructure:ack: disk full");
    }

    #[test]
    fn a_nondeterminism_text_falls_back_to_the_resource() {
        assert_eq!(mismatch(Some("other id")).display_message(), "nondeterministic: other id");
        assert_eq!(mismatch(None).display_message(), "nondeterministic in order");
    }

    #[test]
    fn an_application_text_is_the_message_unless_cancelled_or_panicked() {
        let cancelled = AppErrorKind::Cancelled { reason: "parent canceled".to_owned() };
        assert_eq!(application(cancelled).display_message(), "canceled: parent canceled");
        assert_eq!(application(AppErrorKind::Panicked).display_message(), "orchestration panicked: boom");
        assert_eq!(application(AppErrorKind::ActivityFailed).display_message(), "boom");
        assert_eq!(application(AppErrorKind::OrchestrationFailed).display_message(), "boom");
        assert_eq!(application(AppErrorKind::SessionLost).display_message(), "boom");
        let terminated = AppErrorKind::Terminated { reason: "its code is gone".to_owned() };
        assert_eq!(application(terminated).display_message(), "terminated: its code is gone");
    }

    #[test]
    fn a_poison_text_names_what_was_tried_and_how_often() {
        let instance = || "order-1".to_owned();
        let orchestration = PoisonMessageType::Orchestration { instance: instance(), execution_id: 1 };
        let activity = PoisonMessageType::Activity {
            instance: instance(),
            execution_id: 1,
            activity_name: "charge".to_owned(),
            activity_id: 4,
        };
        let unreadable = PoisonMessageType::FailedDeserialization {
            instance: instance(),
            execution_id: 1,
            error: "bad tag".to_owned(),
        };
        assert_eq!(
            poison(orchestration).display_message(),
            "poison: orchestration order-1 exceeded 11 attempts (max 10)"
        );
        assert_eq!(
            poison(activity).display_message(),
            "poison: activity charge#4 exceeded 11 attempts (max 10)"
        );
        assert_eq!(
            poison(unreadable).display_message(),
            "poison: orchestration order-1 history deserialization failed after 11 attempts (max 10): bad tag"
        );
    }

    #[test]
    fn only_infrastructure_and_application_errors_can_be_retryable() {
        let orchestration = PoisonMessageType::Orchestration { instance: String::new(), execution_id: 1 };
        assert!(infrastructure(true).is_retryable());
        assert!(!infrastructure(false).is_retryable());
        assert!(application(AppErrorKind::ActivityFailed).is_retryable());
        assert!(!mismatch(None).is_retryable());
        assert!(!poison(orchestration).is_retryable());
    }

    #[test]
    fn every_error_has_a_category() {
        let orchestration = PoisonMessageType::Orchestration { instance: String::new(), execution_id: 1 };
        assert_eq!(infrastructure(true).category(), "infrastructure");
        assert_eq!(mismatch(None).category(), "configuration");
        assert_eq!(application(AppErrorKind::Panicked).category(), "application");
        assert_eq!(poison(orchestration).category(), "poison");
    }
}
