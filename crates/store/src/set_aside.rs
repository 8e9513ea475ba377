//! Rows that cannot be read, kept with the reason until somebody decides.

/// Describes a row that was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Names the row.
    pub id: u64,
    /// Says where it came from.
    pub queue: Queue,
    /// Names the instance it was for, as far as the store knows.
    pub instance: Option<String>,
    /// Holds the row as it is.
    pub payload: String,
    /// Says why it was set aside.
    pub reason: String,
    /// Counts the fetches that met it.
    pub attempts: u32,
    /// Holds the time, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// Names one of the two queues of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Messages to instances.
    Orchestrator,
    /// Activities for workers.
    Worker,
}

/// Bounds how often a row that cannot be read is met before it is set aside. A newer build may be able to
/// read it, so it is not set aside at once.
pub const MAX_UNREADABLE_ATTEMPTS: u32 = 10;

/// Holds a row that cannot be read back for this long after each try, so that it delays nothing.
pub const UNREADABLE_RETRY: std::time::Duration = std::time::Duration::from_secs(5);
