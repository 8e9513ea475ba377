//! The state of an instance as clients see it.

use crate::vocabulary::error::ErrorDetails;

/// Says how an instance stands. The version of the custom status rises with each commit that sets or clears
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrchestrationStatus {
    /// The store has no such instance.
    NotFound,
    /// The instance has not ended.
    Running {
        /// Holds the custom status, if one is set.
        custom_status: Option<String>,
        /// Counts the changes of the custom status.
        custom_status_version: u64,
    },
    /// The instance ended with an output.
    Completed {
        /// Holds the output.
        output: String,
        /// Holds the custom status, if one is set.
        custom_status: Option<String>,
        /// Counts the changes of the custom status.
        custom_status_version: u64,
    },
    /// The instance ended with an error, or was cancelled.
    Failed {
        /// Holds the error in its recorded form.
        details: ErrorDetails,
        /// Holds the custom status, if one is set.
        custom_status: Option<String>,
        /// Counts the changes of the custom status.
        custom_status_version: u64,
    },
}
