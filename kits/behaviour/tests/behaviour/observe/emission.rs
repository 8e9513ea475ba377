//! Metrics as a recorder sees them (1.14, 1.19, F23): names, labels and true values. Read after the runtime
//! has stopped, because a metric may come a moment after the commit that it is about.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast::providers::{ProviderError, WorkItem};
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{RuntimeOptions, UnregisteredBackoffConfig};
use steadfast::{ActivityContext, OrchestrationContext};
use steadfast_behaviour::{
    Emitted, Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_store::ProviderErrorKind;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

fn works() -> ActivityRegistryBuilder {
    activities()
        .register("Fine", |_, _| async { Ok("fine".to_owned()) })
        .register("Fail", |_, _| async { Err("no luck".to_owned()) })
        .register("Late", |ctx: ActivityContext, _| async move {
            ctx.cancelled().await;
            Ok(String::new())
        })
}

fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Quick", |_, _| async { Ok(String::new()) })
        .register("Fail", |_, _| async { Err("no luck".to_owned()) })
        .register("Call", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity(name, "").await
        })
        .register("Tagged", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity("Fine", "").with_tag("gpu").await
        })
        .register("Listen", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("news").await) })
        .register("Child", |ctx: OrchestrationContext, child: String| async move {
            ctx.schedule_sub_orchestration(child, "").await
        })
        .register("Count", |ctx: OrchestrationContext, n: String| async move {
            match n.as_str() {
                "0" => Ok(String::new()),
                _ => ctx.continue_as_new("0").await,
            }
        })
        .register("Hours", |ctx: OrchestrationContext, n: String| async move {
            for _ in 0..n.parse::<u32>().expect("a number") {
                ctx.schedule_timer(HOUR).await;
            }
            Ok(String::new())
        })
}

const HOUR: Duration = Duration::from_secs(3_600);

/// Options: a name that is not registered is tried again at once, and is poison after one delivery.
fn impatient(stage: &Stage) -> RuntimeOptions {
    let at_once = UnregisteredBackoffConfig { base_delay: Duration::ZERO, max_delay: Duration::ZERO };
    RuntimeOptions { max_attempts: 1, unregistered_backoff: at_once, ..stage.options() }
}

fn table<const N: usize>(rows: [(&str, u64); N]) -> BTreeMap<String, u64> {
    rows.into_iter().map(|(series, value)| (series.to_owned(), value)).collect()
}

on_every_store! {
    async fn f23_one_activity_is_one_of_everything(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        stage.run(works(), flows()).await;
        stage.ends_after("a", "Call", "Fine").await.expect("completes");
        stage.stop().await;
        let expected = table([
            (
                "steadfast_orchestration_starts_total{initiated_by=client,orchestration_name=Call,\
                 version=1.0.0}",
                1,
            ),
            (
                "steadfast_orchestration_completions_total{final_turn_count=1-5,orchestration_name=Call,\
                 status=success,version=1.0.0}",
                1,
            ),
            ("steadfast_orchestration_dispatcher_items_fetched", 2),
        ]);
        assert_eq!(emitted.counters("steadfast_orchestration_"), expected);
        let expected = table([(
            "steadfast_activity_executions_total{activity_name=Fine,outcome=success,retry_attempt=0,\
             session=no,tag=default}",
            1,
        )]);
        assert_eq!(emitted.counters("steadfast_activity_"), expected);
        assert_eq!(emitted.counter("steadfast_worker_dispatcher_items_fetched"), 1);
        assert_eq!(
            emitted.histogram(
                "steadfast_activity_duration_seconds{activity_name=Fine,outcome=success,session=no}"
            ),
            [0.0]
        );
        assert_eq!(emitted.histogram("steadfast_worker_dispatcher_execution_duration_ms"), [0.0]);
        assert_eq!(
            emitted.histogram("steadfast_orchestration_dispatcher_processing_duration_ms"),
            [0.0, 0.0]
        );
        assert_eq!(emitted.counters("steadfast_provider_errors"), table([]));
    }

    async fn f23_duration_turns_and_history_are_those_of_the_whole_execution(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        stage.run(works(), flows()).await;
        stage.start("a", "Hours", "6").await;
        for n in 1..=6 {
            stage.has("a", "TimerCreated", n).await;
            stage.pass(HOUR);
        }
        stage.ends("a").await.expect("completes");
        stage.stop().await;
        let of = "{orchestration_name=Hours,status=success,version=1.0.0}";
        assert_eq!(
            emitted.histogram(&format!("steadfast_orchestration_duration_seconds{of}")),
            [6.0 * 3_600.0]
        );
        assert_eq!(emitted.histogram(&format!("steadfast_orchestration_turns{of}")), [7.0]);
        // The start, the end, and two events for each timer.
        assert_eq!(emitted.histogram(&format!("steadfast_orchestration_history_size{of}")), [14.0]);
        let ended = "steadfast_orchestration_completions_total{final_turn_count=6-10,\
            orchestration_name=Hours,status=success,version=1.0.0}";
        assert_eq!(emitted.counter(ended), 1);
    }

    async fn f23_a_failure_is_one_end_and_one_failure(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        stage.run(works(), flows()).await;
        stage.ends_after("a", "Call", "Fail").await.expect_err("fails");
        stage.stop().await;
        let expected = table([
            (
                "steadfast_orchestration_starts_total{initiated_by=client,orchestration_name=Call,\
                 version=1.0.0}",
                1,
            ),
            (
                "steadfast_orchestration_completions_total{final_turn_count=1-5,orchestration_name=Call,\
                 status=failed,version=1.0.0}",
                1,
            ),
            (
                "steadfast_orchestration_failures_total{error_category=application,error_type=app_error,\
                 orchestration_name=Call,version=1.0.0}",
                1,
            ),
            ("steadfast_orchestration_dispatcher_items_fetched", 2),
        ]);
        assert_eq!(emitted.counters("steadfast_orchestration_"), expected);
        let run = "steadfast_activity_executions_total{activity_name=Fail,outcome=app_error,retry_attempt=0,\
            session=no,tag=default}";
        assert_eq!(emitted.counters("steadfast_activity_"), table([(run, 1)]));
    }

    async fn f23_every_execution_of_a_chain_starts_and_ends_once(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        stage.run(works(), flows()).await;
        stage.ends_after("a", "Count", "1").await.expect("completes");
        stage.stop().await;
        let expected = table([
            (
                "steadfast_orchestration_starts_total{initiated_by=client,orchestration_name=Count,\
                 version=1.0.0}",
                1,
            ),
            (
                "steadfast_orchestration_starts_total{initiated_by=continueAsNew,orchestration_name=Count,\
                 version=1.0.0}",
                1,
            ),
            (
                "steadfast_orchestration_completions_total{final_turn_count=1-5,orchestration_name=Count,\
                 status=continuedAsNew,version=1.0.0}",
                1,
            ),
            (
                "steadfast_orchestration_completions_total{final_turn_count=1-5,orchestration_name=Count,\
                 status=success,version=1.0.0}",
                1,
            ),
            ("steadfast_orchestration_continue_as_new_total{execution_id=1,orchestration_name=Count}", 1),
            ("steadfast_orchestration_dispatcher_items_fetched", 2),
        ]);
        assert_eq!(emitted.counters("steadfast_orchestration_"), expected);
    }

    async fn f23_a_mismatch_is_one_configuration_error(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        stage.run(works(), flows()).await;
        stage.start("a", "Listen", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let (instance, result) = ("a".to_owned(), String::new());
        let stray = WorkItem::ActivityCompleted { instance, execution_id: 1, id: 77, result };
        stage.inner().enqueue_for_orchestrator(stray, None).await.expect("sends");
        stage.ends("a").await.expect_err("fails");
        stage.stop().await;
        let failed = "steadfast_orchestration_failures_total{error_category=configuration,\
            error_type=config_error,orchestration_name=Listen,version=1.0.0}";
        assert_eq!(emitted.counters("steadfast_orchestration_failures_total"), table([(failed, 1)]));
        assert_eq!(emitted.counter("steadfast_orchestration_configuration_errors_total"), 1);
        assert_eq!(emitted.counter("steadfast_orchestration_infrastructure_errors_total"), 0);
    }

    async fn f23_a_refused_commit_is_one_infrastructure_error(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        stage.faults.refuse("commit_turn", 1, ProviderError::permanent("ack_orchestration_item", "no"));
        stage.run(works(), flows()).await;
        stage.ends_after("a", "Quick", "").await.expect_err("fails");
        stage.stop().await;
        let failed = "steadfast_orchestration_failures_total{error_category=infrastructure,\
            error_type=infrastructure_error,orchestration_name=Quick,version=1.0.0}";
        assert_eq!(emitted.counters("steadfast_orchestration_failures_total"), table([(failed, 1)]));
        assert_eq!(emitted.counter("steadfast_orchestration_infrastructure_errors_total"), 1);
        let error = "steadfast_provider_errors_total{error_type=other,operation=ack_orchestration_item}";
        assert_eq!(emitted.counters("steadfast_provider_errors"), table([(error, 1)]));
    }

    async fn f23_the_poison_of_an_activity_counts_once_for_it_and_once_for_who_waits(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        stage.run_with(works(), flows(), impatient(&stage)).await;
        stage.ends_after("a", "Call", "Missing").await.expect_err("fails");
        stage.stop().await;
        let expected = table([
            ("steadfast_activity_configuration_errors_total", 1),
            ("steadfast_activity_poison_total", 1),
        ]);
        assert_eq!(emitted.counters("steadfast_activity_"), expected);
        assert_eq!(emitted.counter("steadfast_orchestration_poison_total"), 1);
        let failed = "steadfast_orchestration_failures_total{error_category=poison,error_type=poison,\
            orchestration_name=Call,version=1.0.0}";
        assert_eq!(emitted.counters("steadfast_orchestration_failures_total"), table([(failed, 1)]));
    }

    async fn c1_14_tags_and_retries_are_labels_of_an_activity(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        let tags = steadfast::TagFilter::Any;
        stage.run_with(works(), flows(), RuntimeOptions { worker_tag_filter: tags, ..stage.options() }).await;
        stage.ends_after("a", "Tagged", "").await.expect("completes");
        // The outcome is refused for good: the activity is abandoned for a moment, and runs again.
        let invalid = ProviderError::new(ProviderErrorKind::Invalid, "ack_work_item", "no");
        stage.faults.refuse("finish_work", 1, invalid);
        stage.start("b", "Tagged", "").await;
        stage.ends_as_time_passes("b", Duration::from_millis(20)).await.expect("completes");
        stage.stop().await;
        let expected = table([
            (
                "steadfast_activity_executions_total{activity_name=Fine,outcome=success,retry_attempt=0,\
                 session=no,tag=gpu}",
                1,
            ),
            (
                "steadfast_activity_executions_total{activity_name=Fine,outcome=infra_error,retry_attempt=0,\
                 session=no,tag=gpu}",
                1,
            ),
            (
                "steadfast_activity_executions_total{activity_name=Fine,outcome=success,retry_attempt=1,\
                 session=no,tag=gpu}",
                1,
            ),
            ("steadfast_activity_infrastructure_errors_total", 1),
        ]);
        assert_eq!(emitted.counters("steadfast_activity_"), expected);
    }

    async fn f23_a_child_is_one_call_and_takes_from_its_schedule_to_its_answer(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        stage.run(works(), flows()).await;
        stage.start("a", "Child", "Listen").await;
        stage.has("a::sub::2", "ExternalSubscribed", 1).await;
        stage.pass(HOUR);
        stage.client.raise_event("a::sub::2", "news", "").await.expect("raises");
        stage.ends("a").await.expect("completes");
        stage.ends_after("b", "Child", "Fail").await.expect_err("fails");
        stage.stop().await;
        let of = |metric, child, outcome| {
            format!(
                "steadfast_suborchestration_{metric}{{child_orchestration={child},outcome={outcome},\
                 parent_orchestration=Child}}"
            )
        };
        let calls = [of("calls_total", "Listen", "started"), of("calls_total", "Fail", "started")];
        assert_eq!(emitted.counters("steadfast_suborchestration"), table([(&calls[0], 1), (&calls[1], 1)]));
        assert_eq!(emitted.histogram(&of("duration_seconds", "Listen", "success")), [3_600.0]);
        assert_eq!(emitted.histogram(&of("duration_seconds", "Fail", "failed")), [0.0]);
    }

    async fn c1_14_errors_of_the_store_are_told_by_kind(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
        let refused = |error| stage.faults.refuse("commit_turn", 1, error);
        refused(ProviderError::new(ProviderErrorKind::Busy, "ack", "locked"));
        refused(ProviderError::retryable("ack", "gone"));
        refused(ProviderError::retryable("ack", "late").with_source(late));
        stage.run(works(), flows()).await;
        stage.start("a", "Quick", "").await;
        stage.ends_as_time_passes("a", Duration::from_millis(20)).await.expect("completes");
        stage.stop().await;
        let expected = table([
            ("steadfast_provider_errors_total{error_type=connection,operation=ack_orchestration_item}", 1),
            ("steadfast_provider_errors_total{error_type=deadlock,operation=ack_orchestration_item}", 1),
            ("steadfast_provider_errors_total{error_type=timeout,operation=ack_orchestration_item}", 1),
        ]);
        assert_eq!(emitted.counters("steadfast_provider_errors"), expected);
        let of = |status| {
            format!(
                "steadfast_provider_operation_duration_seconds{{operation=ack_orchestration_item,\
                 status={status}}}"
            )
        };
        assert_eq!((emitted.histogram(&of("error")).len(), emitted.histogram(&of("success")).len()), (3, 1));
    }

    async fn a_slot_that_panics_is_counted_by_its_lane(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        let _panics =
            tracing::subscriber::set_default(tracing_subscriber::registry().with(PanicsOnce::default()));
        stage.faults.refuse("fetch_work", 1, ProviderError::retryable("fetch_work_item", "gone"));
        let one = RuntimeOptions { worker_concurrency: 1, ..stage.options() };
        stage.run_with(works(), flows(), one).await;
        stage.ends_after("a", "Call", "Fine").await.expect("completes");
        stage.stop().await;
        let expected = table([("steadfast_slots_restarted_total{lane=activities}", 1)]);
        assert_eq!(emitted.counters("steadfast_slots_"), expected);
    }

    async fn c1_19_every_call_of_the_store_is_timed_once(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        stage.run(works(), flows()).await;
        stage.ends_after("a", "Call", "Fine").await.expect("completes");
        stage.stop().await;
        let times = |operation: &str| {
            let series = format!(
                "steadfast_provider_operation_duration_seconds{{operation={operation},status=success}}"
            );
            emitted.histogram(&series).len() as u64
        };
        assert_eq!((times("ack_orchestration_item"), stage.faults.calls("commit_turn")), (2, 2));
        assert_eq!((times("ack_work_item"), stage.faults.calls("finish_work")), (1, 1));
    }
}

on_every_full_store! {
    async fn f23_gauges_are_true_from_the_start_and_after_every_interval(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        stage.start("waits", "Nobody", "").await;
        let options = RuntimeOptions { orchestration_concurrency: 0, ..stage.options() };
        stage.run_with(works(), flows(), options).await;
        let gauges = || {
            [
                "steadfast_active_orchestrations",
                "steadfast_orchestrator_queue_depth",
                "steadfast_worker_queue_depth",
            ]
            .map(|name| emitted.gauge(name).unwrap_or(-1.0))
        };
        stage.until("they are read", async || gauges() == [0.0, 1.0, 0.0]).await;
        stage.stop().await;
        stage.run(works(), flows()).await;
        for instance in ["a", "b"] {
            stage.start(instance, "Listen", "").await;
            stage.has(instance, "ExternalSubscribed", 1).await;
        }
        stage.pass(stage.options().observability.gauge_poll_interval);
        stage.until("two run", async || gauges()[0] == 2.0).await;
        for instance in ["a", "b"] {
            stage.client.raise_event(instance, "news", "").await.expect("raises");
            stage.ends(instance).await.expect("completes");
        }
        stage.pass(stage.options().observability.gauge_poll_interval);
        stage.until("none runs", async || gauges()[0] == 0.0).await;
        stage.stop().await;
    }

    async fn f1_dropped_messages_and_stuck_orchestrations_are_counted(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        let flow = flows().register("Stuck", |_, _| std::future::pending());
        stage.run(works(), flow).await;
        stage.ends_after("over", "Quick", "").await.expect("completes");
        for instance in ["over", "nobody", "nobody"] {
            stage.client.raise_event(instance, "news", "").await.expect("raises");
        }
        stage.start("stuck", "Stuck", "").await;
        stage.has("stuck", "OrchestrationStarted", 1).await;
        for n in 1..=2 {
            stage.client.raise_event("stuck", "news", "").await.expect("raises");
            stage.has("stuck", "ExternalEvent", n).await;
        }
        stage
            .until("all are settled", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
            })
            .await;
        stage.stop().await;
        assert_eq!(emitted.counter("steadfast_orchestrations_stuck_total"), 1);
        let dropped = table([
            ("steadfast_messages_dropped_total{reason=ended}", 1),
            ("steadfast_messages_dropped_total{reason=unknown}", 2),
        ]);
        let told = emitted.counters("steadfast_messages_dropped_total");
        // The thread that writes the SQLite file has the recorder of the process, which a test does not set.
        let expected = if stage.kind == steadfast_behaviour::StoreKind::Sqlite {
            table([("steadfast_messages_dropped_total{reason=ended}", 1)])
        } else {
            dropped
        };
        assert_eq!(told, expected);
    }

    async fn a_turn_in_memory_is_a_hit_and_a_replay_is_a_miss(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        stage.run_with(works(), flows(), stage.warm_options()).await;
        for instance in ["a", "b"] {
            stage.start(instance, "Listen", "").await;
            stage.has(instance, "ExternalSubscribed", 1).await;
        }
        let size = || emitted.gauge("steadfast_warm_orchestrations");
        stage.until("both are kept", async || size() == Some(2.0)).await;
        assert_eq!(emitted.counters("steadfast_warm_"), table([]), "a first turn is neither");
        stage.client.raise_event("a", "news", "").await.expect("raises");
        stage.ends("a").await.expect("completes");
        assert_eq!(size(), Some(1.0));
        stage.stop().await;
        assert_eq!(size(), Some(0.0));
        stage.run(works(), flows()).await;
        stage.client.raise_event("b", "news", "").await.expect("raises");
        stage.ends("b").await.expect("completes");
        stage.stop().await;
        let expected = table([("steadfast_warm_hits_total", 1), ("steadfast_warm_misses_total", 1)]);
        assert_eq!(emitted.counters("steadfast_warm_"), expected);
    }

    async fn f23_a_cancelled_activity_is_a_run_and_no_outcome_of_its_own(stage) {
        let emitted = Emitted::default();
        let _guard = emitted.listen();
        stage.run(works(), flows()).await;
        stage.start("a", "Call", "Late").await;
        stage
            .until("it runs", async || emitted.counter("steadfast_worker_dispatcher_items_fetched") == 1)
            .await;
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        stage.ends("a").await.expect_err("is cancelled");
        let run = "steadfast_activity_executions_total{activity_name=Late,outcome=cancelled,retry_attempt=0,\
            session=no,tag=default}";
        stage.until("it has stopped", async || emitted.counter(run) == 1).await;
        stage.stop().await;
        assert_eq!(emitted.counters("steadfast_activity_"), table([(run, 1)]));
    }
}

/// A subscriber that panics when a fetch fails: the only user code that a slot runs outside its handlers.
#[derive(Default)]
struct PanicsOnce(AtomicBool);

impl<S: tracing::Subscriber> Layer<S> for PanicsOnce {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let is_warning = *event.metadata().level() == tracing::Level::WARN;
        if is_warning && !self.0.swap(true, Ordering::Relaxed) {
            panic!("out of cheese");
        }
    }
}

/// On threads of its own: a turn that blocks one leaves the others to notice it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_blocks_its_thread_is_counted_as_a_slot_replaced() {
    let emitted = Emitted::default();
    // A recorder of one thread would not hear the others. The other tests have their own, which go first.
    metrics::set_global_recorder(emitted.clone()).expect("nobody else installs one");
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let (blocked, runs) = (Arc::new(Mutex::new(blocked)), Arc::new(AtomicBool::new(false)));
    let entered = Arc::clone(&runs);
    let flow = orchestrations().register("Block", move |_, _| {
        let (blocked, entered) = (Arc::clone(&blocked), Arc::clone(&entered));
        async move {
            entered.store(true, Ordering::Relaxed);
            // Says so to tokio, which would otherwise leave what this thread was to do next undone.
            tokio::task::block_in_place(|| blocked.lock().expect("nobody panics").recv().is_err());
            Ok(String::new())
        }
    });
    let stage = Stage::new(StoreKind::Memory).await;
    stage.run(works(), flow).await;
    stage.start("a", "Block", "").await;
    stage.until("it runs", async || runs.load(Ordering::Relaxed)).await;
    let replaced = "steadfast_slots_replaced_total{lane=turns}";
    stage
        .until("it is replaced", async || {
            stage.pass(Duration::from_millis(500));
            emitted.counter(replaced) == 1
        })
        .await;
    drop(release);
    stage.stop().await;
    assert_eq!(emitted.counters("steadfast_slots_"), table([(replaced, 1)]));
}

/// The metrics of the guide: name, kind, labels. Each is an item of a list, written as
/// "`name`, kind by `label`, `label`: …".
fn documented() -> BTreeMap<String, (String, Vec<String>)> {
    let guide = include_str!("../../../../../docs/guide/observability.md");
    let unwrapped = guide.replace("\n  ", " ");
    let item = |line: &str| {
        let (name, rest) = line.strip_prefix("- `")?.split_once("`, ")?;
        let (head, _) = rest.split_once(": ")?;
        let (kind, labels) = head.split_once(" by ").unwrap_or((head, ""));
        let words = labels.replace(['`', ','], " ").split_whitespace().map(str::to_owned).collect();
        Some((name.to_owned(), (kind.to_owned(), words)))
    };
    let is_metric = |kind: &str| ["counter", "gauge", "histogram"].contains(&kind);
    unwrapped.lines().filter_map(item).filter(|(_, (kind, _))| is_metric(kind)).collect()
}

#[tokio::test]
async fn c1_14_the_guide_lists_exactly_what_is_described_and_labels_are_as_it_says() {
    let stage = Stage::new(StoreKind::Memory).await;
    let emitted = Emitted::default();
    let _guard = emitted.listen();
    stage.faults.refuse("commit_turn", 1, ProviderError::retryable("ack", "gone"));
    stage.run_with(works(), flows(), impatient(&stage)).await;
    for (instance, flow, input) in
        [("a", "Call", "Fine"), ("b", "Call", "Missing"), ("c", "Count", "1"), ("d", "Child", "Quick")]
    {
        stage.start(instance, flow, input).await;
        stage.ends_as_time_passes(instance, Duration::from_millis(20)).await.ok();
    }
    stage.stop().await;
    let documented = documented();
    let kinds: BTreeMap<String, String> =
        documented.iter().map(|(name, (kind, _))| (name.clone(), kind.clone())).collect();
    let described: BTreeMap<String, String> =
        emitted.described().into_iter().map(|(name, kind)| (name, kind.to_owned())).collect();
    assert_eq!(kinds, described);
    for series in emitted.series() {
        let (name, labels) = series.split_once('{').unwrap_or((&series, "}"));
        let mut found: Vec<&str> = labels
            .trim_end_matches('}')
            .split(',')
            .filter_map(|label| label.split_once('='))
            .map(|(key, _)| key)
            .collect();
        let (_, expected) = documented.get(name).unwrap_or_else(|| panic!("{name} is not in the guide"));
        let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{name}");
    }
}
