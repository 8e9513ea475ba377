//! The status text that clients can watch.

use std::panic::Location;

use super::OrchestrationContext;
use crate::Action;

impl OrchestrationContext {
    /// Sets the status that clients see, at most 262,144 bytes. Only the last status of a turn reaches them.
    #[track_caller]
    pub fn set_custom_status(&self, status: impl Into<String>) {
        self.update_custom_status(Some(status.into()), Location::caller());
    }

    /// Removes the status that clients see.
    #[track_caller]
    pub fn reset_custom_status(&self) {
        self.update_custom_status(None, Location::caller());
    }

    /// Returns the status that was set last, by this execution or an earlier one; `None` if it was never set
    /// or was reset.
    #[track_caller]
    pub fn get_custom_status(&self) -> Option<String> {
        self.scope.enter("get_custom_status", Location::caller())?.custom_status.clone()
    }

    fn update_custom_status(&self, status: Option<String>, at: &'static Location<'static>) {
        if let Some(mut ledger) = self.scope.enter("set_custom_status", at) {
            ledger.custom_status.clone_from(&status);
            ledger.call(at, Action::UpdateCustomStatus { status });
        }
    }
}
