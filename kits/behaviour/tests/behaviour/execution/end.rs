//! What every end of an execution does: one terminal event, what is open closed, the parent told (2.3, F6,
//! F25, I9).
//!
//! `Flow` opens one of everything in its first turn and ends at `go` in the way that `go` says. It is the
//! child of `Parent`, so that the parent can be asked what it was told.

use std::future::pending;
use std::time::Duration;

use steadfast::providers::{ProviderError, WorkItem};
use steadfast::runtime::RuntimeOptions;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{
    AppErrorKind, ConfigErrorKind, ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationStatus,
    PoisonMessageType,
};
use steadfast_behaviour::{Stage, activities, on_every_store, orchestrations};

fn never() -> ActivityRegistryBuilder {
    activities().register("Never", |_, _| pending())
}

/// Opens an activity (2), a child (3), a wait (4) and a dequeue (5), waits for `go` (6), and ends as that
/// says.
async fn ends(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input == "second" {
        return Ok("went on".to_owned());
    }
    let (activity, child) =
        (ctx.schedule_activity("Never", ""), ctx.schedule_sub_orchestration_with_id("Kid", "kid", ""));
    // What is forgotten stays open whatever becomes of the code: nothing of this is a dropped future.
    std::mem::forget((activity, child, ctx.schedule_wait("w"), ctx.dequeue_event("q")));
    let how = ctx.schedule_wait("go").await;
    ctx.schedule_orchestration("Echo", "report", "sent");
    match how.as_str() {
        "fail" => Err("on purpose".to_owned()),
        "panic" => panic!("at the disco"),
        "limit" => {
            ctx.set_custom_status("x".repeat(262_145));
            Ok("too much".to_owned())
        }
        "continue" => ctx.continue_as_new("second").await,
        _ => Ok(how),
    }
}

/// Everything but `Flow`.
fn family() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Kid", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("never").await) })
        .register("Echo", |_, input| async move { Ok(input) })
        .register("Parent", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_sub_orchestration_with_id("Flow", "a", "").await
        })
}

/// Starts the parent and waits until `a` has opened everything.
async fn open(stage: &Stage) {
    stage.run(never(), family().register("Flow", ends)).await;
    stage.start("parent", "Parent", "").await;
    stage.has("a", "ExternalSubscribed", 2).await;
    stage.has("kid", "ExternalSubscribed", 1).await;
}

async fn go(stage: &Stage, how: &str) {
    stage.observer().raise_event("a", "go", how).await.expect("is sent");
}

/// The events of `a` after the first turn: kind, and for cancellations the schedule and the reason.
async fn rest(stage: &Stage) -> Vec<String> {
    let text = |event: &Event| {
        let source = event.source_event_id.unwrap_or_default();
        match &event.kind {
            EventKind::ActivityCancelRequested { reason } => {
                format!("ActivityCancelRequested {source} {reason}")
            }
            EventKind::ExternalSubscribedCancelled { reason } => format!("wait {source} {reason}"),
            EventKind::QueueSubscriptionCancelled { reason } => format!("dequeue {source} {reason}"),
            other => format!("{other:?}").split(' ').next().unwrap_or_default().to_owned(),
        }
    };
    stage.history_of("a", 1).await.iter().skip(6).map(text).collect()
}

const WAIT: &str = "wait 4 orchestration_terminal";
const GO: &str = "wait 6 orchestration_terminal";
const DEQUEUE: &str = "dequeue 5 orchestration_terminal";
const FAILED: &str = "ActivityCancelRequested 2 orchestration_terminal_failed";

/// Asserts what holds after every end: what parent and child were told, and that the queues are empty.
async fn closed(stage: &Stage, to_child: &str, to_parent: Result<&str, ErrorDetails>) {
    let reason = to_child.to_owned();
    let cancelled = ErrorDetails::Application {
        kind: AppErrorKind::Cancelled { reason },
        message: String::new(),
        retryable: false,
    };
    assert_eq!(stage.ends("kid").await, Err(cancelled), "the child is cancelled");
    assert_eq!(stage.ends("parent").await, to_parent.map(str::to_owned), "the parent is told");
    let told = stage.kinds("parent").await.iter().filter(|kind| kind.starts_with("SubOrchestration")).count();
    assert_eq!(told, 2, "it asked once and was told once");
    // The answer of the child, for which no wait is open any more, is the last message.
    settled(stage).await;
    stage.nothing_waits().await;
    let ends = stage.history_of("a", 1).await.iter().filter(|event| event.is_terminal()).count();
    assert_eq!(ends, 1, "one terminal event");
}

/// Lets everything be settled, and stops. A message that is leased is not counted until it is abandoned.
async fn settled(stage: &Stage) {
    let waiting = async || stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue;
    loop {
        stage.until("all messages are settled", async || waiting().await == 0).await;
        stage.stop().await;
        stage.settle().await;
        if waiting().await == 0 {
            return;
        }
        stage.run(never(), family().register("Flow", ends)).await;
    }
}

async fn report_is_sent(stage: &Stage) {
    assert_eq!(stage.output("report").await, Ok("sent".to_owned()));
}

async fn report_is_not_sent(stage: &Stage) {
    let report = stage.client.get_orchestration_status("report").await.expect("answers");
    assert_eq!(report, OrchestrationStatus::NotFound);
}

fn application(kind: AppErrorKind, message: &str) -> ErrorDetails {
    ErrorDetails::Application { kind, message: message.to_owned(), retryable: false }
}

/// What a parent makes of a failure of the child's own: the text is its error.
fn returned(child: &ErrorDetails) -> ErrorDetails {
    application(AppErrorKind::OrchestrationFailed, &child.display_message())
}

on_every_store! {
    async fn f6_an_end_by_a_result_closes_everything(stage) {
        open(&stage).await;
        go(&stage, "well").await;
        assert_eq!(stage.ends("a").await, Ok("well".to_owned()));
        let activity = "ActivityCancelRequested 2 orchestration_terminal_completed";
        let expected =
            ["ExternalEvent", "OrchestrationChained", WAIT, DEQUEUE, "OrchestrationCompleted", activity];
        assert_eq!(rest(&stage).await, expected);
        report_is_sent(&stage).await;
        closed(&stage, "parent completed", Ok("well")).await;
    }

    async fn f6_an_end_by_an_error_closes_everything(stage) {
        open(&stage).await;
        go(&stage, "fail").await;
        let details = application(AppErrorKind::OrchestrationFailed, "on purpose");
        assert_eq!(stage.ends("a").await, Err(details.clone()));
        let expected =
            ["ExternalEvent", "OrchestrationChained", WAIT, DEQUEUE, "OrchestrationFailed", FAILED];
        assert_eq!(rest(&stage).await, expected);
        report_is_sent(&stage).await;
        closed(&stage, "parent failed", Err(details)).await;
    }

    async fn f6_an_end_by_a_panic_closes_everything_and_records_no_call_of_that_turn(stage) {
        open(&stage).await;
        go(&stage, "panic").await;
        let details = application(AppErrorKind::Panicked, "at the disco");
        assert_eq!(stage.ends("a").await, Err(details.clone()));
        assert_eq!(details.display_message(), "orchestration panicked: at the disco");
        assert_eq!(rest(&stage).await, ["ExternalEvent", WAIT, DEQUEUE, "OrchestrationFailed", FAILED]);
        report_is_not_sent(&stage).await;
        closed(&stage, "parent failed", Err(returned(&details))).await;
    }

    async fn f6_an_end_by_a_limit_closes_everything_and_sends_what_it_recorded(stage) {
        open(&stage).await;
        go(&stage, "limit").await;
        let text = "Custom status size (262145 bytes) exceeds limit (262144 bytes)";
        let details = application(AppErrorKind::OrchestrationFailed, text);
        assert_eq!(stage.ends("a").await, Err(details.clone()));
        let recorded = ["ExternalEvent", "OrchestrationChained", "CustomStatusUpdated"];
        let end = [WAIT, DEQUEUE, "OrchestrationFailed", FAILED];
        assert_eq!(rest(&stage).await, [&recorded[..], &end[..]].concat());
        report_is_sent(&stage).await;
        closed(&stage, "parent failed", Err(details)).await;
    }

    async fn f6_an_end_by_a_cancellation_closes_everything(stage) {
        open(&stage).await;
        stage.client.cancel_instance("a", "enough").await.expect("is sent");
        let details = application(AppErrorKind::Cancelled { reason: "enough".to_owned() }, "");
        assert_eq!(stage.ends("a").await, Err(details.clone()));
        let expected = ["OrchestrationCancelRequested", WAIT, GO, DEQUEUE, "OrchestrationFailed", FAILED];
        assert_eq!(rest(&stage).await, expected);
        closed(&stage, "parent canceled", Err(returned(&details))).await;
    }

    async fn f25_a_cancelled_turn_sends_the_detached_starts_that_it_records(stage) {
        open(&stage).await;
        stage.stop().await;
        go(&stage, "well").await;
        stage.client.cancel_instance("a", "enough").await.expect("is sent");
        stage.run(never(), family().register("Flow", ends)).await;
        let details = application(AppErrorKind::Cancelled { reason: "enough".to_owned() }, "");
        assert_eq!(stage.ends("a").await, Err(details.clone()), "the result is discarded");
        let recorded = ["ExternalEvent", "OrchestrationCancelRequested", "OrchestrationChained"];
        let end = [WAIT, DEQUEUE, "OrchestrationFailed", FAILED];
        assert_eq!(rest(&stage).await, [&recorded[..], &end[..]].concat());
        report_is_sent(&stage).await;
        closed(&stage, "parent canceled", Err(returned(&details))).await;
    }

    async fn f6_an_end_by_changed_code_closes_everything(stage) {
        open(&stage).await;
        stage.stop().await;
        stage.run(never(), family().register("Flow", |_, _| pending())).await;
        go(&stage, "").await;
        let details = stage.ends("a").await.expect_err("parts");
        let ErrorDetails::Configuration {
            kind: ConfigErrorKind::Nondeterminism, message: Some(text), ..
        } = &details
        else {
            panic!("{details:?}");
        };
        assert!(text.starts_with("history schedule but no emitted action (at event 2: "), "{text}");
        assert_eq!(rest(&stage).await, ["ExternalEvent", WAIT, DEQUEUE, "OrchestrationFailed", FAILED]);
        closed(&stage, "parent failed", Err(details)).await;
    }

    async fn f6_an_end_as_poison_closes_everything_without_its_code(stage) {
        open(&stage).await;
        stage.stop().await;
        stage.run_with(never(), family(), RuntimeOptions { max_attempts: 1, ..stage.options() }).await;
        go(&stage, "well").await;
        let details =
            stage.ends_as_time_passes("a", Duration::from_millis(200)).await.expect_err("is poison");
        let raised = WorkItem::ExternalRaised {
            instance: "a".to_owned(),
            name: "go".to_owned(),
            data: "well".to_owned(),
        };
        let expected = ErrorDetails::Poison {
            attempt_count: 2,
            max_attempts: 1,
            message_type: PoisonMessageType::Orchestration { instance: "a".to_owned(), execution_id: 1 },
            message: serde_json::to_string(&[raised]).expect("is JSON"),
        };
        assert_eq!(details, expected);
        assert_eq!(rest(&stage).await, [WAIT, GO, DEQUEUE, "OrchestrationFailed", FAILED]);
        closed(&stage, "parent failed", Err(details)).await;
    }

    async fn f6_an_end_by_a_commit_that_the_store_refuses_for_good_closes_everything(stage) {
        open(&stage).await;
        stage.faults.refuse("commit_turn", 1, ProviderError::permanent("commit", "the disk is on fire"));
        go(&stage, "well").await;
        let details = stage.ends("a").await.expect_err("cannot be committed");
        let ErrorDetails::Infrastructure { message, retryable: false, .. } = &details else {
            panic!("{details:?}")
        };
        assert!(message.contains("the disk is on fire"), "{message}");
        assert_eq!(rest(&stage).await, [WAIT, GO, DEQUEUE, "OrchestrationFailed", FAILED]);
        report_is_not_sent(&stage).await;
        closed(&stage, "parent failed", Err(details)).await;
    }

    async fn f6_an_end_by_the_poison_of_a_child_closes_the_rest(stage) {
        open(&stage).await;
        let details = ErrorDetails::Poison {
            attempt_count: 2,
            max_attempts: 1,
            message_type: PoisonMessageType::Orchestration { instance: "x".to_owned(), execution_id: 1 },
            message: "[]".to_owned(),
        };
        let child = WorkItem::SubOrchFailed {
            parent_instance: "a".to_owned(),
            parent_execution_id: 1,
            parent_id: 3,
            details: details.clone(),
        };
        stage.inner().enqueue_for_orchestrator(child, None).await.expect("is sent");
        assert_eq!(stage.ends("a").await, Err(details.clone()));
        assert_eq!(
            rest(&stage).await,
            ["SubOrchestrationFailed", WAIT, GO, DEQUEUE, "OrchestrationFailed", FAILED]
        );
        assert_eq!(stage.ends("parent").await, Err(details));
        stage.stop().await;
    }

    async fn r2_3_a_continue_as_new_closes_waits_and_activities_and_leaves_the_family_alone(stage) {
        open(&stage).await;
        go(&stage, "continue").await;
        assert_eq!(stage.ends("parent").await, Ok("went on".to_owned()), "told by the last execution, once");
        let activity = "ActivityCancelRequested 2 orchestration_terminal_continued_as_new";
        let expected =
            ["ExternalEvent", "OrchestrationChained", WAIT, DEQUEUE, "OrchestrationContinuedAsNew", activity];
        assert_eq!(rest(&stage).await, expected);
        report_is_sent(&stage).await;
        let kid = stage.client.get_orchestration_status("kid").await.expect("answers");
        assert!(matches!(kid, OrchestrationStatus::Running { .. }), "{kid:?}");
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i9_messages_after_the_end_change_nothing(stage) {
        open(&stage).await;
        go(&stage, "well").await;
        assert_eq!(stage.ends("parent").await, Ok("well".to_owned()));
        let before = stage.history("a").await;
        go(&stage, "again").await;
        stage.client.cancel_instance("a", "too late").await.expect("is sent");
        stage.client.start_orchestration("a", "Echo", "again").await.expect("is accepted");
        settled(&stage).await;
        assert_eq!(stage.history("a").await, before);
        assert_eq!(stage.ends("a").await, Ok("well".to_owned()));
    }

    async fn r2_3_only_what_nothing_answered_is_marked_at_the_end(stage) {
        stage
            .run(
                never(),
                orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
                    let dequeues = (ctx.dequeue_event("q"), ctx.dequeue_event("q"), ctx.dequeue_event("p"));
                    let waits = (ctx.schedule_wait("w"), ctx.schedule_wait("w"), ctx.schedule_wait("v"));
                    let activities = (ctx.schedule_activity("Never", ""), ctx.schedule_activity("Never", ""));
                    drop(ctx.schedule_activity("Never", ""));
                    std::mem::forget((dequeues, waits, activities));
                    Ok(ctx.schedule_wait("go").await)
                }),
            )
            .await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ExternalSubscribed", 4).await;
        stage.client.raise_event("a", "w", "").await.expect("is sent");
        stage.client.enqueue_event("a", "q", "").await.expect("is sent");
        stage.has("a", "QueueEventDelivered", 1).await;
        go(&stage, "on").await;
        assert_eq!(stage.ends("a").await, Ok("on".to_owned()));
        let rest = rest(&stage).await;
        let end = rest.len() - 7;
        let expected = [
            "wait 6 orchestration_terminal",
            "wait 7 orchestration_terminal",
            "dequeue 3 orchestration_terminal",
            "dequeue 4 orchestration_terminal",
            "OrchestrationCompleted",
            "ActivityCancelRequested 8 orchestration_terminal_completed",
            "ActivityCancelRequested 9 orchestration_terminal_completed",
        ];
        assert_eq!(rest[end..], expected);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_3_a_child_of_an_older_engine_answers_the_current_execution_of_its_parent(stage) {
        stage
            .run(
                never(),
                family().register("Rounds", |ctx: OrchestrationContext, input: String| async move {
                    match input.as_str() {
                        "second" => ctx.schedule_sub_orchestration_with_id("Kid", "kid", "").await,
                        _ => ctx.continue_as_new("second").await,
                    }
                }),
            )
            .await;
        stage.start("p", "Rounds", "").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        let start = WorkItem::StartOrchestration {
            instance: "old".to_owned(),
            orchestration: "Echo".to_owned(),
            input: "heard".to_owned(),
            version: None,
            parent_instance: Some("p".to_owned()),
            parent_id: Some(2),
            parent_execution_id: None,
            execution_id: 1,
        };
        stage.inner().enqueue_for_orchestrator(start, None).await.expect("is sent");
        assert_eq!(stage.output("p").await, Ok("heard".to_owned()));
        stage.stop().await;
    }
}

/// An orchestration that ends in its first turn, as its input says.
async fn at_once(_: OrchestrationContext, input: String) -> Result<String, String> {
    match input.as_str() {
        "panic" => panic!("{input}"),
        "object" => std::panic::panic_any(7_u8),
        _ => Err(input),
    }
}

on_every_store! {
    async fn t3_an_immediate_failure_is_a_start_and_a_failure(stage) {
        stage.run(never(), orchestrations().register("Flow", at_once)).await;
        let rows = [
            ("error", application(AppErrorKind::OrchestrationFailed, "error")),
            ("panic", application(AppErrorKind::Panicked, "panic")),
            ("object", application(AppErrorKind::Panicked, "orchestration panicked")),
        ];
        for (how, details) in rows {
            assert_eq!(stage.ends_after(how, "Flow", how).await, Err(details));
            assert_eq!(stage.kinds(how).await, ["OrchestrationStarted", "OrchestrationFailed"]);
            let ids: Vec<u64> = stage.history(how).await.iter().map(|event| event.event_id).collect();
            assert_eq!(ids, [1, 2]);
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_15_a_cancellation_with_the_start_fails_the_instance_after_its_code_ran_once(stage) {
        stage.start("a", "Flow", "").await;
        stage.client.cancel_instance("a", "at once").await.expect("is sent");
        stage
            .run(
                never(),
                family().register("Flow", |ctx: OrchestrationContext, _| async move {
                    ctx.set_kv_value("ran", "once");
                    Ok("discarded".to_owned())
                }),
            )
            .await;
        let details = application(AppErrorKind::Cancelled { reason: "at once".to_owned() }, "");
        assert_eq!(stage.ends("a").await, Err(details));
        let expected =
            ["OrchestrationStarted", "OrchestrationCancelRequested", "KeyValueSet", "OrchestrationFailed"];
        assert_eq!(stage.kinds("a").await, expected);
        stage.stop().await;
    }

    async fn f16_what_arrived_with_the_end_is_recorded_and_no_mismatch(stage) {
        let first_of_two = || {
            orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
                let (one, two) = (ctx.schedule_activity("Never", ""), ctx.schedule_activity("Never", ""));
                std::mem::forget(two);
                one.await
            })
        };
        stage.run(never(), first_of_two()).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ActivityScheduled", 2).await;
        stage.stop().await;
        for (id, result) in [(2, "one"), (3, "two")] {
            let (instance, result) = ("a".to_owned(), result.to_owned());
            let answer = WorkItem::ActivityCompleted { instance, execution_id: 1, id, result };
            stage.inner().enqueue_for_orchestrator(answer, None).await.expect("is sent");
        }
        stage.client.raise_event("a", "nobody waits", "").await.expect("is sent");
        stage.client.enqueue_event("a", "nobody takes", "").await.expect("is sent");
        stage.run(never(), first_of_two()).await;
        assert_eq!(stage.ends("a").await, Ok("one".to_owned()));
        let kinds = stage.kinds("a").await;
        let expected = [
            "ActivityCompleted",
            "ActivityCompleted",
            "ExternalEvent",
            "QueueEventDelivered",
            "OrchestrationCompleted",
        ];
        assert_eq!(kinds[3..], expected);
        stage.stop().await;
    }
}
