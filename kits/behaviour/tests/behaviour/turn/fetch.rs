//! Fetching turns (2.1, 1 and 2): back-off, fetches that wait, and executions of versions that a runtime does
//! not run.

use std::sync::Arc;
use std::time::Duration;

use semver::Version;
use steadfast::providers::{ProviderError, SemverRange, TagFilter, WorkItem};
use steadfast::runtime::RuntimeOptions;
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{Event, EventKind, OrchestrationContext};
use steadfast_behaviour::{Lines, Stage, activities, on_every_full_store, on_every_store, orchestrations};
use steadfast_store::{
    ListedHandler, MAX_PAGE, WorkerId, WorkerProcess, WorkerReport, WorkerSlots, store_of,
};

/// `Echo` returns its input, `Wait` what is raised as `Go`.
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Echo", |_, input| async move { Ok(input) })
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("Go").await) })
}

fn one_turn_slot(stage: &Stage) -> RuntimeOptions {
    RuntimeOptions { orchestration_concurrency: 1, worker_concurrency: 0, ..stage.options() }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Writes the history of a `Wait` that waits past the runtime, as an engine of that version would, and raises
/// the event.
async fn plant(stage: &Stage, engine: &str) {
    let started = EventKind::OrchestrationStarted {
        name: "Wait".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let subscribed = EventKind::ExternalSubscribed { name: "Go".to_owned() };
    let mut events = vec![Event::at(1, 1, "a", 1, None, started), Event::at(1, 2, "a", 1, None, subscribed)];
    for event in &mut events {
        event.duroxide_version = engine.to_owned();
    }
    stage.inner().append_with_execution("a", 1, events).await.expect("appends");
    let (name, data) = ("Go".to_owned(), "x".to_owned());
    let raised = WorkItem::ExternalRaised { instance: "a".to_owned(), name, data };
    stage.inner().enqueue_for_orchestrator(raised, None).await.expect("sends");
}

/// Makes the row of a worker that has `Wait`, on an engine of that version.
fn worker(id: &str, engine: &str) -> WorkerReport {
    let wait = ListedHandler { name: "Wait".to_owned(), versions: vec!["1.0.0".to_owned()] };
    WorkerReport {
        id: WorkerId(id.to_owned()),
        process: WorkerProcess { version: engine.to_owned(), ..WorkerProcess::default() },
        orchestrations: vec![wait],
        activities: Vec::new(),
        tags: TagFilter::Any,
        serves_sessions: false,
        engines: None,
        takes_unlisted: false,
        slots: WorkerSlots::default(),
        sessions: 0,
        is_stopped: false,
    }
}

/// Waits until a turn was abandoned for the n-th time.
async fn is_abandoned(stage: &Stage, nth: u64) {
    stage.until("an item is given back", async || stage.faults.abandoned() == nth).await;
    stage.settle().await;
}

/// Asserts that the n-th fetch is followed by the next one after `wait`, and not before it is nearly over.
async fn waits(stage: &Stage, nth: u64, wait: Duration) {
    stage.until("a fetch", async || stage.faults.calls("fetch_turn") == nth).await;
    stage.settle().await;
    // Slots that fail together do not come back together: each may wait up to a tenth less.
    let early = wait * 9 / 10 - ms(1);
    stage.pass(early);
    stage.settle().await;
    assert_eq!(stage.faults.calls("fetch_turn"), nth, "no fetch before {wait:?} have passed");
    stage.pass(wait - early);
    stage.until("the next fetch", async || stage.faults.calls("fetch_turn") == nth + 1).await;
}

on_every_store! {
    async fn r2_1_retryable_fetch_errors_wait_longer_each_time_up_to_3_s(stage) {
        stage.faults.refuse("fetch_turn", 8, ProviderError::retryable("fetch", "down"));
        stage.run_with(activities(), flows(), one_turn_slot(&stage)).await;
        for (nth, wait) in (1..).zip([200, 400, 800, 1_600, 3_000, 3_000, 3_000, 3_000]) {
            waits(&stage, nth, ms(wait)).await;
        }
        assert_eq!(stage.ends_after("a", "Echo", "x").await, Ok("x".to_owned()));
        stage.stop().await;
    }

    async fn r2_1_a_permanent_fetch_error_waits_100_ms_and_begins_the_count_anew(stage) {
        let (down, broken) =
            (ProviderError::retryable("fetch", "down"), ProviderError::permanent("fetch", "no"));
        stage.faults.refuse("fetch_turn", 2, down.clone());
        stage.faults.refuse("fetch_turn", 2, broken);
        stage.faults.refuse("fetch_turn", 1, down);
        stage.run_with(activities(), flows(), one_turn_slot(&stage)).await;
        for (nth, wait) in (1..).zip([200, 400, 100, 100, 200]) {
            waits(&stage, nth, ms(wait)).await;
        }
        stage.stop().await;
    }

    async fn r2_1_a_store_that_does_not_wait_is_asked_every_min_poll_interval(stage) {
        let options = RuntimeOptions {
            dispatcher_long_poll_timeout: Duration::ZERO,
            dispatcher_min_poll_interval: ms(70),
            ..one_turn_slot(&stage)
        };
        stage.faults.refuse("fetch_turn", 2, ProviderError::retryable("fetch", "down"));
        stage.run_with(activities(), flows(), options).await;
        for (nth, wait) in (1..).zip([200, 400, 70, 70]) {
            waits(&stage, nth, ms(wait)).await;
        }
        stage.stop().await;
    }

    async fn r2_1_an_empty_answer_begins_the_count_of_errors_anew(stage) {
        let options =
            RuntimeOptions { dispatcher_long_poll_timeout: Duration::ZERO, ..one_turn_slot(&stage) };
        let down = || ProviderError::retryable("fetch", "down");
        stage.faults.refuse("fetch_turn", 2, down());
        stage.run_with(activities(), flows(), options).await;
        for (nth, wait) in (1..).zip([200, 400]) {
            waits(&stage, nth, ms(wait)).await;
        }
        stage.faults.refuse("fetch_turn", 1, down());
        for (nth, wait) in (3..).zip([100, 200]) {
            waits(&stage, nth, ms(wait)).await;
        }
        stage.stop().await;
    }

    async fn r2_1_a_pause_after_an_error_ends_with_the_runtime(stage) {
        stage.faults.outage();
        let runtime = stage.run(activities(), flows()).await;
        stage.until("a fetch", async || stage.faults.calls("fetch_turn") == 2).await;
        // The clock stands still: only an observed stop can end the pauses.
        runtime.shutdown(None).await;
        stage.stop().await;
    }

    async fn r2_1_a_turn_once_fetched_is_processed_to_its_end_in_a_shutdown(stage) {
        stage.faults.refuse("commit_turn", 1, ProviderError::retryable("commit", "down"));
        let runtime = stage.run(activities(), flows()).await;
        stage.start("a", "Echo", "x").await;
        stage.until("a commit", async || stage.faults.calls("commit_turn") == 1).await;
        let stopped = tokio::spawn(runtime.shutdown(Some(60_000)));
        stage.settle().await;
        assert!(!stopped.is_finished(), "the turn is waited for");
        stage.pass(ms(10));
        stopped.await.expect("the runtime stops");
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationCompleted"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_each_slot_has_one_fetch_that_waits_no_more_and_no_fewer(stage) {
        let options =
            RuntimeOptions { orchestration_concurrency: 3, worker_concurrency: 2, ..stage.options() };
        // A fetch that may bring work of a session waits for less.
        let options = RuntimeOptions { max_sessions_per_runtime: 0, ..options };
        stage.run_with(activities(), flows(), options).await;
        let calls = || (stage.faults.calls("fetch_turn"), stage.faults.calls("fetch_work"));
        for polls in 1..=3 {
            stage.until("every slot asks", async || calls() == (3 * polls, 2 * polls)).await;
            stage.pass(Duration::from_secs(30) - ms(1));
            stage.settle().await;
            assert_eq!(calls(), (3 * polls, 2 * polls), "a fetch waits for the long poll time-out");
            stage.pass(ms(1));
        }
        stage.stop().await;
    }

    async fn c1_12_a_runtime_without_turn_slots_fetches_no_turn(stage) {
        let options = RuntimeOptions { orchestration_concurrency: 0, ..stage.options() };
        stage.run_with(activities(), flows(), options).await;
        stage.start("a", "Echo", "x").await;
        stage.until("the workers ask", async || stage.faults.calls("fetch_work") == 2).await;
        stage.settle().await;
        assert_eq!(stage.faults.calls("fetch_turn"), 0);
        stage.stop().await;
    }

    async fn r2_1_an_execution_of_an_unsupported_version_is_not_fetched(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        stage.client.raise_event("a", "Go", "now").await.expect("raises");
        let nine = SemverRange::new(Version::new(9, 0, 0), Version::new(9, 9, 9));
        let (lines, _guard) = Lines::collect();
        let options = RuntimeOptions { supported_replay_versions: Some(nine), ..one_turn_slot(&stage) };
        stage.run_with(activities(), flows(), options).await;
        // No history is compatible with everything; this one comes later and is served all the same.
        assert_eq!(stage.ends_after("b", "Echo", "x").await, Ok("x".to_owned()));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "ExternalSubscribed"]);
        assert_eq!(lines.saying("WARN", "incompatible version"), [], "the store keeps it, not the runtime");
        stage.stop().await;
        stage.run(activities(), flows()).await;
        assert_eq!(stage.output("a").await, Ok("now".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_the_runtime_checks_the_version_of_what_a_store_hands_out(stage) {
        let (lines, _guard) = Lines::collect();
        let warnings = || lines.saying("WARN", "incompatible version");
        plant(&stage, "99.0.0").await;
        let options = RuntimeOptions { max_attempts: 2, ..one_turn_slot(&stage) };
        stage.run_with(activities(), flows(), options).await;
        // Each delivery counts, and yet it is no poison: another runtime may run it.
        for round in 1..=4 {
            stage.until("a warning", async || warnings().len() == round).await;
            is_abandoned(&stage, round as u64).await;
            stage.pass(ms(999));
            stage.settle().await;
            assert_eq!(warnings().len(), round, "it is tried again after a second");
            stage.pass(ms(1));
        }
        let line = warnings().remove(0);
        let text = "Execution pinned at incompatible version, abandoning (runtime-side check)";
        assert_eq!((line.target.as_str(), line.field("message")), ("steadfast::runtime", text));
        assert_eq!(line.field("instance"), "a");
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "ExternalSubscribed"]);
        stage.stop().await;
        let all = SemverRange::new(Version::new(0, 0, 0), Version::new(99, 0, 0));
        let options = RuntimeOptions { supported_replay_versions: Some(all), ..stage.options() };
        stage.run_with(activities(), flows(), options).await;
        assert_eq!(stage.ends_as_time_passes("a", ms(100)).await, Ok("x".to_owned()));
        stage.stop().await;
    }

    async fn r2_1_a_version_stamp_that_is_none_is_compatible(stage) {
        let (lines, _guard) = Lines::collect();
        plant(&stage, "banana").await;
        stage.run(activities(), flows()).await;
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        assert_eq!(lines.saying("WARN", "incompatible version"), []);
        assert_eq!(lines.saying("WARN", "Invalid pinned version").len(), 1);
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn g5_a_worker_of_a_new_enough_engine_is_found_among_more_workers_than_a_page_has(stage) {
        plant(&stage, "99.0.0").await;
        let store = store_of(stage.inner(), Arc::new(stage.clock.clone()));
        for number in 0..=MAX_PAGE {
            store.report_worker(&worker(&format!("{number:04}"), "1.0.0")).await.expect("reports");
        }
        store.report_worker(&worker("last", "99.0.0")).await.expect("reports");
        stage.run_with(activities(), flows(), one_turn_slot(&stage)).await;
        for round in 1..=3 {
            is_abandoned(&stage, round).await;
            stage.pass(ms(1_000));
        }
        is_abandoned(&stage, 4).await;
        stage.stop().await;
        stage.pass(ms(1_000));
        let leased = stage.inner().fetch_orchestration_item(ms(1_000), ms(0), None).await.expect("fetches");
        assert_eq!(leased.expect("it waits").2, 1, "nothing was counted: another worker can run it");
    }
}
