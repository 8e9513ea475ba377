//! A wall clock that jumps moves neither the end of a lease nor the time-out of a caller (S16). Timers:
//! `timer.rs`. A machine that sleeps ends no lease and delays no timer (G2).

use std::sync::Arc;
use std::time::Duration;

use steadfast::ClientError;
use steadfast_behaviour::{SOON, Stage, StoreKind, on_every_full_store, on_every_store};
use tokio::sync::Notify;

use super::bench::{BEGIN_MS, MINUTE, Runs, flows, noted};

const HOUR_MS: u64 = 3_600_000;

/// The stores whose time is that of the machine on which the process runs.
const ON_THIS_MACHINE: [StoreKind; 2] = [StoreKind::Memory, StoreKind::Sqlite];

on_every_store! {
    async fn s16_a_lease_ends_in_time_although_the_clock_went_back(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.start("a", "Slow", "x").await;
        stage.until("it runs", async || ran.lock().expect("nobody panicked").len() == 1).await;
        stage.clock.set_wall_ms(BEGIN_MS - HOUR_MS);
        // Its holder cannot renew, as if it were dead.
        stage.faults.hang("renew", 1);
        stage.pass(Duration::from_secs(31));
        // A slot that was given it late asks the store first, and may be the one that is not answered.
        stage
            .until("another slot took it", async || {
                stage.pass(Duration::from_secs(1));
                stage.settle().await;
                ran.lock().expect("nobody panicked").len() == 2
            })
            .await;
        go.notify_waiters();
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        stage.stop().await;
    }
}

on_every_full_store! {
    async fn s16_the_time_out_of_a_caller_is_not_moved_by_a_jump(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.start("a", "Wait", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let client = stage.client.clone();
        let waiting = tokio::spawn(async move { client.wait_for_orchestration("a", MINUTE).await });
        tokio::task::yield_now().await;
        stage.clock.set_wall_ms(BEGIN_MS + 2 * HOUR_MS);
        stage.pass(MINUTE - Duration::from_millis(1));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        stage.clock.set_wall_ms(BEGIN_MS - HOUR_MS);
        stage.pass(Duration::from_millis(1));
        let waited = tokio::time::timeout(SOON, waiting).await.expect("in time").expect("returns");
        assert!(matches!(waited, Err(ClientError::Timeout)), "{waited:?}");
        stage.stop().await;
    }
}

#[tokio::test]
async fn g2_an_activity_goes_on_after_any_number_of_sleeps_of_the_machine() {
    let claim = |stage: Stage| async move {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.start("a", "Slow", "x").await;
        stage.until("it runs", async || ran.lock().expect("nobody panicked").len() == 1).await;
        for _ in 0..12 {
            stage.clock.suspend(Duration::from_secs(3_600));
            stage.pass_slowly(Duration::from_secs(40), Duration::from_secs(1)).await;
        }
        go.notify_waiters();
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        assert_eq!(*ran.lock().expect("nobody panicked"), ["x"], "it ran once");
        stage.stop().await;
    };
    for kind in ON_THIS_MACHINE {
        Stage::run_on(kind, claim).await;
    }
}

#[tokio::test]
async fn g2_a_timer_is_not_late_by_the_time_that_the_machine_slept() {
    let claim = |stage: Stage| async move {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.start("a", "Timer", "x").await;
        stage.has("a", "TimerCreated", 1).await;
        stage.settle().await;
        stage.clock.suspend(MINUTE);
        // A second is enough to notice it; by monotonic time nearly a minute is left.
        stage.pass_slowly(Duration::from_secs(1), Duration::from_millis(100)).await;
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        stage.stop().await;
    };
    for kind in ON_THIS_MACHINE {
        Stage::run_on(kind, claim).await;
    }
}
