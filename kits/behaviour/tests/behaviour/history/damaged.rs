//! What this engine did not write: histories of older engines or with events out of place, and messages that
//! answer nothing (2.2, texts of section 3).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use steadfast::providers::{ExecutionMetadata, WorkItem};
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{AppErrorKind, ConfigErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext};
use steadfast_behaviour::{Lines, Stage, activities, on_every_store, orchestrations};

const MINUTE: Duration = Duration::from_secs(60);

/// Asks for one activity, one timer and one child, and returns at the first poke.
fn flow() -> OrchestrationRegistryBuilder {
    let kid = |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("never").await) };
    let flow = |ctx: OrchestrationContext, _| async move {
        let activity = ctx.schedule_activity("A", "");
        let (timer, child) = (ctx.schedule_timer(MINUTE), ctx.schedule_sub_orchestration("Kid", ""));
        let poked = ctx.schedule_wait("poke").await;
        std::mem::forget((activity, timer, child));
        Ok(poked)
    };
    orchestrations().register("Flow", flow).register("Kid", kid)
}

/// Appends an event to the history of `a`, behind the back of every engine.
async fn append(stage: &Stage, event_id: u64, source: Option<u64>, kind: EventKind) {
    let event = Event::with_event_id(event_id, "a", 1, source, kind);
    stage.inner().append_with_execution("a", 1, vec![event]).await.expect("is appended");
}

/// Records a first turn of `a` by hand, stamped by some engine.
async fn record(stage: &Stage, stamp: &str, kinds: Vec<EventKind>) {
    stage.start("a", "Flow", "").await;
    let store = stage.inner();
    let leased = store.fetch_orchestration_item(MINUTE, Duration::ZERO, None).await.expect("answers");
    let (_, token, _) = leased.expect("a start waits");
    let events = (1..).zip(kinds).map(|(id, kind)| Event {
        duroxide_version: stamp.to_owned(),
        ..Event::with_event_id(id, "a", 1, None, kind)
    });
    let metadata = ExecutionMetadata {
        orchestration_name: Some("Flow".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    };
    store
        .ack_orchestration_item(&token, 1, events.collect(), vec![], vec![], metadata, vec![])
        .await
        .expect("is recorded");
}

fn started() -> EventKind {
    EventKind::OrchestrationStarted {
        name: "Flow".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

/// Stops `flow` after its first turn: activity 2, timer 3, child 4, wait 5.
async fn stopped(stage: &Stage) {
    stage.run(activities(), flow()).await;
    stage.start("a", "Flow", "").await;
    stage.has("a", "ExternalSubscribed", 1).await;
    stage.stop().await;
}

/// Gives `a` a turn, and tells how it ends.
async fn poked(stage: &Stage) -> Result<String, ErrorDetails> {
    stage.client.raise_event("a", "poke", "poked").await.expect("is sent");
    stage.run(activities(), flow()).await;
    let ended = stage.ends("a").await;
    stage.stop().await;
    ended
}

fn nondeterminism(message: impl Into<String>) -> Result<String, ErrorDetails> {
    Err(ErrorDetails::Configuration {
        kind: ConfigErrorKind::Nondeterminism,
        resource: String::new(),
        message: Some(message.into()),
    })
}

fn details() -> ErrorDetails {
    let kind = AppErrorKind::ActivityFailed;
    ErrorDetails::Application { kind, message: "no".to_owned(), retryable: false }
}

/// Every kind of answer, with the family it belongs to.
fn answers() -> [(&'static str, &'static str, EventKind); 5] {
    let result = String::new();
    [
        ("ActivityCompleted", "activity", EventKind::ActivityCompleted { result: result.clone() }),
        ("ActivityFailed", "activity", EventKind::ActivityFailed { details: details() }),
        ("TimerFired", "timer", EventKind::TimerFired { fire_at_ms: 0 }),
        ("SubOrchestrationCompleted", "suborchestration", EventKind::SubOrchestrationCompleted { result }),
        (
            "SubOrchestrationFailed",
            "suborchestration",
            EventKind::SubOrchestrationFailed { details: details() },
        ),
    ]
}

const SCHEDULED: [(u64, &str); 3] = [(2, "activity"), (3, "timer"), (4, "suborchestration")];

macro_rules! for_each_answer {
    ($($name:ident: $index:literal;)+) => {
        on_every_store! {$(
            async fn $name(stage) {
                let (kind, family, event) = answers()[$index].clone();
                stopped(&stage).await;
                for (id, found) in SCHEDULED.into_iter().filter(|(_, scheduled)| *scheduled != family) {
                    // Each wrong answer ends an instance, so each has a stage of its own.
                    let stage = Stage::new(stage.kind).await;
                    stopped(&stage).await;
                    append(&stage, 6, Some(id), event.clone()).await;
                    let text = format!(
                        "completion kind mismatch: expected {family}, found {found} (at event 6: history has \
                         {kind}; \
                         the last event that still matched is 5, ExternalSubscribed)"
                    );
                    assert_eq!(poked(&stage).await, nondeterminism(text));
                }
                append(&stage, 6, Some(99), event).await;
                let text = format!(
                    "completion without open schedule: id=99 (at event 6: history has {kind}; the last event \
                     that \
                     still matched is 5, ExternalSubscribed)"
                );
                assert_eq!(poked(&stage).await, nondeterminism(text));
            }
        )+}
    };
}

for_each_answer! {
    t3_a_recorded_result_of_an_activity_needs_an_open_activity: 0;
    f16_a_recorded_failure_of_an_activity_needs_an_open_activity: 1;
    f16_a_recorded_timer_needs_an_open_timer: 2;
    f16_a_recorded_result_of_a_child_needs_an_open_child: 3;
    f16_a_recorded_failure_of_a_child_needs_an_open_child: 4;
}

on_every_store! {
    async fn t3_a_schedule_that_history_answers_twice_is_named(stage) {
        stopped(&stage).await;
        append(&stage, 6, Some(2), EventKind::ActivityCompleted { result: "first".to_owned() }).await;
        append(&stage, 7, Some(2), EventKind::ActivityFailed { details: details() }).await;
        let text = "completion without open schedule: id=2 (at event 7: history has ActivityFailed; the last \
            event \
                    that still matched is 6, ActivityCompleted)";
        assert_eq!(poked(&stage).await, nondeterminism(text));
    }

    async fn r2_2_a_recorded_answer_that_names_no_schedule_is_ignored(stage) {
        stopped(&stage).await;
        for (id, (_, _, event)) in (6..).zip(answers()) {
            append(&stage, id, None, event).await;
        }
        assert_eq!(poked(&stage).await, Ok("poked".to_owned()));
    }

    async fn t3_a_history_that_does_not_begin_with_its_start_is_corrupted(stage) {
        let scheduled = EventKind::TimerCreated { fire_at_ms: 0 };
        record(&stage, "0.2.0", vec![scheduled]).await;
        let text =
            "corrupted history: first event must be OrchestrationStarted, found TimerCreated (at event 1)";
        assert_eq!(poked(&stage).await, nondeterminism(text));
        assert_eq!(stage.kinds("a").await.last().map(String::as_str), Some("OrchestrationFailed"));
    }

    async fn t3_a_second_start_in_a_history_is_corrupted(stage) {
        stopped(&stage).await;
        append(&stage, 6, None, started()).await;
        let text = "corrupted history: a second OrchestrationStarted (at event 6; the last event that still \
            matched \
                    is 5, ExternalSubscribed)";
        assert_eq!(poked(&stage).await, nondeterminism(text));
    }

    async fn r2_2_a_turn_on_a_history_that_has_ended_changes_nothing(stage) {
        let ends = [
            EventKind::OrchestrationCompleted { output: "by hand".to_owned() },
            EventKind::OrchestrationFailed { details: details() },
        ];
        for end in ends {
            let stage = Stage::new(stage.kind).await;
            stopped(&stage).await;
            append(&stage, 6, None, end).await;
            let before = stage.history("a").await;
            stage.run(activities(), flow()).await;
            stage.client.raise_event("a", "poke", "").await.expect("is sent");
            let settled = async || {
                stage.observer().get_queue_depths().await.is_ok_and(|depths| depths.orchestrator_queue == 1)
            };
            // The timer still waits for its time.
            stage.until("the poke is settled", settled).await;
            assert_eq!(stage.history("a").await, before);
            stage.stop().await;
        }
    }

    async fn r2_2_the_first_recorded_cancellation_wins_over_a_later_one(stage) {
        stopped(&stage).await;
        append(&stage, 6, None, EventKind::OrchestrationCancelRequested { reason: "first".to_owned() }).await;
        stage.client.cancel_instance("a", "second").await.expect("is sent");
        let reason = "first".to_owned();
        let kind = AppErrorKind::Cancelled { reason };
        assert_eq!(
            poked(&stage).await,
            Err(ErrorDetails::Application { kind, message: String::new(), retryable: false })
        );
        let cancels =
            stage.kinds("a").await.iter().filter(|kind| *kind == "OrchestrationCancelRequested").count();
        assert_eq!(cancels, 1);
    }

    async fn r2_2_a_status_without_a_call_is_accepted_from_an_older_engine_only(stage) {
        let turn = || {
            vec![
                started(),
                EventKind::ActivityScheduled {
                    name: "A".to_owned(),
                    input: String::new(),
                    session_id: None,
                    tag: None,
                },
                EventKind::TimerCreated { fire_at_ms: 1_700_000_060_000 },
                EventKind::SubOrchestrationScheduled {
                    name: "Kid".to_owned(),
                    instance: "sub::4".to_owned(),
                    input: String::new(),
                },
                EventKind::ExternalSubscribed { name: "poke".to_owned() },
                EventKind::CustomStatusUpdated { status: None },
                EventKind::KeyValueSet { key: "k".to_owned(), value: "v".to_owned(), last_updated_at_ms: 0 },
                EventKind::KeyValuesCleared,
            ]
        };
        record(&stage, "0.1.31", turn()).await;
        assert_eq!(poked(&stage).await, Ok("poked".to_owned()));
        let ours = Stage::new(stage.kind).await;
        record(&ours, "0.2.0", turn()).await;
        let text = "custom status mismatch: history CustomStatusUpdated but no emitted action (at event 6: \
            history has \
                    CustomStatusUpdated; the last event that still matched is 5, ExternalSubscribed)";
        assert_eq!(poked(&ours).await, nondeterminism(text));
    }

    async fn f17_the_recorded_time_of_a_value_wins_over_the_stamp_of_its_event(stage) {
        let (key, value) = ("k".to_owned(), "v".to_owned());
        let set = EventKind::KeyValueSet { key, value, last_updated_at_ms: 999 };
        let wait = EventKind::ExternalSubscribed { name: "poke".to_owned() };
        record(&stage, "0.1.31", vec![started(), set, wait]).await;
        let prunes = orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
            ctx.set_kv_value("k", "v");
            ctx.schedule_wait("poke").await;
            Ok(format!(
                "{} {}",
                ctx.prune_kv_values_updated_before(999),
                ctx.prune_kv_values_updated_before(1000)
            ))
        });
        stage.run(activities(), prunes).await;
        stage.client.raise_event("a", "poke", "").await.expect("is sent");
        assert_eq!(stage.ends("a").await, Ok("0 1".to_owned()));
        stage.stop().await;
    }

    async fn t3_a_bad_stamp_is_warned_about_on_every_turn_and_the_execution_goes_on(stage) {
        let wait = EventKind::ExternalSubscribed { name: "more".to_owned() };
        record(&stage, "no version", vec![started(), wait]).await;
        let (lines, _guard) = Lines::collect();
        let two = orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_wait("more").await;
            Ok(ctx.schedule_wait("poke").await)
        });
        stage.run(activities(), two).await;
        stage.client.raise_event("a", "more", "").await.expect("is sent");
        stage.has("a", "ExternalSubscribed", 2).await;
        stage.client.raise_event("a", "poke", "poked").await.expect("is sent");
        assert_eq!(stage.ends("a").await, Ok("poked".to_owned()));
        let warned = lines.saying("WARN", "Invalid pinned version");
        assert_eq!(warned.len(), 2, "{warned:?}");
        for line in warned {
            assert_eq!((line.field("instance"), line.field("version")), ("a", "no version"));
            assert!(
                line.field("message").starts_with("Invalid pinned version")
                    && !line.field("error").is_empty()
            );
        }
        stage.stop().await;
    }

    async fn t3_a_good_stamp_is_not_warned_about(stage) {
        let (lines, _guard) = Lines::collect();
        stopped(&stage).await;
        assert_eq!(poked(&stage).await, Ok("poked".to_owned()));
        assert_eq!(lines.saying("WARN", "Invalid pinned version"), []);
    }
}

fn activity_completed(id: u64) -> WorkItem {
    WorkItem::ActivityCompleted { instance: "a".to_owned(), execution_id: 1, id, result: "r".to_owned() }
}

fn activity_failed(id: u64) -> WorkItem {
    WorkItem::ActivityFailed { instance: "a".to_owned(), execution_id: 1, id, details: details() }
}

fn timer_fired(id: u64) -> WorkItem {
    WorkItem::TimerFired { instance: "a".to_owned(), execution_id: 1, id, fire_at_ms: 0 }
}

fn child_completed(id: u64) -> WorkItem {
    let (parent_instance, result) = ("a".to_owned(), "r".to_owned());
    WorkItem::SubOrchCompleted { parent_instance, parent_execution_id: 1, parent_id: id, result }
}

fn child_failed(id: u64) -> WorkItem {
    let (parent_instance, details) = ("a".to_owned(), details());
    WorkItem::SubOrchFailed { parent_instance, parent_execution_id: 1, parent_id: id, details }
}

/// Sends messages to `a` as it waits, and asserts that the first of them fails it with a text.
async fn fails_by(stage: &Stage, messages: Vec<WorkItem>, text: String) {
    let stage = Stage::new(stage.kind).await;
    stopped(&stage).await;
    for message in messages {
        stage.inner().enqueue_for_orchestrator(message, None).await.expect("is sent");
    }
    assert_eq!(poked(&stage).await, nondeterminism(text));
    let kinds = stage.kinds("a").await;
    assert_eq!(kinds[5..7], ["ExternalEvent", "OrchestrationFailed"], "what answers nothing is not recorded");
    assert_eq!(kinds[7..], ["ActivityCancelRequested"]);
}

on_every_store! {
    async fn t3_an_answer_to_what_was_never_scheduled_is_no_matching_schedule(stage) {
        let answers = [
            (activity_completed(77), "completion"),
            (activity_failed(77), "completion"),
            (timer_fired(77), "timer"),
            (child_completed(77), "sub-orchestration"),
            (child_failed(77), "sub-orchestration"),
        ];
        for (message, what) in answers {
            fails_by(&stage, vec![message], format!("no matching schedule for {what} id=77")).await;
        }
        // A wait is no schedule that an activity could answer.
        fails_by(&stage, vec![activity_completed(5)], "no matching schedule for completion id=5".to_owned())
            .await;
    }

    async fn t3_an_answer_of_another_kind_is_a_completion_kind_mismatch(stage) {
        type Answer = fn(u64) -> WorkItem;
        let answers: [(Answer, &str); 5] = [
            (activity_completed, "activity"),
            (activity_failed, "activity"),
            (timer_fired, "timer"),
            (child_completed, "suborchestration"),
            (child_failed, "suborchestration"),
        ];
        for (message, got) in answers {
            for (id, expected) in SCHEDULED.into_iter().filter(|(_, scheduled)| *scheduled != got) {
                let text =
                    format!("completion kind mismatch for id={id}, expected '{expected}', got '{got}'");
                fails_by(&stage, vec![message(id)], text).await;
            }
        }
    }

    async fn r2_2_the_first_message_that_answers_nothing_is_the_one_that_is_named(stage) {
        let text = "completion kind mismatch for id=3, expected 'timer', got 'activity'".to_owned();
        fails_by(&stage, vec![activity_completed(3), timer_fired(77)], text).await;
    }

    async fn r2_2_no_code_runs_in_a_turn_that_a_message_fails(stage) {
        let (operation, message) = ("op".to_owned(), "m".to_owned());
        let broken = ErrorDetails::Infrastructure { operation, message, retryable: false };
        let failed = WorkItem::ActivityFailed {
            instance: "a".to_owned(),
            execution_id: 1,
            id: 2,
            details: broken.clone(),
        };
        let unknown = nondeterminism("no matching schedule for completion id=77");
        for (message, expected) in [(activity_completed(77), unknown), (failed, Err(broken))] {
            let stage = Stage::new(stage.kind).await;
            let runs = Arc::new(AtomicU32::new(0));
            let waits = || {
                let counted = Arc::clone(&runs);
                orchestrations().register("Flow", move |ctx: OrchestrationContext, _| {
                    let counted = Arc::clone(&counted);
                    async move {
                        let _activity = ctx.schedule_activity("A", "");
                        let poked = ctx.schedule_wait("poke").await;
                        counted.fetch_add(1, Ordering::Relaxed);
                        Ok(poked)
                    }
                })
            };
            stage.run(activities(), waits()).await;
            stage.start("a", "Flow", "").await;
            stage.has("a", "ExternalSubscribed", 1).await;
            stage.stop().await;
            stage.client.raise_event("a", "poke", "").await.expect("is sent");
            stage.inner().enqueue_for_orchestrator(message, None).await.expect("is sent");
            stage.run(activities(), waits()).await;
            assert_eq!(stage.ends("a").await, expected);
            assert_eq!(runs.load(Ordering::Relaxed), 0);
            stage.stop().await;
        }
    }
}
