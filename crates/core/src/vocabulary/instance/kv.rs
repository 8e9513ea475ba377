//! One value of an instance's key-value store.

/// Holds the value of a key and the time of its last change.
#[derive(Debug, Clone, PartialEq)]
pub struct KvEntry {
    /// Holds the value as the orchestration set it.
    pub value: String,
    /// Holds the time of the last set, in milliseconds since the Unix epoch.
    pub last_updated_at_ms: u64,
}
