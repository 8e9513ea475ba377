//! Activities of one session that stand in line, or need not (D29, D38, A4).

use std::sync::Arc;

use super::super::bench::Told;
use super::hooks::SlowToAttach;
use crate::workbench::{Gate, SECOND};
use steadfast::providers::ProviderError;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{Runtime, RuntimeOptions, SessionHooks};
use steadfast::{ActivityContext, OrchestrationContext, SessionConcurrency, SessionKey, SessionOptions};
use steadfast_behaviour::{Faults, Faulty, Stage, activities, on_every_full_store, orchestrations};
use steadfast_store::store_of;

/// `Stubborn` runs until it is cancelled, and stops at a gate; `Hold` waits at the gate; `Say` ends at once.
fn acts(gate: &Gate, told: &Told) -> ActivityRegistryBuilder {
    let (stops, holds, slow, says) = (gate.clone(), gate.clone(), told.clone(), told.clone());
    activities()
        .register("Stubborn", move |ctx: ActivityContext, _: String| {
            let (gate, told) = (stops.clone(), slow.clone());
            async move {
                told.add("stubborn runs".to_owned());
                ctx.cancelled().await;
                gate.pass().await;
                Ok(String::new())
            }
        })
        .register("Hold", move |_: ActivityContext, _: String| {
            let gate = holds.clone();
            async move {
                gate.pass().await;
                Ok(String::new())
            }
        })
        .register("Say", move |ctx: ActivityContext, text: String| {
            says.add(format!("{text} on {}", ctx.worker_id().rsplit('-').next().unwrap_or_default()));
            async move { Ok(text) }
        })
}

fn serial() -> SessionOptions {
    SessionOptions::default().with_id("chat").with_concurrency(SessionConcurrency::Serial)
}

/// Runs an activity on a serial session, then one that is stubborn, and after that one more: on the same
/// session if the input is `keep`, else on one that is closed and opened again.
async fn third(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let session = ctx.open_session_with(serial()).await?;
    ctx.schedule_activity_on_session("Say", "first", &session).await?;
    let stubborn = ctx.schedule_activity_on_session("Stubborn", "", &session);
    if input == "keep" {
        return stubborn.await;
    }
    drop(ctx.select2(stubborn, ctx.schedule_wait("enough")).await);
    ctx.close_session(&session).await?;
    let session = ctx.open_session_with(serial()).await?;
    ctx.schedule_activity_on_session("Say", "last", &session).await
}

/// Runs a short activity beside a long one, on a session that is not serial.
async fn beside(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let session = ctx.open_session_with_id("chat").await?;
    let long = ctx.schedule_activity_on_session("Hold", "", &session);
    ctx.schedule_wait("go").await;
    ctx.schedule_activity_on_session("Say", "short", &session).await?;
    long.await
}

/// Schedules an activity on a session, and another one when it is told.
async fn two(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let session = ctx.open_session_with_id("chat").await?;
    let first = ctx.schedule_activity_on_session("Say", "first", &session);
    ctx.schedule_wait("go").await;
    ctx.schedule_activity_on_session("Say", "second", &session).await?;
    first.await
}

fn flows() -> OrchestrationRegistryBuilder {
    orchestrations().register("Third", third).register("Beside", beside).register("Two", two)
}

fn runs_of_the_stubborn(told: &Told) -> usize {
    told.all().iter().filter(|line| *line == "stubborn runs").count()
}

/// Starts a worker that takes no turns, through faults of its own.
async fn worker(
    stage: &Stage,
    name: &str,
    faults: &Faults,
    told: &Told,
    hooks: Option<Arc<dyn SessionHooks>>,
) -> Arc<Runtime> {
    let store = Arc::new(Faulty::new(store_of(stage.inner(), Arc::new(stage.clock.clone())), faults.clone()));
    let options = RuntimeOptions {
        worker_node_id: Some(name.to_owned()),
        orchestration_concurrency: 0,
        worker_concurrency: 1,
        session_hooks: hooks,
        session_hook_timeout: 3_600 * SECOND,
        ..stage.options()
    };
    let acts = acts(&Gate::new(), told).build_result().expect("activities");
    let none = orchestrations().build_result().expect("none");
    Runtime::try_start(store, acts, none, options).await.expect("sound options")
}

on_every_full_store! {
    async fn d29_a_reopened_serial_session_waits_for_what_still_runs_of_the_closed_one(stage) {
        let (gate, told) = (Gate::new(), Told::default());
        stage.run(acts(&gate, &told), flows()).await;
        stage.start("1", "Third", "").await;
        stage.until("it runs", async || runs_of_the_stubborn(&told) == 1).await;
        stage.client.raise_event("1", "enough", "").await.expect("raises");
        gate.is_entered().await;
        for _ in 0..20 {
            stage.settle().await;
        }
        assert_eq!(told.all().len(), 2, "one at a time: {:?}", told.all());
        gate.open();
        assert_eq!(stage.output("1").await, Ok("last".to_owned()));
        stage.stop().await;
    }

    async fn d29_an_activity_of_a_serial_session_does_not_run_beside_its_own_former_run(stage) {
        let (gate, told) = (Gate::new(), Told::default());
        let grace = 3_600 * SECOND;
        let options = RuntimeOptions { activity_cancellation_grace_period: grace, ..stage.options() };
        stage.run_with(acts(&gate, &told), flows(), options).await;
        stage.start("1", "Third", "keep").await;
        stage.until("it runs", async || runs_of_the_stubborn(&told) == 1).await;
        // Longer than every lease.
        stage.faults.outage();
        stage.pass_slowly(70 * SECOND, SECOND / 2).await;
        stage.faults.heal();
        gate.is_entered().await;
        stage.pass_slowly(40 * SECOND, SECOND / 2).await;
        assert_eq!(runs_of_the_stubborn(&told), 1, "the first has not stopped: {:?}", told.all());
        gate.open();
        stage.stop_at_once().await;
    }

    async fn d38_one_error_of_the_store_makes_no_session_serial(stage) {
        let (gate, told) = (Gate::new(), Told::default());
        stage.run(acts(&gate, &told), flows()).await;
        stage.start("1", "Beside", "").await;
        gate.is_entered().await;
        stage.faults.refuse("session", 1, ProviderError::retryable("session", "busy"));
        stage.client.raise_event("1", "go", "").await.expect("raises");
        stage
            .until("the short one has run", async || {
                stage.pass(SECOND / 4);
                stage.settle().await;
                told.all().len() == 1
            })
            .await;
        gate.open();
        assert_eq!(stage.ends_as_time_passes("1", SECOND).await, Ok(String::new()));
        stage.stop().await;
    }

    async fn a4_a_process_that_was_told_of_a_loss_begins_no_activity(stage) {
        let (gate, told, faults) = (Gate::new(), Told::default(), Faults::default());
        let decides = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
        stage.run_with(activities(), flows(), decides).await;
        let hooks: Arc<dyn SessionHooks> = Arc::new(SlowToAttach(gate.clone()));
        let former = worker(&stage, "A", &faults, &told, Some(hooks)).await;
        stage.start("1", "Two", "").await;
        gate.is_entered().await;
        let chat = SessionKey::owned("1", "chat");
        assert!(stage.client.release_session(&chat).await.expect("releases"));
        let next = worker(&stage, "B", &Faults::default(), &told, None).await;
        stage.client.raise_event("1", "go", "").await.expect("raises");
        stage.until("B has it", async || told.all().contains(&"second on B".to_owned())).await;
        // Whether the session was closed or lost cannot be read.
        faults.hang("session", u64::MAX);
        stage
            .until("A is told", async || {
                stage.pass(SECOND / 4);
                stage.settle().await;
                faults.calls("session") >= 1
            })
            .await;
        gate.open();
        for _ in 0..20 {
            stage.settle().await;
        }
        assert!(!told.all().contains(&"first on A".to_owned()), "{:?}", told.all());
        // The call that hangs is given up as time passes.
        let time = stage.pass_slowly(120 * SECOND, SECOND);
        tokio::join!(former.shutdown(Some(0)), time);
        next.shutdown(Some(0)).await;
        stage.stop_at_once().await;
    }
}
