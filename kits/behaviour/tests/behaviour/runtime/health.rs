//! What a runtime tells of its health: the store, its slots, and how long things wait.

use std::sync::Arc;
use std::time::Duration;

use steadfast::OrchestrationContext;
use steadfast::providers::ProviderError;
use steadfast::runtime::{Health, Runtime, RuntimeOptions};
use steadfast_behaviour::{
    Stage, StoreKind, activities, on_every_full_store, on_every_store, orchestrations,
};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

const SECOND: Duration = Duration::from_secs(1);

/// A runtime with this many slots for turns and for activities.
async fn run(stage: &Stage, turns: usize, workers: usize) -> Arc<Runtime> {
    let flow = orchestrations().register("Work", |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("Work", "").with_tag("gpu").await
    });
    let options =
        RuntimeOptions { orchestration_concurrency: turns, worker_concurrency: workers, ..stage.options() };
    stage.run_with(activities(), flow, options).await
}

async fn alive(stage: &Stage, runtime: &Runtime, count: usize) -> Health {
    stage.until("the slots", async || runtime.health().await.slots_alive == count).await;
    runtime.health().await
}

on_every_store! {
    async fn slots_are_counted_while_they_run(stage) {
        let runtime = run(&stage, 2, 3).await;
        let health = alive(&stage, &runtime, 5).await;
        assert_eq!((health.slots, health.slots_restarted), (5, 0));
        assert!(health.store_reachable && health.accepting);
        stage.stop().await;
        let health = runtime.health().await;
        assert_eq!((health.slots, health.slots_alive, health.accepting), (5, 0, false));
    }

    async fn f4_a_slot_that_panics_is_counted_once_when_it_runs_again(stage) {
        stage.faults.panic("fetch_turn", 1);
        let runtime = run(&stage, 2, 3).await;
        stage.until("the restart", async || runtime.health().await.slots_restarted == 1).await;
        assert_eq!(alive(&stage, &runtime, 5).await.slots, 5);
        stage.stop().await;
        assert_eq!(runtime.health().await.slots_alive, 0);
    }

    async fn f4_a_slot_that_panics_is_restarted(stage) {
        let subscriber = tracing_subscriber::registry().with(PanicsOn("fetch failed"));
        let guard = tracing::subscriber::set_default(subscriber);
        for operation in ["fetch_turn", "fetch_work"] {
            stage.faults.refuse(operation, 1, ProviderError::retryable(operation, "the store is away"));
        }
        let flow = orchestrations()
            .register("Plain", |ctx: OrchestrationContext, input: String| async move {
                ctx.schedule_activity("Echo", input).await
            });
        let echo = activities().register("Echo", |_, input: String| async move { Ok(input) });
        let one = RuntimeOptions { orchestration_concurrency: 1, worker_concurrency: 1, ..stage.options() };
        let runtime = stage.run_with(echo, flow, one).await;
        stage.until("both slots are back", async || runtime.health().await.slots_restarted == 2).await;
        assert_eq!(stage.ends_after("bystander", "Plain", "fine").await, Ok("fine".to_owned()));
        stage.nothing_waits().await;
        drop(guard);
        stage.stop().await;
    }

    async fn a_store_that_fails_is_not_reachable(stage) {
        let runtime = run(&stage, 1, 1).await;
        assert!(runtime.health().await.store_reachable);
        stage.faults.outage();
        let health = runtime.health().await;
        assert!(!health.store_reachable);
        assert_eq!((health.oldest_message_waits, health.waiting_messages), (None, None));
        stage.faults.heal();
        assert!(runtime.health().await.store_reachable);
        stage.stop().await;
    }

    async fn a_store_that_hangs_is_not_reachable_after_five_seconds(stage) {
        let runtime = run(&stage, 0, 0).await;
        let asked = if stage.kind == StoreKind::Wrapped { "read_history" } else { "oldest_waiting" };
        stage.faults.hang(asked, 1);
        let sleepers = stage.clock.sleepers();
        let looking = tokio::spawn({
            let runtime = Arc::clone(&runtime);
            async move { runtime.health().await }
        });
        stage.until("the look", async || stage.clock.sleepers() > sleepers).await;
        stage.pass(5 * SECOND - Duration::from_millis(1));
        tokio::task::yield_now().await;
        assert!(!looking.is_finished(), "the store may be slow");
        stage.pass(Duration::from_millis(1));
        assert!(!looking.await.expect("answers").store_reachable);
        assert!(runtime.health().await.store_reachable, "the next call is answered");
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn the_longest_waits_are_told(stage) {
        let runtime = run(&stage, 0, 0).await;
        let health = runtime.health().await;
        assert_eq!((health.oldest_message_waits, health.oldest_work_waits), (None, None), "nothing waits");
        stage.start("a", "Work", "").await;
        stage.pass(3 * SECOND);
        stage.start("b", "Work", "").await;
        stage.pass(4 * SECOND);
        let health = runtime.health().await;
        assert_eq!((health.oldest_message_waits, health.waiting_messages), (Some(7 * SECOND), Some(2)));
        assert_eq!((health.oldest_work_waits, health.waiting_work), (None, Some(0)));
        stage.stop().await;
    }

    async fn an_activity_whose_tag_nobody_serves_waits_for_longer_and_longer(stage) {
        let runtime = run(&stage, 1, 1).await;
        stage.start("a", "Work", "").await;
        stage.has("a", "ActivityScheduled", 1).await;
        stage.pass(90 * SECOND);
        let health = runtime.health().await;
        assert_eq!((health.oldest_message_waits, health.oldest_work_waits), (None, Some(90 * SECOND)));
        stage.stop().await;
    }
}

/// Panics when a message is logged: a way into the middle of a slot.
struct PanicsOn(&'static str);

impl<S: tracing::Subscriber> Layer<S> for PanicsOn {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut search = Search { message: self.0, found: false };
        event.record(&mut search);
        assert!(!search.found, "panics on purpose");
    }
}

struct Search {
    message: &'static str,
    found: bool,
}

impl tracing::field::Visit for Search {
    fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.found |= format!("{value:?}") == self.message;
    }
}
