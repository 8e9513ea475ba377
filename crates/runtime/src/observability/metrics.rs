//! What happened, counted.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::ObservabilityConfig;

/// Counts what a runtime does. Each `record_` method adds to the counts of [`MetricsSnapshot`] that it names; its
/// other arguments say what a count is about and are not kept.
#[derive(Debug, Default)]
pub struct MetricsProvider {
    pub(crate) counters: Counters,
    orchestrator_queue: AtomicU64,
    worker_queue: AtomicU64,
    active_orchestrations: AtomicI64,
}

impl MetricsProvider {
    /// Begins with nothing counted.
    ///
    /// # Errors
    /// None today.
    pub fn new(_config: &ObservabilityConfig) -> Result<Self, String> {
        Ok(Self::default())
    }

    /// Ends the counting.
    ///
    /// # Errors
    /// None today.
    pub async fn shutdown(self) -> Result<(), String> {
        Ok(())
    }

    /// Returns the counts so far.
    pub fn snapshot(&self) -> MetricsSnapshot {
        self.counters.snapshot()
    }

    /// Counts an execution that began (`orch_starts`).
    pub fn record_orchestration_start(&self, _name: &str, _version: &str, _initiated_by: &str) {
        self.counters.orch_starts.up();
    }

    /// Counts an execution that completed (`orch_completions`).
    pub fn record_orchestration_completion(
        &self,
        _name: &str,
        _version: &str,
        _status: &str,
        _duration_seconds: f64,
        _turns: u64,
        _history_events: u64,
    ) {
        self.counters.orch_completions.up();
    }

    /// Takes how an execution ended, and what it took.
    pub(crate) fn record_end(
        &self,
        _name: &str,
        _version: &str,
        _status: &str,
        _duration_seconds: f64,
        _turns: u64,
        _history_events: u64,
    ) {
    }

    /// Counts an execution that failed (`orch_failures`), and its category by `error_type`: `app_error`,
    /// `infrastructure_error` or `config_error`.
    pub fn record_orchestration_failure(
        &self,
        _name: &str,
        _version: &str,
        error_type: &str,
        _error_category: &str,
    ) {
        self.counters.orch_failures.up();
        match error_type {
            "app_error" => self.counters.orch_application_errors.up(),
            "infrastructure_error" => self.counters.orch_infrastructure_errors.up(),
            "config_error" => self.counters.orch_configuration_errors.up(),
            _ => {}
        }
    }

    /// Counts a failure of the application's own (`orch_failures`, `orch_application_errors`).
    pub fn record_orchestration_application_error(&self) {
        self.counters.orch_failures.up();
        self.counters.orch_application_errors.up();
    }

    /// Counts a failure of the machinery (`orch_failures`, `orch_infrastructure_errors`).
    pub fn record_orchestration_infrastructure_error(&self) {
        self.counters.orch_failures.up();
        self.counters.orch_infrastructure_errors.up();
    }

    /// Counts a failure of the deployment (`orch_failures`, `orch_configuration_errors`).
    pub fn record_orchestration_configuration_error(&self) {
        self.counters.orch_failures.up();
        self.counters.orch_configuration_errors.up();
    }

    /// Counts an execution that was poison (`orch_poison`).
    pub fn record_orchestration_poison(&self) {
        self.counters.orch_poison.up();
    }

    /// Counts an execution that continued as new (`orch_continue_as_new`).
    pub fn record_continue_as_new(&self, _name: &str, _execution_id: u64) {
        self.counters.orch_continue_as_new.up();
    }

    /// Counts an activity by its outcome: `success`, `app_error`, `infra_error` or `config_error`. Another outcome,
    /// such as `cancelled`, is not counted.
    pub fn record_activity_execution(
        &self,
        _name: &str,
        outcome: &str,
        _duration_seconds: f64,
        _retry_attempt: u32,
        _tag: Option<&str>,
    ) {
        match outcome {
            "success" => self.record_activity_success(),
            "app_error" => self.record_activity_app_error(),
            "infra_error" => self.record_activity_infra_error(),
            "config_error" => self.record_activity_config_error(),
            _ => {}
        }
    }

    /// Counts an activity that succeeded (`activity_success`).
    pub fn record_activity_success(&self) {
        self.counters.activity_success.up();
    }

    /// Counts an activity that returned an error (`activity_app_errors`).
    pub fn record_activity_app_error(&self) {
        self.counters.activity_app_errors.up();
    }

    /// Counts an activity whose outcome could not be handed back (`activity_infra_errors`).
    pub fn record_activity_infra_error(&self) {
        self.counters.activity_infra_errors.up();
    }

    /// Counts an activity that was not registered (`activity_config_errors`).
    pub fn record_activity_config_error(&self) {
        self.counters.activity_config_errors.up();
    }

    /// Counts an activity that was poison (`activity_poison`).
    pub fn record_activity_poison(&self) {
        self.counters.activity_poison.up();
    }

    /// Counts a child that was started (`suborchestration_calls`).
    pub fn record_suborchestration_call(&self, _parent: &str, _child: &str, _outcome: &str) {
        self.counters.suborchestration_calls.up();
    }

    /// Takes how long a child took.
    pub fn record_suborchestration_duration(
        &self,
        _parent: &str,
        _child: &str,
        _seconds: f64,
        _outcome: &str,
    ) {
    }

    /// Takes how long a call of the store took.
    pub fn record_provider_operation(&self, _operation: &str, _seconds: f64, _status: &str) {}

    /// Counts an error of the store (`provider_errors`).
    pub fn record_provider_error(&self, _operation: &str, _error_type: &str) {
        self.counters.provider_errors.up();
    }

    /// Counts leased turns (`orch_dispatcher_items_fetched`).
    pub fn record_orch_dispatcher_items_fetched(&self, count: u64) {
        self.counters.orch_dispatcher_items_fetched.add(count);
    }

    /// Takes how long a turn took.
    pub fn record_orch_dispatcher_processing_duration(&self, _milliseconds: u64) {}

    /// Counts leased activities (`worker_dispatcher_items_fetched`).
    pub fn record_worker_dispatcher_items_fetched(&self, count: u64) {
        self.counters.worker_dispatcher_items_fetched.add(count);
    }

    /// Takes how long an activity took.
    pub fn record_worker_dispatcher_execution_duration(&self, _milliseconds: u64) {}

    /// Takes how much waits for a turn and for a worker.
    pub fn update_queue_depths(&self, orchestrator_queue: u64, worker_queue: u64) {
        self.orchestrator_queue.store(orchestrator_queue, Ordering::Relaxed);
        self.worker_queue.store(worker_queue, Ordering::Relaxed);
    }

    /// Returns how much waits for a turn and for a worker, as last told.
    pub fn get_queue_depths(&self) -> (u64, u64) {
        (self.orchestrator_queue.load(Ordering::Relaxed), self.worker_queue.load(Ordering::Relaxed))
    }

    /// Counts one orchestration more that runs.
    pub fn increment_active_orchestrations(&self) {
        self.active_orchestrations.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one orchestration fewer that runs.
    pub fn decrement_active_orchestrations(&self) {
        self.active_orchestrations.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes how many orchestrations run.
    pub fn set_active_orchestrations(&self, count: i64) {
        self.active_orchestrations.store(count, Ordering::Relaxed);
    }

    /// Returns how many orchestrations run, as last told.
    pub fn get_active_orchestrations(&self) -> i64 {
        self.active_orchestrations.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counts what a runtime has done.
        #[derive(Debug, Default, Clone, PartialEq, Eq)]
        pub struct MetricsSnapshot {
            $($(#[$doc])* pub $name: u64,)*
        }

        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        impl Counters {
            pub(crate) fn snapshot(&self) -> MetricsSnapshot {
                MetricsSnapshot { $($name: self.$name.get(),)* }
            }
        }
    };
}

counters! {
    /// Counts executions that began.
    orch_starts,
    /// Counts executions that completed.
    orch_completions,
    /// Counts executions that failed, whatever the reason.
    orch_failures,
    /// Counts failures of the application's own.
    orch_application_errors,
    /// Counts failures of the machinery.
    orch_infrastructure_errors,
    /// Counts failures of the deployment: code and history do not fit.
    orch_configuration_errors,
    /// Counts executions that failed because something was poison.
    orch_poison,
    /// Counts activities that succeeded.
    activity_success,
    /// Counts activities that returned an error.
    activity_app_errors,
    /// Counts activities whose outcome could not be handed back.
    activity_infra_errors,
    /// Counts activities that were not registered.
    activity_config_errors,
    /// Counts activities that were poison.
    activity_poison,
    /// Counts leased turns.
    orch_dispatcher_items_fetched,
    /// Counts leased activities.
    worker_dispatcher_items_fetched,
    /// Counts executions that continued as new.
    orch_continue_as_new,
    /// Counts children that were started.
    suborchestration_calls,
    /// Counts errors of the store.
    provider_errors,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn up(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_counts_once_and_once_in_its_category() {
        let metrics = MetricsProvider::default();
        metrics.record_orchestration_failure("Order", "1.0.0", "config_error", "nondeterminism");
        metrics.record_orchestration_application_error();
        let expected = MetricsSnapshot {
            orch_failures: 2,
            orch_application_errors: 1,
            orch_configuration_errors: 1,
            ..MetricsSnapshot::default()
        };
        assert_eq!(metrics.snapshot(), expected);
    }

    #[test]
    fn a_cancelled_activity_is_not_counted() {
        let metrics = MetricsProvider::default();
        metrics.record_activity_execution("Charge", "cancelled", 0.1, 0, None);
        assert_eq!(metrics.snapshot(), MetricsSnapshot::default());
        metrics.record_activity_execution("Charge", "success", 0.1, 0, Some("gpu"));
        assert_eq!(metrics.snapshot().activity_success, 1);
    }
}
