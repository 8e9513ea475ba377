//! The edges that programs rely on: texts, collisions, limits, odd options; on a store and through a plain wrapper.

#![allow(clippy::expect_used, clippy::panic, reason = "what a test relies on, it panics without")]

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::{ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use duroxide::{
    BackoffStrategy, Client, ClientError, ErrorDetails, EventKind, OrchestrationRegistry,
    OrchestrationStatus, PoisonMessageType, RetryPolicy, RuntimeOptions,
};
use steadfast_compat::Plain;

const SOON: Duration = Duration::from_secs(30);

async fn stores() -> [Arc<dyn Provider>; 2] {
    let one = Arc::new(SqliteProvider::new_in_memory().await.expect("opens"));
    let two = Arc::new(SqliteProvider::new_in_memory().await.expect("opens"));
    [one, Arc::new(Plain::new(two))]
}

fn activities() -> ActivityRegistryBuilder {
    ActivityRegistry::builder().register("Fails", |_, input| async move { Err(input) }).register(
        "Slow",
        |ctx, _| async move {
            ctx.cancelled().await;
            Ok(String::new())
        },
    )
}

fn flows() -> OrchestrationRegistryBuilder {
    OrchestrationRegistry::builder()
        .register("Echo", |_, input| async move { Ok(input) })
        .register("Waits", |ctx, _| async move { Ok(ctx.schedule_wait("go").await) })
        .register("Panics", |_, input: String| async move { panic!("{input}") })
        .register("Child", |ctx, id: String| async move {
            ctx.schedule_sub_orchestration_with_id("Echo", id, "").await
        })
        .register("Detach", |ctx, id: String| async move {
            ctx.schedule_orchestration("Echo", id, "");
            Ok(String::new())
        })
        .register("Missing", |ctx, _| async move { ctx.schedule_activity("Nowhere", "").await })
        .register("Impatient", |ctx, _| async move {
            let policy = RetryPolicy::new(3)
                .with_backoff(BackoffStrategy::None)
                .with_timeout(Duration::from_millis(20));
            ctx.schedule_activity_with_retry("Slow", "", policy).await
        })
        .register("BigStatus", |ctx, _| async move {
            ctx.set_custom_status("x".repeat(262_145));
            Ok(String::new())
        })
}

async fn started(store: &Arc<dyn Provider>, options: RuntimeOptions) -> (Arc<Runtime>, Client) {
    let runtime =
        Runtime::start_with_options(store.clone(), activities().build(), flows().build(), options).await;
    (runtime, Client::new(store.clone()))
}

async fn failure(client: &Client, instance: &str) -> ErrorDetails {
    match client.wait_for_orchestration(instance, SOON).await.expect("ends") {
        OrchestrationStatus::Failed { details, .. } => details,
        other => panic!("{instance}: {other:?}"),
    }
}

async fn failed(client: &Client, instance: &str, orchestration: &str, input: &str) -> String {
    client.start_orchestration(instance, orchestration, input).await.expect("starts");
    failure(client, instance).await.display_message()
}

#[tokio::test]
async fn failures_say_what_programs_match_on() {
    for store in stores().await {
        let (runtime, client) = started(&store, RuntimeOptions::default()).await;
        let text = failed(&client, "p", "Panics", "boom").await;
        assert!(text.starts_with("orchestration panicked:") && text.contains("boom"), "{text}");
        let text = failed(&client, "c", "Child", "sub::mine").await;
        assert!(text.contains("reserved marker") && text.contains("sub::mine"), "{text}");
        let text = failed(&client, "d", "Detach", "sub::mine").await;
        assert!(text.contains("reserved sub-orchestration marker"), "{text}");
        let text = failed(&client, "t", "Impatient", "").await;
        assert!(text.contains("timeout"), "{text}");
        let text = failed(&client, "b", "BigStatus", "").await;
        assert_eq!(text, "Custom status size (262145 bytes) exceeds limit (262144 bytes)");
        let refused = client.start_orchestration("a::sub::1", "Echo", "").await;
        assert!(matches!(refused, Err(ClientError::InvalidInput { .. })), "{refused:?}");
        runtime.shutdown(None).await;
    }
}

#[tokio::test]
async fn an_id_that_is_taken_is_left_alone_and_a_child_with_it_fails() {
    for store in stores().await {
        let (runtime, client) = started(&store, RuntimeOptions::default()).await;
        client.start_orchestration("done", "Echo", "first").await.expect("starts");
        client.wait_for_orchestration("done", SOON).await.expect("ends");
        client.start_orchestration("done", "Echo", "second").await.expect("is accepted");
        let text = failed(&client, "c1", "Child", "done").await;
        assert!(text.contains("'done' already exists and is terminal"), "{text}");
        client.start_orchestration("live", "Waits", "").await.expect("starts");
        client.start_orchestration("live", "Echo", "").await.expect("is accepted");
        let text = failed(&client, "c2", "Child", "live").await;
        assert!(text.contains("'live' already exists") && !text.contains("is terminal"), "{text}");
        client.raise_event("live", "go", "on").await.expect("is sent");
        let live = client.wait_for_orchestration_typed::<String>("live", SOON).await.expect("ends");
        assert_eq!(live, Ok("on".to_string()));
        let done = client.wait_for_orchestration_typed::<String>("done", SOON).await.expect("ended");
        assert_eq!(done, Ok("first".to_string()));
        runtime.shutdown(None).await;
    }
}

#[tokio::test]
async fn a_cancellation_that_comes_with_the_start_wins() {
    for store in stores().await {
        let client = Client::new(store.clone());
        client.start_orchestration("i", "Echo", "").await.expect("starts");
        client.cancel_instance("i", "changed my mind").await.expect("is sent");
        client.cancel_instance("nobody", "is there").await.expect("is no error");
        client.raise_event("nobody", "is", "there").await.expect("is no error");
        let (runtime, client) = started(&store, RuntimeOptions::default()).await;
        assert_eq!(failure(&client, "i").await.display_message(), "canceled: changed my mind");
        let none = client.wait_for_orchestration("nobody", Duration::from_millis(20)).await;
        assert!(matches!(none, Err(ClientError::Timeout)), "{none:?}");
        runtime.shutdown(None).await;
    }
}

#[tokio::test]
async fn no_attempts_poison_the_first_fetch() {
    for store in stores().await {
        let options = RuntimeOptions { max_attempts: 0, ..Default::default() };
        let (runtime, client) = started(&store, options).await;
        client.start_orchestration("i", "Echo", "in").await.expect("starts");
        match failure(&client, "i").await {
            ErrorDetails::Poison { attempt_count, max_attempts, message_type, message } => {
                assert_eq!((attempt_count, max_attempts), (1, 0));
                let expected =
                    PoisonMessageType::Orchestration { instance: "i".to_string(), execution_id: 1 };
                assert_eq!(message_type, expected);
                assert!(message.contains("StartOrchestration"), "{message}");
            }
            other => panic!("{other:?}"),
        }
        let history = store.read("i").await.expect("reads");
        assert!(matches!(&history[0].kind, EventKind::OrchestrationStarted { input, .. } if input == "in"));
        assert_eq!((history.len(), history[1].event_id), (2, 2));
        runtime.clone().shutdown(None).await;
        let counts = runtime.metrics_snapshot().expect("counts");
        assert_eq!((counts.orch_poison, counts.orch_failures, counts.orch_starts), (1, 1, 1));
    }
}

#[tokio::test]
async fn an_activity_that_nobody_knows_becomes_poison() {
    for store in stores().await {
        let options = RuntimeOptions {
            max_attempts: 2,
            unregistered_backoff: duroxide::runtime::UnregisteredBackoffConfig {
                base_delay: Duration::from_millis(5),
                max_delay: Duration::from_millis(5),
            },
            dispatcher_min_poll_interval: Duration::from_millis(5),
            ..Default::default()
        };
        let (runtime, client) = started(&store, options).await;
        let text = failed(&client, "i", "Missing", "").await;
        assert!(text.contains("poison: activity Nowhere#2 exceeded 3 attempts (max 2)"), "{text}");
        runtime.clone().shutdown(None).await;
        let counts = runtime.metrics_snapshot().expect("counts");
        assert_eq!((counts.activity_poison, counts.orch_poison), (1, 1));
    }
}

#[tokio::test]
async fn a_runtime_may_have_no_workers_and_another_no_turns() {
    for store in stores().await {
        let workers = RuntimeOptions { orchestration_concurrency: 0, ..Default::default() };
        let turns = RuntimeOptions {
            worker_concurrency: 0,
            dispatcher_min_poll_interval: Duration::from_millis(5),
            ..Default::default()
        };
        let (one, _) = started(&store, workers).await;
        let (two, client) = started(&store, turns).await;
        let text = failed(&client, "i", "Impatient", "").await;
        assert!(text.contains("timeout"), "{text}");
        // The activity is not told at once: it runs in another runtime than the turn that withdrew it.
        one.shutdown(Some(0)).await;
        two.shutdown(Some(0)).await;
    }
}

#[tokio::test]
#[should_panic(expected = "session_idle_timeout")]
async fn a_session_that_would_be_lost_in_the_middle_panics() {
    let [store, _] = stores().await;
    let options = RuntimeOptions { session_idle_timeout: Duration::from_secs(25), ..Default::default() };
    started(&store, options).await;
}

#[tokio::test]
async fn dropping_a_runtime_does_not_stop_it() {
    let [store, _] = stores().await;
    let (runtime, client) = started(&store, RuntimeOptions::default()).await;
    drop(runtime);
    client.start_orchestration("i", "Echo", "still here").await.expect("starts");
    let output = client.wait_for_orchestration_typed::<String>("i", SOON).await.expect("ends");
    assert_eq!(output, Ok("still here".to_string()));
}
