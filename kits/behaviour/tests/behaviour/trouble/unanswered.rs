//! Calls that give a lease back or excuse it, and whose answers do not come, come late or are lost (G38).

use steadfast::OrchestrationContext;
use steadfast::runtime::{OnMissingHandler, RuntimeOptions};
use steadfast_behaviour::{Stage, activities, on_every_full_store, orchestrations};
use steadfast_store::{ProviderError, ProviderErrorKind};

use super::bench::down;
use super::outlived::{calls, long, one_slot};
use crate::workbench::{Gate, SECOND};

/// Lets time pass until the activity stands at the gate once more.
async fn runs_again(stage: &Stage, gate: &Gate) {
    stage
        .until("it runs again", async || {
            stage.pass(SECOND / 4);
            stage.settle().await;
            gate.waiting() > 0
        })
        .await;
    gate.is_entered().await;
}

on_every_full_store! {
    async fn g38_a_refusal_of_work_that_hangs_past_its_lease_counts_nothing_and_keeps_no_slot(stage) {
        // As many slots as refusals that hang: a slot that were kept would leave none.
        let options = RuntimeOptions {
            max_attempts: 1,
            worker_concurrency: 3,
            on_missing_handler: OnMissingHandler::Park,
            ..one_slot(&stage)
        };
        stage.faults.hang("refuse", 3);
        let runtime = stage.run_with(activities(), calls(), options).await;
        stage.start("a", "Call", "plain").await;
        stage.until("a refusal is answered", async || {
            stage.pass(SECOND);
            stage.settle().await;
            stage.faults.calls("refuse") == 4
        })
        .await;
        let gate = Gate::new();
        stage.run_with(long(&gate), orchestrations(), stage.options()).await;
        gate.is_entered().await;
        gate.open();
        assert_eq!(stage.output("a").await, Ok("attempt 1".to_owned()));
        assert_eq!(runtime.metrics_snapshot().expect("counts").activity_poison, 0);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g38_a_refusal_that_fails_counts_nothing_where_work_is_parked(stage) {
        let options = RuntimeOptions {
            max_attempts: 1,
            on_missing_handler: OnMissingHandler::Park,
            ..one_slot(&stage)
        };
        stage.faults.refuse("refuse", 3, down());
        stage.run_with(activities(), calls(), options).await;
        stage.start("a", "Call", "plain").await;
        stage
            .until("a refusal is taken", async || {
                stage.pass(SECOND);
                stage.settle().await;
                stage.faults.calls("refuse") == 4
            })
            .await;
        let gate = Gate::new();
        stage.run_with(long(&gate), orchestrations(), stage.options()).await;
        gate.is_entered().await;
        gate.open();
        assert_eq!(stage.output("a").await, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g81_a_refusal_that_fails_neither_counts_nor_delays_where_a_live_worker_has_the_code(stage) {
        let gate = Gate::new();
        // The worker with the code has one slot, which is busy.
        let options = RuntimeOptions { worker_concurrency: 1, max_attempts: 1, ..stage.options() };
        stage.run_with(long(&gate), calls(), options).await;
        stage.start("busy", "Call", "plain").await;
        gate.is_entered().await;
        stage.faults.refuse("refuse", 3, down());
        let without = RuntimeOptions { orchestration_concurrency: 0, max_attempts: 1, ..stage.options() };
        stage.run_with(activities(), orchestrations(), without).await;
        stage.start("a", "Call", "plain").await;
        stage.until("a refusal is taken", async || {
            stage.pass(SECOND / 10);
            stage.settle().await;
            stage.faults.calls("refuse") == 4
        })
        .await;
        let store = stage.inner().into_store().expect("a full store");
        assert_eq!(store.work_of("a", 1).await.expect("tells")[0].attempts, 0, "nothing is counted");
        // No time passes: what was refused waits for no lease.
        gate.open();
        assert_eq!(stage.output("busy").await, Ok("attempt 1".to_owned()));
        gate.is_entered().await;
        gate.open();
        assert_eq!(stage.output("a").await, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g81_a_refusal_that_always_fails_is_made_again_after_a_pause(stage) {
        stage.faults.refuse("refuse", u64::MAX, down());
        stage.run_with(activities(), calls(), one_slot(&stage)).await;
        stage.start("a", "Call", "plain").await;
        stage.has("a", "ActivityScheduled", 1).await;
        stage.pass_slowly(10 * SECOND, SECOND / 4).await;
        let refusals = stage.faults.calls("refuse");
        assert!((2..=41).contains(&refusals), "four times a second at most: {refusals}");
        stage.stop_at_once().await;
    }

    async fn g80_an_excuse_that_is_not_answered_is_sent_again_although_every_slot_is_busy(stage) {
        let gate = Gate::new();
        let options = RuntimeOptions { worker_concurrency: 2, max_attempts: 1, ..one_slot(&stage) };
        let runtime = stage.run_with(long(&gate), calls(), options).await;
        stage.start("a", "Call", "plain").await;
        stage.start("b", "Call", "plain").await;
        gate.is_entered().await;
        gate.is_entered().await;
        stage.faults.hang("excuse", 2);
        stage.pass(60 * SECOND);
        stage
            .until("the excuses are taken", async || {
                stage.pass(SECOND);
                stage.settle().await;
                stage.faults.calls("excuse") >= 4
            })
            .await;
        for _ in 0..4 {
            gate.open();
        }
        for instance in ["a", "b"] {
            let end = stage.ends_as_time_passes(instance, SECOND / 4).await;
            assert_eq!(end, Ok("attempt 1".to_owned()));
        }
        assert_eq!(runtime.metrics_snapshot().expect("counts").activity_poison, 0);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g80_work_that_is_given_back_counted_to_a_store_that_hangs_keeps_no_slot(stage) {
        let gate = Gate::new();
        stage.run_with(long(&gate), calls(), one_slot(&stage)).await;
        let refused = ProviderError::new(ProviderErrorKind::Invalid, "finish_work", "refused");
        stage.faults.refuse("finish_work", 1, refused);
        stage.start("a", "Call", "plain").await;
        gate.is_entered().await;
        stage.faults.hang("abandon", 1);
        gate.open();
        gate.open();
        assert!(stage.ends_as_time_passes("a", SECOND).await.is_ok(), "the slot runs it again");
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g38_a_refusal_of_a_turn_that_hangs_holds_its_instance_for_a_lease_and_counts_nothing(stage) {
        let options = RuntimeOptions {
            max_attempts: 1,
            on_missing_handler: OnMissingHandler::Park,
            ..one_slot(&stage)
        };
        stage.faults.hang("refuse", 3);
        stage.run_with(activities(), orchestrations(), options).await;
        stage.start("a", "Echo", "x").await;
        stage.until("a refusal is answered", async || {
            stage.pass(SECOND / 2);
            stage.settle().await;
            stage.faults.calls("refuse") == 4
        })
        .await;
        let flow = orchestrations().register("Echo", |_: OrchestrationContext, input: String| async move {
            Ok(input)
        });
        stage.run_with(activities(), flow, RuntimeOptions { max_attempts: 1, ..stage.options() }).await;
        assert_eq!(stage.output("a").await, Ok("x".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g38_work_that_is_given_back_to_a_store_that_hangs_counts_nothing_and_keeps_no_slot(stage) {
        let gate = Gate::new();
        let options = RuntimeOptions { max_attempts: 1, worker_concurrency: 2, ..one_slot(&stage) };
        stage.run_with(long(&gate), calls(), options).await;
        stage.start("a", "Call", "cancellable").await;
        gate.is_entered().await;
        // Each slot is given the work with a count that its process takes back, and gives it back for that.
        stage.faults.hang("abandon", 2);
        for _ in 0..2 {
            stage.pass(60 * SECOND);
            runs_again(&stage, &gate).await;
        }
        gate.open();
        assert_eq!(stage.ends_as_time_passes("a", SECOND / 4).await, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g38_an_excuse_whose_answer_was_lost_is_seen_as_taken(stage) {
        let gate = Gate::new();
        let options = RuntimeOptions {
            max_attempts: 1,
            worker_concurrency: 2,
            // A fetch waits for longer than a lease lasts.
            dispatcher_long_poll_timeout: 40 * SECOND,
            max_sessions_per_runtime: 0,
            ..one_slot(&stage)
        };
        stage.run_with(long(&gate), calls(), options).await;
        stage.start("a", "Call", "plain").await;
        gate.is_entered().await;
        let asked = stage.faults.calls("fetch_work");
        let answer = stage.faults.hold_answer("fetch_work");
        let store = stage.inner().into_store().expect("a full store");
        stage.until("the other slot asks", async || {
            stage.pass(SECOND);
            stage.settle().await;
            stage.faults.calls("fetch_work") > asked
        })
        .await;
        // The lease ends, and the other slot is given the work, as its second delivery.
        stage.faults.refuse("renew", u64::MAX, down());
        stage.until("it is leased again", async || {
            stage.pass(SECOND);
            stage.settle().await;
            let work = store.work_of("a", 1).await.expect("tells");
            work.first().is_some_and(|work| work.attempts == 2)
        })
        .await;
        stage.faults.heal();
        // The holder hands its result in, and learns that the lease is lost.
        stage.faults.lose_answer("excuse", 1, down());
        gate.open();
        stage.until("the excuse is sent again", async || {
            stage.pass(SECOND / 4);
            stage.settle().await;
            stage.faults.calls("excuse") == 2
        })
        .await;
        answer.add_permits(1);
        gate.open();
        assert_eq!(stage.ends_as_time_passes("a", SECOND / 4).await, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g38_a_run_is_not_told_a_delivery_whose_excuse_is_answered_late(stage) {
        let gate = Gate::new();
        let options = RuntimeOptions { worker_concurrency: 4, ..one_slot(&stage) };
        stage.run_with(long(&gate), calls(), options).await;
        stage.start("a", "Call", "cancellable").await;
        gate.is_entered().await;
        let answer = stage.faults.hold_answer("excuse");
        stage.pass(60 * SECOND);
        stage.until("it runs again", async || {
            stage.pass(SECOND / 4);
            stage.settle().await;
            gate.waiting() > 0
        })
        .await;
        gate.is_entered().await;
        answer.add_permits(1);
        gate.open();
        assert_eq!(stage.ends_as_time_passes("a", SECOND / 4).await, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }
}
