//! The life of a turn (2.1, 4): what a batch is taken for, and what a commit records. `fetching.rs` has what
//! comes before.

use std::time::Duration;

use steadfast::providers::WorkItem;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{RuntimeOptions, UnregisteredBackoffConfig};
use steadfast::{ActivityContext, ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationStatus};
use steadfast_behaviour::{Lines, Stage, activities, on_every_full_store, on_every_store, orchestrations};
use steadfast_memory::Damage;

/// `Echo` returns its input, `Wait` what is raised as `Go`, `Read` two messages of the queue `q`.
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Echo", |_, input| async move { Ok(input) })
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("Go").await) })
        .register("Read", |ctx: OrchestrationContext, input: String| async move {
            let (one, two) = (ctx.dequeue_event("q").await, ctx.dequeue_event("q").await);
            Ok(format!("{input}: {one}, {two}"))
        })
}

/// `Hang` runs until it is cancelled.
fn hanging() -> ActivityRegistryBuilder {
    activities().register("Hang", |ctx: ActivityContext, _| async move {
        ctx.cancelled().await;
        Err("stopped".to_owned())
    })
}

fn one_turn_slot(stage: &Stage) -> RuntimeOptions {
    RuntimeOptions { orchestration_concurrency: 1, worker_concurrency: 0, ..stage.options() }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn kind_started(name: &str, version: &str, input: &str) -> EventKind {
    EventKind::OrchestrationStarted {
        name: name.to_owned(),
        version: version.to_owned(),
        input: input.to_owned(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

/// Writes a history past the runtime, as an import or another engine would.
async fn plant(stage: &Stage, instance: &str, kinds: Vec<EventKind>) {
    let events =
        kinds.into_iter().zip(1..).map(|(kind, id)| Event::at(1, id, instance, 1, None, kind)).collect();
    stage.inner().append_with_execution(instance, 1, events).await.expect("appends");
}

async fn send(stage: &Stage, item: WorkItem) {
    stage.inner().enqueue_for_orchestrator(item, None).await.expect("sends");
}

fn raised(instance: &str, data: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.to_owned(), name: "Go".to_owned(), data: data.to_owned() }
}

fn start(instance: &str, orchestration: &str, input: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: orchestration.to_owned(),
        input: input.to_owned(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn successor(instance: &str, orchestration: &str, input: &str, carried: &[(&str, &str)]) -> WorkItem {
    WorkItem::ContinueAsNew {
        instance: instance.to_owned(),
        orchestration: orchestration.to_owned(),
        input: input.to_owned(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: carried
            .iter()
            .map(|(name, data)| ((*name).to_owned(), (*data).to_owned()))
            .collect(),
        initial_custom_status: None,
    }
}

/// Waits until a turn was abandoned for the n-th time.
async fn is_abandoned(stage: &Stage, nth: u64) {
    stage.until("an item is given back", async || stage.faults.abandoned() == nth).await;
    stage.settle().await;
}

on_every_store! {
    async fn r2_1_the_first_start_of_a_batch_counts_and_later_ones_are_ignored(stage) {
        send(&stage, start("a", "Echo", "one")).await;
        send(&stage, start("a", "Wait", "two")).await;
        stage.run(activities(), flows()).await;
        assert_eq!(stage.output("a").await, Ok("one".to_owned()));
        let history = stage.history("a").await;
        assert_eq!(history[0].kind, kind_started("Echo", "1.0.0", "one"));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_a_start_for_an_instance_with_a_history_is_ignored(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(activities(), flows()).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.start("a", "Echo", "two").await;
        stage.client.raise_event("a", "Go", "one").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("one".to_owned()));
        let kinds = ["OrchestrationStarted", "ExternalSubscribed", "ExternalEvent", "OrchestrationCompleted"];
        assert_eq!(stage.kinds("a").await, kinds);
        let warnings = lines.saying("WARN", "a start is ignored");
        assert_eq!((warnings.len(), warnings[0].field("instance")), (1, "a"));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_messages_are_taken_in_queue_order_behind_what_was_carried_forward(stage) {
        let continued = EventKind::OrchestrationContinuedAsNew { input: "in".to_owned() };
        plant(&stage, "a", vec![kind_started("Read", "1.0.0", ""), continued]).await;
        let message = |data: &str| WorkItem::QueueMessage {
            instance: "a".to_owned(),
            name: "q".to_owned(),
            data: data.to_owned(),
        };
        send(&stage, message("second")).await;
        send(&stage, successor("a", "Read", "in", &[("q", "first")])).await;
        send(&stage, message("third")).await;
        stage.run(activities(), flows()).await;
        assert_eq!(stage.output("a").await, Ok("in: first, second".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_the_next_execution_has_a_history_of_its_own(stage) {
        let flow =
            orchestrations().register("Twice", |ctx: OrchestrationContext, input: String| async move {
                if input == "1" { ctx.continue_as_new("2").await } else { Ok(input) }
            });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Twice", "1").await, Ok("2".to_owned()));
        let first = stage.history_of("a", 1).await;
        assert_eq!(first.len(), 2);
        assert_eq!(first[1].kind, EventKind::OrchestrationContinuedAsNew { input: "2".to_owned() });
        let second = stage.history_of("a", 2).await;
        assert_eq!(second[0].kind, kind_started("Twice", "1.0.0", "2"));
        let places: Vec<_> = second.iter().map(|event| (event.execution_id, event.event_id)).collect();
        assert_eq!(places, [(2, 1), (2, 2)]);
        stage.stop().await;
    }

    async fn r2_1_between_two_executions_messages_wait_and_nothing_is_acked(stage) {
        let (lines, _guard) = Lines::collect();
        let continued = EventKind::OrchestrationContinuedAsNew { input: "2".to_owned() };
        plant(&stage, "a", vec![kind_started("Wait", "1.0.0", "1"), continued]).await;
        send(&stage, raised("a", "early")).await;
        let backoff = UnregisteredBackoffConfig { base_delay: ms(300), max_delay: ms(60_000) };
        let options = RuntimeOptions { unregistered_backoff: backoff, ..one_turn_slot(&stage) };
        stage.run_with(activities(), flows(), options).await;
        for (nth, wait) in (1..).zip([300, 600, 1_200]) {
            is_abandoned(&stage, nth).await;
            stage.pass(ms(wait - 1));
            stage.settle().await;
            assert_eq!(stage.faults.abandoned(), nth, "it is tried again after {wait} ms");
            stage.pass(ms(1));
        }
        is_abandoned(&stage, 4).await;
        assert_eq!(lines.saying("WARN", "between two executions").len(), 4);
        assert_eq!(stage.faults.calls("commit_turn"), 0);
        send(&stage, successor("a", "Echo", "2", &[])).await;
        assert_eq!(stage.output("a").await, Ok("2".to_owned()));
        stage.stop().await;
    }

    async fn r2_1_messages_to_an_ended_instance_are_acked_away(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(activities(), flows()).await;
        assert_eq!(stage.ends_after("a", "Echo", "x").await, Ok("x".to_owned()));
        let before = stage.history("a").await;
        let commits = stage.faults.calls("commit_turn");
        stage.client.raise_event("a", "Go", "late").await.expect("raises");
        stage.until("the event is acked", async || stage.faults.calls("commit_turn") == commits + 1).await;
        stage.client.cancel_instance("a", "late").await.expect("cancels");
        stage.until("the cancel is acked", async || stage.faults.calls("commit_turn") == commits + 2).await;
        send(&stage, start("a", "Wait", "")).await;
        stage.until("the start is acked", async || stage.faults.calls("commit_turn") == commits + 3).await;
        send(&stage, successor("a", "Echo", "y", &[])).await;
        stage
            .until("the successor is acked", async || stage.faults.calls("commit_turn") == commits + 4)
            .await;
        assert_eq!(stage.ends_after("b", "Echo", "y").await, Ok("y".to_owned()));
        assert_eq!(stage.history("a").await, before);
        assert_eq!(stage.observer().list_executions("a").await.expect("lists"), [1]);
        assert_eq!(stage.ends("a").await, Ok("x".to_owned()));
        // G37: the sender of an event is told by a warning that it went nowhere.
        assert_eq!(lines.saying("WARN", "messages dropped: the instance has ended").len(), 1);
        assert_eq!(lines.saying("DEBUG", "messages dropped: the instance has ended").len(), 3);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_a_failure_after_a_continue_as_new_is_an_end(stage) {
        let failed = EventKind::OrchestrationFailed {
            details: ErrorDetails::Infrastructure {
                operation: "ack".to_owned(),
                message: "an older engine".to_owned(),
                retryable: false,
            },
        };
        let continued = EventKind::OrchestrationContinuedAsNew { input: "2".to_owned() };
        plant(&stage, "a", vec![kind_started("Echo", "1.0.0", "1"), continued, failed]).await;
        send(&stage, raised("a", "")).await;
        stage.run(activities(), flows()).await;
        stage.until("the event is acked", async || stage.faults.calls("commit_turn") == 1).await;
        assert_eq!(stage.history("a").await.len(), 3);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f1_messages_to_an_instance_that_never_was_are_dropped_and_delay_nobody(stage) {
        let (lines, _guard) = Lines::collect();
        stage.client.cancel_instance("nobody", "why").await.expect("cancels");
        stage.client.raise_event("nobody", "Go", "").await.expect("raises");
        stage.run(activities(), flows()).await;
        assert_eq!(stage.ends_after("a", "Echo", "x").await, Ok("x".to_owned()));
        let dropped = lines.saying("WARN", "messages dropped: there is no such instance");
        if stage.kind != steadfast_behaviour::StoreKind::Sqlite {
            // SQLite's writer logs on its own thread, which this subscriber does not see.
            assert_eq!(dropped.len(), 1);
            assert_eq!((dropped[0].field("instance"), dropped[0].field("dropped")), ("nobody", "2"));
        }
        let status = stage.client.get_orchestration_status("nobody").await.expect("answers");
        assert_eq!(status, OrchestrationStatus::NotFound);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_a_first_turn_records_the_start_as_event_1_with_the_resolved_version(stage) {
        let flow = flows().register_versioned("Echo", "1.4.0", |_, input| async move { Ok(input) });
        stage.run(activities(), flow).await;
        assert_eq!(stage.ends_after("a", "Echo", "x").await, Ok("x".to_owned()));
        let first = stage.history("a").await.remove(0);
        assert_eq!((first.event_id, first.execution_id, first.source_event_id), (1, 1, None));
        assert_eq!(first.duroxide_version, steadfast::current_build_version().to_string());
        assert_eq!(first.kind, kind_started("Echo", "1.4.0", "x"));
        stage.stop().await;
    }

    async fn r2_1_metadata_says_how_each_execution_ended(stage) {
        let flow =
            orchestrations().register("Thrice", |ctx: OrchestrationContext, input: String| async move {
                match input.as_str() {
                    "1" => ctx.continue_as_new("2").await,
                    "2" => ctx.schedule_sub_orchestration_with_id("Thrice", "kid", "3").await,
                    _ => Err("no".to_owned()),
                }
            });
        stage.run(activities(), flow).await;
        stage.start("a", "Thrice", "1").await;
        assert_eq!(stage.output("a").await, Err("no".to_owned()));
        let (a, kid) = (stage.observer(), stage.observer());
        let first = a.get_execution_info("a", 1).await.expect("is there");
        assert_eq!((first.status.as_str(), first.output.as_deref()), ("ContinuedAsNew", Some("2")));
        let info = a.get_instance_info("a").await.expect("is there");
        assert_eq!(
            (info.orchestration_name.as_str(), info.orchestration_version.as_str()),
            ("Thrice", "1.0.0")
        );
        assert_eq!((info.status.as_str(), info.output.as_deref()), ("Failed", Some("no")));
        assert_eq!((info.current_execution_id, info.parent_instance_id), (2, None));
        let info = kid.get_instance_info("kid").await.expect("is there");
        assert_eq!((info.status.as_str(), info.parent_instance_id.as_deref()), ("Failed", Some("a")));
        stage.stop().await;
    }

    async fn r2_1_activities_in_flight_at_the_end_are_cancelled_behind_the_last_event(stage) {
        let flow =
            orchestrations().register("Leave", |ctx: OrchestrationContext, input: String| async move {
                if input == "again" {
                    return Ok(input);
                }
                for n in ["1", "2"] {
                    // Forgotten, not dropped: a dropped future would be cancelled for that reason.
                    std::mem::forget(ctx.schedule_activity("Hang", n));
                }
                match ctx.schedule_wait("Go").await.as_str() {
                    "complete" => Ok("done".to_owned()),
                    "fail" => Err("no".to_owned()),
                    _ => ctx.continue_as_new("again").await,
                }
            });
        stage.run(hanging(), flow).await;
        for (how, reason) in [("complete", "completed"), ("fail", "failed"), ("again", "continued_as_new")] {
            stage.start(how, "Leave", "").await;
            stage.has(how, "ExternalSubscribed", 1).await;
            stage.client.raise_event(how, "Go", how).await.expect("raises");
            let expected = match how {
                "complete" => Ok("done".to_owned()),
                "fail" => Err("no".to_owned()),
                _ => Ok("again".to_owned()),
            };
            assert_eq!(stage.output(how).await, expected);
            let events = stage.history_of(how, 1).await;
            let terminal = events.iter().position(Event::is_terminal).expect("it has ended");
            let reason = format!("orchestration_terminal_{reason}");
            let cancelled = EventKind::ActivityCancelRequested { reason };
            let behind: Vec<_> = events[terminal + 1..]
                .iter()
                .map(|event| (event.source_event_id, event.kind.clone()))
                .collect();
            assert_eq!(behind, [(Some(2), cancelled.clone()), (Some(3), cancelled)]);
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_an_activity_with_a_breadcrumb_is_not_cancelled_twice(stage) {
        let flow = orchestrations().register("Drop", |ctx: OrchestrationContext, _| async move {
            let dropped = ctx.schedule_activity("Hang", "");
            ctx.schedule_wait("Go").await;
            drop(dropped);
            ctx.schedule_wait("End").await;
            Ok(String::new())
        });
        stage.run(hanging(), flow).await;
        stage.start("a", "Drop", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "Go", "").await.expect("raises");
        stage.has("a", "ExternalSubscribed", 2).await;
        stage.client.raise_event("a", "End", "").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok(String::new()));
        let requests: Vec<_> =
            stage.history("a").await.into_iter().filter(|event| event.source_event_id == Some(2)).collect();
        let reason = "dropped_future".to_owned();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].kind, EventKind::ActivityCancelRequested { reason });
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

on_every_full_store! {
    async fn r2_1_an_activity_among_the_messages_is_ignored(stage) {
        let flow = orchestrations().register("Nap", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_timer(Duration::from_secs(5)).await;
            Ok(String::new())
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Nap", "").await;
        stage.has("a", "TimerCreated", 1).await;
        let activity = WorkItem::ActivityExecute {
            instance: "a".to_owned(),
            execution_id: 1,
            id: 2,
            name: "Echo".to_owned(),
            input: String::new(),
            session_id: None,
            tag: None,
        };
        let sent = stage.inner().enqueue_for_orchestrator(activity.clone(), None).await;
        assert!(sent.is_err_and(|error| !error.is_retryable()), "the door is shut");
        let text = serde_json::to_string(&activity).expect("writes");
        overwrite_messages(&stage, "a", &text).await;
        let commits = stage.faults.calls("commit_turn");
        stage.pass(Duration::from_secs(5));
        stage.until("a turn", async || stage.faults.calls("commit_turn") == commits + 1).await;
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "TimerCreated"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

async fn overwrite_messages(stage: &Stage, instance: &str, text: &str) {
    let rows = stage.damage(Damage::Messages { instance }, text).await;
    assert_eq!(rows, 1, "there is a message to overwrite");
}
