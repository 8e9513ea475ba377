//! What the tests of sessions share: activities that keep something for their session, hooks that remember
//! what they were told, and runtimes with trouble of their own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::workbench::Gate;
use async_trait::async_trait;
use steadfast::client::SessionInfo;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{DetachReason, Runtime, RuntimeOptions, Session, SessionHooks};
use steadfast::{ActivityContext, OrchestrationContext, SessionKey};
use steadfast_behaviour::{Faults, Faulty, Stage, activities, orchestrations};
use steadfast_store::store_of;

/// What an activity keeps for its session: how many turns it has had here.
#[derive(Debug, Default)]
struct Turns(AtomicUsize);

/// Says where it runs, whether it is the first turn there, and how many turns the state has seen.
async fn turn(ctx: ActivityContext, _: String) -> Result<String, String> {
    let node = ctx.worker_id().split('-').nth(2).unwrap_or_default().to_owned();
    let Some(session) = ctx.session() else { return Ok(format!("{node} without a session")) };
    let which = if session.is_first_turn() { "first" } else { "later" };
    let turns = session.state_or_init(async { Ok(Turns::default()) }).await?;
    let count = turns.0.fetch_add(1, Ordering::Relaxed) + 1;
    Ok(format!("{node} {which} {count}, attempt {}", ctx.counted_deliveries()))
}

/// Registers `Turn`, and `Hold`, which waits at the gate first.
pub(crate) fn turns(gate: &Gate) -> ActivityRegistryBuilder {
    let gate = gate.clone();
    activities().register("Turn", turn).register("Hold", move |ctx: ActivityContext, input: String| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            turn(ctx, input).await
        }
    })
}

/// Schedules one activity: its input is `activity/session`, the session may be empty.
async fn one(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match input.split_once('/').expect("activity/session") {
        (activity, "") => ctx.schedule_activity(activity, "").await,
        (activity, session) => ctx.schedule_activity_on_session(activity, "", session).await,
    }
}

pub(crate) fn flows() -> OrchestrationRegistryBuilder {
    orchestrations().register("One", one)
}

/// Starts a runtime with a name.
pub(crate) async fn node(
    stage: &Stage,
    id: &str,
    gate: &Gate,
    change: impl FnOnce(&mut RuntimeOptions),
) -> Arc<Runtime> {
    let mut options = RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() };
    change(&mut options);
    stage.run_with(turns(gate), flows(), options).await
}

/// Starts a runtime that has trouble of its own with the store. The test shuts it down.
pub(crate) async fn troubled(
    stage: &Stage,
    id: &str,
    gate: &Gate,
    faults: &Faults,
    change: impl FnOnce(&mut RuntimeOptions),
) -> Arc<Runtime> {
    troubled_with(stage, id, gate, faults, flows(), change).await
}

/// Starts a runtime that has trouble of its own with the store, with other orchestrations.
pub(crate) async fn troubled_with(
    stage: &Stage,
    id: &str,
    gate: &Gate,
    faults: &Faults,
    flows: OrchestrationRegistryBuilder,
    change: impl FnOnce(&mut RuntimeOptions),
) -> Arc<Runtime> {
    let mut options = RuntimeOptions { worker_node_id: Some(id.to_owned()), ..stage.options() };
    change(&mut options);
    let store = store_of(stage.inner(), Arc::new(stage.clock.clone()));
    let store = Arc::new(Faulty::new(store, faults.clone()));
    let activities = turns(gate).build_result().expect("activities");
    let orchestrations = flows.build_result().expect("orchestrations");
    Runtime::try_start(store, activities, orchestrations, options).await.expect("sound options")
}

/// Runs one turn of a session, in an instance of its own.
pub(crate) async fn takes_turn(stage: &Stage, instance: &str, session: &str) -> String {
    stage.ends_after(instance, "One", &format!("Turn/{session}")).await.expect("completes")
}

pub(crate) async fn shown(stage: &Stage, id: &str) -> SessionInfo {
    let shown = stage.observer().get_session(&SessionKey::shared(id)).await;
    shown.expect("the store answers").expect("the session is there")
}

/// Releases a session by hand, and tells whether a worker held it.
pub(crate) async fn release(stage: &Stage, id: &str) -> bool {
    stage.client.release_session(&SessionKey::shared(id)).await.expect("the store answers")
}

/// Remembers what it is told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn add(&self, what: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    pub(crate) fn hooks(&self) -> Option<Arc<dyn SessionHooks>> {
        Some(Arc::new(self.clone()))
    }
}

#[async_trait]
impl SessionHooks for Told {
    async fn on_attach(&self, session: &Session) {
        self.add(format!("attach {}", session.id()));
    }

    async fn on_detach(&self, session: &Session, reason: DetachReason) {
        let turns = session.state::<Turns>().map_or(0, |turns| turns.0.load(Ordering::Relaxed));
        self.add(format!("detach {} {reason:?} after {turns}", session.id()));
    }
}
