//! Core and store fit: hello, a fan-out, a restart, children, eternal orchestrations, over the memory store.

#![allow(clippy::expect_used, reason = "what a test relies on, it panics without")]

use std::sync::Arc;

use steadfast_clock::{Clock, VirtualClock};
use steadfast_core::{OrchestrationContext, WorkItem};
use steadfast_memory::MemoryStore;
use steadfast_store::{Envelope, ExecutionState, Store};
use steadfast_testing::skeleton::{Ran, Skeleton};

const STEPS: u64 = 1_000;

fn clock() -> Arc<dyn Clock> {
    Arc::new(VirtualClock::new(1_700_000_000_000))
}

fn start(instance: &str, orchestration: &str, input: &str) -> Envelope {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: orchestration.into(),
        input: input.into(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
    .into()
}

fn skeleton(store: &Arc<MemoryStore>) -> Skeleton {
    Skeleton::over(Arc::clone(store) as _, clock())
        .orchestration("Hello", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity("Greet", name).await
        })
        .orchestration("FanOut", |ctx: OrchestrationContext, _| async move {
            let greetings = (0..20).map(|n| ctx.schedule_activity("Greet", n.to_string())).collect();
            let results: Result<Vec<String>, String> = ctx.join(greetings).await.into_iter().collect();
            Ok(results?.len().to_string())
        })
        .orchestration("Parent", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_sub_orchestration("Hello", name).await
        })
        .orchestration("Count", |ctx: OrchestrationContext, n: String| async move {
            let n: u64 = n.parse().map_err(|_| n.clone())?;
            ctx.set_kv_value("n", n.to_string());
            if n == 3 { Ok("counted".to_owned()) } else { ctx.continue_as_new((n + 1).to_string()).await }
        })
        .activity("Greet", |name| Ok(format!("Hello, {name}")))
}

async fn outcome(store: &MemoryStore, instance: &str) -> ExecutionState {
    store.state(instance).await.expect("the store answers").expect("the instance exists").status
}

#[tokio::test]
async fn hello_runs_in_two_turns_and_one_activity() {
    let store = Arc::new(MemoryStore::with_clock(clock()));
    store.start(start("a", "Hello", "Ada"), vec![]).await.expect("started");
    let ran = skeleton(&store).run_until_idle(STEPS).await.expect("runs");
    assert_eq!(ran, Ran { turns: 2, activities: 1 });
    assert_eq!(outcome(&store, "a").await, ExecutionState::Completed("Hello, Ada".into()));
}

#[tokio::test]
async fn a_fan_out_comes_together() {
    let store = Arc::new(MemoryStore::with_clock(clock()));
    store.start(start("a", "FanOut", ""), vec![]).await.expect("started");
    skeleton(&store).run_until_idle(STEPS).await.expect("runs");
    assert_eq!(outcome(&store, "a").await, ExecutionState::Completed("20".into()));
}

#[tokio::test]
async fn a_restart_at_any_step_changes_nothing() {
    for steps in 0..6 {
        let store = Arc::new(MemoryStore::with_clock(clock()));
        store.start(start("a", "Parent", "Ada"), vec![]).await.expect("started");
        // The loop keeps nothing between turns, so a new one is what a restarted process is.
        skeleton(&store).run_until_idle(steps).await.expect("runs");
        skeleton(&store).run_until_idle(STEPS).await.expect("runs");
        assert_eq!(
            outcome(&store, "a").await,
            ExecutionState::Completed("Hello, Ada".into()),
            "after {steps} steps"
        );
    }
}

#[tokio::test]
async fn an_orchestration_goes_on_as_new_with_its_state() {
    let store = Arc::new(MemoryStore::with_clock(clock()));
    store.start(start("a", "Count", "1"), vec![]).await.expect("started");
    skeleton(&store).run_until_idle(STEPS).await.expect("runs");
    let state = store.state("a").await.expect("the store answers").expect("the instance exists");
    assert_eq!((state.execution_id, state.status), (3, ExecutionState::Completed("counted".into())));
    assert_eq!(store.kv_value("a", "n").await.expect("the store answers").as_deref(), Some("3"));
}
