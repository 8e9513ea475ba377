//! When code is polled, and by whom it may be woken: by history and by itself (2.2 P1 and P2, F19, F20).

use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures::channel::{mpsc, oneshot};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use steadfast::runtime::registry::OrchestrationRegistryBuilder;
use steadfast::{
    AppErrorKind, ConfigErrorKind, ErrorDetails, OrchestrationContext, OrchestrationStatus, RuntimeOptions,
};
use steadfast_behaviour::{Lines, Stage, activities, on_every_full_store, on_every_store, orchestrations};

use super::rerun::{completed, echo, send, stop_at};

const MINUTE: Duration = Duration::from_secs(60);

/// Registers one orchestration as `Flow`.
fn flow<F>(
    handler: impl Fn(OrchestrationContext, String) -> F + Send + Sync + 'static,
) -> OrchestrationRegistryBuilder
where
    F: Future<Output = Result<String, String>> + Send + 'static,
{
    orchestrations().register("Flow", handler)
}

/// Writes when it is dropped, whenever that is.
struct Writes(OrchestrationContext);

impl Drop for Writes {
    fn drop(&mut self) {
        self.0.set_kv_value("dropped", "yes");
    }
}

/// Restarts the runtime where history has some events of a kind, then raises `go`, and tells how that ends.
async fn restarted_at(
    stage: &Stage,
    flow: impl Fn() -> OrchestrationRegistryBuilder,
    kind: &str,
    count: usize,
) -> Result<String, String> {
    stop_at(stage, flow(), kind, count).await;
    stage.run(echo(), flow()).await;
    stage.client.raise_event("a", "go", "on").await.expect("is sent");
    let ended = stage.output("a").await;
    stage.stop().await;
    ended
}

on_every_store! {
    async fn r2_2_p1_a_channel_between_two_branches_is_legal_and_replays(stage) {
        let channel = || {
            flow(|ctx: OrchestrationContext, _| async move {
                let (tell, told) = oneshot::channel();
                let listens = async {
                    let told = told.await.map_err(|_| "never told".to_owned())?;
                    ctx.schedule_activity("Echo", format!("heard {told}")).await
                };
                let tells = async {
                    let made = ctx.schedule_activity("Echo", "news").await?;
                    tell.send(made).map_err(|_| "nobody listens".to_owned())?;
                    Ok::<_, String>(ctx.schedule_wait("go").await)
                };
                Ok(format!("{:?}", ctx.join2(listens, tells).await))
            })
        };
        let ended = restarted_at(&stage, channel, "ActivityCompleted", 2).await;
        assert_eq!(ended, Ok("(Ok(\"heard news\"), Ok(\"on\"))".to_owned()));
    }

    async fn r2_2_p2_a_race_of_two_dequeues_survives_its_own_replay(stage) {
        let newer_first = || {
            flow(|ctx: OrchestrationContext, _| async move {
                let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
                let first = ctx.select2(newer, older).await;
                Ok(format!("{first:?} {}", ctx.schedule_wait("go").await))
            })
        };
        stage.start("a", "Flow", "").await;
        for message in ["1", "2"] {
            stage.client.enqueue_event("a", "q", message).await.expect("is sent");
        }
        stage.run(activities(), newer_first()).await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        stage.run(activities(), newer_first()).await;
        stage.client.raise_event("a", "go", "on").await.expect("is sent");
        assert_eq!(stage.output("a").await, Ok("Second(\"1\") on".to_owned()));
        stage.stop().await;
    }

    async fn f20_streams_of_futures_are_legal_and_follow_history(stage) {
        let stream = || {
            flow(|ctx: OrchestrationContext, _| async move {
                let mut all: FuturesUnordered<_> =
                    (0..3).map(|n| ctx.schedule_activity("One", n.to_string())).collect();
                let mut seen = Vec::new();
                while let Some(next) = all.next().await {
                    seen.push(next?);
                }
                Ok(format!("{seen:?} {}", ctx.schedule_wait("go").await))
            })
        };
        stop_at(&stage, stream(), "ActivityScheduled", 3).await;
        send(&stage, [completed(4, "c"), completed(2, "a"), completed(3, "b")]).await;
        stage.run(activities(), stream()).await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.stop().await;
        stage.run(activities(), stream()).await;
        stage.client.raise_event("a", "go", "on").await.expect("is sent");
        assert_eq!(stage.output("a").await, Ok("[\"c\", \"a\", \"b\"] on".to_owned()));
        stage.stop().await;
    }

    async fn f20_a_race_of_another_library_over_durable_futures_is_legal(stage) {
        let select = || {
            flow(|ctx: OrchestrationContext, _| async move {
                let (news, timer) = (ctx.schedule_activity("Echo", "news"), ctx.schedule_timer(MINUTE));
                let winner = match futures::future::select(news, timer).await {
                    futures::future::Either::Left((news, _)) => news?,
                    futures::future::Either::Right(((), _)) => "too late".to_owned(),
                };
                Ok(format!("{winner} {}", ctx.schedule_wait("go").await))
            })
        };
        assert_eq!(restarted_at(&stage, select, "ExternalSubscribed", 1).await, Ok("news on".to_owned()));
    }

    async fn f20_a_bounded_channel_between_branches_is_legal(stage) {
        let pipe = || {
            flow(|ctx: OrchestrationContext, _| async move {
                let (mut put, take) = mpsc::channel(0);
                let makes = async {
                    for n in 0..3 {
                        let made = ctx.schedule_activity("Echo", n.to_string()).await?;
                        futures::SinkExt::send(&mut put, made).await.map_err(|error| error.to_string())?;
                    }
                    put.close_channel();
                    Ok::<_, String>(ctx.schedule_wait("go").await)
                };
                Ok(format!("{:?}", ctx.join2(makes, take.collect::<Vec<_>>()).await))
            })
        };
        let ended = restarted_at(&stage, pipe, "ExternalSubscribed", 1).await;
        assert_eq!(ended, Ok("(Ok(\"on\"), [\"0\", \"1\", \"2\"])".to_owned()));
    }

    async fn r2_2_code_may_wake_itself_99_times_at_one_point_and_no_more(stage) {
        stage
            .run(
                activities(),
                flow(|_, wakes: String| async move {
                    let mut left: u32 = wakes.parse().expect("a number");
                    poll_fn(|cx| {
                        if left == 0 {
                            return Poll::Ready(());
                        }
                        left -= 1;
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    })
                    .await;
                    Ok("settled".to_owned())
                }),
            )
            .await;
        assert_eq!(stage.ends_after("a", "Flow", "99").await, Ok("settled".to_owned()));
        let details = stage.ends_after("b", "Flow", "100").await.expect_err("never settles");
        let ErrorDetails::Infrastructure { operation, message, retryable: false } = &details else {
            panic!("{details:?}")
        };
        assert_eq!(operation, "quiescence_loop");
        assert!(message.starts_with("quiescence loop exceeded 100 iterations"), "{message}");
        assert_eq!(stage.kinds("b").await, ["OrchestrationStarted", "OrchestrationFailed"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f20_what_waits_for_nothing_durable_stays_running_and_can_be_cancelled(stage) {
        let (lines, _guard) = Lines::collect();
        stage.run(activities(), flow(|_, _| pending())).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "OrchestrationStarted", 1).await;
        for turn in 1..=2 {
            stage.client.raise_event("a", "nobody waits", "").await.expect("is sent");
            stage.has("a", "ExternalEvent", turn).await;
        }
        let status = stage.client.get_orchestration_status("a").await.expect("answers");
        assert!(matches!(status, OrchestrationStatus::Running { .. }), "{status:?}");
        let stuck = lines.saying("WARN", "waits for nothing that could answer it");
        assert_eq!(stuck.len(), 1, "it is warned about once: {stuck:?}");
        assert_eq!((stuck[0].target.as_str(), stuck[0].field("instance")), ("steadfast::runtime", "a"));
        stage.client.cancel_instance("a", "enough").await.expect("is sent");
        assert_eq!(stage.output("a").await, Err("canceled: enough".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f19_a_tag_that_comes_too_late_fails_the_orchestration_and_nothing_else(stage) {
        stage
            .run(
                echo(),
                flow(|ctx: OrchestrationContext, input| async move {
                    if input == "timer" {
                        ctx.schedule_timer(MINUTE).with_tag("gpu").await;
                    }
                    let mut late = ctx.schedule_activity("Never", "");
                    ctx.select2(&mut late, ctx.schedule_activity("Echo", "x")).await;
                    late.with_tag("gpu").await
                }),
            )
            .await;
        let panicked = |message: &str| {
            let kind = AppErrorKind::Panicked;
            Err(ErrorDetails::Application { kind, message: message.to_owned(), retryable: false })
        };
        let late = "with_tag() must be called before the activity future is first polled";
        assert_eq!(stage.ends_after("a", "Flow", "").await, panicked(late));
        let other = "with_tag() can only be called on activity futures, got Timer";
        assert_eq!(stage.ends_after("b", "Flow", "timer").await, panicked(other));
        stage.stop().await;
    }

    async fn f19_a_destructor_that_uses_the_context_does_no_harm(stage) {
        stage
            .run(
                activities(),
                flow(|ctx: OrchestrationContext, input| async move {
                    let _guard = Writes(ctx.clone());
                    if input == "panic" {
                        panic!("{input}");
                    }
                    Ok(ctx.schedule_wait("go").await)
                }),
            )
            .await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.client.raise_event("a", "poke", "").await.expect("is sent");
        stage.has("a", "ExternalEvent", 1).await;
        let so_far = ["OrchestrationStarted", "ExternalSubscribed", "ExternalEvent"];
        assert_eq!(stage.kinds("a").await, so_far, "code that is let go of between turns writes nothing");
        stage.client.raise_event("a", "go", "on").await.expect("is sent");
        assert_eq!(stage.output("a").await, Ok("on".to_owned()));
        assert_eq!(stage.kinds("a").await[3..], ["ExternalEvent", "KeyValueSet", "OrchestrationCompleted"]);
        let panicked = "orchestration panicked: panic".to_owned();
        stage.start("b", "Flow", "panic").await;
        assert_eq!(stage.output("b").await, Err(panicked));
        assert_eq!(stage.kinds("b").await, ["OrchestrationStarted", "OrchestrationFailed"]);
        stage.stop().await;
    }
}

/// Ends when something that history does not record says so.
fn awaits(foreign: oneshot::Receiver<()>) -> OrchestrationRegistryBuilder {
    let foreign = foreign.shared();
    flow(move |_, _| {
        let foreign = foreign.clone();
        async move {
            foreign.await.map_err(|error| error.to_string())?;
            Ok("woken".to_owned())
        }
    })
}

fn nondeterminism(message: String) -> Result<String, ErrorDetails> {
    let (kind, resource) = (ConfigErrorKind::Nondeterminism, String::new());
    Err(ErrorDetails::Configuration { kind, resource, message: Some(message) })
}

on_every_full_store! {
    async fn f20_a_wake_from_outside_fails_an_orchestration_that_is_held_warm(stage) {
        let (wake, foreign) = oneshot::channel();
        stage.run_with(activities(), awaits(foreign), stage.warm_options()).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "OrchestrationStarted", 1).await;
        wake.send(()).expect("somebody waits");
        let text = "the orchestration was woken from outside: it awaits something that history does not \
            record (a tokio \
                    timer, channel or task, a request); await durable futures only, and do such work in an \
                    activity";
        assert_eq!(stage.ends("a").await, nondeterminism(text.to_owned()));
        assert_eq!(stage.kinds("a").await, ["OrchestrationStarted", "OrchestrationFailed"]);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn f20_a_call_from_outside_the_code_fails_an_orchestration_that_is_held_warm(stage) {
        let kept = Arc::new(Mutex::new(None));
        let keeps = Arc::clone(&kept);
        stage
            .run_with(
                activities(),
                flow(move |ctx: OrchestrationContext, _| {
                    *keeps.lock().expect("no panic") = Some(ctx.clone());
                    async move { Ok(ctx.schedule_wait("go").await) }
                }),
                stage.warm_options(),
            )
            .await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let ctx = kept.lock().expect("no panic").take().expect("it ran");
        let line = line!() + 1;
        ctx.set_kv_value("k", "v");
        let details = stage.ends("a").await.expect_err("cannot be replayed");
        let shown = details.display_message();
        let expected = format!("nondeterministic: set_kv_value at {}:{line}:", file!());
        assert!(
            shown.starts_with(&expected) && shown.contains("from outside the orchestration's own code"),
            "{shown}"
        );
        assert!(!stage.kinds("a").await.contains(&"KeyValueSet".to_owned()));
        stage.stop().await;
    }
}

on_every_store! {
    async fn f20_a_wake_from_outside_where_nothing_is_held_warm_shows_in_the_next_turn(stage) {
        let (wake, foreign) = oneshot::channel();
        let cold = RuntimeOptions { max_warm_orchestrations: 0, ..stage.options() };
        stage.run_with(activities(), awaits(foreign), cold).await;
        stage.start("a", "Flow", "").await;
        stage.has("a", "OrchestrationStarted", 1).await;
        assert!(wake.send(()).is_ok(), "the registered code still has the other end");
        let status = stage.client.get_orchestration_status("a").await.expect("answers");
        assert!(matches!(status, OrchestrationStatus::Running { .. }), "{status:?}");
        stage.client.raise_event("a", "poke", "").await.expect("is sent");
        let text = "the orchestration returned while history says that it still waits (at event 2: history \
            has nothing \
                    more yet; the last event that still matched is 1, OrchestrationStarted)";
        assert_eq!(stage.ends("a").await, nondeterminism(text.to_owned()));
        stage.stop().await;
    }
}
