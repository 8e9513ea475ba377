//! What the published crate accepts and refuses when it reads: older texts, unknown fields, damage.

use duroxide::{ErrorDetails, Event, EventKind, providers::WorkItem};
use serde::{Serialize, de::DeserializeOwned};

/// Prints a label, the text that is read, and what came of it: the text written back, or `refused`.
pub(crate) fn print() -> Result<(), serde_json::Error> {
    for (label, text) in CASES {
        let outcome = match label.split('/').next() {
            Some("event") => reread::<Event>(text),
            Some("kind") => reread::<EventKind>(text),
            Some("work") => reread::<WorkItem>(text),
            _ => reread::<ErrorDetails>(text),
        }?;
        println!("{label}\t{text}\t{outcome}");
    }
    Ok(())
}

fn reread<T: Serialize + DeserializeOwned>(text: &str) -> Result<String, serde_json::Error> {
    match serde_json::from_str::<T>(text) {
        Ok(value) => serde_json::to_string(&value),
        Err(_) => Ok("refused".into()),
    }
}

const CASES: &[(&str, &str)] = &[
    (
        "event/no version stamp",
        r#"{"event_id":1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,"type":"KeyValuesCleared"}"#,
    ),
    (
        "event/no source",
        r#"{"event_id":1,"instance_id":"i","execution_id":1,"timestamp_ms":1,"duroxide_version":"0.1.0","type":"KeyValuesCleared"}"#,
    ),
    (
        "event/no type",
        r#"{"event_id":1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,"duroxide_version":"0.1.0"}"#,
    ),
    (
        "event/unknown type",
        r#"{"event_id":1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,"duroxide_version":"0.1.0","type":"Tomorrow"}"#,
    ),
    (
        "event/unknown field",
        r#"{"event_id":1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,"duroxide_version":"0.1.0","type":"TimerFired","fire_at_ms":5,"colour":"red"}"#,
    ),
    (
        "event/type first",
        r#"{"type":"TimerFired","fire_at_ms":5,"event_id":1,"source_event_id":4,"instance_id":"i","execution_id":1,"timestamp_ms":1,"duroxide_version":"0.1.0"}"#,
    ),
    (
        "event/id as text",
        r#"{"event_id":"1","source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,"duroxide_version":"0.1.0","type":"KeyValuesCleared"}"#,
    ),
    (
        "event/negative id",
        r#"{"event_id":-1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,"duroxide_version":"0.1.0","type":"KeyValuesCleared"}"#,
    ),
    (
        "event/largest numbers",
        r#"{"event_id":18446744073709551615,"source_event_id":18446744073709551615,"instance_id":"i","execution_id":18446744073709551615,"timestamp_ms":18446744073709551615,"duroxide_version":"0.1.0","type":"TimerFired","fire_at_ms":18446744073709551615}"#,
    ),
    (
        "event/null version stamp",
        r#"{"event_id":1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,"duroxide_version":null,"type":"KeyValuesCleared"}"#,
    ),
    (
        "event/repeated key",
        r#"{"event_id":1,"event_id":2,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,"duroxide_version":"0.1.0","type":"KeyValuesCleared"}"#,
    ),
    ("event/array", r#"[1,null,"i",1,1,"0.1.0"]"#),
    ("kind/activity without session and tag", r#"{"type":"ActivityScheduled","name":"a","input":""}"#),
    (
        "kind/activity with null session and tag",
        r#"{"type":"ActivityScheduled","name":"a","input":"","session_id":null,"tag":null}"#,
    ),
    ("kind/activity without input", r#"{"type":"ActivityScheduled","name":"a"}"#),
    ("kind/unknown field", r#"{"type":"ActivityScheduled","name":"a","input":"","colour":"red"}"#),
    (
        "kind/started before carry-forward",
        r#"{"type":"OrchestrationStarted","name":"o","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}"#,
    ),
    (
        "kind/started without parent",
        r#"{"type":"OrchestrationStarted","name":"o","version":"1.0.0","input":""}"#,
    ),
    (
        "kind/started with empty carry-forward",
        r#"{"type":"OrchestrationStarted","name":"o","version":"1.0.0","input":"","parent_instance":null,"parent_id":null,"carry_forward_events":[]}"#,
    ),
    ("kind/status without value", r#"{"type":"CustomStatusUpdated"}"#),
    ("kind/set without time", r#"{"type":"KeyValueSet","key":"k","value":"v"}"#),
    ("kind/rust name of a renamed variant", r#"{"type":"QueueSubscribed","name":"q"}"#),
    ("kind/type last", r#"{"fire_at_ms":5,"type":"TimerFired"}"#),
    ("kind/no type", r#"{"name":"a","input":""}"#),
    ("kind/unknown type", r#"{"type":"Tomorrow"}"#),
    ("kind/unit with a field", r#"{"type":"KeyValuesCleared","colour":"red"}"#),
    (
        "work/start without optional keys",
        r#"{"StartOrchestration":{"instance":"i","orchestration":"o","input":"","execution_id":1}}"#,
    ),
    (
        "work/start without execution",
        r#"{"StartOrchestration":{"instance":"i","orchestration":"o","input":"","version":null,"parent_instance":null,"parent_id":null}}"#,
    ),
    (
        "work/activity without session and tag",
        r#"{"ActivityExecute":{"instance":"i","execution_id":1,"id":2,"name":"a","input":""}}"#,
    ),
    (
        "work/activity with null session and tag",
        r#"{"ActivityExecute":{"instance":"i","execution_id":1,"id":2,"name":"a","input":"","session_id":null,"tag":null}}"#,
    ),
    (
        "work/continue before carry-forward",
        r#"{"ContinueAsNew":{"instance":"i","orchestration":"o","input":"","version":null}}"#,
    ),
    (
        "work/continue with null carry-forward",
        r#"{"ContinueAsNew":{"instance":"i","orchestration":"o","input":"","version":null,"carry_forward_events":null}}"#,
    ),
    ("work/unknown field", r#"{"CancelInstance":{"instance":"i","reason":"r","colour":"red"}}"#),
    ("work/unknown variant", r#"{"Tomorrow":{"instance":"i"}}"#),
    ("work/variant as text", r#""CancelInstance""#),
    ("work/two variants", r#"{"CancelInstance":{"instance":"i","reason":"r"},"TimerFired":{}}"#),
    ("work/old queue name", r#"{"ExternalRaisedPersistent":{"instance":"i","name":"q","data":"d"}}"#),
    ("error/no message", r#"{"Configuration":{"kind":"Nondeterminism","resource":"r"}}"#),
    ("error/unknown kind", r#"{"Configuration":{"kind":"Tomorrow","resource":"r","message":null}}"#),
    ("error/no retryable", r#"{"Application":{"kind":"Panicked","message":"m"}}"#),
    (
        "error/unknown field",
        r#"{"Application":{"kind":"Panicked","message":"m","retryable":false,"colour":"red"}}"#,
    ),
    ("error/unknown variant", r#"{"Tomorrow":{}}"#),
];
