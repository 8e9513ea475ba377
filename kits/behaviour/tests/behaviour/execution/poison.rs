//! Poison (2.8): a turn or an activity that is tried too often fails, tells the parent or orchestration that
//! waits for it, and closes its open operations (F6).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use steadfast::providers::WorkItem;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{RuntimeOptions, UnregisteredBackoffConfig};
use steadfast::{ActivityContext, ErrorDetails, Event, EventKind, OrchestrationContext, PoisonMessageType};
use steadfast_behaviour::{Stage, activities, on_every_store, orchestrations};

const SECOND: Duration = Duration::from_secs(1);

/// `Wait` waits for `Go`, `Call` for the activity it is given, `Parent` for a child that is not registered,
/// `Mother` for a `Wait` with an id of the engine's, or with its input as id.
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("Go").await) })
        .register("Call", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity(name, "in").await
        })
        .register("Parent", |ctx: OrchestrationContext, _| async move {
            let error = ctx.schedule_sub_orchestration_with_id("Nobody", "kid", "in").await;
            Ok(format!("{error:?}"))
        })
        .register("Mother", |ctx: OrchestrationContext, id: String| async move {
            match id.as_str() {
                "" => ctx.schedule_sub_orchestration("Wait", "").await,
                _ => ctx.schedule_sub_orchestration_with_id("Wait", id, "").await,
            }
        })
}

/// `Hang` runs until it is cancelled.
fn hanging() -> ActivityRegistryBuilder {
    activities().register("Hang", |ctx: ActivityContext, _| async move {
        ctx.cancelled().await;
        Err("stopped".to_owned())
    })
}

/// One slot of each kind; an item is tried `max_attempts` times, a second apart.
fn patience(stage: &Stage, max_attempts: u32) -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: 1,
        worker_concurrency: 1,
        max_attempts,
        unregistered_backoff: UnregisteredBackoffConfig { base_delay: SECOND, max_delay: SECOND },
        ..stage.options()
    }
}

async fn send(stage: &Stage, item: WorkItem) {
    stage.inner().enqueue_for_orchestrator(item, None).await.expect("sends");
}

fn raised(instance: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.to_owned(), name: "Go".to_owned(), data: "now".to_owned() }
}

fn start(instance: &str, orchestration: &str, version: Option<&str>, input: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: orchestration.to_owned(),
        input: input.to_owned(),
        version: version.map(str::to_owned),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn json(items: &[WorkItem]) -> String {
    serde_json::to_string(items).expect("writes")
}

fn poison(instance: &str, execution_id: u64, attempt_count: u32, messages: &[WorkItem]) -> ErrorDetails {
    ErrorDetails::Poison {
        attempt_count,
        max_attempts: attempt_count - 1,
        message_type: PoisonMessageType::Orchestration { instance: instance.to_owned(), execution_id },
        message: json(messages),
    }
}

fn kind_started(name: &str, version: &str, input: &str, parent: Option<(&str, u64)>) -> EventKind {
    EventKind::OrchestrationStarted {
        name: name.to_owned(),
        version: version.to_owned(),
        input: input.to_owned(),
        parent_instance: parent.map(|(instance, _)| instance.to_owned()),
        parent_id: parent.map(|(_, id)| id),
        parent_execution_id: parent.map(|_| 1),
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

async fn plant(stage: &Stage, instance: &str, kinds: Vec<EventKind>) {
    let events = kinds.into_iter().zip(1..).map(|(kind, id)| Event::at(1, id, instance, 1, None, kind));
    stage.inner().append_with_execution(instance, 1, events.collect()).await.expect("appends");
}

async fn kinds_of(stage: &Stage, instance: &str, execution_id: u64) -> Vec<EventKind> {
    stage.history_of(instance, execution_id).await.into_iter().map(|event| event.kind).collect()
}

on_every_store! {
    async fn r2_8_a_batch_tried_too_often_fails_its_instance_before_it_began(stage) {
        let message = start("a", "Nobody", Some("3.0.0"), "in");
        send(&stage, message.clone()).await;
        let runtime = stage.run_with(activities(), flows(), patience(&stage, 2)).await;
        let details = poison("a", 1, 3, &[message]);
        assert_eq!(stage.ends_as_time_passes("a", SECOND / 4).await, Err(details.clone()));
        assert_eq!(details.display_message(), "poison: orchestration a exceeded 3 attempts (max 2)");
        assert_eq!(details.category(), "poison");
        let expected = [
            kind_started("Nobody", "3.0.0", "in", None),
            EventKind::OrchestrationFailed { details: details.clone() },
        ];
        assert_eq!(kinds_of(&stage, "a", 1).await, expected);
        let info = stage.observer().get_instance_info("a").await.expect("is there");
        assert_eq!(
            (info.orchestration_name.as_str(), info.orchestration_version.as_str()),
            ("Nobody", "3.0.0")
        );
        assert_eq!((info.status.as_str(), info.output), ("Failed", Some(details.display_message())));
        stage.settle().await;
        let counts = runtime.metrics_snapshot().expect("counts");
        assert_eq!((counts.orch_poison, counts.orch_failures, counts.orch_starts), (1, 1, 1));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_8_the_message_of_a_poison_is_the_whole_batch(stage) {
        let batch = [start("a", "Nobody", None, ""), raised("a"), raised("a")];
        for message in batch.clone() {
            send(&stage, message).await;
        }
        stage.run_with(activities(), flows(), patience(&stage, 1)).await;
        assert_eq!(stage.ends_as_time_passes("a", SECOND / 4).await, Err(poison("a", 1, 2, &batch)));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_8_with_max_attempts_0_the_first_fetch_poisons(stage) {
        stage.run_with(activities(), flows(), patience(&stage, 0)).await;
        stage.start("a", "Wait", "").await;
        let details = ErrorDetails::Poison {
            attempt_count: 1,
            max_attempts: 0,
            message_type: PoisonMessageType::Orchestration { instance: "a".to_owned(), execution_id: 1 },
            message: json(&[start("a", "Wait", None, "")]),
        };
        assert_eq!(stage.ends("a").await, Err(details));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationFailed"]);
        assert_eq!(stage.faults.abandoned(), 0);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_8_a_poisoned_child_tells_its_parent_which_fails_alike(stage) {
        stage.run_with(activities(), flows(), patience(&stage, 1)).await;
        stage.start("a", "Parent", "").await;
        let message = WorkItem::StartOrchestration {
            instance: "kid".to_owned(),
            orchestration: "Nobody".to_owned(),
            input: "in".to_owned(),
            version: None,
            parent_instance: Some("a".to_owned()),
            parent_id: Some(2),
            parent_execution_id: Some(1),
            execution_id: 1,
        };
        let details = poison("kid", 1, 2, &[message]);
        // A child that is poison aborts its parent: the parent's code does not see it.
        assert_eq!(stage.ends_as_time_passes("a", SECOND / 4).await, Err(details.clone()));
        assert_eq!(stage.ends("kid").await, Err(details.clone()));
        assert_eq!(
            kinds_of(&stage, "kid", 1).await[0],
            kind_started("Nobody", "unknown", "in", Some(("a", 2)))
        );
        let parent = kinds_of(&stage, "a", 1).await;
        assert_eq!(
            parent[2..],
            [
                EventKind::SubOrchestrationFailed { details: details.clone() },
                EventKind::OrchestrationFailed { details },
            ]
        );
        let info = stage.observer().get_instance_info("kid").await.expect("is there");
        assert_eq!(info.parent_instance_id.as_deref(), Some("a"));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f6_poison_closes_what_the_instance_leaves_open(stage) {
        let flow = flows().register("Open", |ctx: OrchestrationContext, _| async move {
            let (activity, child) = (
                ctx.schedule_activity("Hang", ""),
                ctx.schedule_sub_orchestration_with_id("Wait", "kid", ""),
            );
            ctx.schedule_wait("Go").await;
            drop((activity, child));
            Ok(String::new())
        });
        stage.run(hanging(), flow).await;
        stage.start("a", "Open", "").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage
            .until("the activity runs", async || {
                stage.observer().get_queue_depths().await.is_ok_and(|depths| depths.worker_queue == 0)
            })
            .await;
        stage.stop().await;
        // A runtime that does not know `Open`, but what it has started.
        stage.run_with(hanging(), flows(), patience(&stage, 1)).await;
        stage.client.raise_event("a", "Go", "").await.expect("raises");
        let details = stage.ends_as_time_passes("a", SECOND / 4).await.expect_err("is poison");
        assert_eq!(details.display_message(), "poison: orchestration a exceeded 2 attempts (max 1)");
        let kinds = stage.kinds("a").await;
        let closed = ["ExternalSubscribedCancelled", "OrchestrationFailed", "ActivityCancelRequested"];
        assert_eq!(kinds[4..], closed, "{kinds:?}");
        assert_eq!(stage.output("kid").await, Err("canceled: parent failed".to_owned()));
        // The child reports to a parent that has ended: one more message, which is settled.
        stage
            .until("nothing waits", async || {
                stage.observer().get_queue_depths().await.is_ok_and(|depths| depths.orchestrator_queue == 0)
            })
            .await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_8_poison_on_a_running_instance_is_written_behind_its_history(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        stage.client.raise_event("a", "Go", "now").await.expect("raises");
        stage.run_with(activities(), orchestrations(), patience(&stage, 1)).await;
        let details = poison("a", 1, 2, &[raised("a")]);
        assert_eq!(stage.ends_as_time_passes("a", SECOND / 4).await, Err(details.clone()));
        let history = stage.history("a").await;
        let kinds = [
            "OrchestrationStarted",
            "ExternalSubscribed",
            "ExternalSubscribedCancelled",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await, kinds);
        assert_eq!(history.last().map(|event| event.event_id), Some(4));
        stage.stop().await;
    }

    async fn r2_8_poison_of_a_continue_as_new_is_recorded_in_the_next_execution(stage) {
        let flow = flows().register("Again", |ctx: OrchestrationContext, _| async move {
            ctx.set_custom_status("first");
            ctx.schedule_wait("Go").await;
            ctx.continue_as_new_versioned("7.0.0", "two").await
        });
        stage.run_with(activities(), flow, patience(&stage, 1)).await;
        stage.start("a", "Again", "one").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.enqueue_event("a", "q", "unread").await.expect("sends");
        stage.has("a", "QueueEventDelivered", 1).await;
        stage.client.raise_event("a", "Go", "").await.expect("raises");
        let details = stage.ends_as_time_passes("a", SECOND / 4).await.expect_err("is poison");
        let ErrorDetails::Poison { message_type, .. } = &details else { panic!("{details:?}") };
        let expected = PoisonMessageType::Orchestration { instance: "a".to_owned(), execution_id: 2 };
        assert_eq!(*message_type, expected);
        let second = kinds_of(&stage, "a", 2).await;
        let EventKind::OrchestrationStarted {
            name,
            version,
            input,
            carry_forward_events,
            initial_custom_status,
            ..
        } = &second[0]
        else {
            panic!("{second:?}")
        };
        assert_eq!((name.as_str(), version.as_str(), input.as_str()), ("Again", "1.0.0", "two"));
        assert_eq!(*carry_forward_events, Some(vec![("q".to_owned(), "unread".to_owned())]));
        assert_eq!(*initial_custom_status, None);
        assert_eq!(second[1..], [EventKind::OrchestrationFailed { details }]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_8_poison_between_two_executions_fails_the_next_one_and_tells_the_parent(stage) {
        stage.run(activities(), flows()).await;
        stage.start("mother", "Mother", "kid").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        // The execution ends as continued, and the start of the next one is lost.
        let kind = EventKind::OrchestrationContinuedAsNew { input: "two".to_owned() };
        let event = Event::at(1, 3, "kid", 1, None, kind);
        stage.inner().append_with_execution("kid", 1, vec![event]).await.expect("appends");
        stage.stop().await;
        stage.client.raise_event("kid", "Go", "now").await.expect("raises");
        stage.run_with(activities(), flows(), patience(&stage, 2)).await;
        let details = poison("kid", 2, 3, &[raised("kid")]);
        assert_eq!(stage.ends_as_time_passes("mother", SECOND / 4).await, Err(details.clone()));
        let expected = [
            kind_started("Wait", "1.0.0", "", Some(("mother", 2))),
            EventKind::OrchestrationFailed { details: details.clone() },
        ];
        assert_eq!(kinds_of(&stage, "kid", 2).await, expected);
        assert_eq!(kinds_of(&stage, "kid", 1).await.len(), 3, "the execution before is left as it is");
        assert_eq!(stage.ends("kid").await, Err(details));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i9_messages_to_an_ended_instance_never_poison_it(stage) {
        let done = EventKind::OrchestrationCompleted { output: "x".to_owned() };
        plant(&stage, "a", vec![kind_started("Wait", "1.0.0", "", None), done]).await;
        send(&stage, raised("a")).await;
        stage.run_with(activities(), flows(), patience(&stage, 0)).await;
        stage.until("the message is settled", async || stage.faults.calls("commit_turn") == 1).await;
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_8_an_activity_tried_too_often_aborts_its_orchestration(stage) {
        let flow = flows().register("Careful", |ctx: OrchestrationContext, _| async move {
            let result = ctx.schedule_activity("Missing", "in").await;
            Ok(format!("went on after {result:?}"))
        });
        let runtime = stage.run_with(activities(), flow, patience(&stage, 3)).await;
        stage.start("a", "Careful", "").await;
        let item = WorkItem::ActivityExecute {
            instance: "a".to_owned(),
            execution_id: 1,
            id: 2,
            name: "Missing".to_owned(),
            input: "in".to_owned(),
            session_id: None,
            tag: None,
        };
        let details = ErrorDetails::Poison {
            attempt_count: 4,
            max_attempts: 3,
            message_type: PoisonMessageType::Activity {
                instance: "a".to_owned(),
                execution_id: 1,
                activity_name: "Missing".to_owned(),
                activity_id: 2,
            },
            message: serde_json::to_string(&item).expect("writes"),
        };
        assert_eq!(stage.ends_as_time_passes("a", SECOND / 4).await, Err(details.clone()));
        assert_eq!(details.display_message(), "poison: activity Missing#2 exceeded 4 attempts (max 3)");
        assert_eq!(stage.faults.abandoned(), 3);
        let kinds = kinds_of(&stage, "a", 1).await;
        assert_eq!(
            kinds[2..],
            [
                EventKind::ActivityFailed { details: details.clone() },
                EventKind::OrchestrationFailed { details },
            ]
        );
        stage.settle().await;
        assert_eq!(runtime.metrics_snapshot().expect("counts").activity_poison, 1);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_8_with_max_attempts_0_an_activity_never_runs(stage) {
        stage
            .run_with(activities(), flows(), RuntimeOptions { worker_concurrency: 0, ..stage.options() })
            .await;
        stage.start("a", "Call", "Count").await;
        stage.has("a", "ActivityScheduled", 1).await;
        let ran = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&ran);
        let counting = activities().register("Count", move |_, _| {
            counter.fetch_add(1, Ordering::Relaxed);
            async { Ok(String::new()) }
        });
        let options = RuntimeOptions { max_attempts: 0, orchestration_concurrency: 0, ..stage.options() };
        stage.run_with(counting, flows(), options).await;
        let error = stage.output("a").await;
        assert_eq!(error, Err("poison: activity Count#2 exceeded 1 attempts (max 0)".to_owned()));
        assert_eq!(ran.load(Ordering::Relaxed), 0);
        stage.stop().await;
    }

    async fn i12_poison_is_local(stage) {
        stage.run_with(activities(), flows(), patience(&stage, 1)).await;
        stage.start("a", "Nobody", "").await;
        stage.start("b", "Wait", "").await;
        stage.has("b", "ExternalSubscribed", 1).await;
        stage.ends_as_time_passes("a", SECOND / 4).await.expect_err("is poison");
        stage.client.raise_event("b", "Go", "fine").await.expect("raises");
        assert_eq!(stage.output("b").await, Ok("fine".to_owned()));
        stage.stop().await;
    }
}
