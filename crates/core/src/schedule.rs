//! What a durable future stands for, and what settles it.

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
