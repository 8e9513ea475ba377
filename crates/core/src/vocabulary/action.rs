//! Actions: what an orchestration asks for during a turn, before it is recorded.
//!
//! Mismatch texts embed the `Debug` form of an action, so the order of fields is part of the interface.
//! Actions are never serialised: history holds the events they become.

use crate::vocabulary::session::SessionConcurrency;

/// Describes one thing an orchestration asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Runs an activity.
    CallActivity {
        /// Names the scheduling event, 0 until it is recorded.
        scheduling_event_id: u64,
        /// Names the activity.
        name: String,
        /// Holds its input.
        input: String,
        /// Names the session it runs on.
        session_id: Option<String>,
        /// Names the pool of workers it runs in.
        tag: Option<String>,
    },
    /// Starts a timer.
    CreateTimer {
        /// Names the scheduling event, 0 until it is recorded.
        scheduling_event_id: u64,
        /// Holds the time it is due, in milliseconds since the Unix epoch.
        fire_at_ms: u64,
    },
    /// Waits for an external event.
    WaitExternal {
        /// Names the scheduling event, 0 until it is recorded.
        scheduling_event_id: u64,
        /// Names the event.
        name: String,
    },
    /// Starts another orchestration without waiting for it.
    StartOrchestrationDetached {
        /// Names the scheduling event, 0 until it is recorded.
        scheduling_event_id: u64,
        /// Names the orchestration.
        name: String,
        /// Asks for a version.
        version: Option<String>,
        /// Names the instance to start.
        instance: String,
        /// Holds its input.
        input: String,
    },
    /// Starts a child and waits for it.
    StartSubOrchestration {
        /// Names the scheduling event, 0 until it is recorded.
        scheduling_event_id: u64,
        /// Names the orchestration.
        name: String,
        /// Asks for a version.
        version: Option<String>,
        /// Names the child.
        instance: String,
        /// Holds its input.
        input: String,
    },
    /// Ends this execution and starts the next.
    ContinueAsNew {
        /// Holds the input of the next execution.
        input: String,
        /// Asks for a version.
        version: Option<String>,
    },
    /// Sets or clears the custom status.
    UpdateCustomStatus {
        /// Holds the new status; `None` clears it.
        status: Option<String>,
    },
    /// Waits for the next message of a queue.
    DequeueEvent {
        /// Names the scheduling event, 0 until it is recorded.
        scheduling_event_id: u64,
        /// Names the queue.
        name: String,
    },
    /// Sets a key of the instance's key-value store.
    SetKeyValue {
        /// Names the key.
        key: String,
        /// Holds the value.
        value: String,
        /// Holds the time of the call, in milliseconds since the Unix epoch.
        last_updated_at_ms: u64,
    },
    /// Clears a key of the instance's key-value store.
    ClearKeyValue {
        /// Names the key.
        key: String,
    },
    /// Clears every key of the instance's key-value store.
    ClearKeyValues,
    /// Opens an owned session.
    OpenSession {
        /// Names the scheduling event, 0 until it is recorded.
        scheduling_event_id: u64,
        /// Names the session; `None` leaves it to the engine, which knows the event id it is made of.
        session_id: Option<String>,
        /// Bounds how long an idle session stays attached; `None` holds it while open.
        idle_timeout_ms: Option<u64>,
        /// Says how many of its activities may run at a time; `None` is the default.
        concurrency: Option<SessionConcurrency>,
    },
    /// Closes an owned session.
    CloseSession {
        /// Names the scheduling event, 0 until it is recorded.
        scheduling_event_id: u64,
        /// Names the session.
        session_id: String,
    },
}

impl Action {
    /// The name of the variant, for texts that people read.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::CallActivity { .. } => "CallActivity",
            Self::CreateTimer { .. } => "CreateTimer",
            Self::WaitExternal { .. } => "WaitExternal",
            Self::StartOrchestrationDetached { .. } => "StartOrchestrationDetached",
            Self::StartSubOrchestration { .. } => "StartSubOrchestration",
            Self::ContinueAsNew { .. } => "ContinueAsNew",
            Self::UpdateCustomStatus { .. } => "UpdateCustomStatus",
            Self::DequeueEvent { .. } => "DequeueEvent",
            Self::SetKeyValue { .. } => "SetKeyValue",
            Self::ClearKeyValue { .. } => "ClearKeyValue",
            Self::ClearKeyValues => "ClearKeyValues",
            Self::OpenSession { .. } => "OpenSession",
            Self::CloseSession { .. } => "CloseSession",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_text_shows_fields_in_the_promised_order() {
        let action = Action::StartSubOrchestration {
            scheduling_event_id: 4,
            name: "ship".to_owned(),
            version: None,
            instance: "sub::4".to_owned(),
            input: "x".to_owned(),
        };
        assert_eq!(
            format!("{action:?}"),
            "StartSubOrchestration { scheduling_event_id: 4, name: \"ship\", version: None, \
             instance: \"sub::4\", input: \"x\" }"
        );
    }
}
