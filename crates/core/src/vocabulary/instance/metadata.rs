//! What a commit tells the store about an execution beside its events.

use semver::Version;

/// Describes an execution to its store; an absent field leaves what the store knows as it is.
#[derive(Debug, Clone, Default)]
pub struct ExecutionMetadata {
    /// Says how it ended: `Completed`, `Failed` or `ContinuedAsNew`.
    pub status: Option<String>,
    /// Holds the output, the error text or the next input, as the status says.
    pub output: Option<String>,
    /// Names the orchestration.
    pub orchestration_name: Option<String>,
    /// Names the version of its handler.
    pub orchestration_version: Option<String>,
    /// Names the parent instance of a child.
    pub parent_instance_id: Option<String>,
    /// Pins the engine version; sent with the first turn of an execution only.
    pub pinned_duroxide_version: Option<Version>,
}
