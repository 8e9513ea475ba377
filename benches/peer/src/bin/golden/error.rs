//! Recorded failures, alone and of every kind.

use duroxide::{AppErrorKind, ConfigErrorKind, ErrorDetails, PoisonMessageType};

use crate::Line;

pub(crate) fn lines() -> Result<Vec<Line>, serde_json::Error> {
    every().into_iter().map(|(label, details)| Line::new(format!("error/{label}"), &details)).collect()
}

/// One value of every kind of failure, with and without its optional parts.
pub(crate) fn every() -> Vec<(&'static str, ErrorDetails)> {
    let mut every = of_the_engine();
    every.extend(of_the_program());
    every.extend(of_poison());
    every
}

fn of_the_engine() -> Vec<(&'static str, ErrorDetails)> {
    vec![
        (
            "Infrastructure/retryable",
            ErrorDetails::Infrastructure {
                operation: "ack_orchestration_item".into(),
                message: "database is locked".into(),
                retryable: true,
            },
        ),
        (
            "Infrastructure/permanent",
            ErrorDetails::Infrastructure {
                operation: "quiescence_loop".into(),
                message: "quiescence loop exceeded 100 iterations".into(),
                retryable: false,
            },
        ),
        (
            "Configuration/full",
            ErrorDetails::Configuration {
                kind: ConfigErrorKind::Nondeterminism,
                resource: "Checkout".into(),
                message: Some("no matching schedule for completion id=7".into()),
            },
        ),
        (
            "Configuration/bare",
            ErrorDetails::Configuration {
                kind: ConfigErrorKind::Nondeterminism,
                resource: String::new(),
                message: None,
            },
        ),
    ]
}

fn of_the_program() -> Vec<(&'static str, ErrorDetails)> {
    vec![
        ("Application/ActivityFailed", application(AppErrorKind::ActivityFailed, "card declined")),
        (
            "Application/OrchestrationFailed",
            application(AppErrorKind::OrchestrationFailed, "no stock \"left\"\n"),
        ),
        ("Application/Panicked", application(AppErrorKind::Panicked, "index out of bounds")),
        (
            "Application/Cancelled",
            application(AppErrorKind::Cancelled { reason: "parent canceled".into() }, ""),
        ),
        (
            "Application/retryable",
            ErrorDetails::Application {
                kind: AppErrorKind::ActivityFailed,
                message: "try later".into(),
                retryable: true,
            },
        ),
    ]
}

fn of_poison() -> Vec<(&'static str, ErrorDetails)> {
    vec![
        (
            "Poison/Orchestration",
            poison(PoisonMessageType::Orchestration { instance: "order-1".into(), execution_id: 3 }),
        ),
        (
            "Poison/Activity",
            poison(PoisonMessageType::Activity {
                instance: "order-1".into(),
                execution_id: 3,
                activity_name: "charge".into(),
                activity_id: 7,
            }),
        ),
        (
            "Poison/FailedDeserialization",
            poison(PoisonMessageType::FailedDeserialization {
                instance: "order-1".into(),
                execution_id: 3,
                error: "missing field `duroxide_version`".into(),
            }),
        ),
    ]
}

fn application(kind: AppErrorKind, message: &str) -> ErrorDetails {
    ErrorDetails::Application { kind, message: message.into(), retryable: false }
}

fn poison(message_type: PoisonMessageType) -> ErrorDetails {
    ErrorDetails::Poison { attempt_count: 11, max_attempts: 10, message_type, message: "[]".into() }
}
