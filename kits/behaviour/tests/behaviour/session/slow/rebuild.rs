//! Rebuilds that take their time or fail (D36, A4).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::super::bench::{node, release, shown, takes_turn, turns};
use super::{named, plays};
use crate::workbench::{Gate, SECOND};
use steadfast::ActivityContext;
use steadfast::runtime::{RuntimeOptions, SessionRecoveryPolicy};
use steadfast_behaviour::{Stage, on_every_full_store};

fn rebuilding(stage: &Stage, max_rebuilds: u32) -> RuntimeOptions {
    let policy = SessionRecoveryPolicy { rebuild_activity: "Rebuild".to_owned(), max_rebuilds };
    RuntimeOptions { session_recovery: Some(policy), ..named(stage, "A") }
}

on_every_full_store! {
    async fn a4_an_activity_is_not_run_again_on_a_session_that_was_lost_meanwhile(stage) {
        let (gate, runs) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
        let (at_gate, counted) = (gate.clone(), Arc::clone(&runs));
        let works = turns(&Gate::new())
            .register("Say", move |ctx: ActivityContext, _: String| {
                let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
                async move { if is_first { Err(ctx.session_lost("no state")) } else { Ok(String::new()) } }
            })
            .register("Rebuild", move |_: ActivityContext, _: String| {
                let gate = at_gate.clone();
                async move {
                    gate.pass().await;
                    Ok(String::new())
                }
            });
        // Its only slot is busy, so that another process takes the next work of the session.
        let options = RuntimeOptions { worker_concurrency: 1, ..rebuilding(&stage, 3) };
        stage.run_with(works, plays(), options).await;
        stage.start("1", "One", "Say/chat").await;
        gate.is_entered().await;
        assert!(release(&stage, "chat").await);
        stage.pass_slowly(16 * SECOND, SECOND).await;
        node(&stage, "B", &Gate::new(), |options| options.orchestration_concurrency = 0).await;
        takes_turn(&stage, "2", "chat").await;
        let owner = shown(&stage, "chat").await.owner.map(|owner| owner.id);
        assert_eq!(owner.as_deref(), Some("B"));
        gate.open();
        let end = stage.output("1").await;
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{end:?}");
        stage.stop().await;
    }

    async fn d36_rebuilds_that_fail_wait_before_the_next(stage) {
        let rebuilds = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&rebuilds);
        let works = turns(&Gate::new())
            .register("Say", |ctx: ActivityContext, _: String| async move {
                Err::<String, _>(ctx.session_lost("no state"))
            })
            .register("Rebuild", move |_: ActivityContext, _: String| {
                counted.fetch_add(1, Ordering::SeqCst);
                async move { Err::<String, _>("the checkpoints are away".to_owned()) }
            });
        stage.run_with(works, plays(), rebuilding(&stage, 3)).await;
        stage.start("1", "One", "Say/chat").await;
        stage.until("it is tried", async || rebuilds.load(Ordering::SeqCst) > 0).await;
        stage.settle().await;
        assert_eq!(rebuilds.load(Ordering::SeqCst), 1, "no time has passed");
        let end = stage.ends_as_time_passes("1", SECOND / 10).await;
        assert!(end.is_err() && rebuilds.load(Ordering::SeqCst) == 3, "{end:?}");
        stage.stop().await;
    }

    async fn d36_a_rebuild_has_an_idempotency_key_of_its_own(stage) {
        let keys = Arc::new(Mutex::new(Vec::new()));
        let (said, rebuilt) = (Arc::clone(&keys), Arc::clone(&keys));
        let works = turns(&Gate::new())
            .register("Say", move |ctx: ActivityContext, _: String| {
                let mut keys = said.lock().expect("no writer panics");
                keys.push(ctx.idempotency_key());
                let is_first = keys.len() == 1;
                async move { if is_first { Err(ctx.session_lost("no state")) } else { Ok(String::new()) } }
            })
            .register("Rebuild", move |ctx: ActivityContext, _: String| {
                rebuilt.lock().expect("no writer panics").push(ctx.idempotency_key());
                async move { Ok(String::new()) }
            });
        stage.run_with(works, plays(), rebuilding(&stage, 1)).await;
        assert!(stage.ends_after("1", "One", "Say/chat").await.is_ok());
        let keys = keys.lock().expect("no writer panics").clone();
        let [first, rebuild, again] = &keys[..] else { panic!("three runs: {keys:?}") };
        assert_eq!((rebuild, again), (&format!("{first}/rebuild"), first));
        stage.stop().await;
    }
}
