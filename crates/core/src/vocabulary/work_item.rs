//! Work items: the rows of the two queues, messages to instances and activities for workers.
//!
//! Their JSON is a wire format like that of events: the fields of a variant are closed, options without a
//! `skip` are written as `null`, and what came later has a variant of its own.

use serde::{Deserialize, Serialize};

use crate::vocabulary::error::ErrorDetails;
use crate::vocabulary::session::CarriedSession;

/// Carries one message to an instance, or one activity to a worker.
///
/// The queue for workers holds [`ActivityExecute`](Self::ActivityExecute) only; every other variant is a
/// message.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub enum WorkItem {
    /// Starts an instance.
    StartOrchestration {
        /// Holds the id of the instance to start. An instance that exists already is not started again.
        instance: String,
        /// Holds the name that the orchestration is registered under.
        orchestration: String,
        /// Holds the input as the caller encoded it.
        input: String,
        /// Holds the version asked for; `null` leaves the choice to the registry.
        version: Option<String>,
        /// Holds the id of the parent if this is a child.
        parent_instance: Option<String>,
        /// Holds the id of the event of the parent that scheduled the child.
        parent_id: Option<u64>,
        /// Holds the number of the parent execution that scheduled the child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// Holds the number of the execution to start: 1.
        execution_id: u64,
    },
    /// Asks a worker to run an activity.
    ActivityExecute {
        /// Holds the id of the instance that scheduled the activity.
        instance: String,
        /// Holds the number of the execution that scheduled the activity.
        execution_id: u64,
        /// Holds the id of the event that scheduled the operation.
        id: u64,
        /// Holds the name that the activity is registered under.
        name: String,
        /// Holds the input as the caller encoded it.
        input: String,
        /// Holds the id of the session to run on; `None` for an activity without a session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// Holds the tag: only workers that serve it take the activity. `None` means workers for untagged
        /// ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// Delivers the result of an activity.
    ActivityCompleted {
        /// Holds the id of the instance that waits for the answer.
        instance: String,
        /// Holds the number of the execution that waits for the answer.
        execution_id: u64,
        /// Holds the id of the event that scheduled the operation.
        id: u64,
        /// Holds the output of the activity as its handler encoded it.
        result: String,
    },
    /// Delivers the error of an activity.
    ActivityFailed {
        /// Holds the id of the instance that waits for the answer.
        instance: String,
        /// Holds the number of the execution that waits for the answer.
        execution_id: u64,
        /// Holds the id of the event that scheduled the operation.
        id: u64,
        /// Says why the activity failed.
        details: ErrorDetails,
    },
    /// Tells that a timer is due. The store delivers the message no earlier than `fire_at_ms`.
    TimerFired {
        /// Holds the id of the instance that waits for the answer.
        instance: String,
        /// Holds the number of the execution that waits for the answer.
        execution_id: u64,
        /// Holds the id of the event that scheduled the operation.
        id: u64,
        /// Holds the time at which the timer is due, in milliseconds since the Unix epoch.
        fire_at_ms: u64,
    },
    /// Raises an external event.
    ExternalRaised {
        /// Holds the id of the instance that receives the message.
        instance: String,
        /// Holds the name that the event is raised under.
        name: String,
        /// Holds the payload of the event.
        data: String,
    },
    /// Puts a message on a queue of an instance.
    QueueMessage {
        /// Holds the id of the instance that receives the message.
        instance: String,
        /// Holds the name of the queue.
        name: String,
        /// Holds the payload of the message as the sender encoded it.
        data: String,
    },
    /// Asks for an instance to be cancelled.
    CancelInstance {
        /// Holds the id of the instance to cancel.
        instance: String,
        /// Holds the reason, in words for people.
        reason: String,
    },
    /// Delivers the result of a child.
    SubOrchCompleted {
        /// Holds the id of the instance that waits for the answer.
        parent_instance: String,
        /// Holds the number of the execution that waits for the answer.
        parent_execution_id: u64,
        /// Holds the id of the event that scheduled the operation.
        parent_id: u64,
        /// Holds the output of the child as its handler encoded it.
        result: String,
    },
    /// Delivers the error of a child.
    SubOrchFailed {
        /// Holds the id of the instance that waits for the answer.
        parent_instance: String,
        /// Holds the number of the execution that waits for the answer.
        parent_execution_id: u64,
        /// Holds the id of the event that scheduled the operation.
        parent_id: u64,
        /// Says why the child failed.
        details: ErrorDetails,
    },
    /// Starts the next execution of an instance.
    ContinueAsNew {
        /// Holds the id of the instance that continues as new.
        instance: String,
        /// Holds the name that the orchestration is registered under.
        orchestration: String,
        /// Holds the input of the next execution.
        input: String,
        /// Holds the version asked for; `null` leaves the choice to the registry.
        version: Option<String>,
        /// Holds the id of the parent if this is a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_instance: Option<String>,
        /// Holds the id of the event of the parent that scheduled the child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<u64>,
        /// Holds the number of the parent execution that scheduled the child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// Holds the queue messages (name, data) that the previous execution did not read, in the order of
        /// delivery.
        #[serde(default)]
        carry_forward_events: Vec<(String, String)>,
        /// Holds the custom status that the previous execution ended with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
    },
    /// Starts the next execution of an instance that has open sessions; used only then.
    ContinueAsNewWithSessions {
        /// Holds the id of the instance that continues as new.
        instance: String,
        /// Holds the name that the orchestration is registered under.
        orchestration: String,
        /// Holds the input of the next execution.
        input: String,
        /// Holds the version asked for; `null` leaves the choice to the registry.
        version: Option<String>,
        /// Holds the id of the parent if this is a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_instance: Option<String>,
        /// Holds the id of the event of the parent that scheduled the child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<u64>,
        /// Holds the number of the parent execution that scheduled the child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// Holds the queue messages (name, data) that the previous execution did not read, in the order of
        /// delivery.
        #[serde(default)]
        carry_forward_events: Vec<(String, String)>,
        /// Holds the custom status that the previous execution ended with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
        /// Holds the open sessions in the order they were opened.
        sessions: Vec<CarriedSession>,
    },
    /// Tells an instance that asked for it that a session was attached anew.
    SessionMigrated {
        /// Holds the id of the instance that receives the message.
        instance: String,
        /// Holds the number of the execution that asked to be told.
        execution_id: u64,
        /// Holds the id of the session, owned by the instance or shared.
        session_id: String,
        /// Holds the epoch of the new attachment: it rises with each attachment of the session.
        epoch: u64,
        /// Names the worker that the session was attached to before; `None` if this is its first attachment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// Names the worker that the session is attached to now.
        to: String,
    },
    /// Ends an instance without running its code, which may not be registered any more.
    TerminateInstance {
        /// Holds the id of the instance to end.
        instance: String,
        /// Holds the reason, in words for people.
        reason: String,
    },
    /// Asks for a turn and brings nothing: something outside the engine woke the code of an instance.
    Nudge {
        /// Holds the id of the instance that gets a turn.
        instance: String,
    },
}

impl WorkItem {
    /// Returns the id of the instance that the item is delivered to; the completion of a child goes to its
    /// parent.
    pub fn instance(&self) -> &str {
        match self {
            Self::StartOrchestration { instance, .. }
            | Self::ActivityExecute { instance, .. }
            | Self::ActivityCompleted { instance, .. }
            | Self::ActivityFailed { instance, .. }
            | Self::TimerFired { instance, .. }
            | Self::ExternalRaised { instance, .. }
            | Self::QueueMessage { instance, .. }
            | Self::CancelInstance { instance, .. }
            | Self::ContinueAsNew { instance, .. }
            | Self::ContinueAsNewWithSessions { instance, .. }
            | Self::SessionMigrated { instance, .. }
            | Self::TerminateInstance { instance, .. }
            | Self::Nudge { instance } => instance,
            Self::SubOrchCompleted { parent_instance, .. } | Self::SubOrchFailed { parent_instance, .. } => {
                parent_instance
            }
        }
    }
}

/// Returns the name of an item in logs and metrics: its variant, or `ExternalRaisedPersistent` for a
/// queue message.
pub fn kind_of(item: &WorkItem) -> &'static str {
    match item {
        WorkItem::StartOrchestration { .. } => "StartOrchestration",
        WorkItem::ActivityExecute { .. } => "ActivityExecute",
        WorkItem::ActivityCompleted { .. } => "ActivityCompleted",
        WorkItem::ActivityFailed { .. } => "ActivityFailed",
        WorkItem::TimerFired { .. } => "TimerFired",
        WorkItem::ExternalRaised { .. } => "ExternalRaised",
        WorkItem::QueueMessage { .. } => "ExternalRaisedPersistent",
        WorkItem::CancelInstance { .. } => "CancelInstance",
        WorkItem::SubOrchCompleted { .. } => "SubOrchCompleted",
        WorkItem::SubOrchFailed { .. } => "SubOrchFailed",
        WorkItem::ContinueAsNew { .. } => "ContinueAsNew",
        WorkItem::ContinueAsNewWithSessions { .. } => "ContinueAsNewWithSessions",
        WorkItem::SessionMigrated { .. } => "SessionMigrated",
        WorkItem::TerminateInstance { .. } => "TerminateInstance",
        WorkItem::Nudge { .. } => "Nudge",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_completion_of_a_child_is_delivered_to_its_parent() {
        let item = WorkItem::SubOrchCompleted {
            parent_instance: "parent".to_owned(),
            parent_execution_id: 1,
            parent_id: 2,
            result: String::new(),
        };
        assert_eq!(item.instance(), "parent");
    }

    #[test]
    fn the_start_of_a_child_is_delivered_to_the_child() {
        let item = WorkItem::StartOrchestration {
            instance: "child".to_owned(),
            orchestration: "ship".to_owned(),
            input: String::new(),
            version: None,
            parent_instance: Some("parent".to_owned()),
            parent_id: Some(2),
            parent_execution_id: Some(1),
            execution_id: 1,
        };
        assert_eq!(item.instance(), "child");
    }

    #[test]
    fn a_queue_message_keeps_its_old_name_in_logs() {
        let item = WorkItem::QueueMessage {
            instance: "order-1".to_owned(),
            name: "inbox".to_owned(),
            data: String::new(),
        };
        assert_eq!(kind_of(&item), "ExternalRaisedPersistent");
    }
}
