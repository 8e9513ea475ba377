//! What happens when a commit fails (2.10, F8, F9, F11): trouble of the store is not the user's failure, and
//! what was committed is committed once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast::providers::{ProviderError, ProviderErrorKind};
use steadfast::runtime::RuntimeOptions;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{ActivityContext, ErrorDetails, EventKind, OrchestrationContext, OrchestrationStatus};
use steadfast_behaviour::{Stage, activities, on_every_store, orchestrations};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn down() -> ProviderError {
    ProviderError::retryable("commit", "down")
}

fn broken() -> ProviderError {
    ProviderError::permanent("commit", "the disk is on fire")
}

/// What `broken` becomes in a history.
fn on_fire() -> ErrorDetails {
    ErrorDetails::Infrastructure {
        operation: "commit".to_owned(),
        message: "the disk is on fire".to_owned(),
        retryable: false,
    }
}

/// `Echo` returns its input, `Wait` what is raised as `Go`, `Call` what `Count` returns, `Parent` what a
/// `Wait` called `kid` returns.
fn flows() -> OrchestrationRegistryBuilder {
    parents()
        .register("Echo", |_, input| async move { Ok(input) })
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("Go").await) })
        .register(
            "Call",
            |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("Count", "").await },
        )
}

fn parents() -> OrchestrationRegistryBuilder {
    orchestrations().register("Parent", |ctx: OrchestrationContext, _| async move {
        ctx.schedule_sub_orchestration_with_id("Wait", "kid", "").await
    })
}

/// `Count` returns its delivery as `attempt n`, and counts how often it ran.
fn counting() -> (ActivityRegistryBuilder, Arc<AtomicU64>) {
    let ran = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&ran);
    let registry = activities().register("Count", move |ctx: ActivityContext, _| {
        count.fetch_add(1, Ordering::Relaxed);
        async move { Ok(format!("attempt {}", ctx.counted_deliveries())) }
    });
    (registry, ran)
}

fn one_slot(stage: &Stage) -> RuntimeOptions {
    RuntimeOptions { orchestration_concurrency: 1, worker_concurrency: 1, ..stage.options() }
}

async fn kinds_of(stage: &Stage, instance: &str, execution_id: u64) -> Vec<EventKind> {
    stage.history_of(instance, execution_id).await.into_iter().map(|event| event.kind).collect()
}

/// Waits until the next calls of an operation have come, `wait` after each other.
async fn comes_after(stage: &Stage, operation: &str, nth: u64, wait: Duration) {
    stage.until(operation, async || stage.faults.calls(operation) == nth).await;
    stage.settle().await;
    stage.pass(wait - ms(1));
    stage.settle().await;
    assert_eq!(stage.faults.calls(operation), nth, "{operation} waits for {wait:?}");
    stage.pass(ms(1));
    stage.until(operation, async || stage.faults.calls(operation) > nth).await;
}

on_every_store! {
    async fn r2_10_a_commit_is_tried_five_times_more_after_10_20_40_80_and_160_ms(stage) {
        stage.faults.refuse("commit_turn", 5, down());
        stage.run_with(activities(), flows(), one_slot(&stage)).await;
        stage.start("a", "Echo", "x").await;
        for (nth, wait) in (1..).zip([10, 20, 40, 80, 160]) {
            comes_after(&stage, "commit_turn", nth, ms(wait)).await;
        }
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        assert_eq!((stage.faults.calls("commit_turn"), stage.faults.abandoned()), (6, 0));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f9_a_turn_that_could_not_be_committed_is_abandoned_and_runs_again_at_once(stage) {
        stage.faults.refuse("commit_turn", 6, down());
        stage.run_with(activities(), flows(), one_slot(&stage)).await;
        stage.start("a", "Echo", "x").await;
        for (nth, wait) in (1..).zip([10, 20, 40, 80, 160]) {
            comes_after(&stage, "commit_turn", nth, ms(wait)).await;
        }
        // The clock stands still from here on: the next fetch does not wait for the end of the lease.
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        assert_eq!((stage.faults.calls("commit_turn"), stage.faults.abandoned()), (7, 1));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f8_a_store_that_refuses_commits_for_a_while_fails_nobody(stage) {
        let (counted, _) = counting();
        stage.run(counted, flows()).await;
        // Just longer than the tries of one commit, when a failure could be recorded.
        for refusals in [7, 8] {
            let before = stage.faults.calls("commit_turn");
            stage.faults.refuse("commit_turn", refusals, down());
            let instance = format!("after {refusals}");
            stage.start(&instance, "Call", "").await;
            let ended = stage.ends_as_time_passes(&instance, ms(20)).await;
            assert_eq!(ended, Ok("attempt 1".to_owned()));
            assert!(stage.faults.calls("commit_turn") - before >= refusals + 2);
            assert_eq!(
                stage.kinds(&instance).await,
                ["OrchestrationStarted", "ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"]
            );
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f8_commits_that_fail_for_a_while_never_fail_the_user_nor_count_as_attempts(stage) {
        stage.faults.refuse("commit_turn", 40, down());
        let options = RuntimeOptions { max_attempts: 1, ..one_slot(&stage) };
        let runtime = stage.run_with(activities(), flows(), options).await;
        stage.start("a", "Wait", "").await;
        stage.client.raise_event("a", "Go", "early").await.expect("raises");
        stage.until("a commit", async || stage.faults.calls("commit_turn") > 0).await;
        while stage.faults.calls("commit_turn") < 41 {
            stage.pass_slowly(ms(100), ms(10)).await;
        }
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "Go", "now").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok("now".to_owned()));
        stage.settle().await;
        let counts = runtime.metrics_snapshot().expect("counts");
        assert_eq!((counts.orch_failures, counts.orch_infrastructure_errors), (0, 0));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_10_a_permanent_error_at_the_first_commit_ends_the_execution_as_failed(stage) {
        stage.faults.refuse("commit_turn", 1, broken());
        let runtime = stage.run_with(activities(), flows(), one_slot(&stage)).await;
        stage.start("a", "Echo", "x").await;
        assert_eq!(stage.ends("a").await, Err(on_fire()));
        assert_eq!(on_fire().display_message(), "infrastructure:commit: the disk is on fire");
        assert_eq!(stage.faults.calls("commit_turn"), 2, "a permanent error is not tried again");
        let history = kinds_of(&stage, "a", 1).await;
        let EventKind::OrchestrationStarted { name, version, input, .. } = &history[0] else {
            panic!("{history:?}")
        };
        assert_eq!((name.as_str(), version.as_str(), input.as_str()), ("Echo", "1.0.0", "x"));
        assert_eq!(history[1..], [EventKind::OrchestrationFailed { details: on_fire() }]);
        let info = stage.observer().get_instance_info("a").await.expect("is there");
        assert_eq!((info.status.as_str(), info.output), ("Failed", Some(on_fire().display_message())));
        stage.stop().await;
        // A count may come a moment after what it is about.
        let counts = runtime.metrics_snapshot().expect("counts");
        assert_eq!((counts.orch_failures, counts.orch_infrastructure_errors, counts.orch_starts), (1, 1, 1));
        stage.nothing_waits().await;
    }

    async fn r2_10_a_permanent_error_later_is_recorded_behind_what_was_fetched_and_tells_the_parent(stage) {
        stage.run_with(activities(), flows(), one_slot(&stage)).await;
        stage.start("a", "Parent", "").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.faults.refuse("commit_turn", 1, broken());
        stage.client.raise_event("kid", "Go", "now").await.expect("raises");
        assert_eq!(stage.ends("kid").await, Err(on_fire()));
        let kinds = [
            "OrchestrationStarted",
            "ExternalSubscribed",
            "ExternalSubscribedCancelled",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("kid").await, kinds);
        assert_eq!(stage.ends("a").await, Err(on_fire()));
        assert_eq!(
            kinds_of(&stage, "a", 1).await[2],
            EventKind::SubOrchestrationFailed { details: on_fire() }
        );
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f11_the_failure_of_a_successors_first_commit_is_recorded_in_the_successor(stage) {
        let old = orchestrations().register("Again", |ctx: OrchestrationContext, _| async move {
            ctx.continue_as_new_versioned("2.0.0", "two").await
        });
        stage.run_with(activities(), old, one_slot(&stage)).await;
        stage.start("a", "Again", "one").await;
        stage.until("the successor waits for its code", async || stage.faults.abandoned() == 1).await;
        stage.stop().await;
        stage.faults.refuse("commit_turn", 1, broken());
        let new = orchestrations().register_versioned("Again", "2.0.0", |_, input| async move { Ok(input) });
        stage.run_with(activities(), new, one_slot(&stage)).await;
        assert_eq!(stage.ends_as_time_passes("a", ms(100)).await, Err(on_fire()));
        let first = kinds_of(&stage, "a", 1).await;
        assert_eq!(first[1..], [EventKind::OrchestrationContinuedAsNew { input: "two".to_owned() }]);
        let second = kinds_of(&stage, "a", 2).await;
        let EventKind::OrchestrationStarted { version, input, .. } = &second[0] else { panic!("{second:?}") };
        assert_eq!((version.as_str(), input.as_str()), ("2.0.0", "two"));
        assert_eq!(second[1..], [EventKind::OrchestrationFailed { details: on_fire() }]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_10_the_record_of_a_failure_carries_the_notices_of_collisions(stage) {
        stage.run(activities(), flows()).await;
        stage.start("kid", "Wait", "").await;
        stage.has("kid", "ExternalSubscribed", 1).await;
        stage.stop().await;
        // The code of the child is away, so its turn waits while its would-be parent commits.
        stage.run_with(activities(), parents(), one_slot(&stage)).await;
        stage.start("a", "Parent", "").await;
        stage.until("the start waits", async || stage.faults.abandoned() == 1).await;
        stage.stop().await;
        stage.faults.refuse("commit_turn", 1, broken());
        stage.run_with(activities(), flows(), one_slot(&stage)).await;
        assert_eq!(stage.ends_as_time_passes("kid", ms(100)).await, Err(on_fire()));
        let text = "sub-orchestration instance id 'kid' already exists";
        assert_eq!(stage.output("a").await, Err(text.to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_10_when_the_failure_cannot_be_recorded_either_the_turn_comes_back_after_its_lease(stage) {
        stage.faults.refuse("commit_turn", 2, broken());
        stage.run_with(activities(), flows(), one_slot(&stage)).await;
        stage.start("a", "Echo", "x").await;
        stage.until("both are refused", async || stage.faults.calls("commit_turn") == 2).await;
        stage.settle().await;
        stage.pass(Duration::from_secs(5));
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i2_a_commit_whose_answer_is_lost_happened_once(stage) {
        for (instance, error) in [("retryable", down()), ("permanent", broken())] {
            let (registry, ran) = counting();
            stage.faults.lose_answer("commit_turn", 2, error);
            let runtime = stage.run_with(registry, flows(), one_slot(&stage)).await;
            stage.start(instance, "Call", "").await;
            assert_eq!(stage.ends_as_time_passes(instance, ms(5)).await, Ok("attempt 1".to_owned()));
            let kinds =
                ["OrchestrationStarted", "ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"];
            assert_eq!(stage.kinds(instance).await, kinds);
            assert_eq!(ran.load(Ordering::Relaxed), 1);
            stage.settle().await;
            assert_eq!(runtime.metrics_snapshot().expect("counts").orch_failures, 0);
            stage.stop().await;
        }
        stage.nothing_waits().await;
    }

    async fn r2_10_who_loses_a_lease_or_meets_a_conflict_does_nothing(stage) {
        let lost = ProviderError::lease_lost("commit", "it ended");
        let conflict =
            ProviderError::new(ProviderErrorKind::Conflict, "commit", "there is an event 1 already");
        for (instance, error) in [("lost", lost), ("conflict", conflict)] {
            let before = stage.faults.calls("commit_turn");
            stage.faults.refuse("commit_turn", 1, error);
            stage.run_with(activities(), flows(), one_slot(&stage)).await;
            stage.start(instance, "Echo", "x").await;
            stage.until("a commit", async || stage.faults.calls("commit_turn") == before + 1).await;
            stage.settle().await;
            stage.pass(ms(4_999));
            stage.settle().await;
            let status = stage.client.get_orchestration_status(instance).await.expect("answers");
            assert_eq!(status, OrchestrationStatus::NotFound);
            assert_eq!(stage.faults.calls("commit_turn"), before + 1);
            stage.pass(ms(1));
            assert_eq!(stage.output(instance).await, Ok("x".to_owned()));
            assert_eq!(stage.kinds(instance).await, ["OrchestrationStarted", "OrchestrationCompleted"]);
            stage.stop().await;
        }
        stage.nothing_waits().await;
    }

    async fn r2_10_an_outcome_refused_for_good_is_abandoned_for_100_ms_and_runs_again(stage) {
        let (registry, ran) = counting();
        let invalid = ProviderError::new(ProviderErrorKind::Invalid, "finish", "no such text");
        stage.faults.refuse("finish_work", 1, invalid);
        let runtime = stage.run_with(registry, flows(), one_slot(&stage)).await;
        stage.start("a", "Call", "").await;
        stage.until("it is given back", async || stage.faults.abandoned() == 1).await;
        stage.until("the next is asked for", async || stage.faults.calls("fetch_work") == 2).await;
        stage.settle().await;
        stage.pass(ms(99));
        stage.settle().await;
        assert_eq!(ran.load(Ordering::Relaxed), 1);
        stage.pass(ms(1));
        assert_eq!(stage.output("a").await, Ok("attempt 2".to_owned()));
        stage.settle().await;
        let counts = runtime.metrics_snapshot().expect("counts");
        assert_eq!((counts.activity_infra_errors, counts.activity_success), (1, 1));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g8_an_outcome_that_a_provider_refuses_for_good_is_tried_for_a_lease_and_then_runs_again(stage) {
        let (registry, ran) = counting();
        stage.faults.refuse("finish_work", u64::MAX, broken());
        stage.run_with(registry, flows(), one_slot(&stage)).await;
        stage.start("a", "Call", "").await;
        stage.until("it is handed in", async || stage.faults.calls("finish_work") > 0).await;
        stage.pass_slowly(Duration::from_secs(29), ms(250)).await;
        assert_eq!((ran.load(Ordering::Relaxed), stage.faults.calls("abandon")), (1, 0));
        stage.pass_slowly(Duration::from_secs(5), ms(250)).await;
        assert_eq!(stage.faults.calls("abandon"), 1);
        stage.faults.heal();
        let ended = stage.ends_as_time_passes("a", ms(250)).await;
        assert_eq!((ended, ran.load(Ordering::Relaxed)), (Ok("attempt 2".to_owned()), 2));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f8_an_outcome_that_meets_trouble_is_reported_again_and_the_activity_runs_once(stage) {
        let (registry, ran) = counting();
        stage.faults.refuse("finish_work", 4, down());
        let runtime = stage.run_with(registry, flows(), one_slot(&stage)).await;
        stage.start("a", "Call", "").await;
        assert_eq!(stage.ends_as_time_passes("a", ms(100)).await, Ok("attempt 1".to_owned()));
        assert_eq!((ran.load(Ordering::Relaxed), stage.faults.calls("finish_work")), (1, 5));
        stage.settle().await;
        let counts = runtime.metrics_snapshot().expect("counts");
        assert_eq!((counts.activity_infra_errors, counts.activity_success), (0, 1));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i6_an_outcome_whose_answer_is_lost_is_used_once(stage) {
        for (instance, error) in [("retryable", down()), ("permanent", broken())] {
            let (registry, ran) = counting();
            stage.faults.lose_answer("finish_work", 1, error);
            stage.run_with(registry, flows(), one_slot(&stage)).await;
            stage.start(instance, "Call", "").await;
            assert_eq!(stage.output(instance).await, Ok("attempt 1".to_owned()));
            // The second try is told that the lease is gone.
            stage.pass_slowly(Duration::from_secs(1), ms(50)).await;
            assert_eq!(ran.load(Ordering::Relaxed), 1);
            stage.stop().await;
        }
        stage.nothing_waits().await;
    }
}
