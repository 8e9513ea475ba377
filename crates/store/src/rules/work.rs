//! Work: what can be queued, what can complete it, and in which phase it is.

use steadfast_core::{WorkItem, kind_of};

use crate::{Outcome, ProviderError, ProviderErrorKind, WorkPhase};

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

/// Makes the error for the token of an activity that was withdrawn while its lease lasted: `Withdrawn` (S12).
pub fn withdrawn_work(operation: &str) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Withdrawn,
        operation,
        "Invalid lock token: the activity was withdrawn".to_owned(),
    )
}

/// The stored times of work, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkTimes {
    /// Since when a fetch can lease the work; `None` if the row is not marked as ready.
    pub ready_since_ms: Option<u64>,
    /// When the work becomes visible.
    pub visible_at_ms: u64,
    /// When the last lease ends; 0 if the work was never leased.
    pub locked_until_ms: u64,
}

impl WorkTimes {
    /// Returns the phase that work with these times is in. Work whose delay or lease has ended waits, even if
    /// no fetch has marked it as ready yet.
    pub fn phase(self, worker_id: Option<String>, now_ms: u64) -> WorkPhase {
        let Self { ready_since_ms, visible_at_ms, locked_until_ms } = self;
        match ready_since_ms {
            Some(since_ms) => WorkPhase::Waiting { since_ms },
            None if locked_until_ms > now_ms => {
                WorkPhase::Leased { worker_id: worker_id.unwrap_or_default(), until_ms: locked_until_ms }
            }
            None if visible_at_ms > now_ms => WorkPhase::Delayed { until_ms: visible_at_ms },
            None => WorkPhase::Waiting { since_ms: visible_at_ms.max(locked_until_ms) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_from_the_moment_at_which_its_delay_or_lease_ends() {
        let times = WorkTimes { ready_since_ms: None, visible_at_ms: 20, locked_until_ms: 10 };
        let leased = WorkPhase::Leased { worker_id: "w".to_owned(), until_ms: 10 };
        assert_eq!(times.phase(Some("w".to_owned()), 9), leased);
        assert_eq!(times.phase(None, 10), WorkPhase::Delayed { until_ms: 20 });
        assert_eq!(times.phase(None, 20), WorkPhase::Waiting { since_ms: 20 });
        let ready = WorkTimes { ready_since_ms: Some(5), ..times };
        assert_eq!(ready.phase(None, 9), WorkPhase::Waiting { since_ms: 5 });
    }
}
