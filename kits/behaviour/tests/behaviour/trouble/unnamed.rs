//! Errors of a store that are not final mean another try (G8), and a result in hand is handed in for as long
//! as its lease can be renewed (G39).

use std::sync::Arc;
use std::time::Duration;

use steadfast::ErrorDetails;
use steadfast::providers::{ProviderError, ProviderErrorKind};
use steadfast::runtime::RuntimeOptions;
use steadfast_behaviour::{Stage, on_every_store, orchestrations};
use tokio::sync::Notify;

use super::bench::{Runs, down, flows, noted};
use crate::workbench::{Gate, SECOND, call, handing, pass_calmly, waiting};

/// The kinds that are neither worth another try by themselves nor final.
const UNCLEAR: [ProviderErrorKind; 4] = [
    ProviderErrorKind::NotFound,
    ProviderErrorKind::Refused,
    ProviderErrorKind::Unsupported,
    ProviderErrorKind::Corrupt,
];

fn unclear(kind: ProviderErrorKind) -> ProviderError {
    ProviderError::new(kind, "test", "the store does not know what this means")
}

fn runs(ran: &Runs) -> usize {
    ran.lock().expect("nobody panicked").len()
}

/// Runs one activity whose outcome the store refuses to take, once for each error, and counts its runs.
async fn outcome_is_refused(stage: &Stage, error: ProviderError) {
    let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
    stage.run(noted(&ran, &go), flows()).await;
    let instance = format!("{:?} {}", error.kind, error.message);
    stage.faults.refuse("finish_work", 3, error);
    stage.start(&instance, "Plain", "x").await;
    let ended = stage.ends_as_time_passes(&instance, SECOND / 4).await;
    assert_eq!((ended, runs(&ran)), (Ok("x".to_owned()), 1), "{instance}");
    stage.stop().await;
}

on_every_store! {
    async fn g8_a_commit_that_meets_an_error_that_is_not_final_is_tried_again(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        let runtime = stage.run(noted(&ran, &go), flows()).await;
        for kind in UNCLEAR {
            stage.faults.refuse("commit_turn", 1, unclear(kind));
            let instance = format!("{kind:?}");
            stage.start(&instance, "Plain", "x").await;
            let ended = stage.ends_as_time_passes(&instance, SECOND / 4).await;
            assert_eq!(ended, Ok("x".to_owned()), "{kind:?}");
        }
        assert_eq!(runtime.metrics_snapshot().expect("counts").orch_failures, 0);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g8_a_commit_that_meets_a_corrupt_row_counts_and_no_other_does(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        let options = RuntimeOptions { max_attempts: 1, ..stage.options() };
        stage.run_with(noted(&ran, &go), flows(), options).await;
        stage.faults.refuse("commit_turn", 20, unclear(ProviderErrorKind::Refused));
        stage.start("refused", "Plain", "x").await;
        let ended = stage.ends_as_time_passes("refused", SECOND / 4).await;
        assert_eq!(ended, Ok("x".to_owned()));
        stage.faults.refuse("commit_turn", 1, unclear(ProviderErrorKind::Corrupt));
        stage.start("corrupt", "Plain", "x").await;
        let ended = stage.ends_as_time_passes("corrupt", SECOND / 4).await;
        assert!(matches!(ended, Err(ErrorDetails::Poison { attempt_count: 2, .. })), "{ended:?}");
        stage.stop().await;
    }

    async fn g8_a_file_that_is_damaged_for_minutes_fails_no_instance(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        stage.run_with(noted(&ran, &go), flows(), stage.options()).await;
        stage.faults.refuse("commit_turn", u64::MAX, unclear(ProviderErrorKind::Corrupt));
        stage.start("a", "Plain", "x").await;
        pass_calmly(&stage, 300 * SECOND, SECOND).await;
        let tries = stage.faults.calls("commit_turn");
        assert!((5..=10).contains(&tries), "the waits grow: {tries} tries in five minutes");
        stage.faults.heal();
        let ended = stage.ends_as_time_passes("a", SECOND).await;
        assert_eq!(ended, Ok("x".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g8_at_a_renewal_only_the_end_of_the_lease_cancels(stage) {
        let (acts, mut handed) = handing();
        stage.run(acts, orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Hand").await;
        let ctx = handed.recv().await.expect("it runs");
        for kind in UNCLEAR.into_iter().chain([ProviderErrorKind::Other, ProviderErrorKind::Invalid]) {
            let before = stage.faults.calls("renew");
            stage.faults.refuse("renew", 1, unclear(kind));
            pass_calmly(&stage, 16 * SECOND, SECOND / 4).await;
            assert!(stage.faults.calls("renew") >= before + 2, "{kind:?}: it is tried again");
            assert!(!ctx.is_cancelled(), "{kind:?}");
        }
        stage.stop().await;
    }

    async fn g8_an_outcome_that_meets_an_error_that_is_not_final_is_not_thrown_away(stage) {
        for kind in UNCLEAR {
            outcome_is_refused(&stage, unclear(kind)).await;
        }
        outcome_is_refused(&stage, ProviderError::permanent("finish", "what a provider cannot name")).await;
        stage.nothing_waits().await;
    }

    async fn g39_a_result_is_handed_in_for_as_long_as_its_lease_can_be_renewed(stage) {
        let gate = Gate::new();
        stage.run(waiting(&gate), orchestrations().register("Call", call)).await;
        stage.start("a", "Call", "Wait").await;
        gate.is_entered().await;
        stage.faults.refuse("finish_work", u64::MAX, down());
        gate.open();
        stage.until("it is handed in", async || stage.faults.calls("finish_work") > 0).await;
        // As long as ten leases.
        pass_calmly(&stage, 300 * SECOND, SECOND).await;
        assert_eq!((gate.waiting(), stage.faults.calls("abandon")), (0, 0), "it is not given up");
        stage.faults.heal();
        let ended = stage.ends_as_time_passes("a", Duration::from_millis(250)).await;
        assert_eq!(ended, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
