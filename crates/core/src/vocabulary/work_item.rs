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
        /// The id of the instance to start. An instance that exists already is not started again.
        instance: String,
        /// The name that the orchestration is registered under.
        orchestration: String,
        /// The input of the orchestration, as the caller encoded it.
        input: String,
        /// The version that the caller asks for; `None` (`null` in JSON) leaves the choice to the registry.
        version: Option<String>,
        /// The instance id of the parent, which gets the outcome as a message; `None` for an instance that is
        /// not a child.
        parent_instance: Option<String>,
        /// The id of the event in the history of the parent that scheduled this child; `None` without a
        /// parent.
        parent_id: Option<u64>,
        /// The number of the execution of the parent that scheduled this child; `None` without a parent.
        /// Older engines did not write it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// The number of the execution to start: 1.
        execution_id: u64,
    },
    /// Asks a worker to run an activity.
    ActivityExecute {
        /// The id of the instance that scheduled the activity; its outcome goes there.
        instance: String,
        /// The number of the execution that scheduled the activity.
        execution_id: u64,
        /// The id of the event that scheduled the activity, unique within the execution.
        id: u64,
        /// The name that the activity is registered under.
        name: String,
        /// The input of the activity, as the caller encoded it.
        input: String,
        /// The id of the session that the activity runs on, owned by the instance or shared; `None` for an
        /// activity without a session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// Only workers that serve this tag take the activity; `None` leaves it to workers that take untagged
        /// activities.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// Delivers the result of an activity.
    ActivityCompleted {
        /// The id of the instance that scheduled the activity and now gets its outcome.
        instance: String,
        /// The number of the execution that scheduled the activity; a later execution ignores the outcome.
        execution_id: u64,
        /// The id of the event that scheduled the activity.
        id: u64,
        /// The output of the activity, as its handler encoded it.
        result: String,
    },
    /// Delivers the error of an activity.
    ActivityFailed {
        /// The id of the instance that scheduled the activity and now gets its outcome.
        instance: String,
        /// The number of the execution that scheduled the activity; a later execution ignores the outcome.
        execution_id: u64,
        /// The id of the event that scheduled the activity.
        id: u64,
        /// Why the activity failed.
        details: ErrorDetails,
    },
    /// Tells that a timer is due. The store delivers the message no earlier than `fire_at_ms`.
    TimerFired {
        /// The id of the instance that set the timer.
        instance: String,
        /// The number of the execution that set the timer; a later execution ignores the message.
        execution_id: u64,
        /// The id of the event that created the timer.
        id: u64,
        /// The time at which the timer is due, in milliseconds since the Unix epoch.
        fire_at_ms: u64,
    },
    /// Raises an external event.
    ExternalRaised {
        /// The id of the instance that the event is for.
        instance: String,
        /// The name of the event; a wait for the same name receives it.
        name: String,
        /// The payload of the event, as the sender encoded it.
        data: String,
    },
    /// Puts a message on a queue of an instance.
    QueueMessage {
        /// The id of the instance that the queue belongs to.
        instance: String,
        /// The name of the queue.
        name: String,
        /// The payload of the message, as the sender encoded it.
        data: String,
    },
    /// Asks for an instance to be cancelled.
    CancelInstance {
        /// The id of the instance to cancel.
        instance: String,
        /// Why the instance is cancelled, in words for people.
        reason: String,
    },
    /// Delivers the result of a child.
    SubOrchCompleted {
        /// The instance id of the parent, which gets this message.
        parent_instance: String,
        /// The number of the execution of the parent that scheduled the child; a later execution ignores the
        /// message.
        parent_execution_id: u64,
        /// The id of the event in the history of the parent that scheduled the child.
        parent_id: u64,
        /// The output of the child, as its handler encoded it.
        result: String,
    },
    /// Delivers the error of a child.
    SubOrchFailed {
        /// The instance id of the parent, which gets this message.
        parent_instance: String,
        /// The number of the execution of the parent that scheduled the child; a later execution ignores the
        /// message.
        parent_execution_id: u64,
        /// The id of the event in the history of the parent that scheduled the child.
        parent_id: u64,
        /// Why the child failed.
        details: ErrorDetails,
    },
    /// Starts the next execution of an instance.
    ContinueAsNew {
        /// The id of the instance that continues as new.
        instance: String,
        /// The name that the orchestration is registered under.
        orchestration: String,
        /// The input of the next execution, as the caller encoded it.
        input: String,
        /// The version that the next execution shall run; `None` (`null` in JSON) leaves the choice to the
        /// registry.
        version: Option<String>,
        /// The instance id of the parent, which gets the outcome as a message; `None` for an instance that is
        /// not a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_instance: Option<String>,
        /// The id of the event in the history of the parent that scheduled this child; `None` without a
        /// parent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<u64>,
        /// The number of the execution of the parent that scheduled this child; `None` without a parent.
        /// Older engines did not write it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// The queue messages (name, data) that the previous execution did not read, in the order of
        /// delivery.
        #[serde(default)]
        carry_forward_events: Vec<(String, String)>,
        /// The custom status that the previous execution ended with; `None` if it had none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
    },
    /// Starts the next execution of an instance that has open sessions; used only then.
    ContinueAsNewWithSessions {
        /// The id of the instance that continues as new.
        instance: String,
        /// The name that the orchestration is registered under.
        orchestration: String,
        /// The input of the next execution, as the caller encoded it.
        input: String,
        /// The version that the next execution shall run; `None` (`null` in JSON) leaves the choice to the
        /// registry.
        version: Option<String>,
        /// The instance id of the parent, which gets the outcome as a message; `None` for an instance that is
        /// not a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_instance: Option<String>,
        /// The id of the event in the history of the parent that scheduled this child; `None` without a
        /// parent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<u64>,
        /// The number of the execution of the parent that scheduled this child; `None` without a parent.
        /// Older engines did not write it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// The queue messages (name, data) that the previous execution did not read, in the order of
        /// delivery.
        #[serde(default)]
        carry_forward_events: Vec<(String, String)>,
        /// The custom status that the previous execution ended with; `None` if it had none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
        /// The open sessions, in the order in which they were opened.
        sessions: Vec<CarriedSession>,
    },
    /// Tells an instance that asked for it that a session was attached anew.
    SessionMigrated {
        /// The id of the instance that watches the session.
        instance: String,
        /// The number of the execution that watches the session; a later execution ignores the message.
        execution_id: u64,
        /// The id of the session, owned by the instance or shared.
        session_id: String,
        /// The number of the new attachment. It rises with each attachment of the session.
        epoch: u64,
        /// The name of the worker that the session was attached to before; `None` if this is its first
        /// attachment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// The name of the worker that the session is attached to now.
        to: String,
    },
    /// Ends an instance without running its code, which may not be registered any more.
    TerminateInstance {
        /// The id of the instance to end.
        instance: String,
        /// Why the instance is ended, in words for people.
        reason: String,
    },
    /// Asks for a turn and brings nothing: something outside the engine woke the code of an instance.
    Nudge {
        /// The id of the instance that gets a turn.
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
