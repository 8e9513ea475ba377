//! The W3C trace context: from a client to the last activity that it causes, and nowhere behind a plain
//! provider.

use std::time::Duration;

use steadfast::runtime::RuntimeOptions;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{ActivityContext, Client, ClientError, Event, OrchestrationContext};
use steadfast_behaviour::{Stage, StoreKind, activities, on_every_full_store, orchestrations};
use steadfast_store::{Cold, TurnRequest};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

fn seen(context: Option<impl AsRef<str>>) -> String {
    context.map_or("none".to_owned(), |text| text.as_ref().to_owned())
}

fn works() -> ActivityRegistryBuilder {
    activities()
        .register("Look", |ctx: ActivityContext, _| async move { Ok(seen(ctx.traceparent())) })
        .register("Start", |ctx: ActivityContext, instance: String| async move {
            let started = ctx.get_client().start_orchestration(instance, "Look", "").await;
            started.map(|()| String::new()).map_err(|error| error.to_string())
        })
}

fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        // What it sees itself, and what an activity of it sees.
        .register("Look", |ctx: OrchestrationContext, _| async move {
            let before = seen(ctx.traceparent());
            let activity = ctx.schedule_activity("Look", "").await?;
            Ok(format!("{before} {activity} {}", seen(ctx.traceparent())))
        })
        .register("Child", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_sub_orchestration("Look", "").await
        })
        .register("Detached", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_orchestration("Look", "apart", "");
            Ok(String::new())
        })
        .register("Again", |ctx: OrchestrationContext, input: String| async move {
            match input.as_str() {
                "last" => ctx.schedule_sub_orchestration("Look", "").await,
                _ => ctx.continue_as_new("last").await,
            }
        })
        .register("Listen", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_wait("news").await;
            ctx.schedule_activity("Look", "").await
        })
        .register("Take", |ctx: OrchestrationContext, _| async move {
            ctx.dequeue_event("box").await;
            ctx.schedule_activity("Look", "").await
        })
        .register("Use", |ctx: OrchestrationContext, instance: String| async move {
            ctx.schedule_activity("Start", instance).await
        })
}

fn traced(stage: &Stage, traceparent: &str) -> Client {
    stage.client.with_traceparent(traceparent).expect("is one")
}

async fn starts(client: &Client, instance: &str, orchestration: &str, input: &str) {
    client.start_orchestration(instance, orchestration, input).await.expect("starts");
}

/// What `Look` says when it sees a trace context everywhere.
fn everywhere(traceparent: &str) -> Result<String, String> {
    Ok(format!("{traceparent} {traceparent} {traceparent}"))
}

on_every_full_store! {
    async fn an_orchestration_and_its_activities_see_what_it_was_started_with(stage) {
        stage.run(works(), flows()).await;
        starts(&traced(&stage, TRACE), "a", "Look", "").await;
        starts(&stage.client, "b", "Look", "").await;
        assert_eq!(stage.output("a").await, everywhere(TRACE));
        assert_eq!(stage.output("b").await, everywhere("none"));
        stage.stop().await;
    }

    async fn it_is_recorded_with_the_start_and_nowhere_else(stage) {
        stage.run(works(), flows()).await;
        starts(&traced(&stage, TRACE), "a", "Look", "").await;
        stage.ends("a").await.expect("completes");
        stage.stop().await;
        let history = stage.history("a").await;
        let of = |event: &Event| event.traceparent.clone();
        assert_eq!(history.iter().map(of).collect::<Vec<_>>(), [Some(TRACE.to_owned()), None, None, None]);
    }

    async fn a_replay_sees_the_same(stage) {
        let cold = RuntimeOptions { max_warm_orchestrations: 0, ..stage.options() };
        stage.run_with(works(), flows(), cold).await;
        starts(&traced(&stage, TRACE), "a", "Look", "").await;
        assert_eq!(stage.output("a").await, everywhere(TRACE));
        stage.stop().await;
    }

    async fn a_child_and_its_activities_see_it(stage) {
        stage.run(works(), flows()).await;
        starts(&traced(&stage, TRACE), "a", "Child", "").await;
        assert_eq!(stage.output("a").await, everywhere(TRACE));
        stage.stop().await;
    }

    async fn a_detached_start_sees_it(stage) {
        stage.run(works(), flows()).await;
        starts(&traced(&stage, TRACE), "a", "Detached", "").await;
        stage.ends("a").await.expect("completes");
        assert_eq!(stage.output("apart").await, everywhere(TRACE));
        stage.stop().await;
    }

    async fn the_next_execution_and_its_child_see_it(stage) {
        stage.run(works(), flows()).await;
        starts(&traced(&stage, TRACE), "a", "Again", "first").await;
        assert_eq!(stage.output("a").await, everywhere(TRACE));
        stage.stop().await;
        assert_eq!(stage.history("a").await[0].traceparent.as_deref(), Some(TRACE));
    }

    async fn a_start_with_a_signal_carries_it(stage) {
        stage.run(works(), flows()).await;
        let client = traced(&stage, TRACE);
        client.signal_with_start("a", "Take", "", "box", "x").await.expect("starts");
        assert_eq!(stage.output("a").await, Ok(TRACE.to_owned()));
        assert_eq!(
            client.start_if_new("b", "Look", "").await.expect("starts"),
            steadfast_store::Started::New
        );
        assert_eq!(stage.output("b").await, everywhere(TRACE));
        stage.stop().await;
    }

    async fn a_message_with_another_context_changes_nothing(stage) {
        stage.run(works(), flows()).await;
        starts(&traced(&stage, TRACE), "a", "Listen", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        traced(&stage, OTHER).raise_event("a", "news", "").await.expect("raises");
        assert_eq!(stage.output("a").await, Ok(TRACE.to_owned()));
        stage.stop().await;
    }

    async fn the_client_of_an_activity_carries_it_on(stage) {
        stage.run(works(), flows()).await;
        starts(&traced(&stage, TRACE), "a", "Use", "b").await;
        stage.ends("a").await.expect("completes");
        assert_eq!(stage.output("b").await, everywhere(TRACE));
        stage.stop().await;
    }

    async fn a_failure_before_the_code_ran_records_it(stage) {
        starts(&traced(&stage, TRACE), "a", "Look", "").await;
        stage.client.terminate_instance("a", "enough").await.expect("asks");
        stage.run(works(), flows()).await;
        stage.ends("a").await.expect_err("is terminated");
        stage.stop().await;
        assert_eq!(stage.history("a").await[0].traceparent.as_deref(), Some(TRACE));
    }

    async fn everything_that_a_client_sends_carries_it(stage) {
        let client = traced(&stage, TRACE);
        client.start_orchestration("a", "Look", "").await.expect("sends");
        client.raise_event("a", "news", "").await.expect("sends");
        client.enqueue_event("a", "box", "").await.expect("sends");
        client.cancel_instance("a", "enough").await.expect("sends");
        client.terminate_instance("a", "now").await.expect("sends");
        client.instance("a").enqueue("box", &1).await.expect("sends");
        let store = stage.inner().into_store().expect("is a store");
        let request = TurnRequest {
            lock_timeout: Duration::from_secs(5),
            poll_timeout: Duration::ZERO,
            filter: None,
            warm: &Cold,
            worker: None,
        };
        let lease = store.fetch_turn(request).await.expect("fetches").expect("has a turn");
        let traces: Vec<_> = lease.messages.into_iter().map(|message| message.traceparent).collect();
        assert_eq!(traces, vec![Some(TRACE.to_owned()); 6]);
    }
}

#[tokio::test]
async fn behind_a_provider_with_only_the_required_methods_there_is_none() {
    Stage::run_on(StoreKind::Wrapped, async |stage: Stage| {
        stage.run(works(), flows()).await;
        starts(&traced(&stage, TRACE), "a", "Child", "").await;
        assert_eq!(stage.output("a").await, everywhere("none"));
        stage.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_text_that_is_none_is_refused_and_the_error_says_why() {
    let stage = Stage::new(StoreKind::Memory).await;
    let refused = |text: &str| match stage.client.with_traceparent(text) {
        Err(ClientError::InvalidInput { message }) => message,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(
        refused("00-12"),
        "traceparent is invalid: its trace id is not 32 lower-case hexadecimal digits"
    );
    let zeros = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
    assert_eq!(
        refused(zeros),
        "traceparent is invalid: its trace id has the value that is reserved as invalid"
    );
    assert_eq!(refused(&format!("{TRACE}-01")), "traceparent is invalid: it goes on after its flags");
}
