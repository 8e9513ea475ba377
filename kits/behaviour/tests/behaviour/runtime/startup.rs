//! Starting a runtime (2.17): what is checked, said and added; and the defaults of its options (1.12, 1.14).

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use crate::workbench::SECOND;
use steadfast::runtime::observability::{LogFormat, ObservabilityConfig, ObservabilityHandle, init_logging};
use steadfast::runtime::registry::ActivityRegistry;
use steadfast::runtime::{OptionsError, Runtime, RuntimeOptions, UnregisteredBackoffConfig};
use steadfast::{
    Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus, SemverRange, TagFilter,
    current_build_version,
};
use steadfast_behaviour::{
    Line, Lines, SOON, Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_clock::Clock;
use steadfast_memory::MemoryStore;

/// Tries to start a runtime, and returns what is wrong with its options.
async fn refusal(options: RuntimeOptions) -> OptionsError {
    let (acts, flows) = (ActivityRegistry::default(), OrchestrationRegistry::default());
    match Runtime::try_start(Arc::new(MemoryStore::new()), acts, flows, options).await {
        Ok(_) => panic!("the options are accepted"),
        Err(error) => error,
    }
}

async fn hello(_: OrchestrationContext, name: String) -> Result<String, String> {
    Ok(format!("Hello, {name}"))
}

async fn accepted(options: RuntimeOptions) {
    let (acts, flows) = (ActivityRegistry::default(), OrchestrationRegistry::default());
    let runtime = Runtime::try_start(Arc::new(MemoryStore::new()), acts, flows, options).await;
    runtime.expect("the options are accepted").shutdown(Some(0)).await;
}

fn one_saying(lines: &Lines, text: &str) -> Line {
    match &lines.saying("INFO", text)[..] {
        [line] => line.clone(),
        other => panic!("{other:?}"),
    }
}

on_every_store! {
    async fn r2_17_a_start_names_the_versions_of_engine_and_store(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(activities(), orchestrations()).await;
        let line = one_saying(&lines, "starting with provider");
        let expected = format!(
            "steadfast runtime ({}) starting with provider {} ({})",
            current_build_version(),
            stage.store.name(),
            stage.store.version()
        );
        assert_eq!((line.target.as_str(), line.field("message")), ("steadfast::runtime", expected.as_str()));
        let name = match stage.kind {
            StoreKind::Memory => "memory",
            StoreKind::Sqlite => "sqlite",
            StoreKind::Postgres => "postgres",
            // The wrapper says nothing of itself.
            StoreKind::Wrapped => "unknown",
        };
        assert_eq!(stage.store.name(), name);
        stage.stop().await;
    }

    async fn r2_17_a_start_says_which_engine_versions_it_runs(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(activities(), orchestrations()).await;
        let line = one_saying(&lines, "capability");
        assert_eq!(line.field("message"), "Orchestration dispatcher capability filter configured");
        let range = format!("0.0.0..={}", current_build_version());
        assert_eq!(
            (line.target.as_str(), line.field("supported_range")),
            ("steadfast::runtime", range.as_str())
        );
        stage.stop().await;
    }

    async fn r2_17_system_calls_need_no_registration(stage) {
        let flow = orchestrations().register("Calls", |ctx: OrchestrationContext, _| async move {
            ctx.set_kv_value("k", "v");
            let guid = ctx.new_guid().await?;
            let now = ctx.utc_now().await?.duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
            let other = ctx.get_kv_value_from_instance("a", "k").await?;
            Ok(format!("{} {now} {other:?}", guid.len()))
        });
        stage.run(activities(), flow).await;
        let expected = format!("36 {} Some(\"v\")", stage.clock.now_ms());
        assert_eq!(stage.ends_after("a", "Calls", "").await, Ok(expected));
        let names: Vec<String> = stage
            .history("a")
            .await
            .into_iter()
            .filter_map(|event| match event.kind {
                steadfast::EventKind::ActivityScheduled { name, .. } => Some(name),
                _ => None,
            })
            .collect();
        let expected =
            ["new_guid", "utc_now_ms", "get_kv_value"].map(|name| format!("__duroxide_syscall:{name}"));
        assert_eq!(names, expected);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_12_with_default_options_a_store_is_enough(stage) {
        let flows = OrchestrationRegistry::builder().register("Hello", hello);
        let runtime =
            Runtime::start_with_store(Arc::clone(&stage.store), ActivityRegistry::default(), flows.build())
                .await;
        assert_eq!(stage.ends_after("a", "Hello", "Ada").await, Ok("Hello, Ada".to_owned()));
        let descriptor = runtime.get_orchestration_descriptor("a").await.expect("is there");
        assert_eq!((descriptor.name.as_str(), descriptor.version.as_str()), ("Hello", "1.0.0"));
        assert_eq!((descriptor.parent_instance, descriptor.parent_id), (None, None));
        assert_eq!(runtime.get_orchestration_descriptor("nobody").await, None);
        runtime.shutdown(Some(0)).await;
        stage.nothing_waits().await;
    }

    async fn r2_17_a_runtime_can_be_started_while_the_store_is_out_of_reach(stage) {
        let (lines, _guard) = Lines::collect();
        stage.faults.outage();
        let options = RuntimeOptions { worker_node_id: Some("node".to_owned()), ..stage.options() };
        let runtime = stage.run_with(activities(), orchestrations().register("Hello", hello), options).await;
        assert!(runtime.health().await.accepting);
        stage.until("it asks", async || stage.faults.calls("fetch_turn") >= 2).await;
        stage.faults.heal();
        stage.start("a", "Hello", "Ada").await;
        assert_eq!(stage.ends_as_time_passes("a", SECOND).await, Ok("Hello, Ada".to_owned()));
        // The wrapper has no incarnations that could be asked for.
        let warned = usize::from(stage.kind != StoreKind::Wrapped);
        assert_eq!(lines.saying("WARN", "the node could not be registered").len(), warned);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_12_times_without_end_are_accepted(stage) {
        let options = RuntimeOptions {
            dispatcher_long_poll_timeout: Duration::MAX,
            orchestrator_lock_timeout: Duration::MAX,
            worker_lock_timeout: Duration::MAX,
            activity_cancellation_grace_period: Duration::MAX,
            session_lock_timeout: Duration::MAX,
            session_idle_timeout: Duration::MAX,
            session_cleanup_interval: Duration::MAX,
            max_turn_time: Duration::MAX,
            retain_finished_for: Some(Duration::MAX),
            observability: ObservabilityConfig {
                gauge_poll_interval: Duration::MAX,
                ..ObservabilityConfig::default()
            },
            ..stage.options()
        };
        let flow = orchestrations().register("Chat", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity_on_session("Hello", "Ada", "chat").await
        });
        let acts = activities().register("Hello", |_, name| async move { Ok(format!("Hello, {name}")) });
        stage.run_with(acts, flow, options).await;
        assert_eq!(stage.ends_after("a", "Chat", "").await, Ok("Hello, Ada".to_owned()));
        stage.pass(3600 * SECOND);
        assert_eq!(stage.ends_after("b", "Chat", "").await, Ok("Hello, Ada".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn c1_12_a_runtime_without_slots_runs_nothing(stage) {
        let options =
            RuntimeOptions { orchestration_concurrency: 0, worker_concurrency: 0, ..stage.options() };
        let runtime = stage.run_with(activities(), orchestrations(), options).await;
        stage.start("a", "Hello", "").await;
        stage.pass(3600 * SECOND);
        assert!(runtime.health().await.accepting);
        assert_eq!((stage.faults.calls("fetch_turn"), stage.faults.calls("fetch_work")), (0, 0));
        assert_eq!(stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue, 1);
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn c1_12_a_child_is_described_with_its_parent(stage) {
        let flow = orchestrations().register("Child", |_, _| async { Ok(String::new()) }).register(
            "Parent",
            |ctx: OrchestrationContext, _| async move {
                ctx.schedule_sub_orchestration_with_id("Child", "kid", "").await
            },
        );
        let runtime = stage.run(activities(), flow).await;
        stage.ends_after("a", "Parent", "").await.expect("completes");
        let descriptor = runtime.get_orchestration_descriptor("kid").await.expect("is there");
        assert_eq!((descriptor.parent_instance.as_deref(), descriptor.parent_id), (Some("a"), Some(2)));
        stage.stop().await;
    }
}

#[tokio::test]
async fn r2_17_a_start_says_which_engine_versions_it_was_told_to_run() {
    let stage = Stage::new(StoreKind::Memory).await;
    let (lines, _guard) = Lines::collect();
    let version = |text: &str| text.parse().expect("a version");
    let range = SemverRange::new(version("0.1.5"), version("0.1.30"));
    let options = RuntimeOptions { supported_replay_versions: Some(range), ..stage.options() };
    stage.run_with(activities(), orchestrations(), options).await;
    assert_eq!(one_saying(&lines, "capability").field("supported_range"), "0.1.5..=0.1.30");
    stage.stop().await;
}

#[tokio::test]
async fn c1_12_leases_hooks_and_turns_that_end_at_once_are_refused() {
    let zero = Duration::ZERO;
    let defaults = RuntimeOptions::default;
    for (options, option, seconds) in [
        (RuntimeOptions { orchestrator_lock_timeout: zero, ..defaults() }, "orchestrator_lock_timeout", 5),
        (RuntimeOptions { worker_lock_timeout: zero, ..defaults() }, "worker_lock_timeout", 30),
        (RuntimeOptions { session_lock_timeout: zero, ..defaults() }, "session_lock_timeout", 30),
        (RuntimeOptions { session_hook_timeout: zero, ..defaults() }, "session_hook_timeout", 5),
        (RuntimeOptions { max_turn_time: zero, ..defaults() }, "max_turn_time", 30),
    ] {
        let error = refusal(options).await;
        assert_eq!(error, OptionsError::Zero { option, default: seconds * SECOND });
        let remedy = format!("{option} must not be zero: give it some time, the default is {seconds}s");
        assert_eq!(error.to_string(), remedy);
    }
}

#[tokio::test]
async fn c1_12_a_node_without_a_name_is_refused() {
    let error =
        refusal(RuntimeOptions { worker_node_id: Some(String::new()), ..RuntimeOptions::default() }).await;
    assert_eq!(error, OptionsError::EmptyNodeId);
    assert_eq!(
        error.to_string(),
        "worker_node_id is empty: give the process a name, or leave the option out"
    );
}

#[tokio::test]
async fn c1_12_a_node_whose_name_is_too_long_for_a_store_is_refused() {
    let name = Some("n".repeat(1_025));
    let error = refusal(RuntimeOptions { worker_node_id: name, ..RuntimeOptions::default() }).await;
    assert_eq!(error, OptionsError::LongNodeId { bytes: 1_025 });
    assert_eq!(
        error.to_string(),
        "worker_node_id has 1025 bytes, and at most 1024 are possible: give a shorter name"
    );
}

#[tokio::test]
async fn r2_17_a_session_must_outlive_the_renewals_of_its_activities() {
    let options = |idle, lock, buffer| RuntimeOptions {
        session_idle_timeout: idle,
        worker_lock_timeout: lock,
        worker_lock_renewal_buffer: buffer,
        ..RuntimeOptions::default()
    };
    let error = refusal(options(25 * SECOND, 30 * SECOND, 5 * SECOND)).await;
    assert_eq!(error, OptionsError::SessionIdleTimeout { idle: 25 * SECOND, renewal: 25 * SECOND });
    assert_eq!(
        error.to_string(),
        "session_idle_timeout (25s) must be longer than worker_lock_timeout minus worker_lock_renewal_buffer \
         (25s): otherwise a session would be let go while its activity runs"
    );
    accepted(options(25 * SECOND + Duration::from_millis(1), 30 * SECOND, 5 * SECOND)).await;
    // A buffer that is longer than the lease leaves a second.
    let error = refusal(options(SECOND, 5 * SECOND, 10 * SECOND)).await;
    assert_eq!(error, OptionsError::SessionIdleTimeout { idle: SECOND, renewal: SECOND });
    accepted(options(2 * SECOND, 5 * SECOND, 10 * SECOND)).await;
}

#[tokio::test]
#[should_panic(expected = "session_idle_timeout (1s) must be longer than worker_lock_timeout")]
async fn t3_where_the_compatible_api_panics_the_text_names_session_idle_timeout() {
    let options = RuntimeOptions { session_idle_timeout: SECOND, ..RuntimeOptions::default() };
    let (acts, flows) = (ActivityRegistry::default(), OrchestrationRegistry::default());
    Runtime::start_with_options(Arc::new(MemoryStore::new()), acts, flows, options).await;
}

#[tokio::test]
async fn r2_17_options_that_are_refused_leave_the_store_alone() {
    let (lines, _guard) = Lines::collect();
    let stage = Stage::new(StoreKind::Memory).await;
    let options = RuntimeOptions {
        session_idle_timeout: SECOND,
        worker_node_id: Some("node".to_owned()),
        ..stage.options()
    };
    let holders = Arc::strong_count(&stage.store);
    let (acts, flows) = (ActivityRegistry::default(), OrchestrationRegistry::default());
    assert!(Runtime::try_start(Arc::clone(&stage.store), acts, flows, options).await.is_err());
    assert_eq!((stage.faults.calls("register_node"), Arc::strong_count(&stage.store)), (0, holders));
    assert_eq!(lines.all(), []);
}

#[tokio::test]
async fn c1_12_a_runtime_can_be_started_without_a_store() {
    let runtime = Runtime::start(ActivityRegistry::default(), OrchestrationRegistry::default()).await;
    assert!(runtime.health().await.store_reachable);
    assert_eq!(runtime.metrics_snapshot(), Some(Default::default()));
    assert!(runtime.observability_handle().is_some());
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn c1_12_two_runtimes_without_a_store_share_nothing() {
    let started = |gate: &'static str| async move {
        let flows = OrchestrationRegistry::builder()
            .register("Hello", move |_, _| async move { Ok(gate.to_owned()) });
        Runtime::start(ActivityRegistry::default(), flows.build()).await
    };
    let (one, two) = (started("one").await, started("two").await);
    assert_eq!(one.get_orchestration_descriptor("a").await, None);
    assert_eq!(two.get_orchestration_descriptor("a").await, None);
    one.shutdown(Some(0)).await;
    assert!(two.health().await.accepting, "stopping one leaves the other");
    two.shutdown(Some(0)).await;
}

/// One test, because a process has one global subscriber.
#[tokio::test]
async fn r2_17_logging_is_left_to_the_application() {
    let stage = Stage::new(StoreKind::Memory).await;
    stage.run(activities(), orchestrations()).await;
    ObservabilityHandle::init(&ObservabilityConfig::default()).expect("begins to count");
    stage.stop().await;
    let quiet = ObservabilityConfig { log_level: "error".to_owned(), ..ObservabilityConfig::default() };
    assert_eq!(init_logging(&quiet), Ok(()), "nobody has installed a subscriber before");
    assert!(init_logging(&quiet).is_err(), "a process has one");
}

#[tokio::test]
async fn r2_17_the_registries_stay_the_applications() {
    let acts = ActivityRegistry::builder().register("Own", |_, _| async { Ok(String::new()) }).build();
    let runtime = Runtime::start_with_store(
        Arc::new(MemoryStore::new()),
        acts.clone(),
        OrchestrationRegistry::default(),
    )
    .await;
    assert_eq!(acts.list_names(), ["Own"]);
    runtime.shutdown(Some(0)).await;
}

#[tokio::test]
async fn c1_12_the_clock_of_the_machine_is_the_default() {
    let store = Arc::new(MemoryStore::new());
    let flows =
        OrchestrationRegistry::builder().register("Wait", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_timer(Duration::from_millis(5)).await;
            Ok(String::new())
        });
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), flows.build()).await;
    let client = Client::new(store);
    client.start_orchestration("a", "Wait", "").await.expect("starts");
    let status = client.wait_for_orchestration("a", SOON).await.expect("ends");
    assert!(matches!(status, OrchestrationStatus::Completed { .. }), "{status:?}");
    runtime.shutdown(None).await;
}

#[test]
fn c1_12_the_defaults_of_the_options_are_these() {
    let options = RuntimeOptions::default();
    let ms = Duration::from_millis;
    assert_eq!(options.dispatcher_min_poll_interval, ms(100));
    assert_eq!(options.dispatcher_long_poll_timeout, ms(30_000));
    assert_eq!((options.orchestration_concurrency, options.worker_concurrency), (2, 2));
    assert_eq!(options.orchestrator_lock_timeout, ms(5_000));
    assert_eq!(options.orchestrator_lock_renewal_buffer, ms(2_000));
    assert_eq!(options.worker_lock_timeout, ms(30_000));
    assert_eq!(options.worker_lock_renewal_buffer, ms(5_000));
    assert_eq!(options.unregistered_backoff.base_delay, ms(1_000));
    assert_eq!(options.unregistered_backoff.max_delay, ms(60_000));
    assert_eq!(options.max_attempts, 10);
    assert_eq!(options.activity_cancellation_grace_period, ms(10_000));
    assert_eq!(options.supported_replay_versions, None);
    assert_eq!(options.session_lock_timeout, ms(30_000));
    assert_eq!(options.session_lock_renewal_buffer, ms(5_000));
    assert_eq!(options.session_idle_timeout, ms(300_000));
    assert_eq!(options.session_cleanup_interval, ms(300_000));
    assert_eq!(options.max_sessions_per_runtime, 10);
    assert_eq!((options.max_attached_sessions, options.session_untaken_after), (None, None));
    assert_eq!((options.max_sessions_per_orchestration, options.require_open_sessions), (10, false));
    assert!(options.release_sessions_on_shutdown && options.session_hooks.is_none());
    assert_eq!((options.session_hook_timeout, options.session_recovery), (ms(5_000), None));
    assert_eq!(options.session_leak_after, Some(ms(86_400_000)));
    assert_eq!(options.worker_node_id, None);
    assert_eq!(options.worker_tag_filter, TagFilter::DefaultOnly);
}

#[test]
fn c1_12_an_unregistered_handler_is_tried_after_twice_the_time_up_to_a_bound() {
    let delays = |config: &UnregisteredBackoffConfig| {
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 100, u32::MAX].map(|attempt| config.delay(attempt).as_secs())
    };
    assert_eq!(delays(&UnregisteredBackoffConfig::default()), [1, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
    let long = UnregisteredBackoffConfig { base_delay: SECOND, max_delay: 3600 * SECOND };
    assert_eq!(delays(&long), [1, 1, 2, 4, 8, 16, 32, 64, 64, 64, 64]);
    let huge = UnregisteredBackoffConfig { base_delay: Duration::MAX, max_delay: Duration::MAX };
    assert_eq!(huge.delay(7), Duration::MAX);
}

#[test]
fn t3_a_format_is_compact_by_default_and_that_of_a_config_pretty() {
    assert_eq!(LogFormat::default(), LogFormat::Compact);
    let ObservabilityConfig { log_format, log_level, service_name, service_version, gauge_poll_interval } =
        ObservabilityConfig::default();
    assert_eq!((log_format, log_level.as_str()), (LogFormat::Pretty, "info"));
    assert_eq!((service_name.as_str(), service_version), ("duroxide", None));
    assert_eq!(gauge_poll_interval, 60 * SECOND);
}
