//! Rules that are the same in every store, written once: which calls are refused and with which text, how a
//! commit changes the rows beside its history, and in which form some values are stored.

mod commit;
mod history;
mod instance;
mod life;
mod message;
mod session;
mod stray;
mod tag;
mod unreadable;
mod wait;
mod work;
mod worker;

pub use commit::SessionEffect;
pub use history::{events_of, history_after, holds_run, unreadable_history, unstorable_event};
pub use instance::{behind_prefix, instance_page};
pub use life::{CarriedLife, answers_start, bearer_of_life, carried_life, is_rival};
pub use message::{
    UNKNOWN, check_message, check_start, check_timer, fires_at_ms, is_start, needs_no_code, started_by,
    timers_of, to_json,
};
pub use session::{
    NewestStart, answer_to_start, is_same_owner, lost_claims, session_key, started_at_ms, stored_scope,
    superseded,
};
pub use stray::{tell_of_former_lives, tell_of_strays};
pub use tag::{stored_tag, stored_tags, tag_of};
pub use unreadable::{UnreadableText, read_text};
pub use wait::InstanceWait;
pub use work::{WorkTimes, check_completion, check_work, ended_work_lease, withdrawn_work};
pub use worker::{is_live_worker, lists_activity, lists_orchestration, runs_engine};

use steadfast_core::ErrorDetails;

use crate::{ExecutionState, ProviderError, ProviderErrorKind};

/// Marks the [`change`](crate::InstanceState::change) of an instance that has a history and no row, so that
/// it never equals the change of a row and a waiting caller notices when the row appears.
pub const ROWLESS: u64 = 1 << 63;

/// Returns the state of an execution from the columns of its row. A failure whose details are not stored
/// becomes an infrastructure error with the output as its text.
pub fn execution_state(
    status: Option<&str>,
    output: Option<String>,
    failure: Option<ErrorDetails>,
) -> ExecutionState {
    let output = output.unwrap_or_default();
    match status {
        Some("Completed") => ExecutionState::Completed(output),
        Some("Failed") => ExecutionState::Failed(failure.unwrap_or(ErrorDetails::Infrastructure {
            operation: "commit_turn".to_owned(),
            message: output,
            retryable: false,
        })),
        Some("ContinuedAsNew") => ExecutionState::ContinuedAsNew,
        _ => ExecutionState::Running,
    }
}

/// Makes the error for an operation on an instance that has no row: `NotFound`.
pub fn no_such_instance(operation: &str, instance: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::NotFound, operation, format!("instance '{instance}' was not found"))
}

/// Makes the error for an operation on an execution that has no row: `NotFound`.
pub fn no_such_execution(operation: &str, instance: &str, execution_id: u64) -> ProviderError {
    let text = format!("execution {execution_id} of instance '{instance}' was not found");
    ProviderError::new(ProviderErrorKind::NotFound, operation, text)
}

/// Makes the error for an operation on a row that was not set aside: `NotFound`.
pub fn no_such_row(operation: &str, id: u64) -> ProviderError {
    let text = format!("row {id} was not found among those set aside");
    ProviderError::new(ProviderErrorKind::NotFound, operation, text)
}

/// Makes the error for a cursor that this store did not make: `Invalid`.
pub fn no_such_cursor(text: &str) -> ProviderError {
    let text = format!("'{text}' is no cursor of this store");
    ProviderError::new(ProviderErrorKind::Invalid, "instances", text)
}

/// Makes the error for a token that was never given, or whose rows were removed or leased again: `LeaseLost`
/// (S4).
pub fn no_such_lease(operation: &str, token: &str) -> ProviderError {
    ProviderError::lease_lost(operation, format_args!("'{token}' holds nothing"))
}

/// Makes the error for the token of a turn whose lease has ended: `LeaseLost` (S4).
pub fn ended_turn_lease(operation: &str, instance: &str) -> ProviderError {
    ProviderError::lease_lost(operation, format_args!("the lease of '{instance}' has ended"))
}

/// Makes the error for appending an event whose id the execution has already: `Conflict` (S8).
pub fn repeated_event(operation: &str, instance: &str, execution_id: u64, event_id: u64) -> ProviderError {
    let text = format!("execution {execution_id} of '{instance}' has an event {event_id} already");
    ProviderError::new(ProviderErrorKind::Conflict, operation, text)
}

/// Makes the error for deleting an instance that has not ended: `Refused`.
pub fn still_running(instance: &str) -> ProviderError {
    let text = format!("instance '{instance}' is still running: cancel it first, or use force");
    ProviderError::new(ProviderErrorKind::Refused, "delete_instances", text)
}

/// Makes the error for deleting an instance without one of its children: `Refused`.
pub fn child_left_behind(child: &str, parent: &str) -> ProviderError {
    let text = format!(
        "'{child}' is a child of '{parent}' and not in the list: delete the whole tree (tree traversal)"
    );
    ProviderError::new(ProviderErrorKind::Refused, "delete_instances", text)
}
