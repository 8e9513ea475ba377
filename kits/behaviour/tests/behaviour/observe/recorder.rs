//! What counts, by itself: the recorders of a metrics provider (1.14), and the provider that counts for
//! another (1.19).

use std::sync::Arc;

use steadfast::providers::instrumented::InstrumentedProvider;
use steadfast::providers::{Provider, ProviderError};
use steadfast::runtime::observability::{
    MetricsProvider, MetricsSnapshot, ObservabilityConfig, ObservabilityHandle,
};
use steadfast_behaviour::on_every_store;

/// Returns a provider that has recorded nothing.
fn fresh() -> MetricsProvider {
    MetricsProvider::new(&ObservabilityConfig::default()).expect("begins to count")
}

/// One call of a recorder.
type Record = fn(&MetricsProvider);

/// The recorders of orchestrations, each with all that it counts.
fn of_orchestrations() -> [(Record, MetricsSnapshot); 11] {
    let none = MetricsSnapshot::default;
    let failed = |counts: MetricsSnapshot| MetricsSnapshot { orch_failures: 1, ..counts };
    [
        (
            |m| m.record_orchestration_start("n", "1.0.0", "client"),
            MetricsSnapshot { orch_starts: 1, ..none() },
        ),
        (
            |m| m.record_orchestration_completion("n", "1.0.0", "success", 0.5, 3, 9),
            MetricsSnapshot { orch_completions: 1, ..none() },
        ),
        (
            |m| m.record_orchestration_failure("n", "1.0.0", "app_error", "x"),
            failed(MetricsSnapshot { orch_application_errors: 1, ..none() }),
        ),
        (
            |m| m.record_orchestration_failure("n", "1.0.0", "infrastructure_error", "x"),
            failed(MetricsSnapshot { orch_infrastructure_errors: 1, ..none() }),
        ),
        (
            |m| m.record_orchestration_failure("n", "1.0.0", "config_error", "x"),
            failed(MetricsSnapshot { orch_configuration_errors: 1, ..none() }),
        ),
        (|m| m.record_orchestration_failure("n", "1.0.0", "poison", "x"), failed(none())),
        (
            |m| m.record_orchestration_application_error(),
            failed(MetricsSnapshot { orch_application_errors: 1, ..none() }),
        ),
        (
            |m| m.record_orchestration_infrastructure_error(),
            failed(MetricsSnapshot { orch_infrastructure_errors: 1, ..none() }),
        ),
        (
            |m| m.record_orchestration_configuration_error(),
            failed(MetricsSnapshot { orch_configuration_errors: 1, ..none() }),
        ),
        (|m| m.record_orchestration_poison(), MetricsSnapshot { orch_poison: 1, ..none() }),
        (|m| m.record_continue_as_new("n", 2), MetricsSnapshot { orch_continue_as_new: 1, ..none() }),
    ]
}

/// The recorders of activities, children and stores, each with all that it counts.
fn of_activities_and_stores() -> [(Record, MetricsSnapshot); 14] {
    let none = MetricsSnapshot::default;
    [
        (
            |m| m.record_activity_execution("n", "success", 0.5, 0, Some("gpu")),
            MetricsSnapshot { activity_success: 1, ..none() },
        ),
        (
            |m| m.record_activity_execution("n", "app_error", 0.5, 1, None),
            MetricsSnapshot { activity_app_errors: 1, ..none() },
        ),
        (
            |m| m.record_activity_execution("n", "infra_error", 0.5, 2, None),
            MetricsSnapshot { activity_infra_errors: 1, ..none() },
        ),
        (
            |m| m.record_activity_execution("n", "config_error", 0.5, 3, None),
            MetricsSnapshot { activity_config_errors: 1, ..none() },
        ),
        (|m| m.record_activity_execution("n", "cancelled", 0.5, 0, None), none()),
        (|m| m.record_activity_success(), MetricsSnapshot { activity_success: 1, ..none() }),
        (|m| m.record_activity_app_error(), MetricsSnapshot { activity_app_errors: 1, ..none() }),
        (|m| m.record_activity_infra_error(), MetricsSnapshot { activity_infra_errors: 1, ..none() }),
        (|m| m.record_activity_config_error(), MetricsSnapshot { activity_config_errors: 1, ..none() }),
        (|m| m.record_activity_poison(), MetricsSnapshot { activity_poison: 1, ..none() }),
        (
            |m| m.record_suborchestration_call("p", "c", "success"),
            MetricsSnapshot { suborchestration_calls: 1, ..none() },
        ),
        (|m| m.record_provider_error("read", "timeout"), MetricsSnapshot { provider_errors: 1, ..none() }),
        (
            |m| m.record_orch_dispatcher_items_fetched(3),
            MetricsSnapshot { orch_dispatcher_items_fetched: 3, ..none() },
        ),
        (
            |m| m.record_worker_dispatcher_items_fetched(4),
            MetricsSnapshot { worker_dispatcher_items_fetched: 4, ..none() },
        ),
    ]
}

#[test]
fn c1_14_every_recorder_adds_to_its_own_counts_and_to_no_other() {
    let cases = of_orchestrations().into_iter().chain(of_activities_and_stores());
    for (case, (record, expected)) in cases.enumerate() {
        let metrics = fresh();
        record(&metrics);
        assert_eq!(metrics.snapshot(), expected, "case {case}");
    }
}

#[test]
fn c1_14_what_only_times_adds_to_no_count() {
    let metrics = fresh();
    metrics.record_suborchestration_duration("p", "c", 0.5, "success");
    metrics.record_provider_operation("read", 0.5, "error");
    metrics.record_orch_dispatcher_processing_duration(5);
    metrics.record_worker_dispatcher_execution_duration(5);
    assert_eq!(metrics.snapshot(), MetricsSnapshot::default());
}

#[tokio::test]
async fn c1_14_gauges_hold_what_they_were_told_last() {
    let metrics = fresh();
    assert_eq!((metrics.get_active_orchestrations(), metrics.get_queue_depths()), (0, (0, 0)));
    metrics.increment_active_orchestrations();
    metrics.increment_active_orchestrations();
    metrics.decrement_active_orchestrations();
    assert_eq!(metrics.get_active_orchestrations(), 1);
    metrics.set_active_orchestrations(7);
    metrics.update_queue_depths(3, 4);
    assert_eq!((metrics.get_active_orchestrations(), metrics.get_queue_depths()), (7, (3, 4)));
    metrics.update_queue_depths(0, 1);
    assert_eq!(metrics.get_queue_depths(), (0, 1));
    assert_eq!(metrics.shutdown().await, Ok(()));
}

#[tokio::test]
async fn c1_14_a_handle_shows_the_counts_of_its_provider() {
    let handle = ObservabilityHandle::init(&ObservabilityConfig::default()).expect("begins to count");
    handle.metrics_provider().record_activity_success();
    assert_eq!(handle.metrics_snapshot(), MetricsSnapshot { activity_success: 1, ..Default::default() });
    let kept = Arc::clone(handle.metrics_provider());
    assert_eq!(handle.shutdown().await, Ok(()));
    assert_eq!(kept.snapshot().activity_success, 1);
}

on_every_store! {
    async fn c1_19_an_instrumented_provider_forwards_and_counts_errors(stage) {
        let metrics = Arc::new(fresh());
        let watched = InstrumentedProvider::new(Arc::clone(&stage.store), Some(Arc::clone(&metrics)));
        assert_eq!((watched.name(), watched.version()), (stage.store.name(), stage.store.version()));
        assert_eq!(watched.read("nobody").await, Ok(Vec::new()));
        assert_eq!(metrics.snapshot(), MetricsSnapshot::default());
        let error = ProviderError::retryable("read", "down");
        stage.faults.refuse("read_history", 2, error.clone());
        for _ in 0..2 {
            assert_eq!(watched.read("nobody").await, Err(error.clone()));
        }
        assert_eq!(metrics.snapshot(), MetricsSnapshot { provider_errors: 2, ..Default::default() });
        let silent = InstrumentedProvider::new(Arc::clone(&stage.store), None);
        assert_eq!(silent.read("nobody").await, Ok(Vec::new()), "without metrics it only forwards");
    }
}
