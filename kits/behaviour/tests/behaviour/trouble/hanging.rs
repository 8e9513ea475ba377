//! Calls of a turn or an activity that the store never answers, while it answers every other: each is given
//! up and made again (G39, G80).

use std::sync::Arc;

use steadfast_behaviour::{Stage, on_every_store};
use tokio::sync::Notify;

use super::bench::{Runs, flows, noted};
use crate::workbench::SECOND;

/// Stops the runtimes as time passes: a call may wait to be made again.
async fn stop(stage: &Stage) {
    tokio::join!(stage.stop(), stage.pass_slowly(130 * SECOND, SECOND));
}

on_every_store! {
    async fn g39_a_result_whose_hand_in_is_not_answered_is_handed_in_again(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.faults.hang("finish_work", 2);
        stage.start("a", "Plain", "x").await;
        let ended = stage.ends_as_time_passes("a", SECOND).await;
        let runs = ran.lock().expect("nobody panicked").len();
        assert_eq!((ended, runs, stage.faults.calls("finish_work")), (Ok("x".to_owned()), 1, 3));
        stop(&stage).await;
        stage.nothing_waits().await;
    }

    async fn g39_a_result_that_was_taken_and_not_answered_is_used_once(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        let runtime = stage.run(noted(&ran, &go), flows()).await;
        let _never = stage.faults.hold_answer("finish_work");
        stage.start("a", "Plain", "x").await;
        assert_eq!(stage.ends_as_time_passes("a", SECOND).await, Ok("x".to_owned()));
        // The renewal is told that the lease is gone, so there is nothing to hand in once more.
        stage.pass_slowly(120 * SECOND, SECOND).await;
        assert_eq!(stage.faults.calls("finish_work"), 1);
        let runs = ran.lock().expect("nobody panicked").len();
        assert_eq!((runs, runtime.metrics_snapshot().expect("counts").activity_poison), (1, 0));
        stop(&stage).await;
        stage.nothing_waits().await;
    }

    async fn g39_a_commit_that_is_not_answered_is_made_again(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        stage.faults.hang("commit_turn", 1);
        stage.start("a", "Plain", "x").await;
        assert_eq!(stage.ends_as_time_passes("a", SECOND).await, Ok("x".to_owned()));
        stop(&stage).await;
        stage.nothing_waits().await;
    }

    async fn g39_a_commit_that_was_taken_and_not_answered_has_its_effects_once(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        stage.run(noted(&ran, &go), flows()).await;
        let _never = stage.faults.hold_answer("commit_turn");
        stage.start("a", "Plain", "x").await;
        assert_eq!(stage.ends_as_time_passes("a", SECOND).await, Ok("x".to_owned()));
        stage
            .until("it is made again", async || {
                stage.pass(SECOND);
                stage.settle().await;
                stage.faults.calls("commit_turn") == 3
            })
            .await;
        let kinds = stage.kinds("a").await;
        let scheduled = kinds.iter().filter(|kind| *kind == "ActivityScheduled").count();
        assert_eq!((scheduled, ran.lock().expect("nobody panicked").len()), (1, 1), "{kinds:?}");
        stop(&stage).await;
        stage.nothing_waits().await;
    }

    async fn g80_fetches_that_are_not_answered_are_made_again(stage) {
        let (ran, go) = (Runs::default(), Arc::new(Notify::new()));
        let options = steadfast::runtime::RuntimeOptions {
            orchestration_concurrency: 2,
            worker_concurrency: 2,
            ..stage.options()
        };
        // As many as there are slots: a slot that waited for ever would leave none.
        stage.faults.hang("fetch_turn", 2);
        stage.faults.hang("fetch_work", 2);
        stage.run_with(noted(&ran, &go), flows(), options).await;
        stage.start("a", "Plain", "x").await;
        assert_eq!(stage.ends_as_time_passes("a", SECOND).await, Ok("x".to_owned()));
        stop(&stage).await;
        stage.nothing_waits().await;
    }
}
