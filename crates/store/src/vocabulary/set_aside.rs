//! Rows that cannot be read, kept with the reason until an operator decides.

/// A message or an activity that was set aside because it cannot be read (S15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The id by which the row can be retried or dropped; ids rise in the order of setting aside.
    pub id: u64,
    /// The queue that the row was taken from.
    pub queue: Queue,
    /// The instance that the row belongs to; `None` if the store does not know it.
    pub instance: Option<String>,
    /// The text of the row as it was stored, which cannot be read as JSON of the right type.
    pub payload: String,
    /// Why the text cannot be read.
    pub reason: String,
    /// How many fetches met the row.
    pub attempts: u32,
    /// When the row was set aside, in milliseconds since the Unix epoch by the store's clock.
    pub at_ms: u64,
}

/// One of the two queues of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// The queue of messages to instances.
    Orchestrator,
    /// The queue of activities for workers.
    Worker,
}

/// Bounds how often fetches meet a row that cannot be read before it is set aside. A newer build may be able
/// to read the row, so it is not set aside at once.
pub const MAX_UNREADABLE_ATTEMPTS: u32 = 10;

/// How long a row that cannot be read is held back after each fetch that met it, so that it does not delay
/// others.
pub const UNREADABLE_RETRY: std::time::Duration = std::time::Duration::from_secs(5);
