//! The checks, one small function for each promise.

mod end;
mod history;
mod input;
mod retention;
mod runs;
mod seen;
mod serial;
mod sessions;
mod state;

#[cfg(test)]
mod tests;

use crate::{Case, Violation};

/// Looks for violations of one promise.
type Check = fn(&Case) -> Vec<Violation>;

/// All checks.
pub(crate) const ALL: &[Check] = &[
    end::everything_has_ended,
    end::nothing_is_left_in_the_queues,
    end::no_session_outlives_its_instance,
    end::ended_sessions_are_cleaned_up,
    end::nothing_is_set_aside,
    end::no_infrastructure_fails_an_instance,
    end::no_activity_is_poison_for_no_reason,
    history::an_action_is_answered_once,
    history::an_end_is_final,
    history::the_state_is_that_of_the_history,
    history::timers_fire_on_time,
    history::executions_follow_each_other,
    history::a_parent_is_told_the_outcome,
    history::a_child_has_the_input_of_its_parent,
    history::a_child_has_one_parent,
    history::detached_orchestrations_exist,
    history::code_repeats_the_history,
    input::what_a_client_was_told_is_there,
    input::no_message_is_made_up,
    input::messages_keep_their_order,
    input::a_termination_ends_its_instance,
    retention::nothing_is_deleted_before_its_age,
    runs::results_are_those_of_runs,
    runs::nothing_runs_twice_without_a_fault,
    runs::deliveries_count_deaths_only,
    runs::tries_are_those_of_the_policy,
    runs::calls_have_keys_of_their_own,
    runs::refusals_do_not_count,
    runs::outlived_deliveries_are_excused,
    runs::withdrawn_activities_do_not_begin,
    runs::withdrawn_activities_end_at_once,
    runs::turns_are_prompt,
    serial::one_activity_runs_at_a_time,
    serial::activities_keep_their_order,
    sessions::an_epoch_has_one_process,
    sessions::older_epochs_do_not_begin_after_newer_ones,
    sessions::nothing_begins_after_the_lease,
    sessions::state_is_of_this_attachment,
    sessions::the_first_activity_sees_the_move,
    sessions::capacity_holds,
    sessions::sessions_in_use_are_renewed,
    sessions::a_drained_process_releases_its_sessions,
    state::values_are_those_of_the_history,
    state::the_custom_status_is_that_of_the_history,
];

/// Makes a violation.
fn broken(rule: &'static str, text: String) -> Violation {
    Violation { rule, text }
}
