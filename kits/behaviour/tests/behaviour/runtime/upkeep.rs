//! Keeping a store in order: ending what has no code any more, deleting what ended long ago, letting go of
//! turns that do not come back, retries with a bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use steadfast::runtime::RuntimeOptions;
use steadfast::{
    ActivityContext, AppErrorKind, BackoffStrategy, CancelReason, ErrorDetails, OrchestrationContext,
    OrchestrationRegistryBuilder, OrchestrationStatus, Retry, RetryPolicy,
};
use steadfast_behaviour::{
    Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};

const HOUR: Duration = Duration::from_secs(3_600);

fn waiting() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("never").await) })
        .register("Parent", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_sub_orchestration_with_id("Wait", "child", "").await
        })
        .register("Done", |_, input| async move { Ok(input) })
}

fn terminated(reason: &str) -> ErrorDetails {
    ErrorDetails::Application {
        kind: AppErrorKind::Terminated { reason: reason.to_owned() },
        message: String::new(),
        retryable: false,
    }
}

on_every_store! {
    async fn an_instance_whose_code_is_gone_can_be_terminated(stage) {
        stage.run(activities(), waiting()).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        // A deployment without it.
        stage.run(activities(), orchestrations()).await;
        stage.client.terminate_instance("a", "its code is gone").await.expect("asks");
        assert_eq!(stage.ends("a").await, Err(terminated("its code is gone")));
        let events = [
            "OrchestrationStarted",
            "ExternalSubscribed",
            "ExternalSubscribedCancelled",
            "OrchestrationFailed",
        ];
        assert_eq!(stage.kinds("a").await, events);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn a_terminated_child_tells_its_parent_and_a_terminated_parent_its_child(stage) {
        stage.run(activities(), waiting()).await;
        for (terminated, parent) in [("child", "p1"), ("p2", "p2")] {
            stage.start(parent, "Parent", "").await;
            stage.has("child", "ExternalSubscribed", 1).await;
            stage.client.terminate_instance(terminated, "enough").await.expect("asks");
            assert_eq!(stage.output(parent).await, Err("terminated: enough".to_owned()));
            stage.ends("child").await.expect_err("ends too");
            stage.observer().delete_instance(parent, false).await.expect("all have ended");
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn an_instance_that_waits_for_a_handler_can_be_terminated(stage) {
        let options = RuntimeOptions { max_attempts: 100, ..stage.options() };
        stage.run_with(activities(), orchestrations(), options).await;
        stage.start("a", "Nobody", "").await;
        stage.until("it was tried", async || stage.faults.abandoned() > 0).await;
        stage.client.terminate_instance("a", "a typing error").await.expect("asks");
        let ended = stage.ends_as_time_passes("a", Duration::from_millis(500)).await;
        assert_eq!(ended, Err(terminated("a typing error")));
        stage.stop().await;
    }

    async fn terminating_what_is_unknown_or_over_changes_nothing(stage) {
        stage.run(activities(), waiting()).await;
        assert_eq!(stage.ends_after("a", "Done", "x").await, Ok("x".to_owned()));
        for instance in ["a", "unknown"] {
            stage.client.terminate_instance(instance, "enough").await.expect("is no error");
        }
        assert_eq!(stage.ends_after("b", "Done", "y").await, Ok("y".to_owned()));
        assert_eq!(stage.ends("a").await, Ok("x".to_owned()));
        assert_eq!(
            stage.client.get_orchestration_status("unknown").await.expect("answers"),
            OrchestrationStatus::NotFound
        );
        stage.stop().await;
    }

    async fn messages_for_an_instance_that_waits_for_its_handler_are_kept(stage) {
        stage.run(activities(), orchestrations()).await;
        stage.start("a", "Late", "").await;
        stage.until("it was tried", async || stage.faults.abandoned() > 0).await;
        stage.client.enqueue_event("a", "q", "kept").await.expect("sends");
        stage.settle().await;
        stage.stop().await;
        let flow = orchestrations()
            .register("Late", |ctx: OrchestrationContext, _| async move { Ok(ctx.dequeue_event("q").await) });
        stage.run(activities(), flow).await;
        let ended = stage.ends_as_time_passes("a", Duration::from_millis(500)).await;
        assert_eq!(ended, Ok("kept".to_owned()));
        stage.stop().await;
    }

    async fn a_retry_can_be_limited_to_errors_that_are_worth_it(stage) {
        let tries = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&tries);
        let acts = activities().register("Charge", move |_, error: String| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move { Err(error) }
        });
        let flow = orchestrations().register("Pay", |ctx: OrchestrationContext, error: String| async move {
            let policy = RetryPolicy::new(4).with_backoff(BackoffStrategy::None);
            let retry = Retry::from(policy).retry_if(|error| error != "declined");
            ctx.schedule_activity_retrying("Charge", error, retry).await
        });
        stage.run(acts, flow).await;
        for (error, expected) in [("declined", 1), ("busy", 4)] {
            tries.store(0, Ordering::Relaxed);
            stage.ends_after(error, "Pay", error).await.expect_err("fails");
            assert_eq!(stage.output(error).await, Err(error.to_owned()));
            assert_eq!(tries.load(Ordering::Relaxed), expected, "{error}");
        }
        stage.stop().await;
    }

    async fn a_total_timeout_bounds_all_attempts_together(stage) {
        let acts = activities().register("Busy", |_, _: String| async { Err("busy".to_owned()) });
        let flow = orchestrations().register("Try", |ctx: OrchestrationContext, _| async move {
            let hourly = BackoffStrategy::Fixed { delay: HOUR };
            let retry = Retry::from(RetryPolicy::new(100).with_backoff(hourly)).total_timeout(HOUR * 5 / 2);
            ctx.schedule_activity_retrying("Busy", "", retry).await
        });
        stage.run(acts, flow).await;
        stage.start("a", "Try", "").await;
        for attempt in 1..=3 {
            stage.has("a", "ActivityFailed", attempt).await;
            stage.has("a", "TimerCreated", attempt + 1).await;
            stage.pass(HOUR);
        }
        let error = stage.output("a").await.expect_err("takes too long");
        assert_eq!(error, "timeout: activity 'Busy' did not succeed within 9000s, retries included");
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn ended_instances_are_deleted_after_their_time(stage) {
        let options = RuntimeOptions { retain_finished_for: Some(10 * HOUR), ..stage.options() };
        stage.run_with(activities(), waiting(), options).await;
        stage.ends_after("old", "Done", "").await.expect("completes");
        stage.start("alive", "Wait", "").await;
        stage.has("alive", "ExternalSubscribed", 1).await;
        stage.pass_slowly(6 * HOUR, HOUR / 2).await;
        stage.ends_after("young", "Done", "").await.expect("completes");
        let instances = async || {
            let mut ids = stage.client.list_all_instances().await.expect("lists");
            ids.sort();
            ids
        };
        assert_eq!(instances().await, ["alive", "old", "young"]);
        stage.pass_slowly(6 * HOUR, HOUR / 2).await;
        stage.until("the old one is gone", async || instances().await == ["alive", "young"]).await;
        stage.pass_slowly(48 * HOUR, HOUR).await;
        stage.until("the young one too", async || instances().await == ["alive"]).await;
        stage.stop().await;
    }

    async fn a_terminated_instance_stops_its_activity_at_once(stage) {
        let told = Arc::new(tokio::sync::Notify::new());
        let tell = Arc::clone(&told);
        let acts = activities().register("Long", move |ctx: ActivityContext, _: String| {
            let tell = Arc::clone(&tell);
            async move {
                tell.notify_one();
                ctx.cancelled().await;
                assert_eq!(ctx.cancel_reason(), Some(CancelReason::Withdrawn));
                tell.notify_one();
                Ok(String::new())
            }
        });
        let flow = orchestrations().register("Long", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity("Long", "").await
        });
        stage.run(acts, flow).await;
        stage.start("a", "Long", "").await;
        told.notified().await;
        stage.client.terminate_instance("a", "enough").await.expect("asks");
        told.notified().await;
        assert_eq!(stage.ends("a").await, Err(terminated("enough")));
        stage.stop().await;
    }
}

/// Lets a handler go that holds its thread, also when the test fails.
#[derive(Default)]
struct Released(Arc<AtomicBool>);

impl Drop for Released {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A handler that holds its thread. Real threads and real time, because that is what it holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_handler_that_never_yields_is_named_and_delays_no_other_instance() {
    let stage = Stage::new(StoreKind::Memory).await;
    let (released, entered) = (Released::default(), Arc::new(AtomicU32::new(0)));
    let (free, count) = (Arc::clone(&released.0), Arc::clone(&entered));
    let flow = waiting().register("Spin", move |_: OrchestrationContext, _: String| {
        let free = Arc::clone(&free);
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            while !free.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Ok("at last".to_owned())
        }
    });
    let options = RuntimeOptions {
        orchestration_concurrency: 1,
        max_turn_time: Duration::from_secs(2),
        ..stage.options()
    };
    let runtime = stage.run_with(activities(), flow, options).await;
    stage.start("spins", "Spin", "").await;
    stage.until("it spins", async || entered.load(Ordering::Relaxed) == 1).await;
    // Its lease is not renewed any more and expires; no worker runs it a second time while it still spins.
    // The keeper of the lease runs beside the code that spins, so time waits for it.
    let step = Duration::from_millis(100);
    stage
        .until("its slot is replaced", async || {
            stage.pass_slowly(step, step).await;
            runtime.health().await.slots_replaced == 1
        })
        .await;
    for _ in 0..20 {
        stage.pass_slowly(Duration::from_secs(1), Duration::from_millis(100)).await;
    }
    assert_eq!(stage.ends_after("other", "Done", "x").await, Ok("x".to_owned()));
    assert_eq!(entered.load(Ordering::Relaxed), 1);
    drop(released);
    let ended = stage.ends_as_time_passes("spins", Duration::from_millis(500)).await;
    assert_eq!(ended, Ok("at last".to_owned()), "the next try is quick");
    stage.stop().await;
}
