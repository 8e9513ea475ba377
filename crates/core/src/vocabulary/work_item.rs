//! Work items: what travels through the orchestrator and worker queues.
//!
//! Their JSON is a wire format like that of events: the fields of a variant are closed, options without a
//! `skip` are written as `null`, and what came later has a variant of its own.

use serde::{Deserialize, Serialize};

use crate::vocabulary::error::ErrorDetails;
use crate::vocabulary::session::CarriedSession;

/// Carries one message to an instance, or one activity to a worker.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub enum WorkItem {
    /// Starts an instance.
    StartOrchestration {
        /// Names the instance to start.
        instance: String,
        /// Names the orchestration.
        orchestration: String,
        /// Holds its input.
        input: String,
        /// Asks for a version; `null` leaves the choice to the registry.
        version: Option<String>,
        /// Names the parent instance of a child.
        parent_instance: Option<String>,
        /// Names the parent's scheduling event.
        parent_id: Option<u64>,
        /// Numbers the parent execution that scheduled the child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// Numbers the execution to start.
        execution_id: u64,
    },
    /// Asks a worker to run an activity.
    ActivityExecute {
        /// Names the instance that scheduled it.
        instance: String,
        /// Numbers the execution that scheduled it.
        execution_id: u64,
        /// Names the scheduling event.
        id: u64,
        /// Names the activity.
        name: String,
        /// Holds its input.
        input: String,
        /// Names the session it runs on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// Names the pool of workers it runs in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// Delivers the result of an activity.
    ActivityCompleted {
        /// Names the instance that waits for it.
        instance: String,
        /// Numbers the execution that waits for it.
        execution_id: u64,
        /// Names the scheduling event.
        id: u64,
        /// Holds the result.
        result: String,
    },
    /// Delivers the error of an activity.
    ActivityFailed {
        /// Names the instance that waits for it.
        instance: String,
        /// Numbers the execution that waits for it.
        execution_id: u64,
        /// Names the scheduling event.
        id: u64,
        /// Says what went wrong.
        details: ErrorDetails,
    },
    /// Tells that a timer is due; the item is visible from then on.
    TimerFired {
        /// Names the instance that waits for it.
        instance: String,
        /// Numbers the execution that waits for it.
        execution_id: u64,
        /// Names the scheduling event.
        id: u64,
        /// Holds the time it is due, in milliseconds since the Unix epoch.
        fire_at_ms: u64,
    },
    /// Raises an external event.
    ExternalRaised {
        /// Names the instance to tell.
        instance: String,
        /// Names the event.
        name: String,
        /// Holds its payload.
        data: String,
    },
    /// Puts a message on a queue of an instance.
    QueueMessage {
        /// Names the instance to tell.
        instance: String,
        /// Names the queue.
        name: String,
        /// Holds the message.
        data: String,
    },
    /// Asks for an instance to be cancelled.
    CancelInstance {
        /// Names the instance to cancel.
        instance: String,
        /// Says why.
        reason: String,
    },
    /// Delivers the result of a child.
    SubOrchCompleted {
        /// Names the instance that waits for it.
        parent_instance: String,
        /// Numbers the execution that waits for it.
        parent_execution_id: u64,
        /// Names the scheduling event.
        parent_id: u64,
        /// Holds the result.
        result: String,
    },
    /// Delivers the error of a child.
    SubOrchFailed {
        /// Names the instance that waits for it.
        parent_instance: String,
        /// Numbers the execution that waits for it.
        parent_execution_id: u64,
        /// Names the scheduling event.
        parent_id: u64,
        /// Says what went wrong.
        details: ErrorDetails,
    },
    /// Starts the next execution of an instance.
    ContinueAsNew {
        /// Names the instance.
        instance: String,
        /// Names the orchestration.
        orchestration: String,
        /// Holds the input of the next execution.
        input: String,
        /// Asks for a version; `null` leaves the choice to the registry.
        version: Option<String>,
        /// Names the parent instance of a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_instance: Option<String>,
        /// Names the parent's scheduling event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<u64>,
        /// Numbers the parent execution that scheduled the child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// Holds queue messages (name, data) that were not read.
        #[serde(default)]
        carry_forward_events: Vec<(String, String)>,
        /// Holds the custom status to start with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
    },
    /// Starts the next execution of an instance that has open sessions; used only then.
    ContinueAsNewWithSessions {
        /// Names the instance.
        instance: String,
        /// Names the orchestration.
        orchestration: String,
        /// Holds the input of the next execution.
        input: String,
        /// Asks for a version; `null` leaves the choice to the registry.
        version: Option<String>,
        /// Names the parent instance of a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_instance: Option<String>,
        /// Names the parent's scheduling event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<u64>,
        /// Numbers the parent execution that scheduled the child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// Holds queue messages (name, data) that were not read.
        #[serde(default)]
        carry_forward_events: Vec<(String, String)>,
        /// Holds the custom status to start with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
        /// Holds the open sessions in the order they were opened.
        sessions: Vec<CarriedSession>,
    },
    /// Tells an instance that asked for it that a session was attached anew.
    SessionMigrated {
        /// Names the instance to tell.
        instance: String,
        /// Numbers the execution that asked.
        execution_id: u64,
        /// Names the session.
        session_id: String,
        /// Holds the epoch of the new attachment.
        epoch: u64,
        /// Names the previous owner, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// Names the new owner.
        to: String,
    },
    /// Ends an instance without running its code, which may be gone.
    TerminateInstance {
        /// Names the instance to end.
        instance: String,
        /// Says why.
        reason: String,
    },
    /// Asks for a turn and brings nothing: the code of an instance was touched from outside.
    Nudge {
        /// Names the instance.
        instance: String,
    },
}

impl WorkItem {
    /// Returns the instance this item is delivered to; the completion of a child goes to its parent.
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

/// Returns the name an item has in logs and metrics: its variant, or `ExternalRaisedPersistent` for a
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
