//! Deleting what ended long ago (G3, G12).

use std::sync::Arc;
use std::time::Duration;

use steadfast::OrchestrationContext;
use steadfast::providers::ProviderError;
use steadfast::runtime::RuntimeOptions;
use steadfast_behaviour::{Stage, activities, on_every_full_store, orchestrations};
use steadfast_clock::{Clock, VirtualClock};

const MINUTE: Duration = Duration::from_secs(60);

const HOUR: Duration = Duration::from_secs(3_600);

fn done() -> steadfast::OrchestrationRegistryBuilder {
    orchestrations().register("Done", |_: OrchestrationContext, input| async move { Ok(input) })
}

async fn instances(stage: &Stage) -> usize {
    stage.client.list_all_instances().await.expect("lists").len()
}

on_every_full_store! {
    async fn g3_a_worker_whose_clock_is_ahead_deletes_nothing_early(stage) {
        stage.run(activities(), done()).await;
        stage.ends_after("a", "Done", "").await.expect("completes");
        let ahead = VirtualClock::new(stage.clock.now_ms() + HOUR.as_millis() as u64);
        let options = RuntimeOptions {
            retain_finished_for: Some(30 * MINUTE),
            clock: Arc::new(ahead.clone()),
            ..stage.options()
        };
        stage.run_with(activities(), done(), options).await;
        let pass = async |minutes: u32| {
            for _ in 0..minutes {
                ahead.advance(MINUTE);
                stage.pass_slowly(MINUTE, MINUTE).await;
            }
        };
        pass(29).await;
        assert!(stage.faults.calls("delete_ended") > 1, "the worker has swept");
        assert_eq!(instances(&stage).await, 1, "it ended 29 minutes ago");
        pass(4).await;
        stage.until("it is deleted", async || instances(&stage).await == 0).await;
        stage.stop().await;
    }

    async fn g12_a_batch_that_fails_is_halved_until_it_goes_through(stage) {
        stage.run(activities(), done()).await;
        for number in 0..30 {
            stage.ends_after(&format!("i{number}"), "Done", "").await.expect("completes");
        }
        stage.pass(HOUR);
        stage.faults.refuse("delete_ended", 3, ProviderError::retryable("delete_ended", "took too long"));
        let options = RuntimeOptions { retain_finished_for: Some(30 * MINUTE), ..stage.options() };
        stage.run_with(activities(), done(), options).await;
        for sweep in 1..=3 {
            stage.until("it sweeps", async || stage.faults.calls("delete_ended") == sweep).await;
            stage.settle().await;
            assert_eq!(instances(&stage).await, 30);
            stage.pass(3 * MINUTE);
        }
        stage.until("all are deleted", async || instances(&stage).await == 0).await;
        stage.settle().await;
        // Batches of 12 and 18, and one that finds nothing.
        assert_eq!(stage.faults.calls("delete_ended"), 3 + 3);
        stage.stop().await;
    }

    async fn g80_a_deletion_that_is_not_answered_is_made_again(stage) {
        stage.run(activities(), done()).await;
        stage.ends_after("a", "Done", "").await.expect("completes");
        stage.pass(HOUR);
        stage.faults.hang("delete_ended", 1);
        let options = RuntimeOptions { retain_finished_for: Some(30 * MINUTE), ..stage.options() };
        stage.run_with(activities(), done(), options).await;
        stage.until("it hangs", async || stage.faults.calls("delete_ended") == 1).await;
        stage.pass_slowly(5 * MINUTE, MINUTE / 2).await;
        assert_eq!(instances(&stage).await, 0);
        stage.stop().await;
    }

    async fn g80_gauges_that_are_not_answered_are_read_again(stage) {
        stage.faults.hang("gauges", 1);
        stage.run(activities(), done()).await;
        stage.until("they hang", async || stage.faults.calls("gauges") == 1).await;
        stage.pass_slowly(3 * MINUTE, MINUTE / 2).await;
        assert!(stage.faults.calls("gauges") >= 2);
        stage.stop().await;
    }
}
