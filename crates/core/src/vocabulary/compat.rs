//! Names that the compatible API promises and the engine itself hardly uses.
//!
//! The names of the engine's own activities (syscalls) are a wire format: histories of the compatible API hold
//! them. Such an activity records a value that must be the same on replay.

/// Says what a durable future waits for.
#[derive(Debug, Clone)]
pub enum ScheduleKind {
    /// Waits for an activity.
    Activity {
        /// Names the activity.
        name: String,
    },
    /// Waits for a timer.
    Timer,
    /// Waits for an external event.
    ExternalWait {
        /// Names the event.
        event_name: String,
    },
    /// Waits for a queue message.
    QueueDequeue {
        /// Names the queue.
        event_name: String,
    },
    /// Waits for a child.
    SubOrchestration {
        /// Identifies the call that started it.
        token: u64,
    },
}

/// Holds what a durable future is settled with.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub enum CompletionResult {
    /// Holds the result of an activity.
    ActivityOk(String),
    /// Holds the error of an activity.
    ActivityErr(String),
    /// Tells that a timer was due.
    TimerFired,
    /// Holds the result of a child.
    SubOrchOk(String),
    /// Holds the error of a child.
    SubOrchErr(String),
    /// Holds the payload of an external event or a queue message.
    ExternalData(String),
}

/// Names one scheduled activity, to cancel it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledActivityIdentifier {
    /// Names the instance that scheduled it.
    pub instance: String,
    /// Numbers the execution that scheduled it.
    pub execution_id: u64,
    /// Names the scheduling event.
    pub activity_id: u64,
}

/// Begins the name of every activity of the engine; applications cannot register such a name.
pub const SYSCALL_PREFIX: &str = "__duroxide_syscall:";

/// Names the activity that makes a random UUID.
pub const SYSCALL_NEW_GUID: &str = "__duroxide_syscall:new_guid";

/// Names the activity that reads the time, in milliseconds since the Unix epoch.
pub const SYSCALL_UTC_NOW_MS: &str = "__duroxide_syscall:utc_now_ms";

/// Names the activity that reads a key of another instance.
pub const SYSCALL_GET_KV_VALUE: &str = "__duroxide_syscall:get_kv_value";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_activity_of_the_engine_has_the_reserved_prefix() {
        for name in [SYSCALL_NEW_GUID, SYSCALL_UTC_NOW_MS, SYSCALL_GET_KV_VALUE] {
            assert!(name.starts_with(SYSCALL_PREFIX));
        }
    }
}
