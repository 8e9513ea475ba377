//! The JSON of events and work items: what is written, byte for byte, and what is read.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod strategies;

use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steadfast_core::*;

fn write<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

fn refusal<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
    serde_json::from_str::<T>(text).unwrap_err().to_string()
}

/// Asserts that a value is written as exactly this text, and that the text is read back as the value.
#[track_caller]
fn assert_text<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T, text: &str) {
    assert_eq!(write(value), text);
    assert_eq!(&read::<T>(text), value);
}

fn s(text: &str) -> String {
    text.to_owned()
}

fn event(kind: EventKind) -> Event {
    Event { duroxide_version: s("0.1.32"), ..Event::at(1000, 3, "order-1", 2, None, kind) }
}

fn failure() -> ErrorDetails {
    ErrorDetails::Application { kind: AppErrorKind::ActivityFailed, message: s("no"), retryable: false }
}

const FAILURE: &str = r#"{"Application":{"kind":"ActivityFailed","message":"no","retryable":false}}"#;

/// Lists every kind with its options absent, and the text it has alone.
fn bare_kinds() -> Vec<(EventKind, String)> {
    use EventKind::*;
    let kinds = [
        (
            started(),
            concat!(
                r#""OrchestrationStarted","name":"n","version":"1.0.0","input":"i","#,
                r#""parent_instance":null,"parent_id":null"#,
            ),
        ),
        (OrchestrationCompleted { output: s("o") }, r#""OrchestrationCompleted","output":"o""#),
        (OrchestrationFailed { details: failure() }, r#""OrchestrationFailed","details":FAILURE"#),
        (
            ActivityScheduled { name: s("n"), input: s("i"), session_id: None, tag: None },
            r#""ActivityScheduled","name":"n","input":"i""#,
        ),
        (ActivityCompleted { result: s("r") }, r#""ActivityCompleted","result":"r""#),
        (ActivityFailed { details: failure() }, r#""ActivityFailed","details":FAILURE"#),
        (ActivityCancelRequested { reason: s("r") }, r#""ActivityCancelRequested","reason":"r""#),
        (TimerCreated { fire_at_ms: 5 }, r#""TimerCreated","fire_at_ms":5"#),
        (TimerFired { fire_at_ms: 5 }, r#""TimerFired","fire_at_ms":5"#),
        (ExternalSubscribed { name: s("n") }, r#""ExternalSubscribed","name":"n""#),
        (ExternalEvent { name: s("n"), data: s("d") }, r#""ExternalEvent","name":"n","data":"d""#),
        (
            OrchestrationChained { name: s("n"), instance: s("x"), input: s("i") },
            r#""OrchestrationChained","name":"n","instance":"x","input":"i""#,
        ),
        (
            SubOrchestrationScheduled { name: s("n"), instance: s("sub::5"), input: s("i") },
            r#""SubOrchestrationScheduled","name":"n","instance":"sub::5","input":"i""#,
        ),
        (SubOrchestrationCompleted { result: s("r") }, r#""SubOrchestrationCompleted","result":"r""#),
        (SubOrchestrationFailed { details: failure() }, r#""SubOrchestrationFailed","details":FAILURE"#),
        (
            SubOrchestrationCancelRequested { reason: s("r") },
            r#""SubOrchestrationCancelRequested","reason":"r""#,
        ),
        (OrchestrationContinuedAsNew { input: s("i") }, r#""OrchestrationContinuedAsNew","input":"i""#),
        (OrchestrationCancelRequested { reason: s("r") }, r#""OrchestrationCancelRequested","reason":"r""#),
        (ExternalSubscribedCancelled { reason: s("r") }, r#""ExternalSubscribedCancelled","reason":"r""#),
        (QueueSubscribed { name: s("n") }, r#""ExternalSubscribedPersistent","name":"n""#),
        (
            QueueEventDelivered { name: s("n"), data: s("d") },
            r#""ExternalEventPersistent","name":"n","data":"d""#,
        ),
        (
            QueueSubscriptionCancelled { reason: s("r") },
            r#""ExternalSubscribedPersistentCancelled","reason":"r""#,
        ),
        (CustomStatusUpdated { status: None }, r#""CustomStatusUpdated","status":null"#),
        (
            KeyValueSet { key: s("k"), value: s("v"), last_updated_at_ms: 0 },
            r#""KeyValueSet","key":"k","value":"v","last_updated_at_ms":0"#,
        ),
        (KeyValueCleared { key: s("k") }, r#""KeyValueCleared","key":"k""#),
        (KeyValuesCleared, r#""KeyValuesCleared""#),
        (
            SessionOpened { session_id: s("chat"), idle_timeout_ms: None, concurrency: None },
            r#""SessionOpened","session_id":"chat""#,
        ),
        (SessionClosed { session_id: s("chat") }, r#""SessionClosed","session_id":"chat""#),
        (
            SessionMigrated { session_id: s("chat"), epoch: 9, from: None, to: s("b") },
            r#""SessionMigrated","session_id":"chat","epoch":9,"to":"b""#,
        ),
        (SessionsCarried { sessions: vec![] }, r#""SessionsCarried","sessions":[]"#),
    ];
    kinds.map(|(kind, text)| (kind, text.replace("FAILURE", FAILURE))).to_vec()
}

fn started() -> EventKind {
    EventKind::OrchestrationStarted {
        name: s("n"),
        version: s("1.0.0"),
        input: s("i"),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

#[test]
fn every_kind_is_written_alone_without_its_absent_options() {
    for (kind, text) in bare_kinds() {
        assert_text(&kind, &format!("{{\"type\":{text}}}"));
    }
}

#[test]
fn every_kind_is_written_flat_into_its_event() {
    for (kind, text) in bare_kinds() {
        let place = "\"event_id\":3,\"source_event_id\":null,\"instance_id\":\"order-1\",\"execution_id\":2,\
                     \"timestamp_ms\":1000,\"duroxide_version\":\"0.1.32\"";
        assert_text(&event(kind), &format!("{{{place},\"type\":{text}}}"));
    }
}

#[test]
fn the_name_of_a_kind_is_its_type_tag() {
    for (kind, text) in bare_kinds() {
        assert!(text.starts_with(&format!("\"{}\"", kind.name())), "{kind:?}");
    }
}

#[test]
fn options_that_are_present_are_written_in_their_place() {
    let started = EventKind::OrchestrationStarted {
        name: s("n"),
        version: s("1.0.0"),
        input: s("i"),
        parent_instance: Some(s("p")),
        parent_id: Some(4),
        parent_execution_id: Some(2),
        carry_forward_events: Some(vec![(s("inbox"), s("a")), (s("inbox"), s("b"))]),
        initial_custom_status: Some(s("ready")),
    };
    assert_text(
        &started,
        "{\"type\":\"OrchestrationStarted\",\"name\":\"n\",\"version\":\"1.0.0\",\"input\":\"i\",\
         \"parent_instance\":\"p\",\"parent_id\":4,\"parent_execution_id\":2,\
         \"carry_forward_events\":[[\"inbox\",\"a\"],[\"inbox\",\"b\"]],\"initial_custom_status\":\"ready\"}",
    );
    let scheduled = EventKind::ActivityScheduled {
        name: s("n"),
        input: s("i"),
        session_id: Some(s("chat")),
        tag: Some(s("gpu")),
    };
    assert_text(
        &scheduled,
        r#"{"type":"ActivityScheduled","name":"n","input":"i","session_id":"chat","tag":"gpu"}"#,
    );
    let opened = EventKind::SessionOpened {
        session_id: s("chat"),
        idle_timeout_ms: Some(5),
        concurrency: Some(SessionConcurrency::Serial),
    };
    assert_text(
        &opened,
        r#"{"type":"SessionOpened","session_id":"chat","idle_timeout_ms":5,"concurrency":"serial"}"#,
    );
    let carried = EventKind::SessionsCarried {
        sessions: vec![CarriedSession {
            session_id: s("chat"),
            idle_timeout_ms: Some(5),
            concurrency: Some(SessionConcurrency::Unbounded),
            pool: Some(SessionPool::Tag(s("gpu"))),
        }],
    };
    assert_text(
        &carried,
        "{\"type\":\"SessionsCarried\",\"sessions\":[{\"session_id\":\"chat\",\"idle_timeout_ms\":5,\
         \"concurrency\":\"unbounded\",\"pool\":{\"tag\":\"gpu\"}}]}",
    );
}

#[test]
fn the_late_fields_of_an_event_are_written_after_its_kind() {
    let child = Event {
        source_event_id: Some(1),
        child_version: Some(s("2.0.0")),
        traceparent: Some(s("00-ab-cd-01")),
        ..event(EventKind::KeyValuesCleared)
    };
    assert_text(
        &child,
        "{\"event_id\":3,\"source_event_id\":1,\"instance_id\":\"order-1\",\"execution_id\":2,\
         \"timestamp_ms\":1000,\"duroxide_version\":\"0.1.32\",\"type\":\"KeyValuesCleared\",\
         \"child_version\":\"2.0.0\",\"traceparent\":\"00-ab-cd-01\"}",
    );
}

#[test]
fn the_number_the_terms_and_the_failure_of_an_event_are_written_last() {
    let policy = Policy::tries(3).timeout(std::time::Duration::from_secs(5));
    let terms = CallTerms { key: s("order-1/00ab/Charge/1/0c"), policy: Some(policy), tried_before: 1 };
    let failure =
        Failure { kind: FailureKind::Timeout, data: Some(s("{\"code\":7}")), tries: 3, elapsed_ms: 9_000 };
    let event = Event {
        random: Some(171),
        call: Some(Box::new(terms)),
        failure: Some(Box::new(failure)),
        ..event(EventKind::KeyValuesCleared)
    };
    assert_text(
        &event,
        "{\"event_id\":3,\"source_event_id\":null,\"instance_id\":\"order-1\",\"execution_id\":2,\
         \"timestamp_ms\":1000,\"duroxide_version\":\"0.1.32\",\"type\":\"KeyValuesCleared\",\
         \"random\":171,\"call\":{\"key\":\"order-1/00ab/Charge/1/0c\",\"policy\":{\"max\":3,\
         \"first_ms\":1000,\"longest_ms\":60000,\"timeout_ms\":5000},\"tried_before\":1},\
         \"failure\":{\"kind\":\"timeout\",\"data\":\"{\\\"code\\\":7}\",\"tries\":3,\"elapsed_ms\":9000}}",
    );
}

#[test]
fn an_event_without_its_version_is_refused_by_name() {
    let text = r#"{"event_id":1,"source_event_id":null,"instance_id":"a","execution_id":1,"timestamp_ms":0,
                   "type":"KeyValuesCleared"}"#;
    assert!(refusal::<Event>(text).starts_with("missing field `duroxide_version`"));
    let error = serde_json::from_value::<Event>(read::<Value>(text)).unwrap_err();
    assert_eq!(error.to_string(), "missing field `duroxide_version`");
}

#[test]
fn an_unknown_or_absent_type_is_refused() {
    assert!(refusal::<EventKind>(r#"{"type":"Teleported"}"#).starts_with("unknown variant `Teleported`"));
    assert!(refusal::<EventKind>("{}").starts_with("missing field `type`"));
    // A queue kind is read under its wire name only.
    assert!(refusal::<EventKind>(r#"{"type":"QueueSubscribed","name":"n"}"#).starts_with("unknown variant"));
    let mut event = serde_json::to_value(event(EventKind::KeyValuesCleared)).unwrap();
    event["type"] = json!("Teleported");
    assert!(refusal::<Event>(&event.to_string()).starts_with("unknown variant `Teleported`"));
    assert!(refusal::<WorkItem>(r#"{"Teleported":{}}"#).starts_with("unknown variant `Teleported`"));
}

#[test]
fn unknown_fields_are_tolerated() {
    for (kind, text) in bare_kinds() {
        assert_eq!(read::<EventKind>(&format!("{{\"later\":[1,{{}}],\"type\":{text}}}")), kind);
        let mut value = serde_json::to_value(event(kind.clone())).unwrap();
        value["later"] = json!({"nested": [1, null]});
        assert_eq!(read::<Event>(&value.to_string()), event(kind));
    }
    let item = r#"{"CancelInstance":{"instance":"a","reason":"r","later":[1]}}"#;
    assert_eq!(read::<WorkItem>(item), WorkItem::CancelInstance { instance: s("a"), reason: s("r") });
}

#[test]
fn the_type_may_stand_anywhere_in_an_event() {
    let text = "{\"fire_at_ms\":5,\"type\":\"TimerFired\",\"duroxide_version\":\"0.1.32\",\
                \"timestamp_ms\":1000,\"execution_id\":2,\"instance_id\":\"order-1\",\"event_id\":3}";
    assert_eq!(read::<Event>(text), event(EventKind::TimerFired { fire_at_ms: 5 }));
}

#[test]
fn absent_fields_with_a_default_are_tolerated() {
    assert_eq!(
        read::<EventKind>(r#"{"type":"KeyValueSet","key":"k","value":"v"}"#),
        EventKind::KeyValueSet { key: s("k"), value: s("v"), last_updated_at_ms: 0 }
    );
    let old = r#"{"ContinueAsNew":{"instance":"a","orchestration":"o","input":"i","version":null}}"#;
    assert_eq!(read::<WorkItem>(old), continue_as_new());
}

fn continue_as_new() -> WorkItem {
    WorkItem::ContinueAsNew {
        instance: s("a"),
        orchestration: s("o"),
        input: s("i"),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: vec![],
        initial_custom_status: None,
    }
}

/// Lists every work item with its options absent, its text, and its name in logs where that differs.
fn bare_items() -> Vec<(WorkItem, String)> {
    let items = [bare_items_of_instances(), bare_items_of_children_and_sessions()].concat();
    items.into_iter().map(|(item, text)| (item, text.replace("FAILURE", FAILURE))).collect()
}

fn bare_items_of_instances() -> Vec<(WorkItem, &'static str)> {
    use WorkItem::*;
    vec![
        (
            StartOrchestration {
                instance: s("a"),
                orchestration: s("o"),
                input: s("i"),
                version: None,
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                execution_id: 1,
            },
            "{\"StartOrchestration\":{\"instance\":\"a\",\"orchestration\":\"o\",\"input\":\"i\",\
             \"version\":null,\"parent_instance\":null,\"parent_id\":null,\"execution_id\":1}}",
        ),
        (
            ActivityExecute {
                instance: s("a"),
                execution_id: 1,
                id: 2,
                name: s("n"),
                input: s("i"),
                session_id: None,
                tag: None,
            },
            r#"{"ActivityExecute":{"instance":"a","execution_id":1,"id":2,"name":"n","input":"i"}}"#,
        ),
        (
            ActivityCompleted { instance: s("a"), execution_id: 1, id: 2, result: s("r") },
            r#"{"ActivityCompleted":{"instance":"a","execution_id":1,"id":2,"result":"r"}}"#,
        ),
        (
            ActivityFailed { instance: s("a"), execution_id: 1, id: 2, details: failure() },
            r#"{"ActivityFailed":{"instance":"a","execution_id":1,"id":2,"details":FAILURE}}"#,
        ),
        (
            TimerFired { instance: s("a"), execution_id: 1, id: 2, fire_at_ms: 5 },
            r#"{"TimerFired":{"instance":"a","execution_id":1,"id":2,"fire_at_ms":5}}"#,
        ),
        (
            ExternalRaised { instance: s("a"), name: s("n"), data: s("d") },
            r#"{"ExternalRaised":{"instance":"a","name":"n","data":"d"}}"#,
        ),
        (
            QueueMessage { instance: s("a"), name: s("n"), data: s("d") },
            r#"{"QueueMessage":{"instance":"a","name":"n","data":"d"}}"#,
        ),
        (
            CancelInstance { instance: s("a"), reason: s("r") },
            r#"{"CancelInstance":{"instance":"a","reason":"r"}}"#,
        ),
    ]
}

fn bare_items_of_children_and_sessions() -> Vec<(WorkItem, &'static str)> {
    use WorkItem::*;
    vec![
        (
            SubOrchCompleted {
                parent_instance: s("p"),
                parent_execution_id: 1,
                parent_id: 2,
                result: s("r"),
            },
            "{\"SubOrchCompleted\":{\"parent_instance\":\"p\",\"parent_execution_id\":1,\"parent_id\":2,\
             \"result\":\"r\"}}",
        ),
        (
            SubOrchFailed {
                parent_instance: s("p"),
                parent_execution_id: 1,
                parent_id: 2,
                details: failure(),
            },
            "{\"SubOrchFailed\":{\"parent_instance\":\"p\",\"parent_execution_id\":1,\"parent_id\":2,\
             \"details\":FAILURE}}",
        ),
        (
            continue_as_new(),
            "{\"ContinueAsNew\":{\"instance\":\"a\",\"orchestration\":\"o\",\"input\":\"i\",\
             \"version\":null,\"carry_forward_events\":[]}}",
        ),
        (
            ContinueAsNewWithSessions {
                instance: s("a"),
                orchestration: s("o"),
                input: s("i"),
                version: None,
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                carry_forward_events: vec![],
                initial_custom_status: None,
                sessions: vec![CarriedSession {
                    session_id: s("chat"),
                    idle_timeout_ms: None,
                    concurrency: None,
                    pool: Some(SessionPool::Default),
                }],
            },
            "{\"ContinueAsNewWithSessions\":{\"instance\":\"a\",\"orchestration\":\"o\",\"input\":\"i\",\
             \"version\":null,\"carry_forward_events\":[],\
             \"sessions\":[{\"session_id\":\"chat\",\"pool\":\"default\"}]}}",
        ),
        (
            SessionMigrated {
                instance: s("a"),
                execution_id: 1,
                session_id: s("chat"),
                epoch: 9,
                from: None,
                to: s("b"),
            },
            "{\"SessionMigrated\":{\"instance\":\"a\",\"execution_id\":1,\"session_id\":\"chat\",\
             \"epoch\":9,\"to\":\"b\"}}",
        ),
        (
            TerminateInstance { instance: s("a"), reason: s("r") },
            "{\"TerminateInstance\":{\"instance\":\"a\",\"reason\":\"r\"}}",
        ),
        (Nudge { instance: s("a") }, "{\"Nudge\":{\"instance\":\"a\"}}"),
    ]
}

#[test]
fn every_work_item_is_written_without_its_absent_options() {
    for (item, text) in bare_items() {
        assert_text(&item, &text);
    }
}

#[test]
fn the_session_and_the_tag_of_an_activity_are_written_in_their_place() {
    let item = |session_id: Option<&str>, tag: Option<&str>| WorkItem::ActivityExecute {
        instance: s("a"),
        execution_id: 1,
        id: 2,
        name: s("n"),
        input: s("i"),
        session_id: session_id.map(s),
        tag: tag.map(s),
    };
    let head = r#"{"ActivityExecute":{"instance":"a","execution_id":1,"id":2,"name":"n","input":"i""#;
    assert_text(&item(Some("chat"), None), &format!(r#"{head},"session_id":"chat"}}}}"#));
    assert_text(&item(Some("chat"), Some("gpu")), &format!(r#"{head},"session_id":"chat","tag":"gpu"}}}}"#));
    assert_eq!(read::<WorkItem>(&format!(r#"{head},"session_id":null}}}}"#)), item(None, None));
    let old = r#"{"type":"ActivityScheduled","name":"n","input":"i"}"#;
    let EventKind::ActivityScheduled { session_id, tag, .. } = read(old) else { panic!("another kind") };
    assert_eq!((session_id, tag), (None, None), "written before there were sessions");
}

#[test]
fn a_work_item_is_named_after_its_variant_except_a_queue_message() {
    for (item, text) in bare_items() {
        let name = kind_of(&item).replace("ExternalRaisedPersistent", "QueueMessage");
        assert!(text.starts_with(&format!("{{\"{name}\"")), "{item:?}");
    }
}

#[test]
fn the_parent_link_of_a_continue_as_new_is_written_in_its_place() {
    let linked = WorkItem::ContinueAsNew {
        instance: s("a"),
        orchestration: s("o"),
        input: s("i"),
        version: Some(s("2.0.0")),
        parent_instance: Some(s("p")),
        parent_id: Some(4),
        parent_execution_id: Some(1),
        carry_forward_events: vec![(s("inbox"), s("a"))],
        initial_custom_status: Some(s("ready")),
    };
    assert_text(
        &linked,
        "{\"ContinueAsNew\":{\"instance\":\"a\",\"orchestration\":\"o\",\"input\":\"i\",\
         \"version\":\"2.0.0\",\"parent_instance\":\"p\",\"parent_id\":4,\"parent_execution_id\":1,\
         \"carry_forward_events\":[[\"inbox\",\"a\"]],\"initial_custom_status\":\"ready\"}}",
    );
}

#[test]
fn errors_are_externally_tagged() {
    let configuration = ErrorDetails::Configuration {
        kind: ConfigErrorKind::Nondeterminism,
        resource: String::new(),
        message: None,
    };
    assert_text(
        &configuration,
        r#"{"Configuration":{"kind":"Nondeterminism","resource":"","message":null}}"#,
    );
    let cancelled = ErrorDetails::Application {
        kind: AppErrorKind::Cancelled { reason: s("r") },
        message: String::new(),
        retryable: false,
    };
    assert_text(
        &cancelled,
        r#"{"Application":{"kind":{"Cancelled":{"reason":"r"}},"message":"","retryable":false}}"#,
    );
    let poison = ErrorDetails::Poison {
        attempt_count: 11,
        max_attempts: 10,
        message_type: PoisonMessageType::FailedDeserialization {
            instance: s("a"),
            execution_id: 1,
            error: s("e"),
        },
        message: s("m"),
    };
    assert_text(
        &poison,
        "{\"Poison\":{\"attempt_count\":11,\"max_attempts\":10,\"message_type\":{\"FailedDeserialization\":\
         {\"instance\":\"a\",\"execution_id\":1,\"error\":\"e\"}},\"message\":\"m\"}}",
    );
}

proptest! {
    #[test]
    fn an_event_survives_json(event in strategies::event()) {
        prop_assert_eq!(&read::<Event>(&write(&event)), &event);
        // A store may hold JSON as values, whose keys have another order.
        let value = serde_json::to_value(&event).unwrap();
        prop_assert_eq!(serde_json::from_value::<Event>(value).unwrap(), event);
    }

    #[test]
    fn an_event_kind_survives_json(kind in strategies::event_kind()) {
        prop_assert_eq!(read::<EventKind>(&write(&kind)), kind);
    }

    #[test]
    fn a_work_item_survives_json(item in strategies::work_item()) {
        prop_assert_eq!(read::<WorkItem>(&write(&item)), item);
    }

    #[test]
    fn error_details_survive_json(details in strategies::error_details()) {
        prop_assert_eq!(read::<ErrorDetails>(&write(&details)), details);
    }

    #[test]
    fn the_text_of_an_event_holds_no_null_but_the_promised_ones(event in strategies::event()) {
        let value = serde_json::to_value(&event).unwrap();
        let promised = ["source_event_id", "parent_instance", "parent_id", "status"];
        for (key, value) in value.as_object().unwrap() {
            prop_assert!(!value.is_null() || promised.contains(&key.as_str()), "{} is null", key);
        }
    }
}
