//! Leases of turns: renewed, abandoned and lost (2.9, F7, F24). Leases of work: `work.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast::providers::{ProviderError, ProviderErrorKind};
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{Runtime, RuntimeOptions, UnregisteredBackoffConfig};
use steadfast::{ErrorDetails, OrchestrationContext, OrchestrationStatus};
use steadfast_behaviour::{SOON, Stage, activities, on_every_store, orchestrations};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn down() -> ProviderError {
    ProviderError::retryable("store", "down")
}

/// `Echo` returns its input, `Call` calls `Hang`.
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations().register("Echo", |_, input| async move { Ok(input) }).register(
        "Call",
        |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("Hang", "").await },
    )
}

/// `Hang` never ends; the count tells how often it began.
fn hanging() -> (ActivityRegistryBuilder, Arc<AtomicU64>) {
    let began = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&began);
    let registry = activities().register("Hang", move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::pending()
    });
    (registry, began)
}

/// Starts a runtime and an instance whose commit never answers: a turn that takes for ever.
async fn hold_a_turn(stage: &Stage, options: RuntimeOptions) -> Arc<Runtime> {
    stage.faults.hang("commit_turn", 1);
    let runtime = stage.run_with(activities(), flows(), options).await;
    stage.start("a", "Echo", "x").await;
    stage.until("a commit", async || stage.faults.calls("commit_turn") == 1).await;
    stage.settle().await;
    runtime
}

/// Stops a runtime that holds such a turn: it is given up after a second.
async fn stop_the_holder(stage: &Stage) {
    let time = async {
        stage.settle().await;
        stage.pass(Duration::from_secs(1));
    };
    tokio::join!(stage.stop_at_once(), time);
}

on_every_store! {
    async fn r2_9_the_first_renewal_comes_after_one_interval(stage) {
        // Lock and buffer, and the interval that follows: a buffer before the end of a long lease, half of a
        // short one, never less than a second; and never so late that one failure would lose the lease (F24).
        let table = [
            (30_000, 5_000, 15_000),
            (30_000, 20_000, 10_000),
            (15_000, 10_000, 5_000),
            (40_000, 39_500, 1_000),
            (20_000, 100_000, 1_000),
            (10_000, 1_000, 5_000),
            (5_000, 2_000, 2_500),
            (1_000, 5_000, 500),
            (200, 0, 100),
        ];
        for (lock, buffer, interval) in table {
            let (registry, began) = hanging();
            let options = RuntimeOptions {
                worker_lock_timeout: ms(lock),
                worker_lock_renewal_buffer: ms(buffer),
                // Renewed later than every activity here.
                session_lock_timeout: Duration::from_secs(7_200),
                ..stage.options()
            };
            stage.run_with(registry, flows(), options).await;
            stage.start(&format!("{lock} {buffer}"), "Call", "").await;
            stage.until("the activity runs", async || began.load(Ordering::Relaxed) == 1).await;
            stage.settle().await;
            let before = stage.faults.calls("renew");
            stage.pass(ms(interval - 1));
            stage.settle().await;
            assert_eq!(
                stage.faults.calls("renew"),
                before,
                "{lock} with {buffer} is renewed after {interval} ms"
            );
            stage.pass(ms(1));
            stage.until("a renewal", async || stage.faults.calls("renew") == before + 1).await;
            let instance = format!("{lock} {buffer}");
            stage.client.cancel_instance(instance.as_str(), "enough").await.expect("cancels");
            assert_eq!(stage.output(&instance).await, Err("canceled: enough".to_owned()));
            stage.stop().await;
        }
    }

    async fn r2_9_a_turn_is_renewed_until_its_commit_has_answered(stage) {
        hold_a_turn(&stage, stage.options()).await;
        stage.pass(ms(2_499));
        stage.settle().await;
        assert_eq!(stage.faults.calls("renew"), 0);
        stage.pass(ms(1));
        stage.until("a renewal", async || stage.faults.calls("renew") == 1).await;
        // The other slot would take the turn if one of these renewals did not extend the lease by all of its
        // time. The commit is not yet made again (G39).
        stage.pass_slowly(Duration::from_secs(50), ms(500)).await;
        assert!(stage.faults.calls("renew") >= 17, "{}", stage.faults.calls("renew"));
        assert_eq!(stage.faults.calls("commit_turn"), 1, "one turn at a time");
        stop_the_holder(&stage).await;
    }

    async fn r2_9_a_turn_is_renewed_in_a_shutdown_too(stage) {
        let runtime = hold_a_turn(&stage, stage.options()).await;
        let stopping = tokio::spawn(runtime.shutdown(Some(20_000)));
        stage.settle().await;
        stage.pass_slowly(Duration::from_secs(15), ms(500)).await;
        assert!(stage.faults.calls("renew") >= 4, "{}", stage.faults.calls("renew"));
        assert!(!stopping.is_finished());
        stage.pass_slowly(Duration::from_secs(10), ms(500)).await;
        stopping.await.expect("the runtime stops");
        stage.stop().await;
    }

    async fn r2_9_renewal_stops_when_the_turn_was_abandoned(stage) {
        let backoff = UnregisteredBackoffConfig {
            base_delay: Duration::from_secs(60),
            max_delay: Duration::from_secs(60),
        };
        let options = RuntimeOptions { unregistered_backoff: backoff, ..stage.options() };
        stage.run_with(activities(), flows(), options).await;
        stage.start("a", "Nobody", "").await;
        stage.until("it is given back", async || stage.faults.abandoned() == 1).await;
        stage.pass_slowly(Duration::from_secs(30), ms(500)).await;
        assert_eq!((stage.faults.calls("renew"), stage.faults.abandoned()), (0, 1));
        stage.stop().await;
    }

    async fn r2_9_an_abandon_that_failed_ends_in_redelivery_after_the_lease_and_counts(stage) {
        comes_back_after_its_lease(&stage, down()).await;
    }

    async fn r2_9_so_does_an_abandon_that_was_refused_for_good(stage) {
        comes_back_after_its_lease(&stage, ProviderError::permanent("abandon", "no")).await;
    }

    async fn i3_a_turn_whose_lease_ended_commits_nothing_and_runs_elsewhere(stage) {
        let options = RuntimeOptions { orchestrator_lock_timeout: ms(50), ..stage.options() };
        stage.faults.refuse("renew", u64::MAX, down());
        // The first slot tries after 10, 30 and 70 ms; by then the lease has ended and the second slot had
        // the turn.
        stage.faults.refuse("commit_turn", 3, down());
        let runtime = stage.run_with(activities(), flows(), options).await;
        stage.start("a", "Echo", "x").await;
        assert_eq!(stage.ends_as_time_passes("a", ms(5)).await, Ok("x".to_owned()));
        stage.pass_slowly(ms(500), ms(5)).await;
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
        stage.settle().await;
        assert_eq!(runtime.metrics_snapshot().expect("counts").orch_completions, 1);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i7_a_turn_that_hangs_without_renewal_goes_to_another_slot_after_its_lease(stage) {
        stage.faults.refuse("renew", u64::MAX, down());
        hold_a_turn(&stage, stage.options()).await;
        stage.pass(ms(4_999));
        stage.settle().await;
        assert_eq!(stage.faults.calls("commit_turn"), 1);
        stage.pass(ms(1));
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        assert_eq!(stage.faults.calls("commit_turn"), 2);
        stop_the_holder(&stage).await;
        stage.nothing_waits().await;
    }

    async fn f7_a_turn_survives_renewals_that_fail_for_a_while(stage) {
        stage.faults.refuse("renew", 5, down());
        hold_a_turn(&stage, stage.options()).await;
        stage.pass_slowly(Duration::from_secs(20), ms(125)).await;
        assert_eq!(stage.faults.calls("commit_turn"), 1, "the turn is still held by one slot");
        assert!(stage.faults.calls("renew") > 8, "{}", stage.faults.calls("renew"));
        stop_the_holder(&stage).await;
    }

    async fn r2_9_renewal_of_a_turn_stops_when_the_store_says_that_it_is_gone(stage) {
        stage.faults.refuse(
            "renew",
            1,
            ProviderError::new(ProviderErrorKind::LeaseLost, "renew", "Invalid lock token"),
        );
        hold_a_turn(&stage, RuntimeOptions { orchestration_concurrency: 1, ..stage.options() }).await;
        stage.pass_slowly(Duration::from_secs(60), ms(500)).await;
        assert_eq!(stage.faults.calls("renew"), 1);
        stop_the_holder(&stage).await;
    }
}

/// Gives back a turn whose commit met damage, in vain.
async fn comes_back_after_its_lease(stage: &Stage, error: ProviderError) {
    stage.faults.keep_lease(&error);
    stage.faults.refuse(
        "commit_turn",
        1,
        ProviderError::new(ProviderErrorKind::Corrupt, "commit_turn", "torn"),
    );
    let options = RuntimeOptions { max_attempts: 1, ..stage.options() };
    stage.run_with(activities(), flows(), options).await;
    stage.start("a", "Echo", "x").await;
    stage.until("it is given back", async || stage.faults.abandoned() == 1).await;
    stage.settle().await;
    stage.pass(ms(4_999));
    stage.settle().await;
    assert_eq!(stage.faults.calls("commit_turn"), 1, "the lease lasts");
    stage.pass(ms(1));
    stage.until("it is tried again", async || stage.faults.calls("commit_turn") == 2).await;
    let status = stage.client.wait_for_orchestration("a", SOON).await.expect("it ends");
    let OrchestrationStatus::Failed { details: ErrorDetails::Poison { attempt_count, .. }, .. } = status
    else {
        panic!("{status:?}")
    };
    assert_eq!(attempt_count, 2, "the delivery counts");
    assert_eq!(stage.faults.calls("renew"), 0);
    stage.stop().await;
}
