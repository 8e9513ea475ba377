//! Metrics (1.14, F23): every count, in a scenario whose true value is known. Counts are read after the
//! runtime has stopped, because a count may come a moment after the commit that it is about.

use std::sync::Arc;
use std::time::Duration;

use crate::workbench::{Gate, SECOND, call, handing, pass_calmly, waiting};
use steadfast::providers::{ProviderError, ProviderErrorKind, WorkItem};
use steadfast::runtime::observability::{MetricsSnapshot, ObservabilityConfig};
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{Runtime, RuntimeOptions, UnregisteredBackoffConfig};
use steadfast::{ActivityContext, Either2, OrchestrationContext};
use steadfast_behaviour::{Stage, activities, on_every_full_store, on_every_store, orchestrations};

/// Stops a runtime and returns what it counted.
async fn counted(stage: &Stage, runtime: Arc<Runtime>) -> MetricsSnapshot {
    stage.stop().await;
    runtime.metrics_snapshot().expect("a runtime counts")
}

/// Leaves out what depends on how messages met in batches, or on the store.
fn without_fetches(counts: MetricsSnapshot) -> MetricsSnapshot {
    MetricsSnapshot { orch_dispatcher_items_fetched: 0, worker_dispatcher_items_fetched: 0, ..counts }
}

fn works() -> ActivityRegistryBuilder {
    activities()
        .register("Fine", |_, _| async { Ok("fine".to_owned()) })
        .register("Fail", |_, _| async { Err("no luck".to_owned()) })
        .register("Panic", |_, _| async { panic!("out of cheese") })
}

fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Call", call)
        .register("Quick", |_, _| async { Ok(String::new()) })
        .register("Listen", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("news").await) })
        .register("Panic", |_, _| async { panic!("out of cheese") })
        .register("Child", |ctx: OrchestrationContext, child: String| async move {
            ctx.schedule_sub_orchestration(child, "").await
        })
}

/// Options: a name that is not registered is tried again at once, and is poison after one delivery.
fn impatient(stage: &Stage) -> RuntimeOptions {
    RuntimeOptions {
        max_attempts: 1,
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: Duration::ZERO,
            max_delay: Duration::ZERO,
        },
        ..stage.options()
    }
}

fn busy() -> ProviderError {
    ProviderError::retryable("store", "busy")
}

on_every_store! {
    async fn f23_one_activity_is_one_start_one_completion_two_turns_and_one_success(stage) {
        let runtime = stage.run(works(), flows()).await;
        stage.ends_after("a", "Call", "Fine").await.expect("completes");
        let expected = MetricsSnapshot {
            orch_starts: 1,
            orch_completions: 1,
            activity_success: 1,
            orch_dispatcher_items_fetched: 2,
            worker_dispatcher_items_fetched: 1,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_an_idle_runtime_counts_nothing(stage) {
        let runtime = stage.run(works(), flows()).await;
        stage.until("it asks for work", async || stage.faults.calls("fetch_work") >= 2).await;
        pass_calmly(&stage, 90 * SECOND, 10 * SECOND).await;
        assert_eq!(counted(&stage, runtime).await, MetricsSnapshot::default());
    }

    async fn f23_an_execution_starts_once_however_many_turns_it_has(stage) {
        let flow = orchestrations().register("Long", |ctx: OrchestrationContext, _| async move {
            for _ in 0..5 {
                ctx.schedule_activity("Fine", "").await?;
            }
            Ok(String::new())
        });
        let runtime = stage.run(works(), flow).await;
        stage.ends_after("a", "Long", "").await.expect("completes");
        let expected = MetricsSnapshot {
            orch_starts: 1,
            orch_completions: 1,
            activity_success: 5,
            orch_dispatcher_items_fetched: 6,
            worker_dispatcher_items_fetched: 5,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_what_another_runtime_did_is_not_counted_here(stage) {
        let runtime = stage.run(works(), flows()).await;
        stage.ends_after("a", "Quick", "").await.expect("completes");
        stage.stop().await;
        let second = stage.run(works(), flows()).await;
        stage.ends_after("b", "Quick", "").await.expect("completes");
        stage.stop().await;
        for runtime in [runtime, second] {
            let counts = runtime.metrics_snapshot().expect("counts");
            assert_eq!((counts.orch_starts, counts.orch_completions), (1, 1));
        }
    }

    async fn f23_an_orchestration_that_fails_counts_once_and_as_of_the_application(stage) {
        let runtime = stage.run(works(), flows()).await;
        stage.ends_after("error", "Call", "Fail").await.expect_err("fails");
        stage.ends_after("panic", "Panic", "").await.expect_err("fails");
        stage.start("cancelled", "Listen", "").await;
        stage.has("cancelled", "ExternalSubscribed", 1).await;
        stage.client.cancel_instance("cancelled", "enough").await.expect("cancels");
        stage.ends("cancelled").await.expect_err("fails");
        let expected = MetricsSnapshot {
            orch_starts: 3,
            orch_failures: 3,
            orch_application_errors: 3,
            activity_app_errors: 1,
            orch_dispatcher_items_fetched: 5,
            worker_dispatcher_items_fetched: 1,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_a_mismatch_counts_as_of_the_configuration(stage) {
        let runtime = stage.run(works(), flows()).await;
        stage.start("a", "Listen", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        let (instance, result) = ("a".to_owned(), String::new());
        let stray = WorkItem::ActivityCompleted { instance, execution_id: 1, id: 77, result };
        stage.inner().enqueue_for_orchestrator(stray, None).await.expect("sends");
        assert_eq!(stage.ends("a").await.expect_err("fails").category(), "configuration");
        let expected = MetricsSnapshot {
            orch_starts: 1,
            orch_failures: 1,
            orch_configuration_errors: 1,
            orch_dispatcher_items_fetched: 2,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_a_first_commit_that_is_refused_counts_a_start_and_a_failure_of_the_infrastructure(stage) {
        stage.faults.refuse("commit_turn", 1, ProviderError::permanent("ack_orchestration_item", "no"));
        let runtime = stage.run(works(), flows()).await;
        assert_eq!(
            stage.ends_after("a", "Call", "Fine").await.expect_err("fails").category(),
            "infrastructure"
        );
        let expected = MetricsSnapshot {
            orch_starts: 1,
            orch_failures: 1,
            orch_infrastructure_errors: 1,
            orch_dispatcher_items_fetched: 1,
            provider_errors: 1,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_a_later_commit_that_is_refused_counts_no_second_start(stage) {
        let runtime = stage.run(works(), flows()).await;
        stage.start("a", "Listen", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage.faults.refuse("commit_turn", 1, ProviderError::permanent("ack_orchestration_item", "no"));
        stage.client.raise_event("a", "news", "").await.expect("raises");
        stage.ends("a").await.expect_err("fails");
        let counts = counted(&stage, runtime).await;
        assert_eq!((counts.orch_starts, counts.orch_completions), (1, 0));
        assert_eq!((counts.orch_failures, counts.orch_infrastructure_errors), (1, 1));
    }

    async fn f23_its_own_poison_counts_as_a_start_a_failure_and_poison(stage) {
        let runtime = stage.run_with(works(), flows(), impatient(&stage)).await;
        assert_eq!(stage.ends_after("a", "Nobody", "").await.expect_err("fails").category(), "poison");
        let expected = MetricsSnapshot {
            orch_starts: 1,
            orch_failures: 1,
            orch_poison: 1,
            orch_dispatcher_items_fetched: 2,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_the_poison_of_an_activity_counts_for_both(stage) {
        let runtime = stage.run_with(works(), flows(), impatient(&stage)).await;
        assert_eq!(stage.ends_after("a", "Call", "Missing").await.expect_err("fails").category(), "poison");
        let expected = MetricsSnapshot {
            orch_starts: 1,
            orch_failures: 1,
            orch_poison: 1,
            activity_config_errors: 1,
            activity_poison: 1,
            orch_dispatcher_items_fetched: 2,
            worker_dispatcher_items_fetched: 2,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_the_poison_of_a_child_counts_for_both(stage) {
        let runtime = stage.run_with(works(), flows(), impatient(&stage)).await;
        assert_eq!(stage.ends_after("a", "Child", "Nobody").await.expect_err("fails").category(), "poison");
        let expected = MetricsSnapshot {
            orch_starts: 2,
            orch_failures: 2,
            orch_poison: 2,
            suborchestration_calls: 1,
            ..MetricsSnapshot::default()
        };
        assert_eq!(without_fetches(counted(&stage, runtime).await), expected);
    }

    async fn f23_a_child_counts_as_a_call_and_as_an_execution_of_its_own(stage) {
        let runtime = stage.run(works(), flows()).await;
        stage.ends_after("a", "Child", "Quick").await.expect("completes");
        let expected = MetricsSnapshot {
            orch_starts: 2,
            orch_completions: 2,
            suborchestration_calls: 1,
            orch_dispatcher_items_fetched: 3,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_a_detached_start_is_no_call_of_a_child(stage) {
        let flow = flows().register("Detach", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_orchestration("Quick", "b", "");
            Ok(String::new())
        });
        let runtime = stage.run(works(), flow).await;
        stage.ends_after("a", "Detach", "").await.expect("completes");
        stage.ends("b").await.expect("completes");
        let counts = counted(&stage, runtime).await;
        assert_eq!((counts.orch_starts, counts.orch_completions, counts.suborchestration_calls), (2, 2, 0));
    }

    async fn f23_every_execution_of_a_chain_starts_once_and_one_completes(stage) {
        let flow = orchestrations().register("Chain", |ctx: OrchestrationContext, _| async move {
            match ctx.execution_id() {
                4 => Ok(String::new()),
                _ => ctx.continue_as_new("").await,
            }
        });
        let runtime = stage.run(works(), flow).await;
        stage.ends_after("a", "Chain", "").await.expect("completes");
        let expected = MetricsSnapshot {
            orch_starts: 4,
            orch_completions: 1,
            orch_continue_as_new: 3,
            orch_dispatcher_items_fetched: 4,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_a_turn_that_is_abandoned_and_runs_again_counts_once(stage) {
        // The first commit and its five retries fail: the turn is abandoned, and runs again.
        stage.faults.refuse("commit_turn", 6, busy());
        let runtime = stage.run(works(), flows()).await;
        stage.start("a", "Child", "Quick").await;
        stage.ends_as_time_passes("a", SECOND / 10).await.expect("completes");
        let expected = MetricsSnapshot {
            orch_starts: 2,
            orch_completions: 2,
            suborchestration_calls: 1,
            orch_dispatcher_items_fetched: 4,
            provider_errors: 6,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_a_child_whose_start_is_refused_was_not_called(stage) {
        stage.faults.refuse("commit_turn", 1, ProviderError::permanent("ack_orchestration_item", "no"));
        let runtime = stage.run(works(), flows()).await;
        stage.ends_after("a", "Child", "Quick").await.expect_err("fails");
        assert_eq!(counted(&stage, runtime).await.suborchestration_calls, 0);
    }

    async fn f23_messages_that_are_settled_start_and_end_nothing(stage) {
        let runtime = stage.run(works(), flows()).await;
        stage.ends_after("a", "Quick", "").await.expect("completes");
        stage.client.cancel_instance("a", "too late").await.expect("is accepted");
        stage
            .until("it is settled", async || {
                stage.observer().get_queue_depths().await.expect("counts").orchestrator_queue == 0
                    && stage.faults.calls("commit_turn") == 2
            })
            .await;
        let expected = MetricsSnapshot {
            orch_starts: 1,
            orch_completions: 1,
            orch_dispatcher_items_fetched: 2,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_activities_count_by_their_outcome(stage) {
        let runtime = stage.run(works(), flows()).await;
        stage.ends_after("a", "Call", "Fine").await.expect("completes");
        stage.ends_after("b", "Call", "Fail").await.expect_err("fails");
        stage.ends_after("c", "Call", "Panic").await.expect_err("fails");
        let counts = counted(&stage, runtime).await;
        assert_eq!((counts.activity_success, counts.activity_app_errors), (1, 2));
        assert_eq!((counts.activity_infra_errors, counts.activity_config_errors), (0, 0));
        assert_eq!((counts.activity_poison, counts.worker_dispatcher_items_fetched), (0, 3));
    }

    async fn f23_an_outcome_that_the_store_refuses_counts_as_of_the_infrastructure(stage) {
        let invalid = ProviderError::new(ProviderErrorKind::Invalid, "ack_work_item", "no");
        stage.faults.refuse("finish_work", 1, invalid);
        let runtime = stage.run(works(), flows()).await;
        stage.start("a", "Call", "Fine").await;
        stage.ends_as_time_passes("a", SECOND / 10).await.expect("completes");
        let expected = MetricsSnapshot {
            orch_starts: 1,
            orch_completions: 1,
            activity_success: 1,
            activity_infra_errors: 1,
            orch_dispatcher_items_fetched: 2,
            worker_dispatcher_items_fetched: 2,
            provider_errors: 1,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_an_activity_that_is_not_registered_counts_at_every_try(stage) {
        let options = RuntimeOptions { max_attempts: 3, ..impatient(&stage) };
        let runtime = stage.run_with(works(), flows(), options).await;
        stage.ends_after("a", "Call", "Missing").await.expect_err("is poison");
        let counts = counted(&stage, runtime).await;
        assert_eq!((counts.activity_config_errors, counts.activity_poison), (3, 1));
        assert_eq!(counts.worker_dispatcher_items_fetched, 4);
    }

    async fn f23_a_cancelled_activity_counts_as_no_outcome(stage) {
        let stops = activities().register("Stop", |ctx: ActivityContext, _| async move {
            ctx.cancelled().await;
            Err("stopped".to_owned())
        });
        let flow = orchestrations().register("Race", |ctx: OrchestrationContext, _| async move {
            let work = ctx.schedule_activity("Stop", "");
            match ctx.select2(work, ctx.schedule_wait("stop")).await {
                Either2::First(result) => result,
                Either2::Second(data) => Ok(data),
            }
        });
        let runtime = stage.run(stops, flow).await;
        stage.start("a", "Race", "").await;
        stage.has("a", "ExternalSubscribed", 1).await;
        stage
            .until("it is leased", async || {
                stage.observer().get_queue_depths().await.expect("counts").worker_queue == 0
            })
            .await;
        stage.client.raise_event("a", "stop", "").await.expect("raises");
        stage.ends("a").await.expect("completes");
        stage.until("the slot is free", async || stage.faults.abandoned() >= 1).await;
        let counts = counted(&stage, runtime).await;
        assert_eq!(counts.worker_dispatcher_items_fetched, 1);
        let outcomes = [
            counts.activity_success,
            counts.activity_app_errors,
            counts.activity_infra_errors,
            counts.activity_config_errors,
            counts.activity_poison,
        ];
        assert_eq!(outcomes, [0; 5]);
    }

    async fn f23_an_activity_that_a_shutdown_abandons_counts_as_no_outcome(stage) {
        let (acts, mut handed) = handing();
        let runtime = stage.run(acts, flows()).await;
        stage.start("a", "Call", "Hand").await;
        handed.recv().await.expect("it runs");
        let expected = MetricsSnapshot {
            orch_starts: 1,
            orch_dispatcher_items_fetched: 1,
            worker_dispatcher_items_fetched: 1,
            ..MetricsSnapshot::default()
        };
        assert_eq!(counted(&stage, runtime).await, expected);
    }

    async fn f23_every_error_of_the_store_counts_once(stage) {
        for operation in ["fetch_turn", "fetch_work", "commit_turn", "finish_work"] {
            stage.faults.refuse(operation, 1, busy());
        }
        let runtime = stage.run(works(), flows()).await;
        stage.start("a", "Call", "Fine").await;
        stage.ends_as_time_passes("a", SECOND / 10).await.expect("completes");
        assert_eq!(counted(&stage, runtime).await.provider_errors, 4);
    }

    async fn f23_errors_of_renewals_count_too(stage) {
        let gate = Gate::new();
        let runtime = stage.run(waiting(&gate), flows()).await;
        stage.start("a", "Call", "Wait").await;
        gate.is_entered().await;
        stage.faults.refuse("renew", 2, busy());
        stage.faults.refuse("renew_sessions", 3, busy());
        pass_calmly(&stage, 20 * SECOND, SECOND / 4).await;
        gate.open();
        stage.ends("a").await.expect("completes");
        assert_eq!(counted(&stage, runtime).await.provider_errors, 5);
    }

    async fn f23_errors_of_giving_back_count_too(stage) {
        stage.faults.keep_lease(&busy());
        let runtime = stage.run(works(), flows()).await;
        stage.start("a", "Nobody", "").await;
        stage.until("it is given back", async || stage.faults.abandoned() >= 1).await;
        // A refusal that fails, and the abandon after it, unless the store keeps no rows of workers.
        let errors = counted(&stage, runtime).await.provider_errors;
        assert!((1..=2).contains(&errors), "{errors}");
    }
}

/// Returns the gauges: what runs, what waits for a turn, what waits for a worker.
fn gauges(runtime: &Runtime) -> (i64, (u64, u64)) {
    let metrics = runtime.observability_handle().expect("a runtime counts").metrics_provider();
    (metrics.get_active_orchestrations(), metrics.get_queue_depths())
}

on_every_full_store! {
    async fn f23_gauges_are_true_from_the_start(stage) {
        let turns = RuntimeOptions { worker_concurrency: 0, ..stage.options() };
        stage.run_with(works(), flows(), turns).await;
        for instance in ["a", "b", "c"] {
            stage.start(instance, "Call", "Fine").await;
            stage.has(instance, "ActivityScheduled", 1).await;
        }
        stage.ends_after("d", "Quick", "").await.expect("completes");
        stage.stop().await;
        stage.start("e", "Quick", "").await;
        stage.start("f", "Quick", "").await;
        let idle = RuntimeOptions { worker_concurrency: 0, orchestration_concurrency: 0, ..stage.options() };
        let runtime = stage.run_with(works(), flows(), idle).await;
        stage.until("they are read", async || gauges(&runtime) == (3, (2, 3))).await;
        stage.stop().await;
    }

    async fn f23_gauges_are_true_again_after_every_interval(stage) {
        let observability =
            ObservabilityConfig { gauge_poll_interval: 10 * SECOND, ..ObservabilityConfig::default() };
        let options = RuntimeOptions { worker_concurrency: 0, observability, ..stage.options() };
        let runtime = stage.run_with(works(), flows(), options).await;
        stage.until("it asks for turns", async || stage.faults.calls("fetch_turn") >= 2).await;
        assert_eq!(gauges(&runtime), (0, (0, 0)));
        for instance in ["a", "b"] {
            stage.start(instance, "Call", "Fine").await;
            stage.has(instance, "ActivityScheduled", 1).await;
        }
        pass_calmly(&stage, 10 * SECOND, 5 * SECOND).await;
        stage.until("two run", async || gauges(&runtime) == (2, (0, 2))).await;
        stage.client.cancel_instance("a", "enough").await.expect("cancels");
        stage.ends("a").await.expect_err("is cancelled");
        pass_calmly(&stage, 10 * SECOND, 5 * SECOND).await;
        stage.until("one runs", async || gauges(&runtime) == (1, (0, 1))).await;
        stage.client.cancel_instance("b", "enough").await.expect("cancels");
        stage.ends("b").await.expect_err("is cancelled");
        pass_calmly(&stage, 10 * SECOND, 5 * SECOND).await;
        stage.until("none runs", async || gauges(&runtime) == (0, (0, 0))).await;
        stage.stop().await;
    }
}
