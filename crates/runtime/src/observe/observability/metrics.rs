//! The metrics of a runtime: counted for the snapshot, and emitted.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use metrics::{counter, gauge, histogram};

use super::ObservabilityConfig;
use super::catalogue as name_of;

/// Counts what a runtime does, and emits it through the facade of the crate `metrics`.
///
/// Each `record_` method adds to the counts of [`MetricsSnapshot`] that it names, and emits the metrics that
/// `docs/guide/observability.md` lists. Without a recorder in the process the emitted part goes nowhere.
#[derive(Debug, Default)]
pub struct MetricsProvider {
    pub(crate) counters: Counters,
    orchestrator_queue: AtomicU64,
    worker_queue: AtomicU64,
    active_orchestrations: AtomicI64,
}

impl MetricsProvider {
    /// Makes metrics that start at zero, and describes them to the recorder of the process. `_config` is for
    /// compatibility.
    ///
    /// # Errors
    /// No error today.
    pub fn new(_config: &ObservabilityConfig) -> Result<Self, String> {
        Ok(Self::described())
    }

    pub(crate) fn described() -> Self {
        name_of::describe();
        Self::default()
    }

    /// Does nothing; it is for compatibility.
    ///
    /// # Cancel safety
    /// Nothing to cancel.
    ///
    /// # Errors
    /// No error today.
    pub async fn shutdown(self) -> Result<(), String> {
        Ok(())
    }

    /// Returns the counters so far.
    pub fn snapshot(&self) -> MetricsSnapshot {
        self.counters.snapshot()
    }

    /// Counts an execution that began (`orch_starts`).
    pub fn record_orchestration_start(&self, name: &str, version: &str, initiated_by: &str) {
        self.counters.orch_starts.up();
        counter!(
            name_of::STARTS,
            "orchestration_name" => name.to_owned(),
            "version" => version.to_owned(),
            "initiated_by" => initiated_by.to_owned(),
        )
        .increment(1);
    }

    /// Counts an execution that completed (`orch_completions`), and records its duration, turns and events.
    pub fn record_orchestration_completion(
        &self,
        name: &str,
        version: &str,
        status: &str,
        duration_seconds: f64,
        turns: u64,
        history_events: u64,
    ) {
        self.counters.orch_completions.up();
        self.record_end(name, version, status, duration_seconds, turns, history_events);
    }

    /// Records how an execution ended, with its duration, turns and events. The snapshot does not have it:
    /// failures and continuations have counters of their own there.
    pub(crate) fn record_end(
        &self,
        name: &str,
        version: &str,
        status: &str,
        duration_seconds: f64,
        turns: u64,
        history_events: u64,
    ) {
        counter!(
            name_of::COMPLETIONS,
            "orchestration_name" => name.to_owned(),
            "version" => version.to_owned(),
            "status" => status.to_owned(),
            "final_turn_count" => turn_bucket(turns),
        )
        .increment(1);
        let measured = [
            (name_of::DURATION, duration_seconds),
            (name_of::TURNS, turns as f64),
            (name_of::HISTORY_SIZE, history_events as f64),
        ];
        for (metric, value) in measured {
            histogram!(
                metric,
                "orchestration_name" => name.to_owned(),
                "version" => version.to_owned(),
                "status" => status.to_owned(),
            )
            .record(value);
        }
    }

    /// Counts an execution that failed (`orch_failures`), and its category by `error_type`: `app_error`,
    /// `infrastructure_error` or `config_error`.
    pub fn record_orchestration_failure(
        &self,
        name: &str,
        version: &str,
        error_type: &str,
        error_category: &str,
    ) {
        self.counters.orch_failures.up();
        counter!(
            name_of::FAILURES,
            "orchestration_name" => name.to_owned(),
            "version" => version.to_owned(),
            "error_type" => error_type.to_owned(),
            "error_category" => error_category.to_owned(),
        )
        .increment(1);
        match error_type {
            "app_error" => self.counters.orch_application_errors.up(),
            "infrastructure_error" => {
                self.counters.orch_infrastructure_errors.up();
                counter!(name_of::INFRASTRUCTURE_ERRORS).increment(1);
            }
            "config_error" => {
                self.counters.orch_configuration_errors.up();
                counter!(name_of::CONFIGURATION_ERRORS).increment(1);
            }
            _ => {}
        }
    }

    /// Counts a failure that the application's code returned (`orch_failures`, `orch_application_errors`).
    pub fn record_orchestration_application_error(&self) {
        self.record_orchestration_failure(UNKNOWN, UNKNOWN, "app_error", "application");
    }

    /// Counts a failure that the store or the engine caused (`orch_failures`, `orch_infrastructure_errors`).
    pub fn record_orchestration_infrastructure_error(&self) {
        self.record_orchestration_failure(UNKNOWN, UNKNOWN, "infrastructure_error", "infrastructure");
    }

    /// Counts a failure because code and history do not fit (`orch_failures`, `orch_configuration_errors`).
    pub fn record_orchestration_configuration_error(&self) {
        self.record_orchestration_failure(UNKNOWN, UNKNOWN, "config_error", "configuration");
    }

    /// Counts an execution that failed because its messages were delivered more often than `max_attempts`
    /// (`orch_poison`).
    pub fn record_orchestration_poison(&self) {
        self.counters.orch_poison.up();
        counter!(name_of::POISON).increment(1);
    }

    /// Counts an execution that continued as new (`orch_continue_as_new`).
    pub fn record_continue_as_new(&self, name: &str, execution_id: u64) {
        self.counters.orch_continue_as_new.up();
        counter!(
            name_of::CONTINUED_AS_NEW,
            "orchestration_name" => name.to_owned(),
            "execution_id" => execution_id.to_string(),
        )
        .increment(1);
    }

    /// Counts an activity by its outcome: `success`, `app_error`, `infra_error` or `config_error`. Another
    /// outcome, such as `cancelled`, is emitted and not in the snapshot.
    pub fn record_activity_execution(
        &self,
        name: &str,
        outcome: &str,
        duration_seconds: f64,
        retry_attempt: u32,
        tag: Option<&str>,
    ) {
        self.record_activity_run(
            name,
            outcome,
            duration_seconds,
            retry_attempt,
            Affinity { tag, session: false },
        );
    }

    /// Counts an activity as [`record_activity_execution`](Self::record_activity_execution) does, with the
    /// label whether it ran on a session.
    pub(crate) fn record_activity_run(
        &self,
        name: &str,
        outcome: &str,
        duration_seconds: f64,
        retry_attempt: u32,
        affinity: Affinity<'_>,
    ) {
        let session = if affinity.session { "yes" } else { "no" };
        counter!(
            name_of::ACTIVITY_EXECUTIONS,
            "activity_name" => name.to_owned(),
            "outcome" => outcome.to_owned(),
            "retry_attempt" => retry_bucket(retry_attempt),
            "tag" => affinity.tag.unwrap_or("default").to_owned(),
            "session" => session,
        )
        .increment(1);
        histogram!(
            name_of::ACTIVITY_DURATION,
            "activity_name" => name.to_owned(),
            "outcome" => outcome.to_owned(),
            "session" => session,
        )
        .record(duration_seconds);
        match outcome {
            "success" => self.record_activity_success(),
            "app_error" => self.record_activity_app_error(),
            "infra_error" => self.record_activity_infra_error(),
            "config_error" => self.record_activity_config_error(),
            _ => {}
        }
    }

    /// Counts an activity that succeeded (`activity_success`). Emits nothing: a run has its own metric.
    pub fn record_activity_success(&self) {
        self.counters.activity_success.up();
    }

    /// Counts an activity that returned an error (`activity_app_errors`). Emits nothing: a run has its own
    /// metric.
    pub fn record_activity_app_error(&self) {
        self.counters.activity_app_errors.up();
    }

    /// Counts an activity whose outcome the store did not take (`activity_infra_errors`).
    pub fn record_activity_infra_error(&self) {
        self.counters.activity_infra_errors.up();
        counter!(name_of::ACTIVITY_INFRASTRUCTURE_ERRORS).increment(1);
    }

    /// Counts an activity that was not registered (`activity_config_errors`).
    pub fn record_activity_config_error(&self) {
        self.counters.activity_config_errors.up();
        counter!(name_of::ACTIVITY_CONFIGURATION_ERRORS).increment(1);
    }

    /// Counts an activity that failed because it was delivered more often than `max_attempts`
    /// (`activity_poison`).
    pub fn record_activity_poison(&self) {
        self.counters.activity_poison.up();
        counter!(name_of::ACTIVITY_POISON).increment(1);
    }

    /// Counts a child that was started (`suborchestration_calls`).
    pub fn record_suborchestration_call(&self, parent: &str, child: &str, outcome: &str) {
        self.counters.suborchestration_calls.up();
        counter!(
            name_of::CHILD_CALLS,
            "parent_orchestration" => parent.to_owned(),
            "child_orchestration" => child.to_owned(),
            "outcome" => outcome.to_owned(),
        )
        .increment(1);
    }

    /// Records how long a child took, in seconds.
    pub fn record_suborchestration_duration(&self, parent: &str, child: &str, seconds: f64, outcome: &str) {
        histogram!(
            name_of::CHILD_DURATION,
            "parent_orchestration" => parent.to_owned(),
            "child_orchestration" => child.to_owned(),
            "outcome" => outcome.to_owned(),
        )
        .record(seconds);
    }

    /// Records how long a call of the store took, in seconds.
    pub fn record_provider_operation(&self, operation: &str, seconds: f64, status: &str) {
        histogram!(
            name_of::STORE_DURATION,
            "operation" => operation.to_owned(),
            "status" => status.to_owned(),
        )
        .record(seconds);
    }

    /// Counts an error of the store (`provider_errors`).
    pub fn record_provider_error(&self, operation: &str, error_type: &str) {
        self.counters.provider_errors.up();
        counter!(
            name_of::STORE_ERRORS,
            "operation" => operation.to_owned(),
            "error_type" => error_type.to_owned(),
        )
        .increment(1);
    }

    /// Counts leased turns (`orch_dispatcher_items_fetched`).
    pub fn record_orch_dispatcher_items_fetched(&self, count: u64) {
        self.counters.orch_dispatcher_items_fetched.add(count);
        counter!(name_of::TURNS_FETCHED).increment(count);
    }

    /// Records how long a turn took.
    pub fn record_orch_dispatcher_processing_duration(&self, milliseconds: u64) {
        histogram!(name_of::TURN_DURATION).record(milliseconds as f64);
    }

    /// Counts leased activities (`worker_dispatcher_items_fetched`).
    pub fn record_worker_dispatcher_items_fetched(&self, count: u64) {
        self.counters.worker_dispatcher_items_fetched.add(count);
        counter!(name_of::WORK_FETCHED).increment(count);
    }

    /// Records how long an activity took.
    pub fn record_worker_dispatcher_execution_duration(&self, milliseconds: u64) {
        histogram!(name_of::WORK_DURATION).record(milliseconds as f64);
    }

    /// Sets how many messages wait for a turn and how many activities for a worker.
    pub fn update_queue_depths(&self, orchestrator_queue: u64, worker_queue: u64) {
        self.orchestrator_queue.store(orchestrator_queue, Ordering::Relaxed);
        self.worker_queue.store(worker_queue, Ordering::Relaxed);
        gauge!(name_of::TURN_QUEUE).set(orchestrator_queue as f64);
        gauge!(name_of::WORK_QUEUE).set(worker_queue as f64);
    }

    /// Returns how many messages wait for a turn and how many activities for a worker, as they were last set.
    pub fn get_queue_depths(&self) -> (u64, u64) {
        (self.orchestrator_queue.load(Ordering::Relaxed), self.worker_queue.load(Ordering::Relaxed))
    }

    /// Raises the number of running orchestrations by one.
    pub fn increment_active_orchestrations(&self) {
        self.active_orchestrations.fetch_add(1, Ordering::Relaxed);
        gauge!(name_of::ACTIVE).increment(1.0);
    }

    /// Lowers the number of running orchestrations by one.
    pub fn decrement_active_orchestrations(&self) {
        self.active_orchestrations.fetch_sub(1, Ordering::Relaxed);
        gauge!(name_of::ACTIVE).decrement(1.0);
    }

    /// Sets the number of running orchestrations.
    pub fn set_active_orchestrations(&self, count: i64) {
        self.active_orchestrations.store(count, Ordering::Relaxed);
        gauge!(name_of::ACTIVE).set(count as f64);
    }

    /// Returns the number of running orchestrations, as it was last set.
    pub fn get_active_orchestrations(&self) -> i64 {
        self.active_orchestrations.load(Ordering::Relaxed)
    }

    /// Sets the number of orchestrations in memory.
    pub(crate) fn set_warm_orchestrations(&self, count: usize) {
        gauge!(name_of::WARM).set(count as f64);
    }

    /// Counts messages that were dropped because their instance has ended. The store counts those to unknown
    /// instances.
    pub(crate) fn record_messages_to_ended(&self, count: u64) {
        counter!(name_of::MESSAGES_DROPPED, "reason" => "ended").increment(count);
    }

    /// Counts an orchestration that became stuck: no message can continue it.
    pub(crate) fn record_stuck(&self) {
        counter!(name_of::STUCK).increment(1);
    }

    /// Counts a turn whose execution was in memory.
    pub(crate) fn record_warm_hit(&self) {
        counter!(name_of::WARM_HITS).increment(1);
    }

    /// Counts a turn of a begun execution that had to be replayed.
    pub(crate) fn record_warm_miss(&self) {
        counter!(name_of::WARM_MISSES).increment(1);
    }

    /// Sets the number of sessions that this process holds.
    pub(crate) fn set_attached_sessions(&self, count: usize) {
        gauge!(name_of::SESSIONS).set(count as f64);
    }

    /// Counts a session that this process claimed.
    pub(crate) fn record_session_claim(&self) {
        counter!(name_of::SESSION_CLAIMS).increment(1);
    }

    /// Counts a session that this process took over from another.
    pub(crate) fn record_session_migration(&self) {
        counter!(name_of::SESSION_MIGRATIONS).increment(1);
    }

    /// Records how long an activity waited until its session was claimed, in seconds.
    pub(crate) fn record_session_claim_wait(&self, seconds: f64) {
        histogram!(name_of::SESSION_CLAIM_WAIT).record(seconds);
    }

    /// Counts leases of sessions that were extended.
    pub(crate) fn record_session_renewals(&self, count: u64) {
        counter!(name_of::SESSION_RENEWALS).increment(count);
    }

    /// Counts a renewal of sessions that failed.
    pub(crate) fn record_session_renewal_failure(&self) {
        counter!(name_of::SESSION_RENEWAL_FAILURES).increment(1);
    }

    /// Counts a session that this process lost.
    pub(crate) fn record_session_lost(&self) {
        counter!(name_of::SESSIONS_LOST).increment(1);
    }

    /// Counts a session that was released because its work was not taken here.
    pub(crate) fn record_session_untaken(&self) {
        counter!(name_of::SESSIONS_UNTAKEN).increment(1);
    }

    /// Counts a run of the rebuild activity.
    pub(crate) fn record_session_rebuild(&self, outcome: &'static str) {
        counter!(name_of::SESSION_REBUILDS, "outcome" => outcome).increment(1);
    }

    /// Counts an activity that fails because the state of its session could not be restored.
    pub(crate) fn record_session_recovery_given_up(&self) {
        counter!(name_of::SESSION_RECOVERIES_GIVEN_UP).increment(1);
    }

    /// Sets the number of open sessions that had no activity for `session_leak_after`.
    pub(crate) fn set_leaked_sessions(&self, count: usize) {
        gauge!(name_of::SESSIONS_LEAKED).set(count as f64);
    }

    /// Counts a slot that panicked and is restarted.
    pub(crate) fn record_slot_restart(&self, lane: &'static str) {
        counter!(name_of::SLOTS_RESTARTED, "lane" => lane).increment(1);
    }

    /// Counts a slot that got a new task because its turn took too long.
    pub(crate) fn record_slot_replacement(&self, lane: &'static str) {
        counter!(name_of::SLOTS_REPLACED, "lane" => lane).increment(1);
    }
}

/// What restricts an activity to some workers: its tag, and whether it runs on a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Affinity<'a> {
    pub(crate) tag: Option<&'a str>,
    pub(crate) session: bool,
}

/// The label of an orchestration whose name is not known.
const UNKNOWN: &str = "unknown";

fn turn_bucket(turns: u64) -> &'static str {
    match turns {
        0..=5 => "1-5",
        6..=10 => "6-10",
        11..=50 => "11-50",
        _ => "50+",
    }
}

fn retry_bucket(retries: u32) -> &'static str {
    match retries {
        0 => "0",
        1 => "1",
        2 => "2",
        _ => "3+",
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Holds the counters of a runtime since its start.
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
    /// Counts failures that the application's code returned.
    orch_application_errors,
    /// Counts failures that the store or the engine caused.
    orch_infrastructure_errors,
    /// Counts failures because code and history do not fit.
    orch_configuration_errors,
    /// Counts executions that failed because their messages were delivered more often than `max_attempts`.
    orch_poison,
    /// Counts activities that succeeded.
    activity_success,
    /// Counts activities that returned an error.
    activity_app_errors,
    /// Counts activities whose outcome the store did not take.
    activity_infra_errors,
    /// Counts deliveries of activities that were not registered.
    activity_config_errors,
    /// Counts activities that failed because they were delivered more often than `max_attempts`.
    activity_poison,
    /// Counts the turns that this runtime has leased.
    orch_dispatcher_items_fetched,
    /// Counts the activities that this runtime has leased.
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
    fn buckets_meet_without_gaps() {
        let turns = [0, 1, 5, 6, 10, 11, 50, 51, u64::MAX].map(turn_bucket);
        assert_eq!(turns, ["1-5", "1-5", "1-5", "6-10", "6-10", "11-50", "11-50", "50+", "50+"]);
        assert_eq!([0, 1, 2, 3, u32::MAX].map(retry_bucket), ["0", "1", "2", "3+", "3+"]);
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
