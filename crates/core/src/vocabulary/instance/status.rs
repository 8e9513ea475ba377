//! The state of an instance as clients see it.

use crate::vocabulary::error::ErrorDetails;

/// Whether an instance exists, runs or has ended, and with which outcome. The version of the custom status
/// rises with each commit that sets or clears it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrchestrationStatus {
    /// The store has no such instance, or its first turn has not run.
    NotFound,
    /// The instance has not ended.
    Running {
        /// The text that the orchestration shows about its progress; `None` if it set none or cleared it.
        custom_status: Option<String>,
        /// The number of commits that set or cleared the custom status; 0 if there was no such commit.
        custom_status_version: u64,
    },
    /// The instance ended with an output.
    Completed {
        /// The output of the instance, as its handler encoded it.
        output: String,
        /// The text that the orchestration shows about its progress; `None` if it set none or cleared it.
        custom_status: Option<String>,
        /// The number of commits that set or cleared the custom status; 0 if there was no such commit.
        custom_status_version: u64,
    },
    /// The instance ended with an error, or was cancelled.
    Failed {
        /// Why the instance failed.
        details: ErrorDetails,
        /// The text that the orchestration shows about its progress; `None` if it set none or cleared it.
        custom_status: Option<String>,
        /// The number of commits that set or cleared the custom status; 0 if there was no such commit.
        custom_status_version: u64,
    },
}
