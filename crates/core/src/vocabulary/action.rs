//! Actions: the calls that an orchestration makes during a turn, before they are recorded.
//!
//! Mismatch texts embed the `Debug` form of an action, so the order of fields is part of the interface.
//! Actions are never serialised: history holds the events they become.

use crate::vocabulary::session::SessionConcurrency;

/// Describes one call of an orchestration with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Runs an activity.
    CallActivity {
        /// Is 0 in a call of the code: the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// Holds the name that the activity is registered under.
        name: String,
        /// Holds the input as the caller encoded it.
        input: String,
        /// Holds the id of the session to run on; `None` for an activity without a session.
        session_id: Option<String>,
        /// Holds the tag: only workers that serve it take the activity. `None` means workers for untagged
        /// ones.
        tag: Option<String>,
    },
    /// Starts a timer.
    CreateTimer {
        /// Is 0 in a call of the code: the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// Holds the time at which the timer is due, in milliseconds since the Unix epoch.
        fire_at_ms: u64,
    },
    /// Waits for an external event.
    WaitExternal {
        /// Is 0 in a call of the code: the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// Holds the name that the event is raised under.
        name: String,
    },
    /// Starts another orchestration without waiting for it.
    StartOrchestrationDetached {
        /// Is 0 in a call of the code: the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// Holds the name that the orchestration is registered under.
        name: String,
        /// Holds the version asked for; `None` leaves the choice to the registry.
        version: Option<String>,
        /// Holds the id of the instance to start. An instance that exists already is not started again.
        instance: String,
        /// Holds the input as the caller encoded it.
        input: String,
    },
    /// Starts a child and waits for it.
    StartSubOrchestration {
        /// Is 0 in a call of the code: the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// Holds the name that the orchestration is registered under.
        name: String,
        /// Holds the version asked for; `None` leaves the choice to the registry.
        version: Option<String>,
        /// Holds the id of the child, or a stand-in for the id that the engine makes when the call is
        /// recorded.
        instance: String,
        /// Holds the input as the caller encoded it.
        input: String,
    },
    /// Ends this execution and starts the next.
    ContinueAsNew {
        /// Holds the input of the next execution.
        input: String,
        /// Holds the version asked for; `None` leaves the choice to the registry.
        version: Option<String>,
    },
    /// Sets or clears the custom status.
    UpdateCustomStatus {
        /// Holds the new status; `None` clears it.
        status: Option<String>,
    },
    /// Takes the next message of a queue, or waits for it.
    DequeueEvent {
        /// Is 0 in a call of the code: the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// Holds the name of the queue.
        name: String,
    },
    /// Sets a key of the instance's key-value store.
    SetKeyValue {
        /// Holds the key, unique within the instance.
        key: String,
        /// Holds the new value, which replaces the former one.
        value: String,
        /// Holds the time of the turn that made the call, in milliseconds since the Unix epoch.
        last_updated_at_ms: u64,
    },
    /// Clears a key of the instance's key-value store.
    ClearKeyValue {
        /// Holds the key, unique within the instance.
        key: String,
    },
    /// Clears every key of the instance's key-value store.
    ClearKeyValues,
    /// Opens an owned session.
    OpenSession {
        /// Is 0 in a call of the code: the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// Holds the session id; for `None` the engine makes one of the id of the recording event.
        session_id: Option<String>,
        /// Bounds how long a session without running activities stays attached to its worker, in
        /// milliseconds; `None` keeps it attached until it is closed.
        idle_timeout_ms: Option<u64>,
        /// Says how many activities of the session may run at a time; `None` means
        /// [`SessionConcurrency::Unbounded`].
        concurrency: Option<SessionConcurrency>,
    },
    /// Closes an owned session.
    CloseSession {
        /// Is 0 in a call of the code: the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// Holds the id of the session within its instance.
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
