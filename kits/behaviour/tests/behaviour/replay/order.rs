//! Replay: history alone decides, whatever arrives twice, late, together or for another execution (2.2, F15,
//! I4).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast::providers::WorkItem;
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{
    AppErrorKind, Either2, ErrorDetails, EventKind, OrchestrationContext, PoisonMessageType, RuntimeOptions,
};
use steadfast_behaviour::{Stage, activities, on_every_full_store, on_every_store, orchestrations};

use super::rerun::{completed, echo, send, stop_at};

const MINUTE: Duration = Duration::from_secs(60);

/// Registers one orchestration as `Flow`, beside a child that waits for `done`.
fn flow<F>(
    handler: impl Fn(OrchestrationContext, String) -> F + Send + Sync + 'static,
) -> OrchestrationRegistryBuilder
where
    F: Future<Output = Result<String, String>> + Send + 'static,
{
    let kid = |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("done").await) };
    orchestrations().register("Flow", handler).register("Kid", kid)
}

fn failed(id: u64, details: ErrorDetails) -> WorkItem {
    WorkItem::ActivityFailed { instance: "a".to_owned(), execution_id: 1, id, details }
}

fn fired(id: u64) -> WorkItem {
    WorkItem::TimerFired { instance: "a".to_owned(), execution_id: 1, id, fire_at_ms: 0 }
}

fn child_completed(id: u64, result: &str) -> WorkItem {
    let (parent_instance, result) = ("a".to_owned(), result.to_owned());
    WorkItem::SubOrchCompleted { parent_instance, parent_execution_id: 1, parent_id: id, result }
}

fn child_failed(id: u64, details: ErrorDetails) -> WorkItem {
    let parent_instance = "a".to_owned();
    WorkItem::SubOrchFailed { parent_instance, parent_execution_id: 1, parent_id: id, details }
}

fn error(message: &str) -> ErrorDetails {
    let kind = AppErrorKind::ActivityFailed;
    ErrorDetails::Application { kind, message: message.to_owned(), retryable: false }
}

/// Waits for the first of two activities, which are events 2 and 3.
async fn race(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (one, two) = (ctx.schedule_activity("One", ""), ctx.schedule_activity("Two", ""));
    Ok(format!("{:?}", ctx.select2(one, two).await))
}

/// Waits for an activity, a timer and a child, which are events 2, 3 and 4, and then for `go`.
async fn three(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (one, timer) = (ctx.schedule_activity("One", ""), ctx.schedule_timer(MINUTE));
    let child = ctx.schedule_sub_orchestration("Kid", "");
    let (one, (), child) = ctx.join3(one, timer, child).await;
    Ok(format!("{one:?} {child:?} {}", ctx.schedule_wait("go").await))
}

on_every_store! {
    async fn r2_2_the_order_of_history_decides_a_race_also_within_one_batch(stage) {
        for (first, second, winner) in [(2, 3, "First(Ok(\"2\"))"), (3, 2, "Second(Ok(\"3\"))")] {
            let stage = Stage::new(stage.kind).await;
            stop_at(&stage, flow(race), "ActivityScheduled", 2).await;
            send(&stage, [first, second].map(|id| completed(id, &id.to_string()))).await;
            stage.run(activities(), flow(race)).await;
            assert_eq!(stage.output("a").await, Ok(winner.to_owned()));
            let answered: Vec<_> = stage
                .history("a")
                .await
                .iter()
                .filter_map(|event| match event.kind {
                    EventKind::ActivityCompleted { .. } => event.source_event_id,
                    _ => None,
                })
                .collect();
            assert_eq!(answered, [first, second], "both are recorded, in the order in which they came");
            stage.stop().await;
        }
    }

    async fn r2_2_a_join_answers_in_the_order_of_its_arguments(stage) {
        let join = || {
            flow(|ctx: OrchestrationContext, _| async move {
                let all = (0..3).map(|n| ctx.schedule_activity("One", n.to_string())).collect();
                Ok(format!("{:?}", ctx.join(all).await))
            })
        };
        stop_at(&stage, join(), "ActivityScheduled", 3).await;
        send(&stage, [completed(4, "c"), completed(2, "a"), completed(3, "b")]).await;
        stage.run(activities(), join()).await;
        assert_eq!(stage.output("a").await, Ok("[Ok(\"a\"), Ok(\"b\"), Ok(\"c\")]".to_owned()));
        stage.stop().await;
    }

    async fn r2_2_completions_of_one_batch_are_consumed_one_at_a_time(stage) {
        let branches = || {
            flow(|ctx: OrchestrationContext, _| async move {
                let after = |name: &'static str| {
                    let ctx = ctx.clone();
                    async move {
                        ctx.schedule_activity(name, "").await?;
                        ctx.schedule_activity(format!("After{name}"), "").await
                    }
                };
                Ok(format!("{:?}", ctx.join2(after("One"), after("Two")).await))
            })
        };
        stop_at(&stage, branches(), "ActivityScheduled", 2).await;
        send(&stage, [completed(3, ""), completed(2, "")]).await;
        stage.run(activities(), branches()).await;
        stage.has("a", "ActivityScheduled", 4).await;
        let names: Vec<_> = stage
            .history("a")
            .await
            .into_iter()
            .filter_map(|event| match event.kind {
                EventKind::ActivityScheduled { name, .. } => Some(name),
                _ => None,
            })
            .collect();
        assert_eq!(
            names,
            ["One", "Two", "AfterTwo", "AfterOne"],
            "code after an await runs at its place in history"
        );
        stage.stop().await;
    }

    async fn r2_2_a_call_is_recorded_when_it_is_made_not_when_it_is_awaited(stage) {
        stage
            .run(
                echo(),
                flow(|ctx: OrchestrationContext, _| async move {
                    let unpolled = ctx.schedule_activity("Echo", "first");
                    ctx.set_kv_value("k", "v");
                    let second = ctx.schedule_activity("Echo", "second").await?;
                    Ok(format!("{second} {}", unpolled.await?))
                }),
            )
            .await;
        assert_eq!(stage.ends_after("a", "Flow", "").await, Ok("second first".to_owned()));
        let kinds = stage.kinds("a").await;
        assert_eq!(
            kinds[..4],
            ["OrchestrationStarted", "ActivityScheduled", "KeyValueSet", "ActivityScheduled"]
        );
        let ids: Vec<u64> = stage.history("a").await.iter().map(|event| event.event_id).collect();
        assert_eq!(ids, (1..=kinds.len() as u64).collect::<Vec<_>>(), "ids are contiguous from 1");
        stage.stop().await;
    }

    async fn r2_2_a_continue_as_new_takes_an_id_and_leaves_no_event_there(stage) {
        stage
            .run(
                echo(),
                flow(|ctx: OrchestrationContext, input| async move {
                    if input == "second" {
                        return Ok(input);
                    }
                    let next = ctx.continue_as_new("second");
                    ctx.set_kv_value("k", "v");
                    next.await
                }),
            )
            .await;
        assert_eq!(stage.ends_after("a", "Flow", "").await, Ok("second".to_owned()));
        let first: Vec<u64> = stage.history_of("a", 1).await.iter().map(|event| event.event_id).collect();
        assert_eq!(first, [1, 3, 4]);
        stage.stop().await;
    }

    async fn f15_a_second_answer_in_the_same_batch_changes_nothing(stage) {
        stop_at(&stage, flow(three), "SubOrchestrationScheduled", 1).await;
        send(
            &stage,
            [completed(2, "first"), completed(2, "second"), failed(2, error("third")), fired(3), fired(3)],
        )
        .await;
        send(
            &stage,
            [child_failed(4, error("first")), child_completed(4, "second"), child_failed(4, error("third"))],
        )
        .await;
        stage.run(echo(), flow(three)).await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let kinds = stage.kinds("a").await;
        assert_eq!(
            kinds[4..],
            ["ActivityCompleted", "TimerFired", "SubOrchestrationFailed", "ExternalSubscribed"]
        );
        stage.client.raise_event("a", "go", "on").await.expect("is sent");
        assert_eq!(stage.output("a").await, Ok("Ok(\"first\") Err(\"first\") on".to_owned()));
        stage.stop().await;
    }

    async fn f15_a_second_answer_in_a_later_turn_changes_nothing(stage) {
        stop_at(&stage, flow(three), "SubOrchestrationScheduled", 1).await;
        send(&stage, [failed(2, error("first")), fired(3), child_completed(4, "first")]).await;
        stage.run(echo(), flow(three)).await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let before = stage.history("a").await;
        send(&stage, [failed(2, error("second")), completed(2, "third"), fired(3)]).await;
        send(&stage, [child_completed(4, "second"), child_failed(4, error("third"))]).await;
        stage.client.raise_event("a", "go", "on").await.expect("is sent");
        assert_eq!(stage.output("a").await, Ok("Err(\"first\") Ok(\"first\") on".to_owned()));
        let after = stage.history("a").await;
        assert_eq!(after[..before.len()], before);
        let kinds = stage.kinds("a").await;
        assert_eq!(kinds[before.len()..], ["ExternalEvent", "OrchestrationCompleted"]);
        stage.stop().await;
    }

    async fn f15_a_duplicate_of_any_completion_in_a_later_turn_changes_nothing(stage) {
        let twice = flow(|ctx: OrchestrationContext, _| async move {
            let failed = ctx.schedule_activity("Fails", "").await;
            let done = ctx.schedule_activity("Echo", "done").await;
            let data = ctx.schedule_wait("go").await;
            Ok(format!("{failed:?} {done:?} {data}"))
        });
        let behind =
            |ctx: OrchestrationContext, input| async move { ctx.schedule_activity("Echo", input).await };
        let acts = echo().register("Fails", |_, _| async { Err("once".to_owned()) });
        stage.run(acts, twice.register("Behind", behind)).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let before = stage.kinds("a").await;
        for id in [2, 4] {
            for (what, message) in
                [("failed", failed(id, error("again"))), ("completed", completed(id, "again"))]
            {
                send(&stage, [message]).await;
                // Another instance starts and ends behind the duplicate, so the duplicate has been processed.
                let behind = format!("behind {what} {id}");
                assert_eq!(stage.ends_after(&behind, "Behind", "x").await, Ok("x".to_owned()));
                let depths = stage.observer().get_queue_depths().await.expect("counts");
                assert_eq!(depths.orchestrator_queue, 0);
                assert_eq!(stage.kinds("a").await, before);
            }
        }
        stage.client.raise_event("a", "go", "on").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok(r#"Err("once") Ok("done") on"#.to_owned()));
        stage.stop().await;
    }

    async fn r2_2_raises_and_messages_are_never_taken_for_duplicates(stage) {
        let twice = || {
            flow(|ctx: OrchestrationContext, _| async move {
                let (one, two) = (ctx.schedule_wait("w"), ctx.schedule_wait("w"));
                let (three, four) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
                Ok(format!("{:?} {:?}", ctx.join2(one, two).await, ctx.join2(three, four).await))
            })
        };
        stop_at(&stage, twice(), "QueueSubscribed", 2).await;
        for _ in 0..2 {
            stage.client.raise_event("a", "w", "same").await.expect("is sent");
            stage.client.enqueue_event("a", "q", "same").await.expect("is sent");
        }
        stage.run(activities(), twice()).await;
        assert_eq!(stage.output("a").await, Ok("(\"same\", \"same\") (\"same\", \"same\")".to_owned()));
        stage.stop().await;
    }

    async fn r2_2_answers_for_another_execution_are_dropped(stage) {
        let rounds = || {
            flow(|ctx: OrchestrationContext, input| async move {
                let (one, timer) = (ctx.schedule_activity("One", ""), ctx.schedule_timer(MINUTE));
                let child = ctx.schedule_sub_orchestration("Kid", "");
                if input != "second" {
                    return ctx.continue_as_new("second").await;
                }
                let go = ctx.schedule_wait("go").await;
                std::mem::forget((one, timer, child));
                Ok(go)
            })
        };
        stop_at(&stage, rounds(), "ExternalSubscribed", 1).await;
        send(
            &stage,
            [completed(2, "late"), fired(3), child_completed(4, "late"), failed(9, error("never asked for"))],
        )
        .await;
        stage.client.raise_event("a", "go", "on").await.expect("is sent");
        stage.run(activities(), rounds()).await;
        assert_eq!(stage.output("a").await, Ok("on".to_owned()));
        let kinds = stage.kinds("a").await;
        assert_eq!(kinds[4..7], ["ExternalSubscribed", "ExternalEvent", "OrchestrationCompleted"]);
        stage.stop().await;
    }

    async fn r2_2_a_failure_that_is_not_the_applications_own_ends_the_execution(stage) {
        let poison = ErrorDetails::Poison {
            attempt_count: 4,
            max_attempts: 3,
            message_type: PoisonMessageType::Orchestration { instance: "k".to_owned(), execution_id: 1 },
            message: "[]".to_owned(),
        };
        let broken = ErrorDetails::Infrastructure {
            operation: "op".to_owned(),
            message: "m".to_owned(),
            retryable: false,
        };
        let answers = [failed(2, broken.clone()), child_failed(4, poison.clone()), failed(2, poison.clone())];
        for (answer, details) in answers.into_iter().zip([broken, poison.clone(), poison]) {
            let stage = Stage::new(stage.kind).await;
            stop_at(&stage, flow(three), "SubOrchestrationScheduled", 1).await;
            send(&stage, [answer]).await;
            stage.run(echo(), flow(three)).await;
            assert_eq!(stage.ends("a").await, Err(details));
            let kinds = stage.kinds("a").await;
            assert!(
                kinds[4].ends_with("Failed") && kinds[5] == "OrchestrationFailed",
                "both are recorded: {kinds:?}"
            );
            stage.stop().await;
        }
    }

    async fn r2_2_of_two_cancellations_the_first_is_recorded_and_counts(stage) {
        stop_at(&stage, flow(three), "SubOrchestrationScheduled", 1).await;
        for reason in ["first", "second"] {
            stage.client.cancel_instance("a", reason).await.expect("is sent");
        }
        stage.run(activities(), flow(three)).await;
        assert_eq!(stage.output("a").await, Err("canceled: first".to_owned()));
        let kinds = stage.kinds("a").await;
        assert_eq!(kinds[4..6], ["OrchestrationCancelRequested", "OrchestrationFailed"]);
        stage.stop().await;
    }

    async fn i3_a_handler_is_invoked_at_most_once_for_a_turn(stage) {
        let invoked = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&invoked);
        stage
            .run(
                echo(),
                orchestrations().register("Flow", move |ctx: OrchestrationContext, _| {
                    counted.fetch_add(1, Ordering::Relaxed);
                    async move {
                        for n in 0..5 {
                            ctx.schedule_activity("Echo", n.to_string()).await?;
                        }
                        Ok("done".to_owned())
                    }
                }),
            )
            .await;
        assert_eq!(stage.ends_after("a", "Flow", "").await, Ok("done".to_owned()));
        let (invoked, turns) = (invoked.load(Ordering::Relaxed), stage.faults.calls("commit_turn"));
        assert!((1..=turns).contains(&invoked), "{invoked} invocations, {turns} turns");
        stage.stop().await;
    }

    async fn i4_a_cold_start_or_a_restart_before_any_turn_changes_no_decision(stage) {
        let all = || {
            flow(|ctx: OrchestrationContext, input| async move {
                if input == "second" {
                    return Ok(format!("{:?} {:?}", ctx.get_kv_all_keys(), ctx.get_custom_status()));
                }
                ctx.set_custom_status("working");
                ctx.set_kv_value("one", ctx.schedule_activity("Echo", "1").await?);
                ctx.schedule_timer(MINUTE).await;
                ctx.set_kv_value(ctx.schedule_wait("w").await, ctx.new_guid().await?);
                let race = ctx.select2(ctx.dequeue_event("q"), ctx.schedule_activity("Never", "")).await;
                ctx.clear_kv_value("one");
                let Either2::First(message) = race else { return Err("lost".to_owned()) };
                ctx.set_kv_value(message, ctx.schedule_sub_orchestration_with_id("Kid", "kid", "").await?);
                ctx.schedule_orchestration("Kid", "other", "");
                ctx.continue_as_new("second").await
            })
        };
        let mut kinds = Vec::new();
        for (warm, restarts) in [(true, false), (false, false), (true, true)] {
            let stage = Stage::new(stage.kind).await;
            let options =
                || RuntimeOptions { max_warm_orchestrations: if warm { 1000 } else { 0 }, ..stage.options() };
            let restart = async || {
                if restarts {
                    stage.stop().await;
                    stage.run_with(echo(), all(), options()).await;
                }
            };
            stage.run_with(echo(), all(), options()).await;
            stage.start("a", "Flow", "").await;
            stage.has("a", "TimerCreated", 1).await;
            restart().await;
            stage.pass(MINUTE);
            stage.has("a", "ExternalSubscribed", 1).await;
            restart().await;
            stage.client.raise_event("a", "w", "two").await.expect("is sent");
            stage.has("a", "QueueSubscribed", 1).await;
            restart().await;
            stage.client.enqueue_event("a", "q", "three").await.expect("is sent");
            stage.has("kid", "ExternalSubscribed", 1).await;
            restart().await;
            stage.client.raise_event("kid", "done", "3").await.expect("is sent");
            let expected = "[\"three\", \"two\"] Some(\"working\")";
            assert_eq!(stage.output("a").await, Ok(expected.to_owned()));
            let first: Vec<EventKind> =
                stage.history_of("a", 1).await.into_iter().map(|event| event.kind).collect();
            let name =
                |kind: &EventKind| format!("{kind:?}").split(' ').next().unwrap_or_default().to_owned();
            kinds.push(first.iter().map(name).collect::<Vec<_>>());
            stage.stop().await;
        }
        assert_eq!(kinds[0], kinds[1]);
        assert_eq!(kinds[0], kinds[2]);
    }
}

on_every_full_store! {
    async fn i4_an_id_that_was_deleted_and_started_again_meets_nothing_of_its_past(stage) {
        stage
            .run(
                echo(),
                flow(|ctx: OrchestrationContext, input| async move {
                    ctx.set_kv_value(input.clone(), "seen");
                    let told = ctx.schedule_wait("go").await;
                    Ok(format!("{input} {told} {:?}", ctx.get_kv_all_keys()))
                }),
            )
            .await;
        stage.start("a", "Flow", "old").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.delete_instance("a", true).await.expect("is deleted");
        stage.start("a", "Flow", "new").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "go", "on").await.expect("is sent");
        assert_eq!(stage.output("a").await, Ok("new on [\"new\"]".to_owned()));
        let ids: Vec<u64> = stage.history("a").await.iter().map(|event| event.event_id).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5]);
        stage.stop().await;
    }
}
