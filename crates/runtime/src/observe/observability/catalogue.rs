//! The metrics: the name, the unit and the description of each.

/// Names the metrics and describes them, each in one place.
macro_rules! catalogue {
    ($($kind:ident $constant:ident = $name:literal, $unit:ident, $says:literal;)+) => {
        $(pub(super) const $constant: &str = $name;)+

        /// Describes the metrics to the recorder of the process. A recorder that is installed later gets no
        /// descriptions.
        pub(super) fn describe() {
            $(catalogue!(@describe $kind $constant, $unit, $says);)+
        }
    };
    (@describe counter $constant:ident, $unit:ident, $says:literal) => {
        metrics::describe_counter!($constant, metrics::Unit::$unit, $says)
    };
    (@describe gauge $constant:ident, $unit:ident, $says:literal) => {
        metrics::describe_gauge!($constant, metrics::Unit::$unit, $says)
    };
    (@describe histogram $constant:ident, $unit:ident, $says:literal) => {
        metrics::describe_histogram!($constant, metrics::Unit::$unit, $says)
    };
}

catalogue! {
    counter STARTS = "steadfast_orchestration_starts_total", Count, "Executions that began";
    counter COMPLETIONS = "steadfast_orchestration_completions_total", Count, "Executions that ended, by how";
    counter FAILURES = "steadfast_orchestration_failures_total", Count, "Executions that failed, by why";
    counter INFRASTRUCTURE_ERRORS = "steadfast_orchestration_infrastructure_errors_total", Count,
        "Executions that failed because of the machinery";
    counter CONFIGURATION_ERRORS = "steadfast_orchestration_configuration_errors_total", Count,
        "Executions that failed because code and history do not fit";
    counter POISON = "steadfast_orchestration_poison_total", Count,
        "Executions that failed because something was poison";
    counter CONTINUED_AS_NEW = "steadfast_orchestration_continue_as_new_total", Count,
        "Executions that continued as new";
    histogram DURATION = "steadfast_orchestration_duration_seconds", Seconds,
        "From the start of an execution to its end";
    histogram TURNS = "steadfast_orchestration_turns", Count, "Turns of an execution, told when it ends";
    histogram HISTORY_SIZE = "steadfast_orchestration_history_size", Count,
        "Events of an execution, told when it ends";
    gauge ACTIVE = "steadfast_active_orchestrations", Count, "Instances that run, in the whole store";

    counter ACTIVITY_EXECUTIONS = "steadfast_activity_executions_total", Count,
        "Runs of activities, by outcome";
    counter ACTIVITY_INFRASTRUCTURE_ERRORS = "steadfast_activity_infrastructure_errors_total", Count,
        "Runs of activities whose outcome could not be handed back";
    counter ACTIVITY_CONFIGURATION_ERRORS = "steadfast_activity_configuration_errors_total", Count,
        "Activities that were fetched and are not registered";
    counter ACTIVITY_POISON = "steadfast_activity_poison_total", Count,
        "Activities that failed because their attempts were used up";
    histogram ACTIVITY_DURATION = "steadfast_activity_duration_seconds", Seconds,
        "How long a run of an activity took";

    counter CHILD_CALLS = "steadfast_suborchestration_calls_total", Count, "Children that were started";
    histogram CHILD_DURATION = "steadfast_suborchestration_duration_seconds", Seconds,
        "How long a child took, as its parent sees it";

    histogram STORE_DURATION = "steadfast_provider_operation_duration_seconds", Seconds,
        "How long a call of the store took; fetches wait for work";
    counter STORE_ERRORS = "steadfast_provider_errors_total", Count, "Calls of the store that failed";

    counter TURNS_FETCHED = "steadfast_orchestration_dispatcher_items_fetched", Count,
        "Turns that were leased";
    histogram TURN_DURATION = "steadfast_orchestration_dispatcher_processing_duration_ms", Milliseconds,
        "From the lease of a turn to its end";
    counter WORK_FETCHED = "steadfast_worker_dispatcher_items_fetched", Count, "Activities that were leased";
    histogram WORK_DURATION = "steadfast_worker_dispatcher_execution_duration_ms", Milliseconds,
        "From the start of an activity to its recorded outcome";
    gauge TURN_QUEUE = "steadfast_orchestrator_queue_depth", Count,
        "Messages in the whole store, those that are not due included";
    gauge WORK_QUEUE = "steadfast_worker_queue_depth", Count,
        "Activities that wait for a worker or run, in the whole store";

    counter MESSAGES_DROPPED = "steadfast_messages_dropped_total", Count,
        "Messages that were dropped because their instance does not exist or has ended";
    counter STUCK = "steadfast_orchestrations_stuck_total", Count,
        "Orchestrations that began to wait for something that nobody can answer";
    gauge WARM = "steadfast_warm_orchestrations", Count,
        "Orchestrations that stay in memory between their turns";
    counter WARM_HITS = "steadfast_warm_hits_total", Count,
        "Turns of begun executions that went on in memory";
    counter WARM_MISSES = "steadfast_warm_misses_total", Count,
        "Turns of begun executions that had to be replayed from their history";
    gauge SESSIONS = "steadfast_attached_sessions", Count, "Sessions that are attached to this process";
    counter SESSION_CLAIMS = "steadfast_session_claims_total", Count, "Sessions that this process claimed";
    counter SESSION_MIGRATIONS = "steadfast_session_migrations_total", Count,
        "Sessions that this process took over from another";
    histogram SESSION_CLAIM_WAIT = "steadfast_session_claim_wait_seconds", Seconds,
        "How long the activity waited with which a session was claimed";
    counter SESSION_RENEWALS = "steadfast_session_renewals_total", Count,
        "Leases of sessions that were extended";
    counter SESSION_RENEWAL_FAILURES = "steadfast_session_renewal_failures_total", Count,
        "Renewals of sessions that failed";
    counter SESSIONS_LOST = "steadfast_sessions_lost_total", Count, "Sessions that this process lost";
    counter SESSIONS_UNTAKEN = "steadfast_sessions_untaken_total", Count,
        "Sessions that were handed on because their work was not taken here";
    counter SESSION_REBUILDS = "steadfast_session_rebuilds_total", Count,
        "Rebuilds of the state of a session by the activity of the recovery policy";
    counter SESSION_RECOVERIES_GIVEN_UP = "steadfast_session_recoveries_given_up_total", Count,
        "Activities that failed because the state of their session could not be restored";
    gauge SESSIONS_LEAKED = "steadfast_leaked_sessions", Count,
        "Open sessions that had no activity for session_leak_after, when they were last counted";
    counter SLOTS_RESTARTED = "steadfast_slots_restarted_total", Count,
        "Slots that panicked and were restarted";
    counter SLOTS_REPLACED = "steadfast_slots_replaced_total", Count,
        "Slots whose turn took too long and whose place another took";
}
