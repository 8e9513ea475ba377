//! Work items: what waits in the two queues.

use duroxide::{AppErrorKind, ErrorDetails, providers::WorkItem};

use crate::Line;

pub(crate) fn lines() -> Result<Vec<Line>, serde_json::Error> {
    every()
        .into_iter()
        .map(|(form, item)| Line::new(format!("work/{}/{form}", variant_of(&item)), &item))
        .collect()
}

/// One value of every kind; `full` has every optional field, `bare` none.
fn every() -> Vec<(&'static str, WorkItem)> {
    let mut items = starts();
    items.extend(continuations());
    items.extend(activities());
    items.extend(messages());
    items
}

fn starts() -> Vec<(&'static str, WorkItem)> {
    vec![
        (
            "full",
            WorkItem::StartOrchestration {
                instance: "shop::sub::4".into(),
                orchestration: "Checkout".into(),
                input: "{\"cart\":[1,2]}".into(),
                version: Some("1.2.0".into()),
                parent_instance: Some("shop".into()),
                parent_id: Some(4),
                parent_execution_id: Some(3),
                execution_id: 1,
            },
        ),
        (
            "bare",
            WorkItem::StartOrchestration {
                instance: "order-1".into(),
                orchestration: "Checkout".into(),
                input: String::new(),
                version: None,
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                execution_id: 1,
            },
        ),
    ]
}

fn continuations() -> Vec<(&'static str, WorkItem)> {
    vec![
        (
            "full",
            WorkItem::ContinueAsNew {
                instance: "order-1".into(),
                orchestration: "Checkout".into(),
                input: "n=2".into(),
                version: Some("2.0.0".into()),
                parent_instance: Some("shop".into()),
                parent_id: Some(4),
                parent_execution_id: Some(3),
                carry_forward_events: vec![("mail".into(), "first".into()), ("chat".into(), "second".into())],
                initial_custom_status: Some("packing".into()),
            },
        ),
        (
            "bare",
            WorkItem::ContinueAsNew {
                instance: "order-1".into(),
                orchestration: "Checkout".into(),
                input: String::new(),
                version: None,
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                carry_forward_events: vec![],
                initial_custom_status: None,
            },
        ),
    ]
}

fn activities() -> Vec<(&'static str, WorkItem)> {
    let execute = |session_id: Option<&str>, tag: Option<&str>| WorkItem::ActivityExecute {
        instance: "order-1".into(),
        execution_id: 2,
        id: 7,
        name: "charge".into(),
        input: "{\"cents\":1250}".into(),
        session_id: session_id.map(Into::into),
        tag: tag.map(Into::into),
    };
    vec![
        ("full", execute(Some("till-3"), Some("gpu"))),
        ("session", execute(Some("till-3"), None)),
        ("tag", execute(None, Some("gpu"))),
        ("bare", execute(None, None)),
        (
            "full",
            WorkItem::ActivityCompleted {
                instance: "order-1".into(),
                execution_id: 2,
                id: 7,
                result: "receipt".into(),
            },
        ),
        (
            "full",
            WorkItem::ActivityFailed {
                instance: "order-1".into(),
                execution_id: 2,
                id: 7,
                details: failure(),
            },
        ),
    ]
}

fn messages() -> Vec<(&'static str, WorkItem)> {
    vec![
        (
            "full",
            WorkItem::TimerFired {
                instance: "order-1".into(),
                execution_id: 2,
                id: 7,
                fire_at_ms: 1_700_000_060_000,
            },
        ),
        (
            "full",
            WorkItem::ExternalRaised { instance: "order-1".into(), name: "paid".into(), data: "card".into() },
        ),
        (
            "full",
            WorkItem::QueueMessage { instance: "order-1".into(), name: "mail".into(), data: "hello".into() },
        ),
        ("full", WorkItem::CancelInstance { instance: "order-1".into(), reason: "customer left".into() }),
        (
            "full",
            WorkItem::SubOrchCompleted {
                parent_instance: "shop".into(),
                parent_execution_id: 3,
                parent_id: 4,
                result: "shipped".into(),
            },
        ),
        (
            "full",
            WorkItem::SubOrchFailed {
                parent_instance: "shop".into(),
                parent_execution_id: 3,
                parent_id: 4,
                details: failure(),
            },
        ),
    ]
}

fn failure() -> ErrorDetails {
    ErrorDetails::Application {
        kind: AppErrorKind::ActivityFailed,
        message: "card declined".into(),
        retryable: false,
    }
}

/// The Rust name of the variant. Without a wildcard, so that a variant which the golden files do not know
/// fails to compile.
fn variant_of(item: &WorkItem) -> &'static str {
    match item {
        WorkItem::StartOrchestration { .. } => "StartOrchestration",
        WorkItem::ActivityExecute { .. } => "ActivityExecute",
        WorkItem::ActivityCompleted { .. } => "ActivityCompleted",
        WorkItem::ActivityFailed { .. } => "ActivityFailed",
        WorkItem::TimerFired { .. } => "TimerFired",
        WorkItem::ExternalRaised { .. } => "ExternalRaised",
        WorkItem::QueueMessage { .. } => "QueueMessage",
        WorkItem::CancelInstance { .. } => "CancelInstance",
        WorkItem::SubOrchCompleted { .. } => "SubOrchCompleted",
        WorkItem::SubOrchFailed { .. } => "SubOrchFailed",
        WorkItem::ContinueAsNew { .. } => "ContinueAsNew",
    }
}
