//! The rows of workers: what each runtime reports about itself.

use std::sync::Arc;
use std::time::Duration;

use steadfast::client::{ListedHandler, WorkerInfo};
use steadfast::providers::ProviderError;
use steadfast::runtime::{OnMissingHandler, OptionsError, Runtime, RuntimeOptions};
use steadfast::{ActivityContext, OrchestrationContext, TagFilter};
use steadfast_behaviour::{
    Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};
use tokio::sync::Notify;

const SECOND: Duration = Duration::from_secs(1);

fn flow() -> steadfast::OrchestrationRegistryBuilder {
    orchestrations()
        .register(
            "Flow",
            |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("Work", "").await },
        )
        .register("Echo", |_: OrchestrationContext, input| async move { Ok(input) })
        .register_versioned("Echo", "2.1.0", |_: OrchestrationContext, input| async move { Ok(input) })
}

fn work() -> steadfast::runtime::registry::ActivityRegistryBuilder {
    activities().register("Work", |_: ActivityContext, _| async move { Ok(String::new()) })
}

async fn workers(stage: &Stage) -> Vec<WorkerInfo> {
    stage.observer().workers().await.expect("are listed")
}

/// Waits until the store knows one worker that is as a test wants it, and returns it.
async fn worker(stage: &Stage, wanted: impl Fn(&WorkerInfo) -> bool) -> WorkerInfo {
    stage.until("the worker", async || matches!(&workers(stage).await[..], [one] if wanted(one))).await;
    workers(stage).await.remove(0)
}

fn listed(name: &str, versions: &[&str]) -> ListedHandler {
    let versions = versions.iter().map(|version| (*version).to_owned()).collect();
    ListedHandler { name: name.to_owned(), versions }
}

on_every_full_store! {
    async fn a_worker_is_listed_with_its_process_its_handlers_its_tags_and_its_slots(stage) {
        let options = RuntimeOptions {
            worker_node_id: Some("n1".to_owned()),
            build_id: Some("f00".to_owned()),
            orchestration_concurrency: 3,
            worker_concurrency: 4,
            worker_tag_filter: TagFilter::default_and(["gpu"]),
            ..stage.options()
        };
        stage.run_with(work(), flow(), options).await;
        let told = worker(&stage, |_| true).await;
        assert!(told.is_live && !told.report.is_stopped && told.report.takes_unlisted);
        let expected = [listed("Echo", &["1.0.0", "2.1.0"]), listed("Flow", &["1.0.0"])];
        assert_eq!(told.report.orchestrations, expected);
        assert!(told.report.activities.contains(&listed("Work", &[])), "{told:?}");
        assert_eq!(told.report.tags, TagFilter::default_and(["gpu"]));
        assert_eq!((told.report.slots.turns, told.report.slots.activities), (3, 4));
        let process = &told.report.process;
        assert_eq!((process.node.as_deref(), process.incarnation), (Some("n1"), Some(1)));
        assert_eq!((process.pid, process.build_id.as_deref()), (std::process::id(), Some("f00")));
        assert!(!process.version.is_empty());
        if cfg!(target_os = "linux") {
            assert!(process.host.is_some() && process.boot_id.is_some(), "{process:?}");
            assert!(process.pid_namespace.is_some() && process.pid_started.is_some(), "{process:?}");
        }
        stage.stop().await;
        let told = worker(&stage, |_| true).await;
        assert!(told.report.is_stopped && !told.is_live, "{told:?}");
        assert_eq!((told.report.orchestrations.len(), told.report.activities.len()), (0, 0));
    }

    async fn a_build_has_an_id_which_depends_on_the_registered_handlers(stage) {
        stage.run(work(), flow()).await;
        stage.run(work(), flow()).await;
        stage.run(activities(), flow()).await;
        stage.until("three workers", async || workers(&stage).await.len() == 3).await;
        // An executable without an id of the linker is hashed on a thread: later reports have it.
        let ids = async || {
            let ids = workers(&stage).await.into_iter().filter_map(|worker| worker.report.process.build_id);
            ids.collect::<Vec<String>>()
        };
        stage
            .until("their builds are known", async || {
                stage.pass(10 * SECOND);
                ids().await.len() == 3
            })
            .await;
        let mut ids = ids().await;
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 2, "{ids:?}");
        stage.stop().await;
    }

    async fn a_worker_lists_only_what_it_has_slots_for(stage) {
        let options = RuntimeOptions {
            worker_concurrency: 0,
            on_missing_handler: OnMissingHandler::Park,
            ..stage.options()
        };
        stage.run_with(work(), flow(), options).await;
        let told = worker(&stage, |_| true).await;
        assert_eq!(told.report.activities, []);
        assert_eq!(told.report.orchestrations.len(), 2);
        assert!(!told.report.takes_unlisted);
        stage.stop().await;
    }

    async fn a_worker_reports_every_ten_seconds_and_tells_what_is_busy(stage) {
        let entered = Arc::new(Notify::new());
        let enter = Arc::clone(&entered);
        let hold = activities().register("Work", move |ctx: ActivityContext, _| {
            enter.notify_one();
            async move {
                ctx.cancelled().await;
                Ok(String::new())
            }
        });
        stage.run(hold, flow()).await;
        let told = worker(&stage, |_| true).await;
        assert_eq!((stage.faults.calls("report_worker"), told.report.slots.activities_busy), (1, 0));
        stage.start("a", "Flow", "").await;
        entered.notified().await;
        stage.pass(9 * SECOND);
        stage.settle().await;
        assert_eq!(stage.faults.calls("report_worker"), 1);
        stage.pass(SECOND);
        let told = worker(&stage, |told| told.report.slots.activities_busy == 1).await;
        assert_eq!((told.report.slots.turns_busy, told.last_seen_ms - told.since_ms), (0, 10_000));
        assert_eq!(stage.faults.calls("report_worker"), 2);
        stage.stop_at_once().await;
    }

    async fn a_worker_that_stops_lists_nothing_and_has_stopped_when_nothing_of_it_runs(stage) {
        let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (enter, wait) = (Arc::clone(&entered), Arc::clone(&go));
        let hold = activities().register("Work", move |_: ActivityContext, _| {
            let (enter, wait) = (Arc::clone(&enter), Arc::clone(&wait));
            async move {
                enter.notify_one();
                wait.notified().await;
                Ok(String::new())
            }
        });
        let runtime = stage.run(hold, flow()).await;
        stage.start("a", "Flow", "").await;
        entered.notified().await;
        let stopping = tokio::spawn(Arc::clone(&runtime).shutdown(Some(30_000)));
        let told = worker(&stage, |told| told.report.activities.is_empty()).await;
        assert!(told.is_live && !told.report.is_stopped, "its activity runs: {told:?}");
        go.notify_one();
        stopping.await.expect("stops");
        assert!(worker(&stage, |_| true).await.report.is_stopped);
        stage.stop().await;
    }

    async fn a_row_that_cannot_be_written_is_written_later_and_stops_no_work(stage) {
        stage.faults.refuse("report_worker", 2, ProviderError::retryable("report_worker", "down"));
        stage.run(work(), flow()).await;
        assert_eq!(stage.ends_after("a", "Flow", "").await, Ok(String::new()));
        assert_eq!(workers(&stage).await, []);
        stage.pass_slowly(2 * SECOND, SECOND / 4).await;
        assert!(worker(&stage, |_| true).await.is_live);
        stage.stop().await;
    }

    async fn a_store_that_hangs_on_the_first_report_is_waited_for_five_seconds(stage) {
        stage.faults.hang("report_worker", 1);
        stage.run(work(), flow()).await;
        stage.start("a", "Flow", "").await;
        stage.settle().await;
        assert_eq!(stage.faults.calls("fetch_turn"), 0);
        assert_eq!(stage.ends_as_time_passes("a", SECOND).await, Ok(String::new()));
        stage.stop().await;
    }

    async fn g13_the_start_of_a_runtime_waits_for_no_count_of_the_store(stage) {
        stage.faults.hang("gauges", u64::MAX);
        stage.run(work(), flow()).await;
        assert_eq!(stage.ends_after("a", "Flow", "").await, Ok(String::new()));
        stage.stop().await;
    }
}

on_every_store! {
    async fn a_build_id_that_no_store_can_keep_is_refused(stage) {
        for id in ["", "a\0b"] {
            let options = RuntimeOptions { build_id: Some(id.to_owned()), ..stage.options() };
            let store = Arc::clone(&stage.store);
            let started = Runtime::try_start(store, work().build(), flow().build(), options).await;
            assert_eq!(started.err(), Some(OptionsError::BuildId));
        }
    }
}

#[tokio::test]
async fn a_provider_with_only_the_compatible_methods_is_asked_for_a_row_once_and_nothing_is_said() {
    let (lines, _guard) = steadfast_behaviour::Lines::collect();
    let stage = Stage::new(StoreKind::Wrapped).await;
    stage.run(work(), flow()).await;
    assert_eq!(stage.ends_after("a", "Flow", "").await, Ok(String::new()));
    let error = stage.client.workers().await.expect_err("there are no rows");
    assert!(error.to_string().contains("keeps no rows of workers"), "{error}");
    stage.stop().await;
    assert_eq!(lines.saying("WARN", "worker"), []);
}

#[test]
fn the_options_of_production_differ_where_they_say_so() {
    let options = RuntimeOptions::production();
    let cores = std::thread::available_parallelism().expect("is known").get();
    assert_eq!((options.orchestration_concurrency, options.worker_concurrency), (cores, 100));
    assert_eq!(options.max_sessions_per_runtime, 100);
    assert_eq!(options.on_missing_handler, OnMissingHandler::Park);
    assert_eq!(options.carry_forward_overflow, steadfast::runtime::CarryForwardOverflow::Keep);
    assert_eq!(options.max_attempts, RuntimeOptions::default().max_attempts);
    assert_eq!(RuntimeOptions::default().on_missing_handler, OnMissingHandler::Fail);
}
