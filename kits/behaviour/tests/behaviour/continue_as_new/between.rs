//! Between two executions: the last has continued, and the start of the next waits (2.1, 2.3, 2.8, 2.15),
//! F11, F12.

use std::time::Duration;

use steadfast::providers::ProviderError;
use steadfast::{
    AppErrorKind, ClientError, ErrorDetails, EventKind, InstanceFilter, OrchestrationContext,
    OrchestrationRegistryBuilder, OrchestrationStatus, PoisonMessageType, RuntimeOptions,
};
use steadfast_behaviour::{Faults, Stage, activities, on_every_store, orchestrations};

/// An orchestration that continues once, and then keeps the runtime from fetching the start of its successor.
fn gets_stuck(faults: &Faults) -> OrchestrationRegistryBuilder {
    let faults = faults.clone();
    orchestrations().register("Flow", move |ctx: OrchestrationContext, input: String| {
        let faults = faults.clone();
        async move {
            if input != "first" {
                return Ok(input);
            }
            faults.refuse("fetch_turn", u64::MAX, ProviderError::retryable("fetch_turn", "not now"));
            ctx.continue_as_new("second").await
        }
    })
}

/// Leaves instance `a` between two executions: the first has ended, and the start of the second waits.
async fn leave_between_executions(stage: &Stage) {
    let options = RuntimeOptions { orchestration_concurrency: 1, ..stage.options() };
    stage.run_with(activities(), gets_stuck(&stage.faults), options).await;
    stage.start("a", "Flow", "first").await;
    stage.has("a", "OrchestrationContinuedAsNew", 1).await;
    stage.stop().await;
    stage.faults.heal();
}

/// Waits until turns have been abandoned so often that this many messages wait to be tried again.
async fn are_abandoned(stage: &Stage, times: u64, messages: usize) {
    stage
        .until("turns are given back", async || {
            // The call is counted when it begins; its messages are free when it has ended.
            let depths = stage.observer().get_queue_depths().await.expect("counts");
            stage.faults.abandoned() >= times && depths.orchestrator_queue == messages
        })
        .await;
}

async fn kinds_of(stage: &Stage, instance: &str, execution_id: u64) -> Vec<String> {
    let events = stage.history_of(instance, execution_id).await;
    events.iter().map(|event| event.kind.name().to_owned()).collect()
}

on_every_store! {
    async fn r2_8_a_successor_that_no_code_is_there_for_fails_as_the_successor(stage) {
        let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
            ctx.continue_as_new_versioned("9.0.0", "next").await
        });
        let options = RuntimeOptions { max_attempts: 2, ..stage.options() };
        stage.run_with(activities(), flow, options).await;
        stage.start("a", "Flow", "").await;
        for (times, wait) in [(1, 1), (2, 2)] {
            are_abandoned(&stage, times, 1).await;
            stage.pass(Duration::from_secs(wait));
        }
        let ended = stage.ends("a").await;
        let Err(ErrorDetails::Poison { attempt_count: 3, max_attempts: 2, message_type, .. }) = ended else {
            panic!("{ended:?}")
        };
        assert_eq!(
            message_type,
            PoisonMessageType::Orchestration { instance: "a".to_owned(), execution_id: 2 }
        );
        assert_eq!(kinds_of(&stage, "a", 1).await, ["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
        assert_eq!(kinds_of(&stage, "a", 2).await, ["OrchestrationStarted", "OrchestrationFailed"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_15_between_two_executions_an_instance_is_running(stage) {
        leave_between_executions(&stage).await;
        let running = OrchestrationStatus::Running { custom_status: None, custom_status_version: 0 };
        assert_eq!(stage.client.get_orchestration_status("a").await.expect("answers"), running);
        stage.run(activities(), gets_stuck(&stage.faults)).await;
        assert_eq!(stage.output("a").await, Ok("second".to_owned()));
        stage.stop().await;
    }

    async fn r2_3_a_cancellation_between_two_executions_ends_the_next(stage) {
        leave_between_executions(&stage).await;
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        stage.run(activities(), gets_stuck(&stage.faults)).await;
        let kind = AppErrorKind::Cancelled { reason: "enough".to_owned() };
        let details = ErrorDetails::Application { kind, message: String::new(), retryable: false };
        assert_eq!(stage.ends("a").await, Err(details));
        let second = ["OrchestrationStarted", "OrchestrationCancelRequested", "OrchestrationFailed"];
        assert_eq!(kinds_of(&stage, "a", 2).await, second);
        assert_eq!(kinds_of(&stage, "a", 1).await, ["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_messages_that_come_before_the_successor_starts_wait_for_it(stage) {
        let first = orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
            ctx.continue_as_new_versioned("2.0.0", "").await
        });
        stage.run(activities(), first).await;
        stage.start("a", "Flow", "").await;
        // No code for the successor: its start is tried again later, and the cancellation must not be settled
        // alone.
        are_abandoned(&stage, 1, 1).await;
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        are_abandoned(&stage, 2, 2).await;
        stage.stop().await;
        stage.pass(Duration::from_secs(60));
        let both = orchestrations()
            .register_versioned("Flow", "1.0.0", |_: OrchestrationContext, input| async { Ok(input) })
            .register_versioned("Flow", "2.0.0", |ctx: OrchestrationContext, _| async move {
                Ok(ctx.schedule_wait("never").await)
            });
        stage.run(activities(), both).await;
        assert_eq!(stage.output("a").await, Err("canceled: enough".to_owned()));
        assert_eq!(kinds_of(&stage, "a", 1).await, ["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f11_the_failure_of_a_first_commit_belongs_to_the_execution_it_is_about(stage) {
        let faults = stage.faults.clone();
        let flow = orchestrations().register("Flow", move |ctx: OrchestrationContext, input: String| {
            let faults = faults.clone();
            async move {
                if input == "first" {
                    ctx.schedule_wait("go").await;
                    return ctx.continue_as_new("second").await;
                }
                faults.refuse(
                    "commit_turn",
                    1,
                    ProviderError::permanent("commit_turn", "the disk is on fire"),
                );
                Ok(input)
            }
        });
        stage.run(activities(), flow).await;
        stage.start("a", "Flow", "first").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "go", "").await.expect("raises");
        let ended = stage.ends("a").await;
        let Err(ErrorDetails::Infrastructure { message, retryable: false, .. }) = &ended else {
            panic!("{ended:?}")
        };
        assert!(message.contains("the disk is on fire"), "{message}");
        let first =
            ["OrchestrationStarted", "ExternalSubscribed", "ExternalEvent", "OrchestrationContinuedAsNew"];
        assert_eq!(kinds_of(&stage, "a", 1).await, first);
        assert_eq!(kinds_of(&stage, "a", 2).await, ["OrchestrationStarted", "OrchestrationFailed"]);
        let started = stage.history_of("a", 2).await.remove(0).kind;
        assert!(
            matches!(&started, EventKind::OrchestrationStarted { input, .. } if input == "second"),
            "{started:?}"
        );
        assert_eq!(
            stage.observer().get_execution_info("a", 1).await.expect("is there").status,
            "ContinuedAsNew"
        );
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f12_an_instance_between_two_executions_is_not_deleted_without_force(stage) {
        leave_between_executions(&stage).await;
        let observer = stage.observer();
        let refused = observer.delete_instance("a", false).await;
        assert!(
            matches!(&refused, Err(ClientError::InstanceStillRunning { instance_id }) if instance_id == "a"),
            "{refused:?}"
        );
        let deleted =
            observer.delete_instance_bulk(InstanceFilter::default()).await.expect("deletes what has ended");
        assert_eq!(deleted.instances_deleted, 0);
        stage.run(activities(), gets_stuck(&stage.faults)).await;
        assert_eq!(stage.output("a").await, Ok("second".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f12_with_force_its_pending_start_goes_too(stage) {
        leave_between_executions(&stage).await;
        let deleted = stage.observer().delete_instance("a", true).await.expect("deletes");
        assert_eq!((deleted.instances_deleted, deleted.queue_messages_deleted), (1, 1));
        stage.nothing_waits().await;
        stage.run(activities(), gets_stuck(&stage.faults)).await;
        assert_eq!(stage.ends_after("b", "Flow", "x").await, Ok("x".to_owned()));
        assert_eq!(
            stage.client.get_orchestration_status("a").await.expect("answers"),
            OrchestrationStatus::NotFound
        );
        stage.stop().await;
    }
}
