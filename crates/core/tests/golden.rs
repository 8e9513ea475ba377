//! The wire format, byte for byte.
//!
//! `golden/peer.tsv` and `golden/peer_read.tsv` are printed by the published crate (`benches/peer`, binary
//! `golden`); `golden/own.tsv` holds what only we have, written by hand. A line is a label, a tab and a text.

use std::collections::BTreeSet;

use serde::{Serialize, de::DeserializeOwned};
use steadfast_core::{ErrorDetails, Event, EventKind, WorkItem};

const PEER: &str = include_str!("golden/peer.tsv");
const PEER_READ: &str = include_str!("golden/peer_read.tsv");
const OWN: &str = include_str!("golden/own.tsv");

#[test]
fn every_text_of_the_published_crate_is_written_back_byte_for_byte() {
    assert_written_back(PEER);
}

#[test]
fn every_text_of_ours_is_written_back_byte_for_byte() {
    assert_written_back(OWN);
}

#[test]
fn reading_accepts_and_refuses_what_the_published_crate_does() {
    for line in PEER_READ.lines() {
        let mut columns = line.split('\t');
        let (label, text) = (columns.next().unwrap_or_default(), columns.next().unwrap_or_default());
        let found = rewritten(label, text).unwrap_or_else(|_| "refused".into());
        assert_eq!(Some(found.as_str()), columns.next(), "{label}");
    }
}

#[test]
fn a_missing_version_stamp_is_named_in_the_error() {
    let text = concat!(
        r#"{"event_id":1,"source_event_id":null,"instance_id":"i","#,
        r#""execution_id":1,"timestamp_ms":1,"type":"KeyValuesCleared"}"#,
    );
    let error = serde_json::from_str::<Event>(text).map_err(|error| error.to_string());
    assert!(
        matches!(&error, Err(text) if text.contains("missing field `duroxide_version`")),
        "found {error:?}"
    );
}

#[test]
fn every_event_kind_and_work_item_has_a_golden_line() {
    let mut seen = BTreeSet::new();
    for (label, text) in PEER.lines().chain(OWN.lines()).filter_map(|line| line.split_once('\t')) {
        match family(label) {
            "event" => seen.extend(read::<Event>(label, text).map(|event| event_kind(&event.kind))),
            "work" => seen.extend(read::<WorkItem>(label, text).map(|item| work_item(&item))),
            _ => {}
        }
    }
    let missing: Vec<_> = EVENT_KINDS.iter().chain(WORK_ITEMS).filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty(), "no golden line for {missing:?}");
}

/// Makes the list of variant names and the function from a value to its name out of one list. The match has
/// no wildcard: a new variant does not compile until it is listed, and a listed one needs a golden line.
macro_rules! variants {
    ($list:ident, $name_of:ident($type:ident): $($variant:ident),* $(,)?) => {
        const $list: &[&str] = &[$(concat!(stringify!($type), "::", stringify!($variant))),*];

        fn $name_of(value: &$type) -> &'static str {
            match value {
                $($type::$variant { .. } => concat!(stringify!($type), "::", stringify!($variant)),)*
            }
        }
    };
}

variants!(EVENT_KINDS, event_kind(EventKind):
    OrchestrationStarted, OrchestrationCompleted, OrchestrationFailed, OrchestrationContinuedAsNew,
    OrchestrationCancelRequested, OrchestrationChained,
    ActivityScheduled, ActivityCompleted, ActivityFailed, ActivityCancelRequested,
    TimerCreated, TimerFired,
    ExternalSubscribed, ExternalEvent, ExternalSubscribedCancelled,
    QueueSubscribed, QueueEventDelivered, QueueSubscriptionCancelled,
    SubOrchestrationScheduled, SubOrchestrationCompleted, SubOrchestrationFailed,
    SubOrchestrationCancelRequested,
    CustomStatusUpdated, KeyValueSet, KeyValueCleared, KeyValuesCleared,
    SessionOpened, SessionClosed, SessionMigrated, SessionsCarried,
);

variants!(WORK_ITEMS, work_item(WorkItem):
    StartOrchestration, ContinueAsNew, ContinueAsNewWithSessions, CancelInstance,
    ActivityExecute, ActivityCompleted, ActivityFailed, TimerFired, ExternalRaised, QueueMessage,
    SubOrchCompleted, SubOrchFailed, SessionMigrated, TerminateInstance, Nudge,
);

fn assert_written_back(lines: &str) {
    for line in lines.lines() {
        let (label, text) = line.split_once('\t').unwrap_or((line, ""));
        assert_eq!(rewritten(label, text).as_deref(), Ok(text), "{label}");
    }
}

/// Reads a text as the type that its label names, and writes it again.
fn rewritten(label: &str, text: &str) -> Result<String, String> {
    match family(label) {
        "event" => rewrite::<Event>(text),
        "kind" => rewrite::<EventKind>(text),
        "work" => rewrite::<WorkItem>(text),
        "error" => rewrite::<ErrorDetails>(text),
        other => Err(format!("no type is called {other:?}")),
    }
}

fn family(label: &str) -> &str {
    label.split('/').next().unwrap_or_default()
}

fn rewrite<T: Serialize + DeserializeOwned>(text: &str) -> Result<String, String> {
    let value: T = serde_json::from_str(text).map_err(|error| error.to_string())?;
    serde_json::to_string(&value).map_err(|error| error.to_string())
}

fn read<T: DeserializeOwned>(label: &str, text: &str) -> Option<T> {
    let value = serde_json::from_str(text);
    assert!(value.is_ok(), "{label} does not parse");
    value.ok()
}
