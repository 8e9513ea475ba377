//! Sessions that orchestrations open and close, from end to end: `docs/contract/sessions.md` says which test
//! of the designs each of these stands for.

mod leak;
mod life;
mod misuse;
mod places;

use super::bench::turns;
use crate::workbench::Gate;
use std::future::Future;
use std::sync::Arc;
use steadfast::OrchestrationContext;
use steadfast::runtime::{Runtime, RuntimeOptions};
use steadfast_behaviour::{Stage, orchestrations};

/// Starts a named runtime whose only orchestration is `Play`.
async fn plays<F>(
    stage: &Stage,
    id: &str,
    play: fn(OrchestrationContext, String) -> F,
    change: impl FnOnce(&mut RuntimeOptions),
) -> Arc<Runtime>
where
    F: Future<Output = Result<String, String>> + Send + 'static,
{
    let mut options = RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() };
    change(&mut options);
    let gate = Gate::new();
    gate.open();
    let flows = orchestrations().register("Play", play);
    stage.run_with(turns(&gate), flows, options).await
}

/// Takes a turn on a session, and says where: the node, and how many turns its state has seen.
async fn turn(ctx: &OrchestrationContext, session: &str) -> Result<String, String> {
    let told = ctx.schedule_activity_on_session("Turn", "", session).await?;
    let words: Vec<&str> = told.split([' ', ',']).collect();
    Ok(format!("{}{}", words[0], words[2]))
}

/// Counts the sessions that the store knows.
async fn sessions(stage: &Stage) -> usize {
    stage.observer().list_sessions(None).await.expect("the store answers").len()
}
