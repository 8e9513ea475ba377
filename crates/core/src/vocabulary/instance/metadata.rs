//! The facts about an execution that a commit gives to the store beside the events.

use semver::Version;

/// Describes an execution to its store. A field that is `None` leaves the stored value as it is.
#[derive(Debug, Clone, Default)]
pub struct ExecutionMetadata {
    /// Tells how the execution ended: `Completed`, `Failed` or `ContinuedAsNew`.
    pub status: Option<String>,
    /// Holds the output, the error text or the next input, depending on the status.
    pub output: Option<String>,
    /// Holds the name that the orchestration is registered under.
    pub orchestration_name: Option<String>,
    /// Holds the version of the handler that runs the execution.
    pub orchestration_version: Option<String>,
    /// Holds the id of the parent if the instance is a child.
    pub parent_instance_id: Option<String>,
    /// Holds the engine version that the execution is pinned to; set in its first turn only.
    pub pinned_duroxide_version: Option<Version>,
}
