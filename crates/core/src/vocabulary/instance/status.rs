//! The state of an instance as clients see it.

use crate::vocabulary::error::ErrorDetails;

/// Says how far an instance is. The custom status version rises with each commit that touched the status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrchestrationStatus {
    /// Finds no such instance.
    NotFound,
    /// Finds it not finished yet.
    Running {
        /// Holds the custom status, if one is set.
        custom_status: Option<String>,
        /// Counts the changes of the custom status.
        custom_status_version: u64,
    },
    /// Finds it finished with an output.
    Completed {
        /// Holds the output.
        output: String,
        /// Holds the custom status, if one is set.
        custom_status: Option<String>,
        /// Counts the changes of the custom status.
        custom_status_version: u64,
    },
    /// Finds it finished with an error.
    Failed {
        /// Says what went wrong.
        details: ErrorDetails,
        /// Holds the custom status, if one is set.
        custom_status: Option<String>,
        /// Counts the changes of the custom status.
        custom_status_version: u64,
    },
}
