//! The handlers of the program.

#![allow(deprecated, reason = "the old spellings are part of the API")]

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use duroxide::providers::SemverRange;
use duroxide::runtime::registry::{ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use duroxide::runtime::{
    LogFormat, ObservabilityConfig, OrchestrationRegistry, RuntimeOptions, UnregisteredBackoffConfig,
    VersionPolicy,
};
use duroxide::{
    ActivityContext, BackoffStrategy, Either2, Either3, OrchestrationContext, RetryPolicy, TagFilter,
};
use serde::{Deserialize, Serialize};

const MOMENT: Duration = Duration::from_millis(5);

/// An input and output that is more than a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Counts the pieces.
    pub pieces: u32,
    /// Says what they are.
    pub what: String,
}

/// Every option, by literal.
pub fn options() -> RuntimeOptions {
    RuntimeOptions {
        dispatcher_min_poll_interval: Duration::from_millis(10),
        dispatcher_long_poll_timeout: Duration::from_secs(1),
        orchestration_concurrency: 2,
        worker_concurrency: 4,
        orchestrator_lock_timeout: Duration::from_secs(5),
        orchestrator_lock_renewal_buffer: Duration::from_secs(2),
        worker_lock_timeout: Duration::from_secs(30),
        worker_lock_renewal_buffer: Duration::from_secs(5),
        observability: ObservabilityConfig {
            log_format: LogFormat::Compact,
            log_level: "debug".to_string(),
            service_name: "orders".to_string(),
            service_version: Some("1.0".to_string()),
            gauge_poll_interval: Duration::from_secs(60),
        },
        unregistered_backoff: UnregisteredBackoffConfig { base_delay: MOMENT, max_delay: MOMENT * 2 },
        max_attempts: 10,
        activity_cancellation_grace_period: Duration::from_secs(1),
        supported_replay_versions: Some(SemverRange::default_for_current_build()),
        session_lock_timeout: Duration::from_secs(30),
        session_lock_renewal_buffer: Duration::from_secs(5),
        session_idle_timeout: Duration::from_secs(300),
        session_cleanup_interval: Duration::from_secs(300),
        max_sessions_per_runtime: 10,
        worker_node_id: Some("node-a".to_string()),
        worker_tag_filter: TagFilter::default_and(["gpu"]),
        ..Default::default()
    }
}

/// The activities, through every method of their registry.
pub fn activities() -> ActivityRegistry {
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let more = ActivityRegistry::builder().register_all(vec![("Upper", upper), ("Also", upper)]).build();
    let base = ActivityRegistry::builder()
        .register("Greet", |_ctx, name| async move { Ok(format!("Hello, {name}")) })
        .register_typed("Total", |_ctx: ActivityContext, order: Order| async move {
            Ok::<u32, String>(order.pieces * 2)
        })
        .register_typed::<u32, u32, _, _>("Twice", |_ctx, n| async move { Ok(n * 2) })
        .register("Flaky", move |ctx: ActivityContext, input: String| {
            let first = {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.insert(format!("{}/{input}", ctx.instance_id()))
            };
            async move { if first { Err("not yet".to_string()) } else { Ok("7".to_string()) } }
        })
        .register("Who", who)
        .register("UntilCancelled", until_cancelled)
        .merge(more)
        .build_result()
        .unwrap_or_default();
    ActivityRegistryBuilder::from_registry(&base).build()
}

async fn upper(_ctx: ActivityContext, input: String) -> Result<String, String> {
    Ok(input.to_uppercase())
}

/// Says who it is, by every getter of its context.
async fn who(ctx: ActivityContext, _input: String) -> Result<String, String> {
    ctx.trace_info("info");
    ctx.trace_warn("warn".to_string());
    ctx.trace_error(format!("error of {}", ctx.activity_name()));
    ctx.trace_debug("debug");
    let again = ctx.clone();
    if again.is_cancelled() || format!("{again:?}").is_empty() {
        return Err("cancelled".to_string());
    }
    let worker = ctx.worker_id().starts_with("work-") && ctx.worker_id().ends_with("-node-a");
    Ok([
        ctx.instance_id(),
        &ctx.execution_id().to_string(),
        ctx.orchestration_name(),
        ctx.orchestration_version(),
        ctx.activity_name(),
        ctx.session_id().unwrap_or("-"),
        ctx.tag().unwrap_or("-"),
        &worker.to_string(),
    ]
    .join("|"))
}

/// Waits until it should stop, and lets a new instance tell of it.
async fn until_cancelled(ctx: ActivityContext, _input: String) -> Result<String, String> {
    let client = ctx.get_client();
    client.raise_event(ctx.instance_id(), "begun", "").await.map_err(|error| error.to_string())?;
    ctx.cancelled().await;
    ctx.cancellation_token().cancelled().await;
    let told = format!("{}-stopped", ctx.instance_id());
    client.start_orchestration(told, "Echo", "stopped").await.map_err(|error| error.to_string())?;
    Ok(String::new())
}

/// The orchestrations, through every method of their registry.
pub fn orchestrations() -> OrchestrationRegistry {
    let registry = core_flows()
        .register_typed("Double", |_ctx, n: u32| async move { Ok::<u32, String>(n * 2) })
        .register_versioned("Echo", "2.0.0", |_ctx, input| async move { Ok(format!("v2:{input}")) })
        .register_versioned("Upgrade", "1.0.0", |ctx, input| async move {
            ctx.continue_as_new_versioned("2.0.0", input).await
        })
        .register_versioned_typed::<String, String, _, _>("Upgrade", "2.0.0", |ctx, input| async move {
            Ok(format!("{input} on {}", ctx.orchestration_version()))
        })
        .register_typed::<u32, u32, _, _>("Count", |ctx, n| async move {
            if n < 3 { ctx.continue_as_new_typed(&(n + 1)).await.map(|_| 0) } else { Ok(n) }
        })
        .set_policy("Echo", VersionPolicy::Latest)
        .merge(OrchestrationRegistry::builder().register_all(vec![("Noop", noop)]).build())
        .build_result()
        .unwrap_or_default();
    OrchestrationRegistry::builder_from(&registry).build()
}

fn core_flows() -> OrchestrationRegistryBuilder {
    OrchestrationRegistry::builder()
        .register("Echo", |_ctx, input| async move { Ok(input) })
        .register("Fails", |_ctx, input| async move { Err(format!("no {input}")) })
        .register("Identity", identity)
        .register("Activities", activities_flow)
        .register("Sessions", sessions_flow)
        .register("Waits", waits_flow)
        .register("Races", races_flow)
        .register("Children", children_flow)
        .register("Detached", detached_flow)
        .register("State", state_flow)
        .register("Stuck", stuck_flow)
        .register("Again", |ctx, input: String| async move {
            if input == "once more" { Ok(input) } else { ctx.continue_as_new("once more").await }
        })
}

async fn noop(_ctx: OrchestrationContext, input: String) -> Result<String, String> {
    Ok(input)
}

async fn identity(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.trace_info("info");
    ctx.trace_warn(format!("warn {}", ctx.is_replaying()));
    ctx.trace_error("error".to_string());
    ctx.trace_debug("debug");
    ctx.trace("notice", "of no level");
    let guid = ctx.new_guid().await?;
    let now = ctx.utc_now().await?;
    let sensible = guid.len() == 36 && now.duration_since(UNIX_EPOCH).is_ok() && !ctx.is_logging_enabled();
    Ok(format!(
        "{}|{}|{}|{}|{sensible}",
        ctx.instance_id(),
        ctx.execution_id(),
        ctx.orchestration_name(),
        ctx.orchestration_version()
    ))
}

async fn activities_flow(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    let order = Order { pieces: 3, what: "apples".to_string() };
    let greeting = ctx.schedule_activity("Greet", &name).await?;
    let total: u32 = ctx.schedule_activity_typed("Total", &order).await?;
    let twice = ctx.schedule_activity_typed::<u32, u32>("Twice", &total).await?;
    let loud = ctx.schedule_activity("Upper", name.clone()).map(|result| result.map(|text| text.len()));
    let length = loud.await?;
    let tagged = ctx.schedule_activity("Who", "").with_tag("gpu").await?;
    let policy = || {
        RetryPolicy::new(3)
            .with_backoff(BackoffStrategy::Fixed { delay: MOMENT })
            .with_timeout(Duration::from_secs(10))
    };
    let retried = ctx.schedule_activity_with_retry("Flaky", "a", policy()).await?;
    let number: u32 = ctx.schedule_activity_with_retry_typed("Flaky", &"b", policy()).await?;
    let failed = ctx.schedule_activity_with_retry("Flaky", "c", RetryPolicy::new(1)).await;
    Ok(format!("{greeting}; {total}; {twice}; {length}; {tagged}; {retried}; {number}; {failed:?}"))
}

async fn sessions_flow(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let session = format!("{}-session", ctx.instance_id());
    let who = ctx.schedule_activity_on_session("Who", "", &session).await?;
    let twice = ctx.schedule_activity_on_session_typed::<u32, u32>("Twice", &4, session.clone()).await?;
    let policy = RetryPolicy { max_attempts: 2, backoff: BackoffStrategy::None, timeout: None };
    let one =
        ctx.schedule_activity_with_retry_on_session("Flaky", "d", policy.clone(), session.as_str()).await?;
    let two: u32 = ctx.schedule_activity_with_retry_on_session_typed("Flaky", &"e", policy, &session).await?;
    Ok(format!("{who}; {twice}; {one}; {two}"))
}

async fn waits_flow(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let plain = ctx.schedule_wait("plain");
    let typed = ctx.schedule_wait_typed::<Order>("typed");
    ctx.set_custom_status("waiting");
    let (plain, typed) = ctx.join2(plain, typed).await;
    let first = ctx.dequeue_event("queue").await;
    let second = ctx.dequeue_event_typed::<u32>("queue").await;
    let third = ctx.schedule_wait_persistent("queue").await;
    let fourth: u32 = ctx.schedule_wait_persistent_typed("queue").await;
    Ok(format!("{plain}; {}; {first}; {second}; {third}; {fourth}", typed.pieces))
}

async fn races_flow(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    // The wait goes on after it lost the first race.
    let mut approval = ctx.schedule_wait("approval");
    let early = match ctx.select2(&mut approval, ctx.schedule_timer(MOMENT)).await {
        Either2::First(_) => "early",
        Either2::Second(()) => "late",
    };
    ctx.set_custom_status("late");
    let approval = approval.await;
    let slow = || ctx.schedule_timer(Duration::from_secs(3600));
    let third = match ctx.select3(slow(), slow(), ctx.schedule_activity("Greet", "Ada")).await {
        Either3::First(()) | Either3::Second(()) => return Err("an hour went by".to_string()),
        Either3::Third(greeting) => greeting?,
    };
    let fan: Vec<_> = (0..3).map(|n| ctx.schedule_activity("Upper", format!("n{n}"))).collect();
    let fan = ctx.join(fan).await.into_iter().collect::<Result<Vec<_>, _>>()?.join(",");
    let (a, b, c) = ctx
        .join3(
            ctx.schedule_activity("Also", "a"),
            async { ctx.schedule_timer(MOMENT).await },
            ctx.schedule_activity_typed::<u32, u32>("Twice", &1),
        )
        .await;
    let index = ctx.select2(ctx.schedule_timer(MOMENT), slow()).await.index();
    Ok(format!("{early}; {approval}; {third}; {fan}; {} {b:?} {}; {index}", a?, c?))
}

async fn children_flow(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let id = |name: &str| format!("{}-{name}", ctx.instance_id());
    let latest = ctx.schedule_sub_orchestration("Echo", "a").await?;
    let named = ctx.schedule_sub_orchestration_with_id("Echo", id("b"), "b").await?;
    let first = ctx.schedule_sub_orchestration_versioned("Echo", Some("1.0.0".to_string()), "c").await?;
    let both = ctx.schedule_sub_orchestration_versioned_with_id("Echo", None, id("d"), "d").await?;
    let typed: u32 = ctx.schedule_sub_orchestration_typed("Double", &2u32).await?;
    let typed_named = ctx.schedule_sub_orchestration_with_id_typed::<u32, u32>("Double", id("e"), &3).await?;
    let failed = ctx.schedule_sub_orchestration("Fails", "luck").await;
    Ok(format!("{latest}; {named}; {first}; {both}; {typed}; {typed_named}; {failed:?}"))
}

async fn detached_flow(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let id = |name: &str| format!("{}-{name}", ctx.instance_id());
    ctx.schedule_orchestration("Echo", id("1"), "one");
    ctx.schedule_orchestration_typed("Double", id("2"), &2u32);
    ctx.schedule_orchestration_versioned("Echo", Some("1.0.0".to_string()), id("3"), "three");
    ctx.schedule_orchestration_versioned_typed("Double", None, id("4"), &4u32);
    Ok("started".to_string())
}

async fn state_flow(ctx: OrchestrationContext, other: String) -> Result<String, String> {
    ctx.set_custom_status("half");
    ctx.reset_custom_status();
    ctx.set_custom_status(format!("status of {}", ctx.instance_id()));
    let status = ctx.get_custom_status().unwrap_or_default();
    ctx.set_kv_value("text", "value");
    ctx.set_kv_value("gone", "soon");
    ctx.set_kv_value_typed("order", &Order { pieces: 2, what: "pears".to_string() });
    ctx.clear_kv_value("gone");
    let text = ctx.get_kv_value("text").unwrap_or_default();
    let order: Option<Order> = ctx.get_kv_value_typed("order")?;
    let counts = (ctx.get_kv_all_keys(), ctx.get_kv_length(), ctx.get_kv_all_values().len());
    let pruned = ctx.prune_kv_values_updated_before(1);
    let theirs = ctx.get_kv_value_from_instance(&other, "text").await?;
    let typed = ctx.get_kv_value_from_instance_typed::<Order>(other.clone(), "order").await?;
    let stats = ctx.get_system_stats().is_none();
    if !other.is_empty() {
        ctx.clear_all_kv_values();
    }
    let pieces = (order.map(|order| order.pieces), typed.map(|order| order.pieces));
    Ok(format!("{status}; {text}; {counts:?}; {pruned}; {theirs:?}; {pieces:?}; {stats}"))
}

async fn stuck_flow(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let begun = ctx.schedule_wait("begun");
    let work = ctx.schedule_activity("UntilCancelled", "");
    begun.await;
    ctx.set_custom_status("begun");
    work.await
}
