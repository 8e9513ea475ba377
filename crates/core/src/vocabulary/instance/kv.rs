//! One value of an instance's key-value store.

/// The value of a key, and the time at which it was set.
#[derive(Debug, Clone, PartialEq)]
pub struct KvEntry {
    /// The value as the orchestration set it.
    pub value: String,
    /// The time of the turn that set the key last, in milliseconds since the Unix epoch.
    pub last_updated_at_ms: u64,
}
