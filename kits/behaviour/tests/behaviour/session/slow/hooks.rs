//! Hooks that take their time (D23, D25, A4, G41).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::bench::{Told, takes_turn, troubled, turns};
use super::super::owned::SlowToDetach;
use super::{marks, named, plays, starts};
use crate::workbench::{Gate, SECOND};
use steadfast::ActivityContext;
use steadfast::runtime::{Runtime, RuntimeOptions, Session, SessionHooks};
use steadfast_behaviour::{Faults, Stage, on_every_full_store};
use steadfast_store::ProviderError;

/// Keeps `on_attach` at a gate.
#[derive(Debug)]
pub(super) struct SlowToAttach(pub(super) Gate);

#[async_trait::async_trait]
impl SessionHooks for SlowToAttach {
    async fn on_attach(&self, _: &Session) {
        self.0.pass().await;
    }
}

fn slow_to_attach(options: &mut RuntimeOptions, gate: &Gate) {
    options.session_hooks = Some(Arc::new(SlowToAttach(gate.clone())));
    options.session_hook_timeout = 600 * SECOND;
}

/// Starts a runtime that takes a turn on a session and is then cut off for so long that it cannot prove its
/// lease any more. Returns when `on_detach` waits at the gate.
async fn cut_off(stage: &Stage, faults: &Faults, hooks: &SlowToDetach) -> Arc<Runtime> {
    let runtime = troubled(stage, "A", &Gate::new(), faults, |options| {
        options.session_hooks = Some(Arc::new(hooks.clone()));
        options.session_hook_timeout = 600 * SECOND;
    })
    .await;
    takes_turn(stage, "1", "chat").await;
    faults.outage();
    stage.pass_slowly(27 * SECOND, SECOND).await;
    hooks.gate.is_entered().await;
    runtime
}

on_every_full_store! {
    async fn g41_an_attachment_begins_when_on_detach_of_an_unproven_one_has_returned(stage) {
        let hooks = SlowToDetach { gate: Gate::new(), told: Told::default() };
        let faults = Faults::default();
        let runtime = cut_off(&stage, &faults, &hooks).await;
        faults.heal();
        stage.start("2", "One", "Turn/chat").await;
        stage.pass_slowly(20 * SECOND, SECOND / 4).await;
        assert_eq!(hooks.told.all(), ["attach chat"], "on_detach of the first has not returned");
        hooks.gate.open();
        assert!(stage.ends_as_time_passes("2", SECOND).await.is_ok());
        assert_eq!(hooks.told.all(), ["attach chat", "detach chat Lost after 1", "attach chat"]);
        hooks.gate.open();
        runtime.shutdown(Some(0)).await;
        stage.stop().await;
    }

    async fn d25_a_drain_returns_after_the_last_on_detach(stage) {
        let hooks = SlowToDetach { gate: Gate::new(), told: Told::default() };
        let runtime = cut_off(&stage, &Faults::default(), &hooks).await;
        let drained = async {
            runtime.drain().await;
            hooks.told.all()
        };
        let opens = async {
            stage.settle().await;
            hooks.gate.open();
        };
        let (told, ()) = tokio::join!(drained, opens);
        assert_eq!(told, ["attach chat", "detach chat Lost after 1"]);
        runtime.shutdown(Some(0)).await;
        stage.stop().await;
    }

    async fn d11_an_activity_that_is_withdrawn_while_its_session_is_attached_does_not_begin(stage) {
        let (slow, count) = (Gate::new(), Arc::new(AtomicUsize::new(0)));
        let mut options = named(&stage, "A");
        slow_to_attach(&mut options, &slow);
        stage.run_with(marks(&count), plays(), options).await;
        stage.start("1", "GivesUp", "").await;
        slow.is_entered().await;
        stage.client.raise_event("1", "enough", "").await.expect("raises");
        stage.has("1", "ActivityCancelRequested", 1).await;
        stage.settle().await;
        slow.open();
        stage.settle().await;
        stage.client.raise_event("1", "end", "").await.expect("raises");
        assert!(stage.output("1").await.is_ok());
        assert_eq!(count.load(Ordering::SeqCst), 0, "its cancellation was committed before");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn a4_an_activity_whose_lease_is_lost_while_its_session_is_attached_does_not_begin(stage) {
        let (faults, slow, count) = (Faults::default(), Gate::new(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&count);
        let works = turns(&Gate::new()).register("Mark", move |ctx: ActivityContext, _: String| {
            counted.fetch_add(usize::from(ctx.is_cancelled()), Ordering::SeqCst);
            async move { Ok(String::new()) }
        });
        let mut options = named(&stage, "A");
        slow_to_attach(&mut options, &slow);
        let runtime = starts(&stage, &faults, works, options).await;
        stage.start("1", "One", "Mark/chat").await;
        slow.is_entered().await;
        faults.refuse("renew", u64::MAX, ProviderError::retryable("renew", "away"));
        stage.pass_slowly(35 * SECOND, SECOND).await;
        slow.open();
        stage.settle().await;
        assert_eq!(count.load(Ordering::SeqCst), 0, "this process knew that its lease was lost");
        slow.open();
        runtime.shutdown(Some(0)).await;
        stage.stop().await;
    }
}
