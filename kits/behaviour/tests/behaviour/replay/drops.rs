//! Futures that are dropped before they answer: what that records, cancels and leaves alone (2.4, F2, F18).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use steadfast::providers::WorkItem;
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{ActivityContext, EventKind, OrchestrationContext, OrchestrationStatus};
use steadfast_behaviour::{Stage, activities, on_every_store, orchestrations};
use tokio::sync::Notify;

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

/// The cancellations in a history: kind, schedule and reason.
async fn cancellations(stage: &Stage, instance: &str, execution_id: u64) -> Vec<(&'static str, u64, String)> {
    let history = stage.history_of(instance, execution_id).await;
    let cancelled = history.into_iter().filter_map(|event| {
        let (kind, reason) = match event.kind {
            EventKind::ActivityCancelRequested { reason } => ("activity", reason),
            EventKind::SubOrchestrationCancelRequested { reason } => ("child", reason),
            EventKind::ExternalSubscribedCancelled { reason } => ("wait", reason),
            EventKind::QueueSubscriptionCancelled { reason } => ("dequeue", reason),
            _ => return None,
        };
        Some((kind, event.source_event_id.expect("names its schedule"), reason))
    });
    cancelled.collect()
}

fn dropped<const N: usize>(crumbs: [(&'static str, u64); N]) -> Vec<(&'static str, u64, String)> {
    crumbs.into_iter().map(|(kind, id)| (kind, id, "dropped_future".to_owned())).collect()
}

async fn raise(stage: &Stage, name: &str, data: &str) {
    stage.client.raise_event("a", name, data).await.expect("is sent");
}

async fn subscribed(stage: &Stage, wanted: &str) {
    let waits = |kind: &EventKind| matches!(kind, EventKind::ExternalSubscribed { name } if name == wanted);
    stage.reaches("a", |events| events.iter().any(|event| waits(&event.kind))).await;
}

/// Makes two of every kind, mixed, as events 2 to 11; drops all but the last timer at `go`; waits for `more`.
async fn drops_everything(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (dequeue, wait) = (ctx.dequeue_event("q"), ctx.schedule_wait("w"));
    let (child, activity) = (ctx.schedule_sub_orchestration("Kid", ""), ctx.schedule_activity("A", ""));
    let (timer, other_activity) = (ctx.schedule_timer(MINUTE), ctx.schedule_activity("A", ""));
    let (other_child, other_wait) = (ctx.schedule_sub_orchestration("Kid", ""), ctx.schedule_wait("w"));
    let other_dequeue = ctx.dequeue_event("q");
    ctx.schedule_wait("go").await;
    drop((other_dequeue, timer, other_activity, wait, other_child));
    drop((activity, dequeue, other_wait, child));
    Ok(ctx.schedule_wait("more").await)
}

/// Asks for a child and ends in the same turn, as its input says.
async fn leaves_a_child(ctx: OrchestrationContext, how: String) -> Result<String, String> {
    let child = ctx.schedule_sub_orchestration_with_id("Kid", format!("kid of {how}"), "");
    match how.as_str() {
        "fails" => return Err(how),
        "drops" => drop(child),
        "forgets" => std::mem::forget(child),
        "panics" => panic!("{how}"),
        _ => {}
    }
    Ok(how)
}

/// The ways of `leaves_a_child`, and whether each is a success.
const LEAVES: [(&str, bool); 5] =
    [("returns", true), ("fails", false), ("drops", true), ("forgets", true), ("panics", false)];

on_every_store! {
    async fn r2_4_drops_are_recorded_by_kind_then_by_id_with_one_reason(stage) {
        stage.run(activities(), flow(drops_everything)).await;
        stage.start("a", "Flow", "").await;
        subscribed(&stage, "go").await;
        raise(&stage, "go", "").await;
        subscribed(&stage, "more").await;
        let expected = [
            ("activity", 5),
            ("activity", 7),
            ("child", 4),
            ("child", 8),
            ("wait", 3),
            ("wait", 9),
            ("dequeue", 2),
            ("dequeue", 10),
        ];
        assert_eq!(cancellations(&stage, "a", 1).await, dropped(expected));
        let kinds = stage.kinds("a").await;
        assert_eq!(
            kinds[11..13],
            ["ExternalEvent", "ExternalSubscribed"],
            "what the turn asked for comes first"
        );
        assert!(kinds[13..13 + expected.len()].iter().all(|kind| kind.contains("Cancel")), "{kinds:?}");
        stage.stop().await;
    }

    async fn r2_4_a_drop_is_recorded_and_sent_once(stage) {
        stage.run(activities(), flow(drops_everything)).await;
        stage.start("a", "Flow", "").await;
        subscribed(&stage, "go").await;
        raise(&stage, "go", "").await;
        for child in ["a::sub::4", "a::sub::8"] {
            let expected = "canceled: parent dropped sub-orchestration future";
            assert_eq!(stage.output(child).await, Err(expected.to_owned()));
        }
        // The children tell their parent, which gives it more turns; then other runtimes replay it.
        stage.has("a", "SubOrchestrationFailed", 2).await;
        for turn in 1..=2 {
            stage.stop().await;
            stage.run(activities(), flow(drops_everything)).await;
            raise(&stage, "nobody waits", "").await;
            stage.has("a", "ExternalEvent", turn + 1).await;
        }
        raise(&stage, "more", "end").await;
        assert_eq!(stage.output("a").await, Ok("end".to_owned()));
        assert_eq!(cancellations(&stage, "a", 1).await.len(), 8);
        stage.stop().await;
        let depths = stage.observer().get_queue_depths().await.expect("counts");
        assert_eq!(
            (depths.orchestrator_queue, depths.worker_queue),
            (1, 0),
            "only the dropped timer's message is left"
        );
    }

    async fn r2_4_an_activity_that_is_dropped_in_its_first_turn_never_runs(stage) {
        let runs = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&runs);
        let counts = activities().register("A", move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok(String::new()) }
        });
        stage
            .run(
                counts,
                flow(|ctx: OrchestrationContext, _| async move {
                    drop(ctx.schedule_activity("A", ""));
                    Ok(ctx.schedule_wait("go").await)
                }),
            )
            .await;
        stage.start("a", "Flow", "").await;
        subscribed(&stage, "go").await;
        let expected =
            ["OrchestrationStarted", "ActivityScheduled", "ExternalSubscribed", "ActivityCancelRequested"];
        assert_eq!(stage.kinds("a").await, expected);
        stage.nothing_waits().await;
        raise(&stage, "go", "on").await;
        assert_eq!(stage.output("a").await, Ok("on".to_owned()));
        assert_eq!(runs.load(Ordering::Relaxed), 0);
        stage.stop().await;
    }

    async fn r2_4_a_running_activity_that_is_dropped_is_told_and_its_result_ignored(stage) {
        let (runs, told) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (running, stopped) = (Arc::clone(&runs), Arc::clone(&told));
        let waits = activities().register("A", move |ctx: ActivityContext, _| {
            let (running, stopped) = (Arc::clone(&running), Arc::clone(&stopped));
            async move {
                running.notify_one();
                ctx.cancelled().await;
                stopped.notify_one();
                Ok("too late".to_owned())
            }
        });
        stage
            .run(
                waits,
                flow(|ctx: OrchestrationContext, _| async move {
                    let go = ctx.schedule_wait("go");
                    ctx.select2(ctx.schedule_activity("A", ""), go).await;
                    Ok(ctx.schedule_wait("more").await)
                }),
            )
            .await;
        stage.start("a", "Flow", "").await;
        runs.notified().await;
        raise(&stage, "go", "").await;
        // In the same process at once: no time passes here.
        told.notified().await;
        assert_eq!(cancellations(&stage, "a", 1).await, dropped([("activity", 3)]));
        raise(&stage, "more", "end").await;
        assert_eq!(stage.output("a").await, Ok("end".to_owned()));
        assert!(!stage.kinds("a").await.contains(&"ActivityCompleted".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_4_a_late_answer_to_a_dropped_activity_is_recorded_and_changes_nothing(stage) {
        let late = || {
            flow(|ctx: OrchestrationContext, _| async move {
                drop(ctx.schedule_activity("A", ""));
                Ok(ctx.schedule_wait("go").await)
            })
        };
        stage.run(activities(), late()).await;
        stage.start("a", "Flow", "").await;
        subscribed(&stage, "go").await;
        let (instance, result) = ("a".to_owned(), "late".to_owned());
        let answer = WorkItem::ActivityCompleted { instance, execution_id: 1, id: 2, result };
        stage.inner().enqueue_for_orchestrator(answer, None).await.expect("is sent");
        stage.has("a", "ActivityCompleted", 1).await;
        stage.stop().await;
        stage.run(activities(), late()).await;
        raise(&stage, "go", "on").await;
        assert_eq!(stage.output("a").await, Ok("on".to_owned()));
        assert_eq!(cancellations(&stage, "a", 1).await, dropped([("activity", 2)]));
        stage.stop().await;
    }

    async fn r2_4_what_answered_or_is_still_held_is_not_cancelled(stage) {
        let echo = activities().register("Echo", |_, input: String| async move { Ok(input) });
        stage
            .run(
                echo,
                flow(|ctx: OrchestrationContext, _| async move {
                    let (held, unpolled) = (ctx.schedule_wait("held"), ctx.schedule_wait("unpolled"));
                    let answered = ctx.schedule_activity("Echo", "x").await?;
                    ctx.schedule_wait("go").await;
                    Ok(format!("{answered} {} {}", held.await, unpolled.await))
                }),
            )
            .await;
        stage.start("a", "Flow", "").await;
        subscribed(&stage, "go").await;
        for name in ["go", "unpolled", "held"] {
            raise(&stage, name, name).await;
        }
        assert_eq!(stage.output("a").await, Ok("x held unpolled".to_owned()));
        assert_eq!(cancellations(&stage, "a", 1).await, []);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_4_a_mapped_future_and_the_losers_of_a_race_are_drops_too(stage) {
        stage
            .run(
                activities(),
                flow(|ctx: OrchestrationContext, _| async move {
                    let mapped = ctx.schedule_activity("A", "").map(|result| result.is_ok());
                    ctx.select3(mapped, ctx.dequeue_event("q"), ctx.schedule_wait("go")).await;
                    Ok(ctx.schedule_wait("more").await)
                }),
            )
            .await;
        stage.start("a", "Flow", "").await;
        subscribed(&stage, "go").await;
        raise(&stage, "go", "").await;
        subscribed(&stage, "more").await;
        assert_eq!(cancellations(&stage, "a", 1).await, dropped([("activity", 2), ("dequeue", 3)]));
        stage.stop().await;
    }

    async fn r2_4_an_answer_that_was_never_read_is_a_drop_too(stage) {
        let late_race = || {
            flow(|ctx: OrchestrationContext, _| async move {
                let (one, two) = (ctx.schedule_activity("Echo", "one"), ctx.schedule_activity("Echo", "two"));
                ctx.schedule_wait("go").await;
                let winner = ctx.select2(two, one).await;
                Ok(format!("{winner:?} {}", ctx.schedule_wait("more").await))
            })
        };
        let echo = || activities().register("Echo", |_, input: String| async move { Ok(input) });
        stage.run(echo(), late_race()).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ActivityCompleted", 2).await;
        raise(&stage, "go", "").await;
        subscribed(&stage, "more").await;
        stage.stop().await;
        stage.run(echo(), late_race()).await;
        raise(&stage, "more", "on").await;
        // Both had answered, so the first argument wins, whichever came first.
        assert_eq!(stage.output("a").await, Ok("First(Ok(\"two\")) on".to_owned()));
        assert_eq!(cancellations(&stage, "a", 1).await, dropped([("activity", 2)]));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_4_drops_of_the_last_turn_are_recorded_before_the_end(stage) {
        stage
            .run(
                activities(),
                flow(|ctx: OrchestrationContext, input: String| async move {
                    let _held = (ctx.schedule_wait("w"), ctx.schedule_activity("A", ""));
                    if input == "fail" { Err(input) } else { Ok(input) }
                }),
            )
            .await;
        for (instance, end) in [("done", "OrchestrationCompleted"), ("fail", "OrchestrationFailed")] {
            stage.start(instance, "Flow", instance).await;
            assert_eq!(stage.ends(instance).await.is_ok(), instance == "done");
            let kinds = stage.kinds(instance).await;
            assert_eq!(kinds[3..], ["ActivityCancelRequested", "ExternalSubscribedCancelled", end]);
            assert_eq!(cancellations(&stage, instance, 1).await, dropped([("activity", 3), ("wait", 2)]));
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_4_a_continue_as_new_and_a_cancellation_record_no_drops(stage) {
        let leaves = || {
            flow(|ctx: OrchestrationContext, input: String| async move {
                if input == "second" {
                    return Ok(input);
                }
                let waits = (ctx.schedule_wait("w"), ctx.dequeue_event("q"));
                let activity = ctx.schedule_activity("A", "");
                if ctx.schedule_wait("go").await == "on" {
                    drop((waits, activity));
                    return ctx.continue_as_new("second").await;
                }
                drop((waits, activity));
                Ok("is cancelled in the same turn".to_owned())
            })
        };
        stage.run(activities(), leaves()).await;
        for instance in ["a", "b"] {
            stage.start(instance, "Flow", "").await;
            stage.has(instance, "ExternalSubscribed", 2).await;
        }
        raise(&stage, "go", "on").await;
        assert_eq!(stage.output("a").await, Ok("second".to_owned()));
        let terminal = |reason: &str| {
            vec![
                ("wait", 2, "orchestration_terminal".to_owned()),
                ("dequeue", 3, "orchestration_terminal".to_owned()),
                ("activity", 4, reason.to_owned()),
            ]
        };
        assert_eq!(cancellations(&stage, "a", 1).await, terminal("orchestration_terminal_continued_as_new"));
        stage.stop().await;
        stage.client.cancel_instance("b", "enough").await.expect("is sent");
        stage.client.raise_event("b", "go", "off").await.expect("is sent");
        stage.run(activities(), leaves()).await;
        assert_eq!(stage.output("b").await, Err("canceled: enough".to_owned()));
        assert_eq!(cancellations(&stage, "b", 1).await, terminal("orchestration_terminal_failed"));
        stage.stop().await;
    }

    async fn r2_3_a_child_that_is_dropped_in_its_first_turn_is_started_and_cancelled(stage) {
        stage
            .run(
                activities(),
                flow(|ctx: OrchestrationContext, _| async move {
                    drop(ctx.schedule_sub_orchestration_with_id("Kid", "kid", ""));
                    Ok(ctx.schedule_wait("go").await)
                }),
            )
            .await;
        stage.start("a", "Flow", "").await;
        let expected = "canceled: parent dropped sub-orchestration future";
        assert_eq!(stage.output("kid").await, Err(expected.to_owned()));
        assert_eq!(cancellations(&stage, "a", 1).await, dropped([("child", 2)]));
        stage.has("a", "SubOrchestrationFailed", 1).await;
        raise(&stage, "go", "on").await;
        assert_eq!(stage.output("a").await, Ok("on".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f2_a_child_whose_start_is_not_sent_does_not_exist(stage) {
        stage.run(activities(), flow(leaves_a_child)).await;
        for (how, well) in LEAVES {
            assert_eq!(stage.ends_after(how, "Flow", how).await.is_ok(), well, "{how}");
            let kid = stage.client.get_orchestration_status(&format!("kid of {how}")).await;
            assert_eq!(kid.expect("answers"), OrchestrationStatus::NotFound, "{how}");
            stage.nothing_waits().await;
        }
        let recorded = [
            "OrchestrationStarted",
            "SubOrchestrationScheduled",
            "SubOrchestrationCancelRequested",
            "OrchestrationCompleted",
        ];
        assert_eq!(stage.kinds("drops").await, recorded);
        stage.stop().await;
    }

    async fn f2_a_child_whose_start_is_not_sent_gets_no_cancellation(stage) {
        // Somebody else's instance of that id would be the one to get it.
        stage.run(activities(), flow(leaves_a_child)).await;
        for (how, well) in LEAVES {
            let bystander = format!("kid of {how}");
            stage.start(&bystander, "Kid", "").await;
            stage.has(&bystander, "ExternalSubscribed", 1).await;
            assert_eq!(stage.ends_after(how, "Flow", how).await.is_ok(), well, "{how}");
            stage.client.raise_event(&bystander, "done", "unharmed").await.expect("is sent");
            assert_eq!(stage.output(&bystander).await, Ok("unharmed".to_owned()), "{how}");
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f18_a_message_that_was_given_does_not_move_when_an_older_dequeue_is_dropped(stage) {
        let queue = || {
            flow(|ctx: OrchestrationContext, _| async move {
                let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
                let second = newer.await;
                drop(older);
                let first = ctx.dequeue_event("q").await;
                ctx.schedule_wait("go").await;
                let third = ctx.dequeue_event("q").await;
                Ok(format!("{second} {first} {third}"))
            })
        };
        stage.run(activities(), queue()).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "QueueSubscribed", 2).await;
        for message in ["1", "2", "3"] {
            stage.client.enqueue_event("a", "q", message).await.expect("is sent");
        }
        subscribed(&stage, "go").await;
        stage.stop().await;
        stage.run(activities(), queue()).await;
        raise(&stage, "go", "").await;
        assert_eq!(stage.output("a").await, Ok("2 1 3".to_owned()));
        stage.stop().await;
    }
}
