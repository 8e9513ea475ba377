//! Events, and their kinds alone.

use duroxide::{Event, EventKind};

use crate::{Line, error};

/// The time and the stamp that every golden event carries.
const TIMESTAMP_MS: u64 = 1_700_000_000_000;
const VERSION: &str = "0.1.32";

/// The schedule that completions and cancellations point back to.
const SOURCE: u64 = 7;

pub(crate) fn lines() -> Result<Vec<Line>, serde_json::Error> {
    let mut lines = Vec::new();
    for (form, kind) in kinds() {
        let variant = variant_of(&kind);
        lines.push(Line::new(format!("event/{variant}/{form}"), &event(kind.clone()))?);
        lines.push(Line::new(format!("kind/{variant}/{form}"), &kind)?);
    }
    for (label, details) in error::every() {
        let kind = EventKind::OrchestrationFailed { details };
        lines.push(Line::new(format!("event/OrchestrationFailed/{label}"), &event(kind))?);
    }
    Ok(lines)
}

fn event(kind: EventKind) -> Event {
    Event {
        event_id: 8,
        source_event_id: source_of(&kind),
        instance_id: "order-1".into(),
        execution_id: 2,
        timestamp_ms: TIMESTAMP_MS,
        duroxide_version: VERSION.into(),
        kind,
    }
}

/// One value of every kind; `full` has every optional field, `bare` none.
fn kinds() -> Vec<(&'static str, EventKind)> {
    let mut kinds = life();
    kinds.extend(activity());
    kinds.extend(timer());
    kinds.extend(external());
    kinds.extend(children());
    kinds.extend(state());
    kinds
}

fn life() -> Vec<(&'static str, EventKind)> {
    vec![
        (
            "full",
            EventKind::OrchestrationStarted {
                name: "Checkout".into(),
                version: "1.2.0".into(),
                input: "{\"cart\":[1,2]}".into(),
                parent_instance: Some("shop".into()),
                parent_id: Some(4),
                parent_execution_id: Some(3),
                carry_forward_events: Some(vec![
                    ("mail".into(), "first".into()),
                    ("chat".into(), "\"second\"".into()),
                ]),
                initial_custom_status: Some("packing".into()),
            },
        ),
        (
            "bare",
            EventKind::OrchestrationStarted {
                name: "Checkout".into(),
                version: "1.0.0".into(),
                input: String::new(),
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                carry_forward_events: None,
                initial_custom_status: None,
            },
        ),
        ("full", EventKind::OrchestrationCompleted { output: "größe: ✓\u{0}\t".into() }),
        ("full", EventKind::OrchestrationFailed { details: failure() }),
        ("full", EventKind::OrchestrationContinuedAsNew { input: "n=2".into() }),
        ("full", EventKind::OrchestrationCancelRequested { reason: "customer left".into() }),
    ]
}

fn activity() -> Vec<(&'static str, EventKind)> {
    vec![
        (
            "full",
            EventKind::ActivityScheduled {
                name: "charge".into(),
                input: "{\"cents\":1250}".into(),
                session_id: Some("till-3".into()),
                tag: Some("gpu".into()),
            },
        ),
        ("session", scheduled(Some("till-3"), None)),
        ("tag", scheduled(None, Some("gpu"))),
        ("bare", scheduled(None, None)),
        ("full", EventKind::ActivityCompleted { result: "receipt".into() }),
        ("full", EventKind::ActivityFailed { details: failure() }),
        ("full", EventKind::ActivityCancelRequested { reason: "dropped_future".into() }),
    ]
}

fn scheduled(session_id: Option<&str>, tag: Option<&str>) -> EventKind {
    EventKind::ActivityScheduled {
        name: "charge".into(),
        input: String::new(),
        session_id: session_id.map(Into::into),
        tag: tag.map(Into::into),
    }
}

fn timer() -> Vec<(&'static str, EventKind)> {
    vec![
        ("full", EventKind::TimerCreated { fire_at_ms: 1_700_000_060_000 }),
        ("full", EventKind::TimerFired { fire_at_ms: 1_700_000_060_000 }),
    ]
}

fn external() -> Vec<(&'static str, EventKind)> {
    vec![
        ("full", EventKind::ExternalSubscribed { name: "paid".into() }),
        ("full", EventKind::ExternalEvent { name: "paid".into(), data: "{\"by\":\"card\"}".into() }),
        ("full", EventKind::ExternalSubscribedCancelled { reason: "dropped_future".into() }),
        ("full", EventKind::QueueSubscribed { name: "mail".into() }),
        ("full", EventKind::QueueEventDelivered { name: "mail".into(), data: "hello".into() }),
        ("full", EventKind::QueueSubscriptionCancelled { reason: "orchestration_terminal".into() }),
    ]
}

fn children() -> Vec<(&'static str, EventKind)> {
    vec![
        (
            "full",
            EventKind::OrchestrationChained {
                name: "Report".into(),
                instance: "report-1".into(),
                input: "today".into(),
            },
        ),
        (
            "auto",
            EventKind::SubOrchestrationScheduled {
                name: "Ship".into(),
                instance: "sub::2_8".into(),
                input: "box".into(),
            },
        ),
        (
            "explicit",
            EventKind::SubOrchestrationScheduled {
                name: "Ship".into(),
                instance: "ship-1".into(),
                input: "box".into(),
            },
        ),
        ("full", EventKind::SubOrchestrationCompleted { result: "shipped".into() }),
        ("full", EventKind::SubOrchestrationFailed { details: failure() }),
        ("full", EventKind::SubOrchestrationCancelRequested { reason: "dropped_future".into() }),
    ]
}

fn state() -> Vec<(&'static str, EventKind)> {
    vec![
        ("full", EventKind::CustomStatusUpdated { status: Some("packing".into()) }),
        ("bare", EventKind::CustomStatusUpdated { status: None }),
        (
            "full",
            EventKind::KeyValueSet {
                key: "step".into(),
                value: "3".into(),
                last_updated_at_ms: TIMESTAMP_MS,
            },
        ),
        ("full", EventKind::KeyValueCleared { key: "step".into() }),
        ("full", EventKind::KeyValuesCleared),
    ]
}

fn failure() -> duroxide::ErrorDetails {
    duroxide::ErrorDetails::Application {
        kind: duroxide::AppErrorKind::ActivityFailed,
        message: "card declined".into(),
        retryable: false,
    }
}

/// The schedule an event of this kind answers or cancels. Without a wildcard, so that a variant which
/// the golden files do not know fails to compile.
fn source_of(kind: &EventKind) -> Option<u64> {
    match kind {
        EventKind::ActivityCompleted { .. }
        | EventKind::ActivityFailed { .. }
        | EventKind::ActivityCancelRequested { .. }
        | EventKind::TimerFired { .. }
        | EventKind::ExternalSubscribedCancelled { .. }
        | EventKind::QueueSubscriptionCancelled { .. }
        | EventKind::SubOrchestrationCompleted { .. }
        | EventKind::SubOrchestrationFailed { .. }
        | EventKind::SubOrchestrationCancelRequested { .. } => Some(SOURCE),
        EventKind::OrchestrationStarted { .. }
        | EventKind::OrchestrationCompleted { .. }
        | EventKind::OrchestrationFailed { .. }
        | EventKind::OrchestrationContinuedAsNew { .. }
        | EventKind::OrchestrationCancelRequested { .. }
        | EventKind::OrchestrationChained { .. }
        | EventKind::ActivityScheduled { .. }
        | EventKind::TimerCreated { .. }
        | EventKind::ExternalSubscribed { .. }
        | EventKind::ExternalEvent { .. }
        | EventKind::QueueSubscribed { .. }
        | EventKind::QueueEventDelivered { .. }
        | EventKind::SubOrchestrationScheduled { .. }
        | EventKind::CustomStatusUpdated { .. }
        | EventKind::KeyValueSet { .. }
        | EventKind::KeyValueCleared { .. }
        | EventKind::KeyValuesCleared => None,
    }
}

/// The Rust name of the variant, which is also the first word of its `Debug` text.
fn variant_of(kind: &EventKind) -> String {
    format!("{kind:?}").chars().take_while(|c| c.is_alphanumeric()).collect()
}
