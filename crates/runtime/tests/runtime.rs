//! The runtime end to end, over the memory store.

#![allow(clippy::expect_used, clippy::panic, reason = "what a test relies on, it panics without")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use steadfast_client::{Client, ClientError};
use steadfast_clock::VirtualClock;
use steadfast_core::{Either2, OrchestrationContext, OrchestrationStatus, RetryPolicy, TagFilter};
use steadfast_memory::MemoryStore;
use steadfast_runtime::registry::{ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistry};
use steadfast_runtime::{
    ActivityContext, CancelReason, OrchestrationRegistryBuilder, Runtime, RuntimeOptions, VersionPolicy,
};
use steadfast_store::Provider;
use tokio::sync::Notify;

const SOON: Duration = Duration::from_secs(60);

struct World {
    store: Arc<dyn Provider>,
    client: Client,
    runtime: Arc<Runtime>,
}

impl World {
    async fn new(activities: ActivityRegistryBuilder, orchestrations: OrchestrationRegistryBuilder) -> Self {
        Self::with(activities, orchestrations, RuntimeOptions::default()).await
    }

    async fn with(
        activities: ActivityRegistryBuilder,
        orchestrations: OrchestrationRegistryBuilder,
        options: RuntimeOptions,
    ) -> Self {
        let store: Arc<dyn Provider> = Arc::new(MemoryStore::new());
        let activities = activities.build_result().expect("activities");
        let orchestrations = orchestrations.build_result().expect("orchestrations");
        let runtime =
            Runtime::start_with_options(Arc::clone(&store), activities, orchestrations, options).await;
        Self { client: Client::new(Arc::clone(&store)), store, runtime }
    }

    async fn start(&self, instance: &str, orchestration: &str, input: &str) {
        self.client.start_orchestration(instance, orchestration, input).await.expect("starts");
    }

    async fn output(&self, instance: &str) -> Result<String, String> {
        match self.client.wait_for_orchestration(instance, SOON).await.expect("ends in time") {
            OrchestrationStatus::Completed { output, .. } => Ok(output),
            OrchestrationStatus::Failed { details, .. } => Err(details.display_message()),
            other => panic!("{other:?}"),
        }
    }
}

fn activities() -> ActivityRegistryBuilder {
    ActivityRegistry::builder()
}

fn orchestrations() -> OrchestrationRegistryBuilder {
    OrchestrationRegistry::builder()
}

fn greet() -> ActivityRegistryBuilder {
    activities().register("Greet", |_, name: String| async move { Ok(format!("Hello, {name}")) })
}

#[tokio::test]
async fn hello() {
    let flow = orchestrations()
        .register("Hello", |ctx, name| async move { ctx.schedule_activity("Greet", name).await });
    let world = World::new(greet(), flow).await;
    world.start("a", "Hello", "Ada").await;
    assert_eq!(world.output("a").await, Ok("Hello, Ada".to_owned()));
    world.runtime.clone().shutdown(None).await;
    let metrics = world.runtime.metrics_snapshot().expect("counts");
    assert_eq!((metrics.orch_starts, metrics.orch_completions, metrics.activity_success), (1, 1, 1));
}

#[tokio::test]
async fn the_client_of_a_runtime_shares_its_store_and_its_clock() {
    let clock = VirtualClock::new(1_700_000_000_000);
    let store: Arc<dyn Provider> = Arc::new(MemoryStore::with_clock(Arc::new(clock.clone())));
    let options = RuntimeOptions { clock: Arc::new(clock.clone()), ..RuntimeOptions::default() };
    let flow = orchestrations()
        .register("Hello", |ctx, name| async move { ctx.schedule_activity("Greet", name).await });
    let runtime =
        Runtime::start_with_options(Arc::clone(&store), greet().build(), flow.build(), options).await;
    let client = runtime.client();
    client.start_orchestration("a", "Hello", "Ada").await.expect("starts");
    let output = client.wait_for_orchestration_typed::<String>("a", SOON).await.expect("ends");
    assert_eq!(output, Ok("Hello, Ada".to_owned()));
    let passing = async {
        loop {
            clock.advance(SOON);
            tokio::task::yield_now().await;
        }
    };
    let end = tokio::select! {
        end = client.wait_for_orchestration("nobody", 10 * SOON) => end,
        () = passing => unreachable!("time passes until the wait ends"),
    };
    assert!(matches!(end, Err(ClientError::Timeout)), "the wait ends by the runtime's clock: {end:?}");
    runtime.shutdown(Some(0)).await;
    let status = client.get_orchestration_status("a").await.expect("answers after the shutdown");
    assert!(matches!(status, OrchestrationStatus::Completed { .. }), "{status:?}");
    drop(client);
    assert_eq!(Arc::strong_count(&store), 1, "the client held the store");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fan_out_of_many_instances_comes_together() {
    let flow = orchestrations().register("Fan", |ctx: OrchestrationContext, _| async move {
        let all = (0..20).map(|n| ctx.schedule_activity("Greet", n.to_string())).collect();
        Ok(ctx.join(all).await.into_iter().filter(Result::is_ok).count().to_string())
    });
    let world = World::new(greet(), flow).await;
    for n in 0..20 {
        world.start(&format!("i{n}"), "Fan", "").await;
    }
    for n in 0..20 {
        assert_eq!(world.output(&format!("i{n}")).await, Ok("20".to_owned()));
    }
    world.runtime.shutdown(None).await;
}

#[tokio::test]
async fn timers_fire_and_losers_of_a_race_are_cancelled() {
    let stopped = Arc::new(Notify::new());
    let told = Arc::clone(&stopped);
    let slow = activities().register("Slow", move |ctx: ActivityContext, _| {
        let told = Arc::clone(&told);
        async move {
            ctx.cancelled().await;
            assert_eq!(ctx.cancel_reason(), Some(CancelReason::Withdrawn));
            told.notify_one();
            Err("cancelled".to_owned())
        }
    });
    let flow = orchestrations().register("Race", |ctx: OrchestrationContext, _| async move {
        let work = ctx.schedule_activity("Slow", "");
        match ctx.select2(work, ctx.schedule_timer(Duration::from_millis(50))).await {
            Either2::First(result) => result,
            Either2::Second(()) => Ok("too slow".to_owned()),
        }
    });
    let options = RuntimeOptions { worker_lock_timeout: 4 * SOON, ..RuntimeOptions::default() };
    let world = World::with(slow, flow, options).await;
    world.start("a", "Race", "").await;
    assert_eq!(world.output("a").await, Ok("too slow".to_owned()));
    // In the same process at once: well before the first renewal of its lease.
    tokio::time::timeout(SOON, stopped.notified()).await.expect("it is told at once");
    world.runtime.shutdown(None).await;
}

#[tokio::test]
async fn events_queues_children_and_continue_as_new() {
    let flow = orchestrations()
        .register("Child", |ctx: OrchestrationContext, name| async move {
            ctx.schedule_activity("Greet", name).await
        })
        .register("Parent", |ctx: OrchestrationContext, round: String| async move {
            if round == "first" {
                let name = ctx.dequeue_event("names").await;
                ctx.set_kv_value("name", name);
                return ctx.continue_as_new("second").await;
            }
            let approved = ctx.schedule_wait("approved").await;
            let name = ctx.get_kv_value("name").unwrap_or_default();
            let greeting = ctx.schedule_sub_orchestration("Child", name).await?;
            Ok(format!("{greeting} ({approved})"))
        });
    let world = World::new(greet(), flow).await;
    world.client.signal_with_start("a", "Parent", "first", "names", "Ada").await.expect("starts");
    let info = loop {
        let info = world.client.get_instance_info("a").await;
        match info {
            Ok(info) if info.current_execution_id == 2 => break info,
            _ => tokio::task::yield_now().await,
        }
    };
    assert_eq!(info.status, "Running");
    loop {
        world.client.raise_event("a", "approved", "yes").await.expect("raises");
        if world.client.wait_for_orchestration("a", Duration::from_millis(50)).await.is_ok() {
            break;
        }
    }
    assert_eq!(world.output("a").await, Ok("Hello, Ada (yes)".to_owned()));
    world.runtime.shutdown(None).await;
}

#[tokio::test]
async fn failing_activities_are_retried_and_panics_are_failures() {
    let attempts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&attempts);
    let acts = activities()
        .register("Flaky", move |_, _| {
            let attempt = counted.fetch_add(1, Ordering::Relaxed);
            async move { if attempt < 2 { Err(format!("no {attempt}")) } else { Ok("yes".to_owned()) } }
        })
        .register("Panics", |_, _| async { panic!("at the disco") });
    let flow = orchestrations()
        .register("Retry", |ctx: OrchestrationContext, _| async move {
            let policy = RetryPolicy::new(5).with_backoff(steadfast_core::BackoffStrategy::None);
            ctx.schedule_activity_with_retry("Flaky", "", policy).await
        })
        .register("Panic", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity("Panics", "").await
        });
    let world = World::new(acts, flow).await;
    world.start("a", "Retry", "").await;
    world.start("b", "Panic", "").await;
    assert_eq!(world.output("a").await, Ok("yes".to_owned()));
    let error = world.output("b").await.expect_err("it panicked");
    assert!(error.contains("at the disco"), "{error}");
    world.runtime.shutdown(None).await;
}

#[tokio::test]
async fn cancelling_reaches_the_children() {
    let flow = orchestrations()
        .register("Child", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("never").await) })
        .register("Parent", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_sub_orchestration_with_id("Child", "kid", "").await
        });
    let world = World::new(activities(), flow).await;
    world.start("a", "Parent", "").await;
    while world.client.get_orchestration_status("kid").await.expect("answers")
        == OrchestrationStatus::NotFound
    {
        tokio::task::yield_now().await;
    }
    world.client.cancel_instance("a", "enough").await.expect("cancels");
    assert_eq!(world.output("a").await, Err("canceled: enough".to_owned()));
    assert_eq!(world.output("kid").await, Err("canceled: parent canceled".to_owned()));
    world.runtime.shutdown(None).await;
}

#[tokio::test]
async fn what_nobody_registered_becomes_poison() {
    let options = RuntimeOptions {
        max_attempts: 2,
        unregistered_backoff: steadfast_runtime::UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(5),
            max_delay: Duration::from_millis(5),
        },
        ..RuntimeOptions::default()
    };
    let flow = orchestrations().register("Lonely", |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("Missing", "").await
    });
    let world = World::with(activities(), flow, options).await;
    world.start("a", "Nobody", "").await;
    world.start("b", "Lonely", "").await;
    let error = world.output("a").await.expect_err("is poison");
    assert_eq!(error, "poison: orchestration a exceeded 3 attempts (max 2)");
    let error = world.output("b").await.expect_err("is poison");
    assert_eq!(error, "poison: activity Missing#2 exceeded 3 attempts (max 2)");
    world.runtime.shutdown(None).await;
}

#[tokio::test]
async fn a_policy_decides_the_version_of_a_start_and_a_running_execution_keeps_its_own() {
    let flow = orchestrations()
        .register("Flow", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_wait("go").await;
            Ok("one".to_owned())
        })
        .register_versioned("Flow", "2.0.0", |_, _| async { Ok("two".to_owned()) });
    let registry = flow.build_result().expect("orchestrations");
    let store: Arc<dyn Provider> = Arc::new(MemoryStore::new());
    registry.set_version_policy("Flow", VersionPolicy::Exact("1.0.0".parse().expect("a version")));
    let runtime =
        Runtime::start_with_store(Arc::clone(&store), ActivityRegistry::default(), registry.clone()).await;
    let client = Client::new(store);
    client.start_orchestration("old", "Flow", "").await.expect("starts");
    while client.get_orchestration_status("old").await.expect("answers") == OrchestrationStatus::NotFound {
        tokio::task::yield_now().await;
    }
    registry.set_version_policy("Flow", VersionPolicy::Latest);
    client.start_orchestration("new", "Flow", "").await.expect("starts");
    let new = client.wait_for_orchestration_typed::<String>("new", SOON).await.expect("ends");
    assert_eq!(new, Ok("two".to_owned()));
    client.raise_event("old", "go", "").await.expect("raises");
    let old = client.wait_for_orchestration_typed::<String>("old", SOON).await.expect("ends");
    assert_eq!(old, Ok("one".to_owned()));
    let descriptor = runtime.get_orchestration_descriptor("old").await.expect("is there");
    assert_eq!((descriptor.name.as_str(), descriptor.version.as_str()), ("Flow", "1.0.0"));
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn system_calls_are_recorded() {
    let flow = orchestrations().register("Calls", |ctx: OrchestrationContext, _| async move {
        ctx.set_kv_value("k", "v");
        ctx.schedule_timer(Duration::from_millis(1)).await;
        let guid = ctx.new_guid().await?;
        let now = ctx.utc_now().await?;
        let own = ctx.get_kv_value_from_instance(ctx.instance_id(), "k").await?;
        Ok(format!("{} {} {own:?}", guid.len(), now > std::time::UNIX_EPOCH))
    });
    let world = World::new(activities(), flow).await;
    world.start("a", "Calls", "").await;
    assert_eq!(world.output("a").await, Ok("36 true Some(\"v\")".to_owned()));
    world.runtime.shutdown(None).await;
}

#[tokio::test]
async fn tags_find_their_worker() {
    let options =
        RuntimeOptions { worker_tag_filter: TagFilter::default_and(["gpu"]), ..RuntimeOptions::default() };
    let acts = activities().register("Tag", |ctx: ActivityContext, _| async move {
        Ok(format!("{:?} {}", ctx.tag(), ctx.activity_id()))
    });
    let flow = orchestrations().register("Tagged", |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("Tag", "").with_tag("gpu").await
    });
    let world = World::with(acts, flow, options).await;
    world.start("a", "Tagged", "").await;
    assert_eq!(world.output("a").await, Ok("Some(\"gpu\") 2".to_owned()));
    world.runtime.shutdown(None).await;
}

#[tokio::test]
async fn a_shutdown_gives_back_what_it_stops_and_lets_go_of_the_store() {
    let running = Arc::new(Notify::new());
    let told = Arc::clone(&running);
    let acts = activities().register("Slow", move |_, _| {
        told.notify_one();
        std::future::pending()
    });
    let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("Slow", "").await
    });
    let world = World::new(acts, flow).await;
    world.start("a", "Flow", "").await;
    running.notified().await;
    let World { store, client, runtime } = world;
    runtime.shutdown(Some(0)).await;
    drop(client);
    assert_eq!(Arc::strong_count(&store), 1, "no task of the runtime holds the store");
    let acts = activities()
        .register("Slow", |ctx: ActivityContext, _| async move { Ok(ctx.counted_deliveries().to_string()) });
    let flow = orchestrations().register("Flow", |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("Slow", "").await
    });
    let second = Runtime::start_with_store(Arc::clone(&store), acts.build(), flow.build()).await;
    let client = Client::new(store);
    let attempt = client.wait_for_orchestration_typed::<u32>("a", SOON).await.expect("ends at once");
    assert_eq!(attempt, Ok(1), "it was given back at once, and the attempt was not counted");
    second.shutdown(None).await;
}

#[tokio::test]
async fn an_idle_runtime_stops_at_once_and_twice() {
    let world = World::new(activities(), orchestrations()).await;
    let health = world.runtime.health().await;
    assert!(health.store_reachable && health.accepting);
    let (first, second) = (Arc::clone(&world.runtime), Arc::clone(&world.runtime));
    let both = async { tokio::join!(first.shutdown(Some(60_000)), second.shutdown(None)) };
    tokio::time::timeout(Duration::from_secs(30), both).await.expect("an idle runtime stops at once");
    assert!(!world.runtime.health().await.accepting);
}

#[tokio::test]
#[should_panic(expected = "session_idle_timeout")]
async fn options_that_make_no_sense_panic_where_the_compatible_api_does() {
    let options =
        RuntimeOptions { session_idle_timeout: Duration::from_secs(1), ..RuntimeOptions::default() };
    World::with(activities(), orchestrations(), options).await;
}

#[tokio::test]
async fn activities_of_a_session_stay_with_their_runtime() {
    let acts = activities().register("Who", |ctx: ActivityContext, _| async move {
        Ok(format!(
            "{} {}",
            ctx.session_id().unwrap_or("none"),
            ctx.worker_id().split('-').next_back().unwrap_or("")
        ))
    });
    let flow = orchestrations().register("Chat", |ctx: OrchestrationContext, _| async move {
        let mut turns = Vec::new();
        for _ in 0..5 {
            turns.push(ctx.schedule_activity_on_session("Who", "", "chat").await?);
        }
        turns.dedup();
        Ok(turns.join(","))
    });
    let (acts, flow) = (acts.build(), flow.build());
    let world = World::with(
        ActivityRegistry::builder_from(&acts),
        OrchestrationRegistry::builder_from(&flow),
        RuntimeOptions { worker_node_id: Some("A".to_owned()), ..RuntimeOptions::default() },
    )
    .await;
    let options = RuntimeOptions { worker_node_id: Some("B".to_owned()), ..RuntimeOptions::default() };
    let other = Runtime::start_with_options(Arc::clone(&world.store), acts, flow, options).await;
    world.start("a", "Chat", "").await;
    let output = world.output("a").await.expect("completes");
    assert!(output == "chat A" || output == "chat B", "all turns on one worker: {output}");
    world.runtime.shutdown(None).await;
    other.shutdown(None).await;
}

/// One session at a time on three slots: nothing is given back, nothing waits for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_worker_serves_its_sessions_one_after_the_other() {
    let acts = activities().register("Turn", |ctx: ActivityContext, _| async move {
        tokio::task::yield_now().await;
        Ok(ctx.counted_deliveries().to_string())
    });
    let flow = orchestrations().register("Chat", |ctx: OrchestrationContext, session: String| async move {
        let mut attempts = Vec::new();
        for _ in 0..3 {
            attempts.push(ctx.schedule_activity_on_session("Turn", "", session.clone()).await?);
        }
        Ok(attempts.join(""))
    });
    let options =
        RuntimeOptions { max_sessions_per_runtime: 1, worker_concurrency: 3, ..RuntimeOptions::default() };
    let world = World::with(acts, flow, options).await;
    for n in 0..10 {
        world.start(&format!("i{n}"), "Chat", &format!("s{n}")).await;
    }
    for n in 0..10 {
        assert_eq!(world.output(&format!("i{n}")).await, Ok("111".to_owned()), "no attempt was wasted");
    }
    world.runtime.shutdown(None).await;
}
