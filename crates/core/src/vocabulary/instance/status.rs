//! The state of an instance as clients see it.

use crate::vocabulary::error::ErrorDetails;

/// Tells whether an instance exists, runs or has ended, and with which outcome. The version of the custom
/// status rises with each commit that sets or clears it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrchestrationStatus {
    /// The store has no such instance.
    NotFound,
    /// The instance has not ended.
    Running {
        /// Holds the custom status, if one is set.
        custom_status: Option<String>,
        /// Counts the commits that set or cleared the custom status; 0 if there was no such commit.
        custom_status_version: u64,
    },
    /// The instance ended with an output.
    Completed {
        /// Holds the output as the handler encoded it.
        output: String,
        /// Holds the custom status, if one is set.
        custom_status: Option<String>,
        /// Counts the commits that set or cleared the custom status; 0 if there was no such commit.
        custom_status_version: u64,
    },
    /// The instance ended with an error, or was cancelled.
    Failed {
        /// Says why the instance failed.
        details: ErrorDetails,
        /// Holds the custom status, if one is set.
        custom_status: Option<String>,
        /// Counts the commits that set or cleared the custom status; 0 if there was no such commit.
        custom_status_version: u64,
    },
}
