//! Names that the compatible API promises and the engine itself hardly uses.
//!
//! The names of the engine's own activities (syscalls) are a wire format: histories of the compatible API
//! hold them. Such an activity records a value that must be the same on replay.

/// The kinds of operations that a durable future waits for. Compatible code names this type; the engine does
/// not use it.
#[derive(Debug, Clone)]
pub enum ScheduleKind {
    /// Waits for an activity.
    Activity {
        /// The name that the activity is registered under.
        name: String,
    },
    /// Waits for a timer.
    Timer,
    /// Waits for an external event.
    ExternalWait {
        /// The name that the event is raised under.
        event_name: String,
    },
    /// Waits for a queue message.
    QueueDequeue {
        /// The name of the queue.
        event_name: String,
    },
    /// Waits for a child.
    SubOrchestration {
        /// Identifies the call that started the child.
        token: u64,
    },
}

/// The answer of a durable future. Compatible code names this type; the engine does not use it.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub enum CompletionResult {
    /// The result of an activity.
    ActivityOk(String),
    /// The error of an activity.
    ActivityErr(String),
    /// A timer was due.
    TimerFired,
    /// The result of a child.
    SubOrchOk(String),
    /// The error of a child.
    SubOrchErr(String),
    /// The payload of an external event or a queue message.
    ExternalData(String),
}

/// Identifies one scheduled activity, so that a store can withdraw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledActivityIdentifier {
    /// The id of the instance that scheduled the activity.
    pub instance: String,
    /// The number of the execution that scheduled the activity.
    pub execution_id: u64,
    /// The id of the event that scheduled the activity, unique within the execution.
    pub activity_id: u64,
}

/// Begins the name of every activity of the engine. An application cannot register such a name.
pub const SYSCALL_PREFIX: &str = "__duroxide_syscall:";

/// The name of the activity of the engine that makes a random UUID.
pub const SYSCALL_NEW_GUID: &str = "__duroxide_syscall:new_guid";

/// The name of the activity of the engine that returns the time of the worker, in milliseconds since the Unix
/// epoch.
pub const SYSCALL_UTC_NOW_MS: &str = "__duroxide_syscall:utc_now_ms";

/// The name of the activity of the engine that reads a key of another instance.
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
