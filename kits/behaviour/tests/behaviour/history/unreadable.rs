//! Histories that cannot be read (2.1 b, 2.8, F6): abandoned, then poison, and the parent or client that
//! waits is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast::providers::WorkItem;
use steadfast::runtime::RuntimeOptions;
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{
    ActivityContext, CancelReason, ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationStatus,
    PoisonMessageType,
};
use steadfast_behaviour::{Lines, Stage, activities, on_every_full_store, on_every_store, orchestrations};
use steadfast_memory::Damage;

const SECOND: Duration = Duration::from_secs(1);

/// `Wait` waits for `Go`, `Mother` for a `Wait` with an id of the engine's, or with its input as id.
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("Go").await) })
        .register("Mother", |ctx: OrchestrationContext, id: String| async move {
            match id.as_str() {
                "" => ctx.schedule_sub_orchestration("Wait", "").await,
                _ => ctx.schedule_sub_orchestration_with_id("Wait", id, "").await,
            }
        })
}

/// One slot; a turn is tried `max_attempts` times.
fn patience(stage: &Stage, max_attempts: u32) -> RuntimeOptions {
    RuntimeOptions { orchestration_concurrency: 1, max_attempts, ..stage.options() }
}

fn raised(instance: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.to_owned(), name: "Go".to_owned(), data: "now".to_owned() }
}

fn json(items: &[WorkItem]) -> String {
    serde_json::to_string(items).expect("writes")
}

/// Overwrites an event, as a fault of the disk would.
async fn damage(stage: &Stage, instance: &str, event_id: u64) {
    damage_execution(stage, instance, 1, event_id).await;
}

async fn damage_execution(stage: &Stage, instance: &str, execution_id: u64, event_id: u64) {
    let what = Damage::Event { instance, execution_id, event_id };
    assert_eq!(stage.damage(what, "{rubbish").await, 1, "there is an event to damage");
}

/// Leaves a `Wait` that waits, and no runtime.
async fn waiting(stage: &Stage, instance: &str) {
    stage.run(activities(), flows()).await;
    stage.start(instance, "Wait", "").await;
    stage.has(instance, "ExternalSubscribed", 1).await;
    stage.stop().await;
}

/// The same with a history that cannot be read, and a message.
async fn waiting_then_damaged(stage: &Stage, instance: &str) {
    waiting(stage, instance).await;
    damage(stage, instance, 1).await;
    stage.client.raise_event(instance, "Go", "now").await.expect("raises");
}

/// Waits until an unreadable instance has failed, and returns what is kept as its output.
async fn ended_unreadable(stage: &Stage, instance: &str) -> String {
    let info = async || stage.observer().get_instance_info(instance).await.expect("is there");
    stage.until(instance, async || info().await.status == "Failed").await;
    info().await.output.expect("a failure has a text")
}

/// Has two children and an activity open, in its first execution and in its second.
async fn open(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let children = [format!("kid {input}"), format!("other kid {input}")];
    let [one, _two] = children.map(|id| ctx.schedule_sub_orchestration_with_id("Wait", id, ""));
    let _activity = ctx.schedule_activity("Hang", "");
    if input == "1" {
        ctx.schedule_wait("Go").await;
        return ctx.continue_as_new("2").await;
    }
    one.await
}

on_every_store! {
    async fn r2_1_an_unreadable_history_is_abandoned_every_second_until_it_is_poison(stage) {
        let (lines, _guard) = Lines::collect();
        waiting_then_damaged(&stage, "a").await;
        stage.run_with(activities(), flows(), patience(&stage, 3)).await;
        for nth in 1..=3 {
            stage.until("the turn is given back", async || stage.faults.abandoned() == nth).await;
            stage.settle().await;
            stage.pass(SECOND - Duration::from_millis(1));
            stage.settle().await;
            assert_eq!(stage.faults.abandoned(), nth, "it is tried again after a second");
            stage.pass(Duration::from_millis(1));
        }
        let text = ended_unreadable(&stage, "a").await;
        let begin = "poison: orchestration a history deserialization failed after 4 attempts (max 3): ";
        assert!(text.starts_with(begin), "{text}");
        assert_eq!(stage.faults.abandoned(), 3);
        assert_eq!(lines.saying("WARN", "history cannot be read, abandoning").len(), 3);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_8_poison_of_an_unreadable_history_is_event_99999(stage) {
        waiting_then_damaged(&stage, "a").await;
        let runtime = stage.run_with(activities(), flows(), patience(&stage, 0)).await;
        let text = ended_unreadable(&stage, "a").await;
        assert!(text.contains("deserialization failed"), "{text}");
        let info = stage.observer().get_execution_info("a", 1).await.expect("is there");
        assert_eq!((info.status.as_str(), info.event_count), ("Failed", 3));
        stage.settle().await;
        assert_eq!(runtime.metrics_snapshot().expect("counts").orch_poison, 1);
        stage.stop().await;
        if let Some(mut rows) = stage.readable_events("a").await {
            let last = rows.pop().expect("is there");
            assert_eq!((last.event_id, last.execution_id), (99_999, 1));
            let EventKind::OrchestrationFailed {
                details: ErrorDetails::Poison { message_type, message, .. },
            } = last.kind
            else {
                panic!("{last:?}")
            };
            assert_eq!(message, json(&[raised("a")]));
            let PoisonMessageType::FailedDeserialization { instance, execution_id, error } = message_type
            else {
                panic!("{message_type:?}")
            };
            assert_eq!((instance.as_str(), execution_id), ("a", 1));
            assert!(!error.is_empty());
        }
    }

    async fn f6_the_parent_of_an_unreadable_child_is_told(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Mother", "").await;
        let kid = "a::sub::2";
        stage.has(kid, "ExternalSubscribed", 1).await;
        stage.stop().await;
        damage(&stage, kid, 1).await;
        stage.client.raise_event(kid, "Go", "").await.expect("raises");
        stage.run_with(activities(), flows(), patience(&stage, 1)).await;
        let details = stage.ends_as_time_passes("a", SECOND / 4).await.expect_err("is told");
        let begin =
            format!("poison: orchestration {kid} history deserialization failed after 2 attempts (max 1): ");
        assert!(details.display_message().starts_with(&begin), "{details:?}");
        let failed = stage.history("a").await.remove(2);
        assert_eq!(
            (failed.source_event_id, failed.kind),
            (Some(2), EventKind::SubOrchestrationFailed { details })
        );
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

on_every_full_store! {
    // Through the required methods alone nothing tells which parent waits for a child with an id of its own.
    async fn f6_the_parent_of_an_unreadable_child_with_an_id_of_its_own_is_told(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Mother", "kid").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.stop().await;
        damage(&stage, "kid", 2).await;
        stage.client.raise_event("kid", "Go", "").await.expect("raises");
        stage.run_with(activities(), flows(), patience(&stage, 1)).await;
        let details = stage.ends_as_time_passes("a", SECOND / 4).await.expect_err("is told");
        assert!(details.display_message().starts_with("poison: orchestration kid history"), "{details:?}");
        stage.stop().await;
    }

    async fn f6_what_an_unreadable_instance_leaves_open_is_closed(stage) {
        let told = Arc::new(AtomicBool::new(false));
        let hanging = || {
            let tell = Arc::clone(&told);
            activities().register("Hang", move |ctx: ActivityContext, _| {
                let tell = Arc::clone(&tell);
                async move {
                    ctx.cancelled().await;
                    tell.store(ctx.cancel_reason() == Some(CancelReason::Withdrawn), Ordering::Relaxed);
                    Err("stopped".to_owned())
                }
            })
        };
        let open = || flows().register("Open", open);
        stage.run(hanging(), open()).await;
        stage.start("a", "Open", "1").await;
        stage.has("other kid 1", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "Go", "").await.expect("raises");
        stage.has("other kid 2", "ExternalSubscribed", 1).await;
        stage.stop().await;
        told.store(false, Ordering::Relaxed);
        damage_execution(&stage, "a", 2, 1).await;
        stage.client.raise_event("a", "Go", "").await.expect("raises");
        stage.run_with(hanging(), open(), patience(&stage, 2)).await;
        let has_failed = async || {
            let info = stage.observer().get_instance_info("a").await.expect("is there");
            info.status == "Failed"
        };
        stage
            .until("it fails", async || {
                stage.pass(SECOND / 4);
                has_failed().await
            })
            .await;
        for kid in ["kid 2", "other kid 2"] {
            assert_eq!(stage.output(kid).await, Err("canceled: parent failed".to_owned()));
        }
        stage.until("the activity is told", async || told.load(Ordering::Relaxed)).await;
        // Children of the execution before were left to themselves when it continued.
        for kid in ["kid 1", "other kid 1"] {
            assert_eq!(stage.kinds(kid).await, ["OrchestrationStarted", "ExternalSubscribed"]);
        }
        stage.stop().await;
    }

    async fn i9_an_instance_that_has_ended_does_not_end_again_when_it_becomes_unreadable(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "Go", "fine").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("fine".to_owned()));
        stage.stop().await;
        damage(&stage, "a", 1).await;
        stage.client.raise_event("a", "Go", "late").await.expect("raises");
        let runtime = stage.run_with(activities(), flows(), patience(&stage, 0)).await;
        let commits = stage.faults.calls("commit_turn");
        stage.until("the message is settled", async || stage.faults.calls("commit_turn") > commits).await;
        stage
            .until("nothing waits", async || {
                stage.observer().get_queue_depths().await.is_ok_and(|depths| depths.orchestrator_queue == 0)
            })
            .await;
        let status = stage.client.get_orchestration_status("a").await.expect("answers");
        let OrchestrationStatus::Completed { output, .. } = status else { panic!("{status:?}") };
        assert_eq!(output, "fine");
        let info = stage.observer().get_execution_info("a", 1).await.expect("is there");
        assert_eq!((info.status.as_str(), info.event_count), ("Completed", 4));
        stage.settle().await;
        assert_eq!(runtime.metrics_snapshot().expect("counts").orch_poison, 0);
        stage.stop().await;
    }

    async fn r2_8_a_free_place_is_found_for_the_end_of_a_long_unreadable_history(stage) {
        waiting(&stage, "a").await;
        let kind = || EventKind::ExternalEvent { name: "Other".to_owned(), data: String::new() };
        let events = [99_999, 123_456].map(|id| Event::at(1, id, "a", 1, None, kind()));
        stage.inner().append_with_execution("a", 1, events.to_vec()).await.expect("appends");
        damage(&stage, "a", 1).await;
        stage.client.raise_event("a", "Go", "").await.expect("raises");
        stage.run_with(activities(), flows(), patience(&stage, 0)).await;
        ended_unreadable(&stage, "a").await;
        let info = stage.observer().get_execution_info("a", 1).await.expect("is there");
        assert_eq!((info.status.as_str(), info.event_count), ("Failed", 5));
        stage.stop().await;
        if let Some(mut rows) = stage.readable_events("a").await {
            let last = rows.pop().expect("is there");
            assert_eq!(last.event_id, 123_457);
        }
    }
}
