//! The walking skeleton over a store that implements the required methods only: everything goes through the
//! adapter.

use std::sync::Arc;
use std::time::Duration;

use foreign_store::MapProvider;
use steadfast_clock::{Clock, VirtualClock};
use steadfast_core::{OrchestrationContext, WorkItem};
use steadfast_store::{ExecutionState, Provider, ProviderErrorKind, Started, store_of, NodeStart};
use steadfast_testing::skeleton::Skeleton;

fn world() -> (VirtualClock, Arc<dyn Clock>, Arc<dyn Provider>) {
    let clock = VirtualClock::new(1_700_000_000_000);
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let provider: Arc<dyn Provider> = Arc::new(MapProvider::new(Arc::clone(&shared)));
    (clock, shared, provider)
}

fn start(instance: &str, orchestration: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: orchestration.into(),
        input: "Ada".into(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn skeleton(provider: &Arc<dyn Provider>, clock: &Arc<dyn Clock>) -> Skeleton {
    Skeleton::over(Arc::clone(provider), Arc::clone(clock))
        .orchestration("Hello", |ctx: OrchestrationContext, name: String| async move {
            ctx.set_custom_status("greeting");
            ctx.schedule_activity("Greet", name).await
        })
        .orchestration("FanOut", |ctx: OrchestrationContext, _| async move {
            let greetings = (0..10).map(|n| ctx.schedule_activity("Greet", n.to_string())).collect();
            Ok(ctx.join(greetings).await.len().to_string())
        })
        .orchestration("Sleep", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_timer(Duration::from_secs(60)).await;
            Ok("awake".to_owned())
        })
        .activity("Greet", |name| Ok(format!("Hello, {name}")))
}

#[tokio::test]
async fn hello_a_fan_out_and_a_restart_run_over_the_required_methods() {
    for (orchestration, output) in [("Hello", "Hello, Ada"), ("FanOut", "10")] {
        for steps in 0..4 {
            let (_, clock, provider) = world();
            let store = store_of(Arc::clone(&provider), Arc::clone(&clock));
            let started = store.start(start("a", orchestration).into(), vec![]).await.expect("started");
            assert_eq!(started, Started::New);
            skeleton(&provider, &clock).run_until_idle(steps).await.expect("runs");
            skeleton(&provider, &clock).run_until_idle(1_000).await.expect("runs again");
            let state = store.state("a").await.expect("answers").expect("is there");
            assert_eq!(state.status, ExecutionState::Completed(output.into()));
        }
    }
}

#[tokio::test]
async fn a_timer_fires_when_it_is_time() {
    let (time, clock, provider) = world();
    let store = store_of(Arc::clone(&provider), Arc::clone(&clock));
    store.start(start("a", "Sleep").into(), vec![]).await.expect("started");
    skeleton(&provider, &clock).run_until_idle(1_000).await.expect("runs");
    time.advance(Duration::from_secs(59));
    skeleton(&provider, &clock).run_until_idle(1_000).await.expect("runs");
    assert_eq!(store.state("a").await.expect("answers").expect("is there").status, ExecutionState::Running);
    time.advance(Duration::from_secs(1));
    skeleton(&provider, &clock).run_until_idle(1_000).await.expect("runs");
    let state = store.state("a").await.expect("answers").expect("is there");
    assert_eq!(state.status, ExecutionState::Completed("awake".into()));
}

#[tokio::test]
async fn what_the_adapter_cannot_do_it_says() {
    let (_, clock, provider) = world();
    let store = store_of(provider, clock);
    assert!(!store.supports_owned_sessions());
    for error in [
        store.register_node(&NodeStart::new("node", "start")).await.expect_err("no incarnations"),
        store.sessions(None).await.expect_err("no lists of sessions"),
        store.instances(&Default::default()).await.expect_err("no management"),
        store.workers(None).await.expect_err("no rows of workers"),
        store.delete_ended(Duration::ZERO, 1).await.expect_err("no management"),
        store.gauges().await.expect_err("no management"),
    ] {
        assert_eq!(error.kind, ProviderErrorKind::Unsupported, "{error}");
    }
}

#[tokio::test]
async fn a_second_start_is_told_that_the_instance_exists() {
    let (_, clock, provider) = world();
    let store = store_of(Arc::clone(&provider), Arc::clone(&clock));
    store.start(start("a", "Hello").into(), vec![]).await.expect("started");
    skeleton(&provider, &clock).run_until_idle(1_000).await.expect("runs");
    assert_eq!(store.start(start("a", "Hello").into(), vec![]).await.expect("answers"), Started::Existing);
}
