//! A process that lives longer than its leases, because it was paused or the store was away, uses up no
//! attempts (G38). Real processes: `processes/outlived.rs`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use steadfast::runtime::RuntimeOptions;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::{ActivityContext, OrchestrationContext};
use steadfast_behaviour::{Stage, activities, on_every_full_store, orchestrations};

use super::bench::down;
use crate::workbench::{Gate, SECOND};

/// How often trouble comes: twice as often as an activity may be delivered.
const TIMES: usize = 20;

/// The three ways to be a long activity.
const KINDS: [&str; 3] = ["plain", "cancellable", "session"];

/// Registers `Long`, which waits at the gate and does not look at its cancellation, and `Polite`, which stops
/// when it is told.
pub(super) fn long(gate: &Gate) -> ActivityRegistryBuilder {
    let (long, polite) = (gate.clone(), gate.clone());
    activities()
        .register("Long", move |ctx: ActivityContext, _| {
            let gate = long.clone();
            async move {
                gate.pass().await;
                Ok(format!("attempt {}", ctx.counted_deliveries()))
            }
        })
        .register("Polite", move |ctx: ActivityContext, _| {
            let gate = polite.clone();
            async move {
                tokio::select! {
                    () = gate.pass() => Ok(format!("attempt {}", ctx.counted_deliveries())),
                    () = ctx.cancelled() => Err("stopped".to_owned()),
                }
            }
        })
}

pub(super) fn calls() -> OrchestrationRegistryBuilder {
    orchestrations().register("Call", |ctx: OrchestrationContext, kind: String| async move {
        match kind.as_str() {
            "plain" => ctx.schedule_activity("Long", "").await,
            "cancellable" => ctx.schedule_activity("Polite", "").await,
            _ => ctx.schedule_activity_on_session("Long", "", "chat").await,
        }
    })
}

/// One slot each: what is leased again is leased by the slot that had it.
pub(super) fn one_slot(stage: &Stage) -> RuntimeOptions {
    RuntimeOptions {
        worker_concurrency: 1,
        orchestration_concurrency: 1,
        worker_node_id: Some("A".to_owned()),
        ..stage.options()
    }
}

/// Lets a long activity of each kind meet some trouble again and again.
async fn meets(stage: &Stage, trouble: impl AsyncFn(&Stage)) {
    for kind in KINDS {
        let gate = Gate::new();
        let runtime = stage.run_with(long(&gate), calls(), one_slot(stage)).await;
        stage.start(kind, "Call", kind).await;
        gate.is_entered().await;
        for _ in 0..TIMES {
            trouble(stage).await;
            stage
                .until("it runs again", async || {
                    stage.pass(SECOND);
                    stage.settle().await;
                    gate.waiting() > 0
                })
                .await;
            gate.is_entered().await;
        }
        gate.open();
        let ended = stage.ends_as_time_passes(kind, SECOND / 4).await;
        assert_eq!(ended, Ok("attempt 1".to_owned()), "{kind}: its process lived through all of them");
        assert_eq!(runtime.metrics_snapshot().expect("counts").activity_poison, 0);
        stage.stop().await;
    }
    stage.nothing_waits().await;
}

on_every_full_store! {
    async fn g38_twenty_outages_longer_than_every_lease_fail_nothing_and_count_nothing(stage) {
        meets(&stage, async |stage: &Stage| {
            stage.faults.outage();
            stage.pass_slowly(60 * SECOND, 5 * SECOND).await;
            stage.faults.heal();
        })
        .await;
    }

    async fn g38_twenty_pauses_longer_than_every_lease_fail_nothing_and_count_nothing(stage) {
        meets(&stage, async |stage: &Stage| {
            // No task of the process runs in between.
            stage.pass(60 * SECOND);
            stage.settle().await;
        })
        .await;
    }

    async fn g38_each_run_after_twenty_pauses_with_free_slots_is_told_the_first_attempt(stage) {
        let (gate, seen) = (Gate::new(), Arc::new(Mutex::new(Vec::new())));
        let (pass, note) = (gate.clone(), Arc::clone(&seen));
        let long = activities().register("Long", move |ctx: ActivityContext, _| {
            let gate = pass.clone();
            note.lock().expect("no holder panics").push(ctx.counted_deliveries());
            async move {
                gate.pass().await;
                Ok(String::new())
            }
        });
        // The least that is no poison: a run that were told a second attempt would not be.
        let options = RuntimeOptions { worker_concurrency: 4, max_attempts: 1, ..one_slot(&stage) };
        stage.run_with(long, calls(), options).await;
        for instance in ["a", "b"] {
            stage.start(instance, "Call", "plain").await;
            gate.is_entered().await;
        }
        for _ in 0..TIMES {
            stage.pass(60 * SECOND);
            for _ in ["a", "b"] {
                stage
                    .until("it runs again", async || {
                        stage.pass(SECOND / 4);
                        stage.settle().await;
                        gate.waiting() > 0
                    })
                    .await;
                gate.is_entered().await;
            }
        }
        let seen = seen.lock().expect("no holder panics").clone();
        assert!(seen.len() > 2 * TIMES && seen.iter().all(|attempt| *attempt == 1), "{seen:?}");
        // Runs that were told to stop may still stand at the gate, ahead of the two that count.
        (0..2 * TIMES).for_each(|_| gate.open());
        for instance in ["a", "b"] {
            assert!(stage.ends_as_time_passes(instance, SECOND / 4).await.is_ok());
        }
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g38_an_excuse_that_failed_a_moment_before_a_shutdown_is_sent_again_at_its_end(stage) {
        let gate = Gate::new();
        stage.run_with(long(&gate), calls(), one_slot(&stage)).await;
        // It ends as soon as it is told, so no time has to pass.
        stage.start("a", "Call", "cancellable").await;
        gate.is_entered().await;
        stage.faults.refuse("excuse", u64::MAX, down());
        stage.pass(60 * SECOND);
        gate.is_entered().await;
        assert!(stage.faults.calls("excuse") > 0, "it runs again, and its excuse failed");
        stage.faults.heal();
        stage.stop_at_once().await;
        let gate = Gate::new();
        stage.run_with(long(&gate), calls(), one_slot(&stage)).await;
        gate.is_entered().await;
        gate.open();
        assert_eq!(stage.output("a").await, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g38_a_turn_whose_process_is_paused_counts_nothing(stage) {
        let (clock, ran) = (stage.clock.clone(), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&ran);
        let flow = orchestrations().register("Paused", move |_: OrchestrationContext, _: String| {
            // Longer than the lease of a turn.
            if count.fetch_add(1, Ordering::Relaxed) < TIMES as u32 {
                clock.advance(6 * SECOND);
            }
            async move { Ok("done".to_owned()) }
        });
        let options = RuntimeOptions { max_attempts: 2, ..one_slot(&stage) };
        stage.run_with(activities(), flow, options).await;
        stage.start("a", "Paused", "").await;
        assert_eq!(stage.ends_as_time_passes("a", SECOND).await, Ok("done".to_owned()));
        assert_eq!(ran.load(Ordering::Relaxed), TIMES as u32 + 1);
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g38_a_turn_that_outages_keep_from_its_commit_counts_nothing(stage) {
        let flow = orchestrations().register("Echo", |_: OrchestrationContext, input: String| async move {
            Ok(input)
        });
        let options = RuntimeOptions { max_attempts: 2, ..one_slot(&stage) };
        stage.run_with(activities(), flow, options).await;
        for operation in ["commit_turn", "abandon", "renew", "excuse"] {
            stage.faults.refuse(operation, u64::MAX, down());
        }
        stage.start("a", "Echo", "x").await;
        // Each lease is leased again after its end, and the excuses wait.
        stage.pass_slowly(12 * SECOND, SECOND / 4).await;
        stage.faults.heal();
        assert_eq!(stage.ends_as_time_passes("a", SECOND / 4).await, Ok("x".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g38_what_a_shutdown_could_not_give_back_at_once_is_given_back_when_the_slots_have_ended(stage) {
        let gate = Gate::new();
        stage.run_with(long(&gate), calls(), one_slot(&stage)).await;
        stage.start("a", "Call", "plain").await;
        gate.is_entered().await;
        stage.faults.refuse("abandon", 1, down());
        stage.stop_at_once().await;
        let gate = Gate::new();
        stage.run_with(long(&gate), calls(), one_slot(&stage)).await;
        gate.is_entered().await;
        gate.open();
        assert_eq!(stage.output("a").await, Ok("attempt 1".to_owned()));
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn g38_an_excuse_is_tried_until_the_store_takes_it_and_keeps_no_slot(stage) {
        let gate = Gate::new();
        stage.run_with(long(&gate), calls(), one_slot(&stage)).await;
        stage.start("a", "Call", "plain").await;
        gate.is_entered().await;
        stage.faults.refuse("excuse", 30, down());
        stage.pass(60 * SECOND);
        stage.until("it runs again", async || {
            stage.pass(SECOND / 4);
            gate.waiting() > 0
        })
        .await;
        stage.until("the excuse is taken", async || {
            stage.pass(SECOND / 4);
            stage.settle().await;
            stage.faults.calls("excuse") == 31
        })
        .await;
        gate.open();
        gate.open();
        assert!(stage.ends_as_time_passes("a", SECOND / 4).await.is_ok());
        stage.stop().await;
    }
}
