//! Sessions while something takes its time: a hook, a rebuild, a call of the store.

mod calls;
mod hooks;
mod line;
mod rebuild;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bench::{flows, turns};
use crate::workbench::Gate;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{Runtime, RuntimeOptions};
use steadfast::{ActivityContext, OrchestrationContext};
use steadfast_behaviour::{Faults, Faulty, Stage};
use steadfast_store::store_of;

/// Schedules an activity on a session of its own, and closes the session when it is told.
async fn closes(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let session = ctx.open_session_with_id("chat").await?;
    let work = ctx.schedule_activity_on_session("Mark", "", &session);
    ctx.schedule_wait("enough").await;
    ctx.close_session(&session).await?;
    ctx.schedule_wait("end").await;
    Ok(work.await.expect_err("it is cancelled"))
}

/// Lets an activity on a shared session lose against a signal.
async fn gives_up(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let work = ctx.schedule_activity_on_session("Mark", "", "chat");
    let enough = ctx.schedule_wait("enough");
    drop(ctx.select2(work, enough).await);
    ctx.schedule_wait("end").await;
    Ok(String::new())
}

fn plays() -> OrchestrationRegistryBuilder {
    flows().register("Closes", closes).register("GivesUp", gives_up)
}

fn named(stage: &Stage, id: &str) -> RuntimeOptions {
    RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() }
}

/// Starts a runtime with a store of its own that can have trouble. The test shuts it down.
async fn starts(
    stage: &Stage,
    faults: &Faults,
    works: ActivityRegistryBuilder,
    options: RuntimeOptions,
) -> Arc<Runtime> {
    let store = store_of(stage.inner(), Arc::new(stage.clock.clone()));
    let store = Arc::new(Faulty::new(store, faults.clone()));
    let activities = works.build_result().expect("activities");
    let orchestrations = plays().build_result().expect("orchestrations");
    Runtime::try_start(store, activities, orchestrations, options).await.expect("sound options")
}

/// Registers `Mark`, which counts its runs.
fn marks(count: &Arc<AtomicUsize>) -> ActivityRegistryBuilder {
    let count = Arc::clone(count);
    turns(&Gate::new()).register("Mark", move |_: ActivityContext, _: String| {
        let count = Arc::clone(&count);
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            Ok("marked".to_owned())
        }
    })
}
