//! The code of a soak: short orchestrations over all operations. Each returns its input.

use std::time::Duration;

use steadfast::{
    ActivityContext, OrchestrationContext, RuntimeOptions,
    runtime::registry::{ActivityRegistry, OrchestrationRegistry},
};

use crate::worker::WorkerArguments;

/// The kind that a client sends a message to.
pub(super) const LISTENS: &str = "Listen";
/// The queue that it listens to.
pub(super) const QUEUE: &str = "q";

/// One of each, and so on in turn.
const KINDS: [&str; 8] = ["Chain", "Fan", "Pause", LISTENS, "Parent", "Again", "Keep", "Talk"];

/// How many shared sessions there are.
const SESSIONS: u64 = 20;

/// How long instances are kept: all of a run would make every figure of the store rise.
const RETENTION: Duration = Duration::from_secs(20);

/// Returns the kind of the orchestration of a number.
pub(super) fn kind(number: u64) -> &'static str {
    KINDS[(number % KINDS.len() as u64) as usize]
}

/// Returns its input, which is also its result.
pub(super) fn input(number: u64) -> String {
    format!("chat-{}", number % SESSIONS)
}

/// Returns the options of a worker: the defaults, with room for the load, and retention.
pub fn options(arguments: &WorkerArguments) -> RuntimeOptions {
    RuntimeOptions {
        worker_node_id: Some(arguments.node.clone()),
        orchestration_concurrency: 8,
        worker_concurrency: 16,
        max_sessions_per_runtime: 32,
        session_idle_timeout: Duration::from_secs(60),
        session_cleanup_interval: Duration::from_secs(20),
        retain_finished_for: Some(RETENTION),
        ..RuntimeOptions::default()
    }
}

/// Registers the activities.
pub fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Step", |_: ActivityContext, input: String| async move { Ok(input) })
        .register("Turn", |ctx: ActivityContext, input: String| async move {
            let session = ctx.session().ok_or("it has no session")?;
            session.state_or_init(async { Ok(vec![0u8; 4_096]) }).await?;
            Ok(input)
        })
        .build()
}

/// Registers the orchestrations.
pub fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Chain", chain)
        .register("Fan", |ctx: OrchestrationContext, input: String| async move {
            let all = (0..4).map(|_| ctx.schedule_activity("Step", input.clone())).collect();
            ctx.join(all).await.into_iter().collect::<Result<Vec<_>, _>>()?;
            Ok(input)
        })
        .register("Pause", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_timer(Duration::from_millis(50)).await;
            ctx.schedule_activity("Step", input).await
        })
        .register(LISTENS, |ctx: OrchestrationContext, _: String| async move {
            Ok(ctx.dequeue_event(QUEUE).await)
        })
        .register("Parent", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_sub_orchestration("Chain", input).await
        })
        .register("Again", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Step", input.clone()).await?;
            if ctx.execution_id() < 3 { ctx.continue_as_new(input).await } else { Ok(input) }
        })
        .register("Keep", |ctx: OrchestrationContext, input: String| async move {
            ctx.set_kv_value("kept", input.clone());
            ctx.schedule_activity("Step", input).await?;
            ctx.set_custom_status("half way");
            Ok(ctx.get_kv_value("kept").unwrap_or_default())
        })
        .register("Talk", |ctx: OrchestrationContext, input: String| async move {
            let own = ctx.open_session().await?;
            ctx.schedule_activity_on_session("Turn", input.clone(), own).await?;
            ctx.schedule_activity_on_session("Turn", input.clone(), input).await
        })
        .build()
}

async fn chain(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    for _ in 0..3 {
        ctx.schedule_activity("Step", input.clone()).await?;
    }
    Ok(input)
}
