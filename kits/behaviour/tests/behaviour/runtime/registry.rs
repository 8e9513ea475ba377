//! Registries (1.13), and which handler a turn gets (2.1 h): versions, policies, and names that are not
//! registered.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use semver::Version;
use steadfast::providers::WorkItem;
use steadfast::runtime::registry::{
    ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistry, OrchestrationRegistryBuilder,
    VersionPolicy,
};
use steadfast::runtime::{Runtime, RuntimeOptions, UnregisteredBackoffConfig};
use steadfast::{ErrorDetails, Event, EventKind, OrchestrationContext, PoisonMessageType};
use steadfast_behaviour::{Lines, Stage, activities, on_every_store, orchestrations};

/// Says which version it is.
fn version(
    n: u64,
) -> impl Fn(OrchestrationContext, String) -> std::future::Ready<Result<String, String>> + Clone {
    move |_, _| std::future::ready(Ok(n.to_string()))
}

/// Waits for `Go`, then says which version it is.
fn patient(
    n: u64,
) -> impl Fn(OrchestrationContext, String) -> BoxFuture<'static, Result<String, String>> + Clone {
    move |ctx, _| {
        Box::pin(async move {
            ctx.schedule_wait("Go").await;
            Ok(n.to_string())
        })
    }
}

/// `Flow` in the versions 1.0.0, 1.5.0 and 2.0.0, `Patient` in the versions 1.0.0 and 2.0.0.
fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Flow", version(10))
        .register_versioned("Flow", "1.5.0", version(15))
        .register_versioned("Flow", "2.0.0", version(20))
        .register("Patient", patient(10))
        .register_versioned("Patient", "2.0.0", patient(20))
}

fn exact(major: u64, minor: u64) -> VersionPolicy {
    VersionPolicy::Exact(Version::new(major, minor, 0))
}

fn names(registry: &OrchestrationRegistry) -> Vec<String> {
    let mut names = registry.list_names();
    names.sort();
    names
}

fn one_slot(stage: &Stage, max_attempts: u32) -> RuntimeOptions {
    RuntimeOptions { orchestration_concurrency: 1, max_attempts, ..stage.options() }
}

/// Waits until a turn was abandoned for the n-th time.
async fn is_abandoned(stage: &Stage, nth: u64) {
    stage.until("a turn is given back", async || stage.faults.abandoned() == nth).await;
    stage.settle().await;
}

async fn recorded_version(stage: &Stage, instance: &str) -> String {
    match &stage.history(instance).await[0].kind {
        EventKind::OrchestrationStarted { version, .. } => version.clone(),
        other => panic!("{other:?}"),
    }
}

fn poison(instance: &str, attempts: u32, message: WorkItem) -> ErrorDetails {
    ErrorDetails::Poison {
        attempt_count: attempts,
        max_attempts: attempts - 1,
        message_type: PoisonMessageType::Orchestration { instance: instance.to_owned(), execution_id: 1 },
        message: serde_json::to_string(&[message]).expect("writes"),
    }
}

fn start(instance: &str, orchestration: &str, version: Option<&str>) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: orchestration.to_owned(),
        input: String::new(),
        version: version.map(str::to_owned),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

on_every_store! {
    async fn r2_1_a_start_without_a_version_gets_the_latest(stage) {
        stage.run(activities(), flows()).await;
        assert_eq!(stage.ends_after("a", "Flow", "").await, Ok("20".to_owned()));
        assert_eq!(recorded_version(&stage, "a").await, "2.0.0");
        stage.stop().await;
    }

    async fn r2_1_a_start_with_a_version_gets_exactly_that(stage) {
        stage.run(activities(), flows().set_policy("Flow", exact(2, 0))).await;
        stage.client.start_orchestration_versioned("a", "Flow", "1.5.0", "").await.expect("starts");
        assert_eq!(stage.ends("a").await, Ok("15".to_owned()));
        assert_eq!(recorded_version(&stage, "a").await, "1.5.0");
        stage.stop().await;
    }

    async fn r2_1_a_policy_says_what_a_start_without_a_version_gets(stage) {
        stage.run(activities(), flows().set_policy("Flow", exact(1, 5))).await;
        assert_eq!(stage.ends_after("a", "Flow", "").await, Ok("15".to_owned()));
        stage.stop().await;
    }

    async fn c1_13_a_changed_policy_counts_for_every_start_from_then_on_in_a_running_runtime(stage) {
        let registry = flows().build_result().expect("sound");
        let store = Arc::clone(&stage.store);
        let runtime = Runtime::start_with_options(
            store,
            ActivityRegistry::default(),
            registry.clone(),
            stage.options(),
        )
        .await;
        assert_eq!(stage.ends_after("a", "Flow", "").await, Ok("20".to_owned()));
        registry.set_version_policy("Flow", exact(1, 0));
        assert_eq!(stage.ends_after("b", "Flow", "").await, Ok("10".to_owned()));
        registry.clone().set_version_policy("Flow", VersionPolicy::Latest);
        assert_eq!(stage.ends_after("c", "Flow", "").await, Ok("20".to_owned()));
        runtime.shutdown(Some(0)).await;
    }

    async fn i11_a_running_execution_keeps_the_version_it_began_with(stage) {
        let old = orchestrations().register("Patient", patient(10));
        stage.run(activities(), old).await;
        stage.start("a", "Patient", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        stage.run(activities(), flows()).await;
        stage.client.raise_event("a", "Go", "").await.expect("raises");
        assert_eq!(stage.ends("a").await, Ok("10".to_owned()));
        stage.stop().await;
    }

    async fn r2_1_a_recorded_version_0_0_0_is_none_and_the_policy_decides(stage) {
        let started = EventKind::OrchestrationStarted {
            name: "Patient".to_owned(),
            version: "0.0.0".to_owned(),
            input: String::new(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        };
        let subscribed = EventKind::ExternalSubscribed { name: "Go".to_owned() };
        let events = vec![Event::at(1, 1, "a", 1, None, started), Event::at(1, 2, "a", 1, None, subscribed)];
        stage.inner().append_with_execution("a", 1, events).await.expect("appends");
        stage.run(activities(), flows()).await;
        stage.client.raise_event("a", "Go", "").await.expect("raises");
        assert_eq!(stage.ends("a").await, Ok("20".to_owned()));
        stage.stop().await;
    }

    async fn r2_1_a_version_that_is_not_registered_waits_and_runs_where_it_is(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run_with(activities(), flows(), one_slot(&stage, 10)).await;
        stage.client.start_orchestration_versioned("a", "Flow", "3.0.0", "").await.expect("starts");
        is_abandoned(&stage, 1).await;
        assert_eq!(lines.saying("WARN", "Orchestration not registered")[0].field("version"), "3.0.0");
        assert_eq!(stage.history("a").await, []);
        stage.stop().await;
        stage.run(activities(), flows().register_versioned("Flow", "3.0.0", version(30))).await;
        stage.pass(Duration::from_secs(1));
        assert_eq!(stage.ends("a").await, Ok("30".to_owned()));
        stage.stop().await;
    }

    async fn r2_1_a_version_that_is_none_is_not_found(stage) {
        stage.run_with(activities(), flows(), one_slot(&stage, 1)).await;
        let message = start("a", "Flow", Some("banana"));
        stage.inner().enqueue_for_orchestrator(message.clone(), None).await.expect("sends");
        is_abandoned(&stage, 1).await;
        stage.pass(Duration::from_secs(1));
        assert_eq!(stage.ends("a").await, Err(poison("a", 2, message)));
        stage.stop().await;
    }

    async fn r2_1_a_policy_for_a_version_that_is_not_there_finds_no_handler(stage) {
        stage.run_with(activities(), flows().set_policy("Flow", exact(9, 9)), one_slot(&stage, 10)).await;
        stage.start("a", "Flow", "").await;
        is_abandoned(&stage, 1).await;
        assert_eq!(stage.history("a").await, []);
        stage.stop().await;
    }

    async fn r2_1_an_unregistered_orchestration_is_abandoned_just_max_attempts_times_then_poison(stage) {
        let (lines, _guard) = Lines::collect();
        let backoff = UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(1_250),
            max_delay: Duration::from_secs(4),
        };
        let options = RuntimeOptions { unregistered_backoff: backoff, ..one_slot(&stage, 3) };
        let runtime =
            stage.run_with(activities(), orchestrations().register("Floe", version(1)), options).await;
        stage.start("a", "Flow", "").await;
        for (nth, wait) in (1..).zip([1_250, 2_500, 4_000]) {
            is_abandoned(&stage, nth).await;
            stage.pass(Duration::from_millis(wait - 1));
            assert_eq!(stage.ends_after(&format!("probe {nth}"), "Floe", "").await, Ok("1".to_owned()));
            assert_eq!(stage.faults.abandoned(), nth, "it waits for {wait} ms");
            stage.pass(Duration::from_millis(1));
        }
        assert_eq!(stage.ends("a").await, Err(poison("a", 4, start("a", "Flow", None))));
        assert_eq!(stage.faults.abandoned(), 3);
        let warnings = lines.saying("WARN", "Orchestration not registered");
        let text = |wait: &str, left: u64| {
            format!(
                "Orchestration not registered, abandoning with {wait}s backoff (will poison in {left} more \
                 attempts)"
            )
        };
        assert_eq!(warnings.len(), 3);
        for (line, text) in warnings.iter().zip([text("1.2", 3), text("2.5", 2), text("4.0", 1)]) {
            assert_eq!((line.target.as_str(), line.field("instance")), ("steadfast::runtime", "a"));
            assert_eq!(line.field("message"), format!("{text}; did you mean 'Floe'? registered: Floe"));
        }
        stage.settle().await;
        assert_eq!(runtime.metrics_snapshot().expect("counts").orch_poison, 1);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_what_is_registered_later_runs(stage) {
        stage.run_with(activities(), orchestrations(), one_slot(&stage, 10)).await;
        stage.start("a", "Flow", "").await;
        is_abandoned(&stage, 1).await;
        stage.pass(Duration::from_secs(1));
        is_abandoned(&stage, 2).await;
        stage.stop().await;
        stage.run(activities(), flows()).await;
        stage.pass(Duration::from_secs(2));
        assert_eq!(stage.ends("a").await, Ok("20".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn i5_what_comes_while_a_start_waits_for_its_code_is_kept(stage) {
        stage.run_with(activities(), orchestrations(), one_slot(&stage, 10)).await;
        stage.start("a", "Read", "").await;
        is_abandoned(&stage, 1).await;
        stage.client.enqueue_event("a", "q", "one").await.expect("sends");
        stage.settle().await;
        stage.client.enqueue_event("a", "q", "two").await.expect("sends");
        stage.settle().await;
        stage.stop().await;
        let read = orchestrations().register("Read", |ctx: OrchestrationContext, _| async move {
            Ok(format!("{}, {}", ctx.dequeue_event("q").await, ctx.dequeue_event("q").await))
        });
        stage.run(activities(), read).await;
        assert_eq!(
            stage.ends_as_time_passes("a", Duration::from_millis(100)).await,
            Ok("one, two".to_owned())
        );
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn r2_1_an_instance_whose_orchestration_is_gone_waits_too(stage) {
        stage.run(activities(), flows()).await;
        stage.start("a", "Patient", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        stage.run_with(activities(), orchestrations(), one_slot(&stage, 10)).await;
        stage.client.raise_event("a", "Go", "").await.expect("raises");
        is_abandoned(&stage, 1).await;
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "ExternalSubscribed"]);
        stage.stop().await;
        stage.run(activities(), flows()).await;
        stage.pass(Duration::from_secs(1));
        assert_eq!(stage.ends("a").await, Ok("20".to_owned()));
        stage.stop().await;
    }
}

#[test]
fn c1_12_the_delay_of_an_unregistered_handler_doubles_up_to_64_times_and_is_bounded() {
    let config = UnregisteredBackoffConfig::default();
    let seconds: Vec<u64> = [0, 1, 2, 3, 6, 7, 8, u32::MAX].map(|n| config.delay(n).as_secs()).into();
    assert_eq!(seconds, [1, 1, 2, 4, 32, 60, 60, 60]);
    let config = UnregisteredBackoffConfig {
        base_delay: Duration::from_secs(1),
        max_delay: Duration::from_secs(1_000),
    };
    assert_eq!([7, 8, 1_000].map(|n| config.delay(n).as_secs()), [64, 64, 64]);
}

#[test]
fn c1_13_a_registry_says_what_it_holds() {
    let registry = flows().build();
    assert_eq!(names(&registry), ["Flow", "Patient"]);
    assert_eq!(
        registry.list_versions("Flow"),
        [Version::new(1, 0, 0), Version::new(1, 5, 0), Version::new(2, 0, 0)]
    );
    assert_eq!(registry.list_versions("Nobody"), []);
    assert!(registry.has("Flow") && !registry.has("Nobody"));
    assert_eq!(registry.count(), 2);
    assert_eq!(OrchestrationRegistry::default().count(), 0);
}

#[test]
fn c1_13_a_registry_resolves_names_and_versions() {
    let registry = flows().set_policy("Patient", exact(9, 0)).build();
    assert_eq!(registry.resolve_version("Flow"), Some(Version::new(2, 0, 0)));
    assert_eq!(registry.resolve_handler("Flow").map(|(version, _)| version), Some(Version::new(2, 0, 0)));
    assert!(registry.resolve_handler_exact("Flow", &Version::new(1, 5, 0)).is_some());
    assert!(registry.resolve_handler_exact("Flow", &Version::new(1, 6, 0)).is_none());
    assert!(registry.resolve_handler("Nobody").is_none() && registry.resolve_version("Nobody").is_none());
    assert!(registry.resolve_handler("Patient").is_none(), "the policy names a version that is not there");
}

#[test]
fn c1_13_clones_share_policies_and_a_builder_copies_them() {
    let registry = flows().build();
    let copy = OrchestrationRegistry::builder_from(&registry).build();
    registry.clone().set_version_policy("Flow", exact(1, 0));
    assert_eq!(registry.resolve_version("Flow"), Some(Version::new(1, 0, 0)));
    assert_eq!(copy.resolve_version("Flow"), Some(Version::new(2, 0, 0)));
    let copy = OrchestrationRegistry::builder_from(&registry).build();
    assert_eq!(copy.resolve_version("Flow"), Some(Version::new(1, 0, 0)));
}

#[test]
fn t3_a_duplicate_orchestration_is_an_error_and_the_first_one_wins() {
    let builder = || orchestrations().register("Flow", version(1)).register("Flow", version(2));
    let error = builder().build_result().err();
    assert_eq!(error.as_deref(), Some("duplicate orchestration registration: Flow@1.0.0"));
    assert_eq!(builder().build().count(), 1, "build forgets the error");
    let both = builder().register_versioned("Flow", "2.0.0", version(3)).register_versioned(
        "Flow",
        "2.0.0",
        version(4),
    );
    let error = both.build_result().err();
    let text =
        "duplicate orchestration registration: Flow@1.0.0; duplicate orchestration registration: Flow@2.0.0";
    assert_eq!(error.as_deref(), Some(text));
}

on_every_store! {
    async fn c1_13_of_two_registrations_the_first_runs_and_a_typed_one_replaces_it(stage) {
        let flow = orchestrations().register("Flow", version(1)).register("Flow", version(2));
        let typed = orchestrations()
            .register("Typed", version(1))
            .register_typed("Typed", |_: OrchestrationContext, n: u64| async move { Ok(n + 1) });
        let registry =
            OrchestrationRegistry::builder_from(&flow.build()).merge(typed.build_result().expect("sound"));
        stage.run(activities(), registry).await;
        assert_eq!(stage.ends_after("a", "Flow", "").await, Ok("1".to_owned()));
        assert_eq!(stage.ends_after("b", "Typed", "41").await, Ok("42".to_owned()));
        stage.stop().await;
    }
}

#[test]
#[should_panic(
    expected = "non-monotonic orchestration version for Flow: 1.4.0 is not later than existing latest 2.0.0"
)]
fn t3_an_older_version_after_a_newer_one_panics() {
    drop(flows().register_versioned("Flow", "1.4.0", version(14)));
}

#[test]
#[should_panic(
    expected = "non-monotonic orchestration version for Typed: 1.0.0 is not later than existing latest 2.0.0"
)]
fn t3_an_older_typed_version_after_a_newer_one_panics() {
    let typed = |_: OrchestrationContext, n: u64| async move { Ok::<_, String>(n) };
    let two = orchestrations().register_versioned_typed("Typed", "2.0.0", typed);
    drop(two.register_versioned_typed("Typed", "1.0.0", typed));
}

#[test]
#[should_panic(expected = "'banana'")]
fn c1_13_a_version_that_is_none_panics() {
    drop(orchestrations().register_versioned("Flow", "banana", version(1)));
}

#[test]
fn c1_13_a_duplicate_of_an_older_version_is_an_error_like_any_other() {
    let error = flows().register_versioned("Flow", "1.5.0", version(99)).build_result().err();
    assert_eq!(error.as_deref(), Some("duplicate orchestration registration: Flow@1.5.0"));
}

#[test]
fn c1_13_register_without_a_version_is_not_checked_for_order() {
    let registry = orchestrations()
        .register_versioned("Flow", "2.0.0", version(20))
        .register("Flow", version(10))
        .build_result()
        .expect("sound");
    assert_eq!(registry.list_versions("Flow"), [Version::new(1, 0, 0), Version::new(2, 0, 0)]);
}

#[test]
fn c1_13_several_handlers_are_registered_with_one_call() {
    let registry = orchestrations().register_all(vec![("A", version(1)), ("B", version(2))]).build();
    assert_eq!(names(&registry), ["A", "B"]);
    let handler = |_, input: String| async move { Ok(input) };
    let registry = activities().register_all(vec![("A", handler), ("B", handler)]).build();
    assert_eq!(registry.count(), 2);
}

#[test]
fn t3_a_merge_takes_what_is_new_and_names_what_is_not() {
    let other = orchestrations()
        .register("Flow", version(99))
        .register("New", version(1))
        .register_versioned("New", "2.0.0", version(2))
        .set_policy("New", exact(1, 0));
    let merged = flows().merge(other.build());
    assert_eq!(merged.build().resolve_version("New"), Some(Version::new(2, 0, 0)), "policies stay behind");
    let other = orchestrations().register("Flow", version(99)).build();
    assert_eq!(
        flows().merge(other).build_result().err().as_deref(),
        Some("duplicate orchestration in merge: Flow@1.0.0")
    );
    let other = orchestrations().register("Flow", version(99)).build();
    assert_eq!(
        flows().merge_registry(other, "twice").build_result().err().as_deref(),
        Some("twice: Flow@1.0.0")
    );
}

#[test]
fn t3_the_errors_of_activities_are_named() {
    let handler = |_, input: String| async move { Ok(input) };
    let twice = || activities().register("Act", handler).register("Act", handler);
    assert_eq!(twice().build_result().err().as_deref(), Some("duplicate activity registration: Act@1.0.0"));
    let reserved = activities().register("__duroxide_syscall:x", handler);
    let text = "activity name '__duroxide_syscall:x' uses reserved prefix '__duroxide_syscall:'";
    assert_eq!(reserved.build_result().err().as_deref(), Some(text));
    assert_eq!(activities().register("__duroxide_syscall:x", handler).build().count(), 0, "it is not added");
    let one = activities().register("Act", handler).build();
    let merged = activities().register("Act", handler).merge(one.clone());
    assert_eq!(merged.build_result().err().as_deref(), Some("duplicate activity in merge: Act@1.0.0"));
    let copied = ActivityRegistryBuilder::from_registry(&one).build();
    assert_eq!(copied.list_versions("Act"), [Version::new(1, 0, 0)]);
}

on_every_store! {
    async fn c1_13_the_runtime_adds_the_system_calls_to_the_activities(stage) {
        let flow = orchestrations()
            .register("Guid", |ctx: OrchestrationContext, _| async move { ctx.new_guid().await });
        stage.run(activities(), flow).await;
        let guid = stage.ends_after("a", "Guid", "").await.expect("completes");
        assert_eq!(guid.len(), 36);
        let scheduled = stage.history("a").await.remove(1).kind;
        let EventKind::ActivityScheduled { name, .. } = scheduled else { panic!("{scheduled:?}") };
        assert_eq!(name, "__duroxide_syscall:new_guid");
        stage.stop().await;
    }
}
