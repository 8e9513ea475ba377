//! History: one [`Event`] per recorded fact of an execution.
//!
//! An event is a flat JSON object whose keys, their order and their spelling are a wire format: exported
//! histories are read back and compared as text. The fields of a kind are therefore closed; what came
//! later lives in optional fields of [`Event`] itself, which are not written while they are absent.

mod stamp;

use serde::{Deserialize, Serialize};

use crate::vocabulary::call::{CallTerms, Failure};
use crate::vocabulary::error::ErrorDetails;
use crate::vocabulary::session::{CarriedSession, SessionConcurrency};
use crate::vocabulary::version::BUILD_VERSION;

/// Records one fact of an execution, with its place in the history.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct Event {
    /// The place of the event in the history of its execution, from 1. Ids rise; a continue-as-new may leave
    /// a gap.
    pub event_id: u64,
    /// The id of the scheduling event that this one answers or cancels; `None`, written as `null`, if there
    /// is none.
    pub source_event_id: Option<u64>,
    /// The id of the instance whose history this event belongs to.
    pub instance_id: String,
    /// The number of the execution within its instance, from 1.
    pub execution_id: u64,
    /// The time of recording, in milliseconds since the Unix epoch.
    pub timestamp_ms: u64,
    /// The version of the engine that recorded the event. An event without it cannot be read.
    pub duroxide_version: String,
    /// The recorded fact. In JSON its fields stand beside the other fields of the event.
    #[serde(flatten)]
    pub kind: EventKind,
    /// The version that the code asked for when it scheduled a child or a detached start; `None` if it asked
    /// for none, and in any other event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_version: Option<String>,
    /// The W3C trace context that the start of the execution came with. Only the first event of an execution
    /// has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The random number of the execution, which the keys of its calls hold. Only the first event of an
    /// execution has one; engines before 0.3.0 did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random: Option<u64>,
    /// The key and the policy of a call. Only the event that schedules an activity has them; engines before
    /// 0.3.0 did not write them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<CallTerms>>,
    /// How an activity failed, beside its error. Only an event that records the failure of a call with a
    /// policy, or of an error with data, has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Box<Failure>>,
}

impl Event {
    /// Builds an event recorded at `timestamp_ms`, stamped with the version of this build.
    pub fn at(
        timestamp_ms: u64,
        event_id: u64,
        instance_id: impl Into<String>,
        execution_id: u64,
        source_event_id: Option<u64>,
        kind: EventKind,
    ) -> Self {
        Self {
            event_id,
            source_event_id,
            instance_id: instance_id.into(),
            execution_id,
            timestamp_ms,
            duroxide_version: BUILD_VERSION.to_owned(),
            kind,
            child_version: None,
            traceparent: None,
            random: None,
            call: None,
            failure: None,
        }
    }

    /// Returns the place of this event in its execution.
    pub fn event_id(&self) -> u64 {
        self.event_id
    }

    /// Returns the id of the scheduling event that this one answers or cancels; `None` if there is none.
    pub fn source_event_id(&self) -> Option<u64> {
        self.source_event_id
    }

    /// Tells whether engines before 0.3.0 would lose a part of this event: it has a field that they do not
    /// know.
    pub fn needs_newer_engine(&self) -> bool {
        self.random.is_some() || self.call.is_some() || self.failure.is_some()
    }

    /// Tells whether this event ends its execution: completed, failed or continued as new.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self.kind,
            EventKind::OrchestrationCompleted { .. }
                | EventKind::OrchestrationFailed { .. }
                | EventKind::OrchestrationContinuedAsNew { .. }
        )
    }
}

/// Tells what an event records. In JSON the variant is the field `type`, and its fields stand beside it.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "type")]
pub enum EventKind {
    /// Begins an execution; the first event of every history.
    OrchestrationStarted {
        /// The name that the orchestration is registered under.
        name: String,
        /// The version of the handler that runs this execution; every replay uses the same version.
        version: String,
        /// The input of the handler, as the caller encoded it.
        input: String,
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
        /// The queue messages (name, data) that the previous execution did not read, in the order of
        /// delivery; `None` if there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carry_forward_events: Option<Vec<(String, String)>>,
        /// The custom status that the previous execution ended with; `None` if it had none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
    },
    /// Ends an execution with an output.
    OrchestrationCompleted {
        /// The output of the execution, as its handler encoded it.
        output: String,
    },
    /// Ends an execution with an error.
    OrchestrationFailed {
        /// Why the execution failed: an error of the handler, a panic, a cancellation, a limit, or a fault
        /// outside the code.
        details: ErrorDetails,
    },
    /// Records that the code scheduled an activity. `ActivityCompleted` or `ActivityFailed` answers it.
    ActivityScheduled {
        /// The name that the activity is registered under.
        name: String,
        /// The input of the activity, as the caller encoded it.
        input: String,
        /// The id of the session that the activity runs on: an open session of this instance, or else the
        /// shared session of that id. `None` for an activity without a session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// Only workers that serve this tag take the activity; `None` leaves it to workers that take untagged
        /// activities.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// Records the result of an activity.
    ActivityCompleted {
        /// The output of the activity, as its handler encoded it.
        result: String,
    },
    /// Records the error of an activity.
    ActivityFailed {
        /// Why the activity failed. The code sees an `Application` error as text; an error of any other
        /// category fails the orchestration.
        details: ErrorDetails,
    },
    /// Records that an activity is to be cancelled: the code dropped its future, its session was closed, or
    /// the execution ended.
    ActivityCancelRequested {
        /// Why the activity is to be cancelled, in words for people.
        reason: String,
    },
    /// Records that the code started a timer. `TimerFired` answers it.
    TimerCreated {
        /// The time at which the timer is due, in milliseconds since the Unix epoch.
        fire_at_ms: u64,
    },
    /// Records that a timer was due.
    TimerFired {
        /// The time at which the timer was due, in milliseconds since the Unix epoch.
        fire_at_ms: u64,
    },
    /// Records that the code waits for the next external event of a name. `ExternalEvent` answers it.
    ExternalSubscribed {
        /// The name of the awaited event: the one that its sender raises it under.
        name: String,
    },
    /// Records an external event, whether a wait is open for it or not.
    ExternalEvent {
        /// The name that the event was raised under.
        name: String,
        /// The payload of the event, as the sender encoded it.
        data: String,
    },
    /// Records that the code started another orchestration without waiting for it.
    OrchestrationChained {
        /// The name that the orchestration is registered under.
        name: String,
        /// The id of the instance to start. An instance that exists already is not started again.
        instance: String,
        /// The input of the started orchestration, as the caller encoded it.
        input: String,
    },
    /// Records that the code started a child. `SubOrchestrationCompleted` or `SubOrchestrationFailed` answers
    /// it.
    SubOrchestrationScheduled {
        /// The name that the orchestration is registered under.
        name: String,
        /// The instance id of the child. An id that the engine made is recorded without the id of the parent
        /// in front; an id that the caller chose is recorded in full.
        instance: String,
        /// The input of the child, as the caller encoded it.
        input: String,
    },
    /// Records the result of a child.
    SubOrchestrationCompleted {
        /// The output of the child, as its handler encoded it.
        result: String,
    },
    /// Records the error of a child.
    SubOrchestrationFailed {
        /// Why the child failed. The code sees an `Application` error as text; an error of any other category
        /// fails the orchestration.
        details: ErrorDetails,
    },
    /// Records that a child is to be cancelled, because the code dropped its future.
    SubOrchestrationCancelRequested {
        /// Why the child is to be cancelled, in words for people.
        reason: String,
    },
    /// Ends an execution that continues as new. The next execution has a history of its own.
    OrchestrationContinuedAsNew {
        /// The input of the next execution, as the caller encoded it.
        input: String,
    },
    /// Records a request to cancel the instance.
    OrchestrationCancelRequested {
        /// Why the instance is to be cancelled, in words of the caller.
        reason: String,
    },
    /// Records that a wait for an external event ended without one: the code dropped its future, or the
    /// execution ended.
    ExternalSubscribedCancelled {
        /// Why the wait ended, in words for people.
        reason: String,
    },
    /// Records that the code waits for the next message of a queue. `QueueEventDelivered` answers it.
    #[serde(rename = "ExternalSubscribedPersistent")]
    QueueSubscribed {
        /// The name of the queue, which belongs to the instance.
        name: String,
    },
    /// Records a queue message, whether a dequeue waits for it or not.
    #[serde(rename = "ExternalEventPersistent")]
    QueueEventDelivered {
        /// The name of the queue, which belongs to the instance.
        name: String,
        /// The payload of the message, as the sender encoded it.
        data: String,
    },
    /// Records that a wait for a queue message ended without one: the code dropped its future, or the
    /// execution ended.
    #[serde(rename = "ExternalSubscribedPersistentCancelled")]
    QueueSubscriptionCancelled {
        /// Why the wait ended, in words for people.
        reason: String,
    },
    /// Records that the code set or cleared the custom status.
    CustomStatusUpdated {
        /// The new status; `None`, written as `null`, clears it.
        status: Option<String>,
    },
    /// Records that the code set a key of the instance's key-value store.
    KeyValueSet {
        /// The key, unique within the instance.
        key: String,
        /// The new value, which replaces the former one.
        value: String,
        /// The time of the turn that made the call, in milliseconds since the Unix epoch. 0 if it was not
        /// recorded.
        #[serde(default)]
        last_updated_at_ms: u64,
    },
    /// Records that the code cleared a key of the instance's key-value store.
    KeyValueCleared {
        /// The cleared key, unique within the instance.
        key: String,
    },
    /// Records that the code cleared every key of the instance's key-value store.
    KeyValuesCleared,
    /// Records that the code opened an owned session, or that the session was open already.
    SessionOpened {
        /// The id of the session within this instance.
        session_id: String,
        /// How long a session without running activities stays attached to its worker, in milliseconds;
        /// `None` keeps it attached until it is closed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idle_timeout_ms: Option<u64>,
        /// How many activities of the session may run at a time; `None` means
        /// [`SessionConcurrency::Unbounded`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        concurrency: Option<SessionConcurrency>,
    },
    /// Records that the code closed an owned session, or that the session was not open.
    SessionClosed {
        /// The id of the session within this instance.
        session_id: String,
    },
    /// Records that a session was attached to a worker anew, without its former in-memory state.
    SessionMigrated {
        /// The id of the session, owned by this instance or shared.
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
    /// Lists the open sessions a continue-as-new brought along, right after the start.
    SessionsCarried {
        /// The sessions, in the order in which they were opened.
        sessions: Vec<CarriedSession>,
    },
}

impl EventKind {
    /// Returns the `type` tag this kind has in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::OrchestrationStarted { .. } => "OrchestrationStarted",
            Self::OrchestrationCompleted { .. } => "OrchestrationCompleted",
            Self::OrchestrationFailed { .. } => "OrchestrationFailed",
            Self::ActivityScheduled { .. } => "ActivityScheduled",
            Self::ActivityCompleted { .. } => "ActivityCompleted",
            Self::ActivityFailed { .. } => "ActivityFailed",
            Self::ActivityCancelRequested { .. } => "ActivityCancelRequested",
            Self::TimerCreated { .. } => "TimerCreated",
            Self::TimerFired { .. } => "TimerFired",
            Self::ExternalSubscribed { .. } => "ExternalSubscribed",
            Self::ExternalEvent { .. } => "ExternalEvent",
            Self::OrchestrationChained { .. } => "OrchestrationChained",
            Self::SubOrchestrationScheduled { .. } => "SubOrchestrationScheduled",
            Self::SubOrchestrationCompleted { .. } => "SubOrchestrationCompleted",
            Self::SubOrchestrationFailed { .. } => "SubOrchestrationFailed",
            Self::SubOrchestrationCancelRequested { .. } => "SubOrchestrationCancelRequested",
            Self::OrchestrationContinuedAsNew { .. } => "OrchestrationContinuedAsNew",
            Self::OrchestrationCancelRequested { .. } => "OrchestrationCancelRequested",
            Self::ExternalSubscribedCancelled { .. } => "ExternalSubscribedCancelled",
            Self::QueueSubscribed { .. } => "ExternalSubscribedPersistent",
            Self::QueueEventDelivered { .. } => "ExternalEventPersistent",
            Self::QueueSubscriptionCancelled { .. } => "ExternalSubscribedPersistentCancelled",
            Self::CustomStatusUpdated { .. } => "CustomStatusUpdated",
            Self::KeyValueSet { .. } => "KeyValueSet",
            Self::KeyValueCleared { .. } => "KeyValueCleared",
            Self::KeyValuesCleared => "KeyValuesCleared",
            Self::SessionOpened { .. } => "SessionOpened",
            Self::SessionClosed { .. } => "SessionClosed",
            Self::SessionMigrated { .. } => "SessionMigrated",
            Self::SessionsCarried { .. } => "SessionsCarried",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind) -> Event {
        Event::at(7, 3, "order-1", 2, Some(1), kind)
    }

    #[test]
    fn an_event_built_at_a_time_carries_that_time_and_this_build() {
        let event = event(EventKind::TimerFired { fire_at_ms: 5 });
        assert_eq!((event.timestamp_ms, event.event_id(), event.source_event_id()), (7, 3, Some(1)));
        assert_eq!((event.instance_id.as_str(), event.execution_id), ("order-1", 2));
        assert_eq!(event.duroxide_version, env!("CARGO_PKG_VERSION"));
        assert_eq!((event.child_version, event.traceparent), (None, None));
    }

    #[test]
    fn completed_failed_and_continued_as_new_end_an_execution_and_cancel_requested_does_not() {
        let details = ErrorDetails::Infrastructure {
            operation: "ack".to_owned(),
            message: "gone".to_owned(),
            retryable: false,
        };
        assert!(event(EventKind::OrchestrationCompleted { output: String::new() }).is_terminal());
        assert!(event(EventKind::OrchestrationFailed { details }).is_terminal());
        assert!(event(EventKind::OrchestrationContinuedAsNew { input: String::new() }).is_terminal());
        assert!(!event(EventKind::OrchestrationCancelRequested { reason: String::new() }).is_terminal());
        assert!(!event(EventKind::KeyValuesCleared).is_terminal());
    }

    #[test]
    fn debug_text_shows_fields_in_wire_order() {
        let kind = EventKind::ActivityScheduled {
            name: "charge".to_owned(),
            input: "5".to_owned(),
            session_id: None,
            tag: None,
        };
        assert_eq!(
            format!("{kind:?}"),
            r#"ActivityScheduled { name: "charge", input: "5", session_id: None, tag: None }"#
        );
    }
}
