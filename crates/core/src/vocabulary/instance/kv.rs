//! One value of an instance's key-value store.

/// Holds a value and when it was set.
#[derive(Debug, Clone, PartialEq)]
pub struct KvEntry {
    /// Holds the value.
    pub value: String,
    /// Holds the time of the last set, in milliseconds since the Unix epoch.
    pub last_updated_at_ms: u64,
}
