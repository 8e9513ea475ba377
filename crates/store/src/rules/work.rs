//! Work: what can be queued, and what can complete it.

use steadfast_core::{WorkItem, kind_of};

use crate::{Outcome, ProviderError, ProviderErrorKind};

/// Refuses to queue anything but an activity as work.
///
/// # Errors
/// `Invalid`, naming the operation.
pub fn check_work(operation: &str, item: &WorkItem) -> Result<(), ProviderError> {
    match item {
        WorkItem::ActivityExecute { .. } => Ok(()),
        other => Err(ProviderError::new(
            ProviderErrorKind::Invalid,
            operation,
            format!("{} is a message to an instance, not work for a worker", kind_of(other)),
        )),
    }
}

/// Refuses an outcome whose completion is neither an `ActivityCompleted` nor an `ActivityFailed` (S11).
///
/// # Errors
/// `Invalid`.
pub fn check_completion(outcome: &Outcome) -> Result<(), ProviderError> {
    match outcome.completion.as_ref().map(|completion| &completion.item) {
        None | Some(WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. }) => Ok(()),
        Some(other) => {
            let text = format!("{} completes no activity", kind_of(other));
            Err(ProviderError::new(ProviderErrorKind::Invalid, "finish_work", text))
        }
    }
}

/// Makes the error for the token of an activity whose lease has ended: `LeaseLost` (S4).
pub fn ended_work_lease(operation: &str) -> ProviderError {
    ProviderError::lease_lost(operation, "the lease of the activity has ended")
}
