//! The facts about an execution that a commit gives to the store beside the events.

use semver::Version;

/// The facts about an execution that a commit changes in the store. A field that is `None` leaves the stored
/// value as it is.
#[derive(Debug, Clone, Default)]
pub struct ExecutionMetadata {
    /// How the execution ended: `Completed`, `Failed` or `ContinuedAsNew`; `None` while it runs.
    pub status: Option<String>,
    /// The output (`Completed`), the error text (`Failed`) or the input of the next execution
    /// (`ContinuedAsNew`); `None` while the execution runs.
    pub output: Option<String>,
    /// The name that the orchestration is registered under; set by the first turn of an execution.
    pub orchestration_name: Option<String>,
    /// The version of the handler that runs the execution; set by its first turn.
    pub orchestration_version: Option<String>,
    /// The instance id of the parent if the instance is a child; set by the first turn of an execution.
    pub parent_instance_id: Option<String>,
    /// The engine version that the execution is pinned to: only runtimes that support it run the execution.
    /// Set by the first turn.
    pub pinned_duroxide_version: Option<Version>,
}
