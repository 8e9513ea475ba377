//! A store that is away, that never answers or whose answers are lost: nothing is lost, no execution fails
//! for it, and work goes on when the trouble ends (I2, I5–I7, F5, F8).

use std::sync::Arc;
use std::time::Duration;

use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{ClientError, OrchestrationContext, RuntimeOptions};
use steadfast_behaviour::{Stage, StoreKind, on_every_store, orchestrations};
use steadfast_clock::Clock;
use tokio::sync::Notify;

use super::bench::{Runs, down, flows, noted};

fn retryable(error: &ClientError) -> bool {
    matches!(error, ClientError::Provider(error) if error.is_retryable())
}

/// Registers `Brief`, which waits for a timer of five seconds and then calls an activity.
fn brief() -> OrchestrationRegistryBuilder {
    orchestrations().register("Brief", |ctx: OrchestrationContext, input: String| async move {
        ctx.schedule_timer(Duration::from_secs(5)).await;
        ctx.schedule_activity("Echo", input).await
    })
}

on_every_store! {
    async fn i7_an_outage_of_three_minutes_loses_nothing_and_fails_nobody(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        let runtime = stage.run(noted(&ran, &go), flows()).await;
        for (instance, flow) in [("slow", "Slow"), ("timer", "Timer"), ("wait", "Wait"), ("parent", "Parent")]
        {
            stage.start(instance, flow, instance).await;
        }
        stage.has("timer", "TimerCreated", 1).await;
        stage.has("wait", "ExternalSubscribed", 1).await;
        stage.has("parent::sub::4", "TimerCreated", 1).await;
        stage.until("the activity runs", async || ran.lock().expect("nobody panicked").len() == 1).await;
        stage.faults.outage();
        let refused = stage.client.start_orchestration("late", "Plain", "").await.expect_err("it is away");
        assert!(retryable(&refused), "{refused:?}");
        // The activity ends while its outcome cannot be recorded.
        go.notify_one();
        stage.pass_slowly(Duration::from_secs(180), Duration::from_secs(1)).await;
        stage.faults.heal();
        // Its lease ended meanwhile, so it may run again: then it waits for a second `go`.
        go.notify_one();
        stage.client.raise_event("wait", "go", "on").await.expect("the store is back");
        for (instance, output) in
            [("slow", "slow"), ("timer", "timer"), ("wait", "on"), ("parent", "parent0 parent1 parent2")]
        {
            let ended = stage.ends_as_time_passes(instance, Duration::from_millis(250)).await;
            assert_eq!(ended, Ok(output.to_owned()));
        }
        assert_eq!(runtime.metrics_snapshot().expect("counts").orch_failures, 0);
        assert_eq!(runtime.health().await.slots_restarted, 0);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f5_an_outage_of_three_minutes_neither_stops_nor_heats_the_loops(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        let runtime = stage.run(noted(&ran, &go), flows()).await;
        stage.start("a", "Plain", "kept").await;
        assert_eq!(stage.output("a").await, Ok("kept".to_owned()));
        stage.faults.outage();
        let before = stage.faults.calls("fetch_turn");
        let begun = stage.clock.monotonic();
        // A fetch that waits in the store ends by itself; from then on every call fails.
        stage.pass_slowly(Duration::from_secs(240), Duration::from_secs(1)).await;
        let calls = stage.faults.calls("fetch_turn") - before;
        assert_eq!(stage.clock.monotonic() - begun, Duration::from_secs(240));
        assert!((60..=220).contains(&calls), "two slots ask every three seconds, not {calls} times");
        assert_eq!(runtime.health().await.slots_restarted, 0);
        stage.faults.heal();
        stage.pass(Duration::from_secs(3));
        assert_eq!(stage.ends_after("bystander", "Plain", "fine").await, Ok("fine".to_owned()));
        stage.nothing_waits().await;
        stage.stop().await;
    }

    async fn i2_an_answer_that_is_lost_changes_nothing_and_repeats_nothing(stage) {
        // Work whose fetch was not answered waits for the end of its lease.
        let short = RuntimeOptions { worker_lock_timeout: Duration::from_secs(4), ..stage.options() };
        for (number, operation) in
            ["fetch_turn", "commit_turn", "fetch_work", "finish_work", "renew"].into_iter().enumerate()
        {
            let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
            stage.faults.lose_answer(operation, 3, down());
            stage.run_with(noted(&ran, &go), brief(), short.clone()).await;
            let instance = format!("a{number}");
            stage.start(&instance, "Brief", operation).await;
            let ended = stage.ends_as_time_passes(&instance, Duration::from_millis(250)).await;
            assert_eq!(ended, Ok(operation.to_owned()));
            assert_eq!(*ran.lock().expect("nobody panicked"), [operation], "it ran once");
            assert_eq!(
                stage.kinds(&instance).await,
                [
                    "OrchestrationStarted",
                    "TimerCreated",
                    "TimerFired",
                    "ActivityScheduled",
                    "ActivityCompleted",
                    "OrchestrationCompleted",
                ]
            );
            stage.stop().await;
            stage.faults.heal();
        }
        stage.nothing_waits().await;
    }

    async fn i5_a_caller_whose_answer_is_lost_may_ask_again(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.faults.lose_answer("send", 1, down());
        let lost = stage.client.start_orchestration("a", "Plain", "x").await.expect_err("the answer is lost");
        assert!(retryable(&lost), "{lost:?}");
        stage.client.start_orchestration("a", "Plain", "x").await.expect("starts");
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        stage
            .until("both starts are settled", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
            })
            .await;
        assert_eq!(*ran.lock().expect("nobody panicked"), ["x"]);
        stage.stop().await;
    }

    async fn i7_a_fetch_that_never_answers_holds_up_nobody_else(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        stage.faults.hang("fetch_turn", 1);
        stage.faults.hang("fetch_work", 1);
        stage.run(noted(&ran, &go), flows()).await;
        for number in 0..5 {
            let instance = format!("a{number}");
            assert_eq!(stage.ends_after(&instance, "Plain", "x").await, Ok("x".to_owned()));
        }
        // A shutdown does not wait for the store.
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i7_a_commit_that_never_answers_holds_its_slot_and_neither_others_nor_the_shutdown(stage) {
        for (operation, lease) in [("commit_turn", 5), ("finish_work", 30)] {
            let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
            stage.run(noted(&ran, &go), flows()).await;
            stage.faults.hang(operation, 1);
            let before = stage.faults.calls(operation);
            stage.start(operation, "Plain", "x").await;
            stage.until("the call", async || stage.faults.calls(operation) > before).await;
            let beside = format!("beside {operation}");
            assert_eq!(stage.ends_after(&beside, "Plain", "y").await, Ok("y".to_owned()));
            // The slot is given up a second after it was told to stop.
            tokio::join!(
                stage.stop_at_once(),
                stage.pass_slowly(Duration::from_secs(2), Duration::from_millis(100))
            );
            assert!(stage.observer().wait_for_orchestration(operation, Duration::ZERO).await.is_err());
            // Another process, once the lease has ended.
            stage.pass(Duration::from_secs(lease));
            stage.run(noted(&ran, &go), flows()).await;
            assert_eq!(stage.output(operation).await, Ok("x".to_owned()));
            stage.stop().await;
        }
        stage.nothing_waits().await;
    }

    async fn i7_a_renewal_that_never_answers_costs_the_lease_and_not_the_work(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.start("a", "Slow", "x").await;
        stage.until("it runs", async || ran.lock().expect("nobody panicked").len() == 1).await;
        stage.faults.hang("renew", 1);
        let before = stage.faults.calls("renew");
        stage.pass(Duration::from_secs(15));
        stage.until("the renewal", async || stage.faults.calls("renew") > before).await;
        stage.pass(Duration::from_secs(15));
        stage.until("it runs again", async || ran.lock().expect("nobody panicked").len() == 2).await;
        // Both end; the first one's result comes too late.
        go.notify_waiters();
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        let kinds = stage.kinds("a").await;
        assert_eq!(kinds.iter().filter(|kind| *kind == "ActivityCompleted").count(), 1);
        stage.stop().await;
    }
}

#[tokio::test]
async fn i7_a_store_that_stumbles_again_and_again_is_borne_with() {
    const INSTANCES: usize = 12;
    let stage = Stage::new(StoreKind::Sqlite).await;
    let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
    stage.run(noted(&ran, &go), flows()).await;
    for number in 0..INSTANCES {
        stage.start(&format!("a{number}"), "Plain", "x").await;
        for operation in ["fetch_turn", "commit_turn", "fetch_work", "finish_work", "abandon"] {
            stage.faults.refuse(operation, 1, down());
        }
    }
    for number in 0..INSTANCES {
        let ended = stage.ends_as_time_passes(&format!("a{number}"), Duration::from_millis(100)).await;
        assert_eq!(ended, Ok("x".to_owned()));
        // An activity whose outcome was not recorded in time may run again; one outcome is recorded.
        assert_eq!(
            stage.kinds(&format!("a{number}")).await,
            ["OrchestrationStarted", "ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"]
        );
    }
    stage.faults.heal();
    stage.stop().await;
    stage.nothing_waits().await;
}
