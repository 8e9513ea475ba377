//! Stopping a runtime (2.16): what runs may finish in the time that is given, then it is stopped and given
//! back.

use std::sync::Arc;
use std::time::Duration;

use crate::workbench::{Gate, SECOND, call, handing, pass_calmly, waiting};
use futures::FutureExt;
use steadfast::providers::{Provider, ProviderError};
use steadfast::runtime::registry::ActivityRegistry;
use steadfast::runtime::{Runtime, RuntimeOptions};
use steadfast::{
    ActivityContext, CancelReason, Client, Either2, OrchestrationContext, OrchestrationRegistry,
    OrchestrationStatus,
};
use steadfast_behaviour::{
    Lines, SOON, Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_memory::MemoryStore;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const MILLISECOND: Duration = Duration::from_millis(1);

/// Starts a runtime whose only activity stands at the gate.
async fn held(stage: &Stage) -> (Arc<Runtime>, Gate) {
    let gate = Gate::new();
    let runtime = stage.run(waiting(&gate), orchestrations().register("Call", call)).await;
    stage.start("a", "Call", "Wait").await;
    gate.is_entered().await;
    (runtime, gate)
}

/// Begins to stop a runtime, and returns when it waits for what runs.
async fn stopping(stage: &Stage, runtime: &Arc<Runtime>, timeout_ms: Option<u64>) -> JoinHandle<()> {
    let sleepers = stage.clock.sleepers();
    let handle = tokio::spawn(Arc::clone(runtime).shutdown(timeout_ms));
    // The fetches that waited have ended; work that runs keeps its lease, and the call waits for its time.
    stage.until("it waits", async || !runtime.health().await.accepting).await;
    stage.until("its time runs", async || stage.clock.sleepers() != sleepers).await;
    if stage.kind != StoreKind::Wrapped {
        // The runtime tells the store that it stops, and does not wait for the answer for ever.
        stage.until("it tells its stop", async || stage.faults.calls("report_worker") > 1).await;
        stage.settle().await;
    }
    handle
}

/// Runs the abandoned work, without any time passing, and tells which delivery that was.
async fn runs_again(stage: &Stage) -> Result<String, String> {
    let gate = Gate::new();
    gate.open();
    stage.run(waiting(&gate), orchestrations().register("Call", call)).await;
    let output = stage.output("a").await;
    stage.stop().await;
    stage.nothing_waits().await;
    output
}

/// Stops a runtime while time passes, and tells how much did.
async fn stops_in(stage: &Stage, runtime: Arc<Runtime>, timeout_ms: Option<u64>) -> Duration {
    let handle = tokio::spawn(runtime.shutdown(timeout_ms));
    let mut passed = Duration::ZERO;
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    while !handle.is_finished() {
        assert!(passed < 60 * SECOND, "the runtime does not stop");
        stage.pass_slowly(SECOND / 10, SECOND / 10).await;
        passed += SECOND / 10;
    }
    handle.await.expect("it does not panic");
    passed
}

on_every_store! {
    async fn r2_16_with_zero_what_runs_is_stopped_and_abandoned_at_once_and_uncounted(stage) {
        let (lines, _guard) = Lines::collect();
        let (acts, mut handed) = handing();
        let runtime = stage.run(acts, orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Hand").await;
        let ctx = handed.recv().await.expect("it runs");
        runtime.shutdown(Some(0)).await;
        assert_eq!((ctx.is_cancelled(), ctx.cancel_reason()), (true, Some(CancelReason::Shutdown)));
        assert_eq!(lines.saying("WARN", "shutdown took too long").len(), 0);
        let acts = activities()
            .register("Hand", |ctx: ActivityContext, _| async move {
                Ok(ctx.counted_deliveries().to_string())
            });
        stage.run(acts, orchestrations().register("Call", call)).await;
        assert_eq!(stage.output("a").await, Ok("1".to_owned()), "no time passed, and no attempt was counted");
        assert_eq!(stage.kinds("a").await.len(), 4);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_16_what_runs_may_finish_in_its_time_and_then_the_runtime_returns_at_once(stage) {
        let (runtime, gate) = held(&stage).await;
        let handle = stopping(&stage, &runtime, Some(60_000)).await;
        pass_calmly(&stage, 10 * SECOND, SECOND).await;
        assert!(!handle.is_finished(), "it waits for what runs");
        // Nothing more is fetched meanwhile.
        stage.start("late", "Call", "Wait").await;
        gate.open();
        handle.await.expect("it does not panic");
        assert_eq!(stage.kinds("late").await, [""; 0]);
        let depths = stage.observer().get_queue_depths().await.expect("counts");
        assert_eq!(
            (depths.orchestrator_queue, depths.worker_queue),
            (2, 0),
            "the outcome and the late start"
        );
        stage.client.cancel_instance("late", "not needed").await.expect("cancels");
        assert_eq!(runs_again(&stage).await, Ok("attempt 1".to_owned()));
    }

    async fn r2_16_after_its_time_what_still_runs_is_abandoned_uncounted(stage) {
        let (lines, _guard) = Lines::collect();
        let (runtime, _gate) = held(&stage).await;
        let handle = stopping(&stage, &runtime, Some(5_000)).await;
        pass_calmly(&stage, 5 * SECOND - MILLISECOND, 5 * SECOND - MILLISECOND).await;
        assert!(!handle.is_finished(), "it has a millisecond left");
        assert_eq!(lines.saying("WARN", "shutdown took too long").len(), 0);
        stage.pass(MILLISECOND);
        handle.await.expect("it does not panic");
        let [line] = &lines.saying("WARN", "shutdown took too long")[..] else { panic!("{:?}", lines.all()) };
        assert_eq!(line.target, "steadfast::runtime");
        assert_eq!(runs_again(&stage).await, Ok("attempt 1".to_owned()));
    }

    async fn r2_16_without_a_time_it_is_a_second(stage) {
        let (runtime, _gate) = held(&stage).await;
        let handle = stopping(&stage, &runtime, None).await;
        pass_calmly(&stage, SECOND - MILLISECOND, SECOND - MILLISECOND).await;
        assert!(!handle.is_finished(), "it has a millisecond left");
        stage.pass(MILLISECOND);
        handle.await.expect("it does not panic");
        assert_eq!(runs_again(&stage).await, Ok("attempt 1".to_owned()));
    }

    async fn r2_16_an_idle_runtime_returns_at_once(stage) {
        for timeout_ms in [None, Some(0), Some(3_600_000)] {
            let runtime = stage.run(activities(), orchestrations()).await;
            let fetches = stage.faults.calls("fetch_work");
            stage.until("it asks for work", async || stage.faults.calls("fetch_work") > fetches).await;
            // No time passes.
            runtime.shutdown(timeout_ms).await;
        }
    }

    async fn r2_16_a_runtime_can_be_stopped_again(stage) {
        let (runtime, gate) = held(&stage).await;
        gate.open();
        stage.ends("a").await.expect("completes");
        for timeout_ms in [None, Some(0), None] {
            Arc::clone(&runtime).shutdown(timeout_ms).await;
            assert!(!runtime.health().await.accepting);
        }
    }

    async fn r2_16_calls_at_the_same_time_all_wait(stage) {
        let (runtime, gate) = held(&stage).await;
        let handles =
            [stopping(&stage, &runtime, Some(60_000)).await, stopping(&stage, &runtime, None).await];
        assert!(handles.iter().all(|handle| !handle.is_finished()), "both wait for what runs");
        gate.open();
        for handle in handles {
            handle.await.expect("it does not panic");
        }
        assert_eq!(runs_again(&stage).await, Ok("attempt 1".to_owned()));
    }

    async fn r2_16_a_shorter_call_stops_what_a_longer_one_waits_for(stage) {
        let (runtime, _gate) = held(&stage).await;
        let long = stopping(&stage, &runtime, Some(60_000)).await;
        Arc::clone(&runtime).shutdown(Some(0)).await;
        long.await.expect("it does not panic");
        assert_eq!(runs_again(&stage).await, Ok("attempt 1".to_owned()));
    }

    async fn r2_16_a_call_that_is_dropped_has_still_asked_the_runtime_to_stop(stage) {
        let gate = Gate::new();
        let holders = Arc::strong_count(&stage.store);
        let acts = waiting(&gate).build_result().expect("activities");
        let flows = orchestrations().register("Call", call).build_result().expect("orchestrations");
        let runtime =
            Runtime::start_with_options(Arc::clone(&stage.store), acts, flows, stage.options()).await;
        stage.start("a", "Call", "Wait").await;
        gate.is_entered().await;
        assert_eq!(runtime.shutdown(Some(60_000)).now_or_never(), None);
        stage.start("late", "Call", "Wait").await;
        gate.open();
        // With what it ran, the last task ends.
        stage.until("it has stopped", async || Arc::strong_count(&stage.store) == holders).await;
        assert_eq!(stage.kinds("late").await, [""; 0]);
        stage.client.cancel_instance("late", "not needed").await.expect("cancels");
        assert_eq!(runs_again(&stage).await, Ok("attempt 1".to_owned()));
    }

    async fn r2_16_a_stopped_runtime_holds_no_store(stage) {
        for timeout_ms in [None, Some(0)] {
            let holders = Arc::strong_count(&stage.store);
            let (acts, mut handed) = handing();
            let acts = acts.build_result().expect("activities");
            let flows = orchestrations().register("Call", call).build_result().expect("orchestrations");
            let runtime =
                Runtime::start_with_options(Arc::clone(&stage.store), acts, flows, stage.options()).await;
            let instance = format!("{timeout_ms:?}");
            stage.start(&instance, "Call", "Hand").await;
            // The context holds a client of the store, which is the activity's own.
            drop(handed.recv().await.expect("it runs"));
            assert!(Arc::strong_count(&stage.store) > holders);
            let passing = stage.clock.clone();
            tokio::join!(runtime.shutdown(timeout_ms), async { passing.advance(SECOND) });
            // Work that the runtime before abandoned may have run here, and its context is in the channel.
            drop(handed);
            assert_eq!(Arc::strong_count(&stage.store), holders);
        }
    }

    async fn i12_restarts_make_no_poison(stage) {
        for restart in 0..5 {
            let gate = Gate::new();
            let options = RuntimeOptions { max_attempts: 1, ..stage.options() };
            let flows = orchestrations().register("Call", call);
            let runtime = stage.run_with(waiting(&gate), flows, options).await;
            if restart == 0 {
                stage.start("a", "Call", "Wait").await;
            }
            gate.is_entered().await;
            runtime.shutdown(Some(0)).await;
        }
        assert_eq!(runs_again(&stage).await, Ok("attempt 1".to_owned()));
    }

    async fn r2_16_dropping_a_runtime_does_not_stop_it(stage) {
        let gate = Gate::new();
        gate.open();
        let acts = waiting(&gate).build_result().expect("activities");
        let flows = orchestrations().register("Call", call).build_result().expect("orchestrations");
        drop(Runtime::start_with_options(Arc::clone(&stage.store), acts, flows, stage.options()).await);
        assert_eq!(stage.ends_after("a", "Call", "Wait").await, Ok("attempt 1".to_owned()));
        stage.nothing_waits().await;
    }

    async fn r2_9_leases_are_renewed_while_a_shutdown_waits(stage) {
        let (runtime, gate) = held(&stage).await;
        let handle = stopping(&stage, &runtime, Some(600_000)).await;
        pass_calmly(&stage, 120 * SECOND, 5 * SECOND).await;
        let free = stage.observer().get_queue_depths().await.expect("counts").worker_queue;
        assert_eq!((free, handle.is_finished()), (0, false), "nobody else may take it");
        gate.open();
        handle.await.expect("it does not panic");
        assert_eq!(runs_again(&stage).await, Ok("attempt 1".to_owned()));
    }

    async fn r2_16_a_turn_that_has_begun_is_committed_in_its_time(stage) {
        stage.faults.refuse("commit_turn", 2, ProviderError::retryable("ack_orchestration_item", "busy"));
        let flow = orchestrations().register("Quick", |_, _| async { Ok("done".to_owned()) });
        let runtime = stage.run(activities(), flow).await;
        stage.start("a", "Quick", "").await;
        stage.until("its commit fails", async || stage.faults.calls("commit_turn") == 1).await;
        assert!(stops_in(&stage, runtime, Some(5_000)).await < SECOND);
        assert_eq!(stage.output("a").await, Ok("done".to_owned()));
        stage.nothing_waits().await;
    }

    async fn r2_16_a_turn_that_cannot_be_committed_is_abandoned_uncounted(stage) {
        stage.faults.refuse("commit_turn", 1_000, ProviderError::retryable("ack_orchestration_item", "busy"));
        let flow = || orchestrations().register("Quick", |_, _| async { Ok("done".to_owned()) });
        let runtime = stage.run(activities(), flow()).await;
        stage.start("a", "Quick", "").await;
        stage.until("its commit fails", async || stage.faults.calls("commit_turn") == 1).await;
        runtime.shutdown(Some(0)).await;
        stage.faults.heal();
        // One counted delivery would be poison, and no time passes.
        let options = RuntimeOptions { max_attempts: 1, ..stage.options() };
        stage.run_with(activities(), flow(), options).await;
        assert_eq!(stage.output("a").await, Ok("done".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_16_a_cancelled_activity_in_its_grace_does_not_keep_the_runtime(stage) {
        let (acts, mut handed) = handing();
        let flow = orchestrations().register("Race", |ctx: OrchestrationContext, _| async move {
            let work = ctx.schedule_activity("Hand", "");
            match ctx.select2(work, ctx.schedule_wait("stop")).await {
                Either2::First(result) => result,
                Either2::Second(data) => Ok(data),
            }
        });
        let runtime = stage.run(acts, flow).await;
        stage.start("a", "Race", "").await;
        let ctx = handed.recv().await.expect("it runs");
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "stop", "").await.expect("raises");
        stage.ends("a").await.expect("completes");
        ctx.cancelled().await;
        // No time passes, so its grace does not end.
        runtime.shutdown(Some(0)).await;
        assert_eq!(ctx.cancel_reason(), Some(CancelReason::Withdrawn));
        stage.nothing_waits().await;
    }
}

/// Waits until a runtime asks for nothing that a hanging store could answer.
async fn asked(stage: &Stage, operation: &'static str) {
    stage.until(operation, async || stage.faults.calls(operation) >= 1).await;
}

on_every_full_store! {
    async fn g14_a_shutdown_that_the_store_holds_up_blames_no_code_of_the_application(stage) {
        let (lines, _guard) = Lines::collect();
        let gate = Gate::new();
        let flows = orchestrations().register("Talk", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity_on_session("Wait", "", "chat").await
        });
        let runtime = stage.run(waiting(&gate), flows).await;
        stage.start("a", "Talk", "").await;
        gate.is_entered().await;
        stage.faults.hang("abandon", 1);
        stage.faults.hang("release_sessions", 1);
        let passed = stops_in(&stage, runtime, Some(0)).await;
        assert!(passed < 5 * SECOND, "{passed:?}");
        let ended = lines.saying("WARN", "the runtime has ended");
        let [line] = &ended[..] else { panic!("{:?}", lines.all()) };
        assert!(line.says("the store") && !line.says("application"), "{line:?}");
    }

    async fn r2_16_a_store_that_hangs_does_not_keep_an_idle_runtime(stage) {
        for operation in ["fetch_turn", "fetch_work"] {
            stage.faults.hang(operation, u64::MAX);
        }
        let runtime = stage.run(activities(), orchestrations()).await;
        asked(&stage, "fetch_work").await;
        runtime.shutdown(None).await;
    }

    async fn r2_16_a_store_that_hangs_on_sessions_does_not_keep_the_runtime(stage) {
        stage.faults.hang("renew_sessions", 1);
        let runtime = stage.run(activities(), orchestrations()).await;
        asked(&stage, "fetch_work").await;
        stage.pass(15 * SECOND);
        asked(&stage, "renew_sessions").await;
        runtime.shutdown(Some(0)).await;
    }

    async fn r2_16_a_store_that_hangs_on_a_commit_keeps_the_runtime_for_a_second_at_most(stage) {
        stage.faults.hang("commit_turn", u64::MAX);
        let runtime = stage.run(activities(), orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Wait").await;
        asked(&stage, "commit_turn").await;
        let took = stops_in(&stage, runtime, Some(0)).await;
        assert!(took <= SECOND + SECOND / 5, "{took:?}");
    }

    async fn r2_16_a_store_that_hangs_on_an_outcome_keeps_the_runtime_for_a_second_at_most(stage) {
        stage.faults.hang("finish_work", u64::MAX);
        let (runtime, gate) = held(&stage).await;
        gate.open();
        asked(&stage, "finish_work").await;
        let took = stops_in(&stage, runtime, Some(0)).await;
        assert!(took <= SECOND + SECOND / 5, "{took:?}");
    }

    async fn r2_16_a_store_that_hangs_when_work_is_abandoned_keeps_a_runtime_for_a_second_at_most(stage) {
        stage.faults.hang("abandon", u64::MAX);
        let (runtime, _gate) = held(&stage).await;
        let took = stops_in(&stage, runtime, None).await;
        assert!(took <= 2 * SECOND + SECOND / 5, "{took:?}");
    }

    async fn r2_16_a_renewal_that_hangs_does_not_keep_the_runtime(stage) {
        stage.faults.hang("renew", u64::MAX);
        let (runtime, _gate) = held(&stage).await;
        stage.pass(15 * SECOND);
        asked(&stage, "renew").await;
        runtime.shutdown(Some(0)).await;
        stage.faults.heal();
        assert_eq!(runs_again(&stage).await, Ok("attempt 1".to_owned()));
    }
}

/// A runtime with the clock of the machine, on threads of its own, with an activity that never ends if one is
/// wanted.
fn elsewhere(busy: bool) -> (tokio::runtime::Runtime, Arc<dyn Provider>, Arc<Runtime>) {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let threads = threads.expect("threads");
    let store: Arc<dyn Provider> = Arc::new(MemoryStore::new());
    let (began, mut begun) = mpsc::unbounded_channel();
    let acts = ActivityRegistry::builder().register("Hang", move |_, _| {
        began.send(()).expect("the test listens");
        std::future::pending()
    });
    let flows = OrchestrationRegistry::builder().register("Call", call);
    let runtime = threads.block_on(async {
        let runtime = Runtime::start_with_store(Arc::clone(&store), acts.build(), flows.build()).await;
        if busy {
            let client = Client::new(Arc::clone(&store));
            client.start_orchestration("a", "Call", "Hang").await.expect("starts");
            begun.recv().await.expect("it runs");
        }
        runtime
    });
    (threads, store, runtime)
}

#[test]
fn r2_16_a_runtime_can_be_stopped_from_outside_tokio() {
    for busy in [false, true] {
        for timeout_ms in [Some(0), None, Some(30)] {
            let (threads, store, runtime) = elsewhere(busy);
            futures::executor::block_on(runtime.shutdown(timeout_ms));
            assert_eq!(Arc::strong_count(&store), 1, "busy: {busy}, time: {timeout_ms:?}");
            drop(threads);
        }
    }
}

#[test]
fn r2_16_what_a_shutdown_outside_tokio_stops_is_abandoned_too() {
    let (threads, store, runtime) = elsewhere(true);
    futures::executor::block_on(runtime.shutdown(Some(0)));
    let acts = ActivityRegistry::builder()
        .register("Hang", |ctx: ActivityContext, _| async move { Ok(ctx.counted_deliveries().to_string()) });
    let flows = OrchestrationRegistry::builder().register("Call", call);
    threads.block_on(async {
        let runtime = Runtime::start_with_store(Arc::clone(&store), acts.build(), flows.build()).await;
        let status = Client::new(store).wait_for_orchestration("a", SOON / 4).await.expect("ends");
        let OrchestrationStatus::Completed { output, .. } = status else { panic!("{status:?}") };
        assert_eq!(output, "1", "given back at once, and uncounted");
        runtime.shutdown(Some(0)).await;
    });
}

#[test]
fn c1_12_the_future_of_a_shutdown_can_be_sent() {
    fn sent<T: Send>(value: T) -> T {
        value
    }
    let (threads, _store, runtime) = elsewhere(false);
    let handle = threads.spawn(sent(runtime.shutdown(Some(0))));
    threads.block_on(handle).expect("it does not panic");
}
