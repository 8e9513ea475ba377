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
        /// 0 in a call of the code, because the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// The name that the activity is registered under.
        name: String,
        /// The input of the activity, as the caller encoded it.
        input: String,
        /// The id of the session that the activity runs on: an open session of this instance, or else the
        /// shared session of that id. `None` for an activity without a session.
        session_id: Option<String>,
        /// Only workers that serve this tag take the activity; `None` leaves it to workers that take untagged
        /// activities.
        tag: Option<String>,
    },
    /// Starts a timer.
    CreateTimer {
        /// 0 in a call of the code, because the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// The time at which the timer is due, in milliseconds since the Unix epoch.
        fire_at_ms: u64,
    },
    /// Waits for an external event.
    WaitExternal {
        /// 0 in a call of the code, because the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// The name of the awaited event: the one that its sender raises it under.
        name: String,
    },
    /// Starts another orchestration without waiting for it.
    StartOrchestrationDetached {
        /// 0 in a call of the code, because the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// The name that the orchestration is registered under.
        name: String,
        /// The version that the caller asks for; `None` leaves the choice to the registry.
        version: Option<String>,
        /// The id of the instance to start. An instance that exists already is not started again.
        instance: String,
        /// The input of the orchestration, as the caller encoded it.
        input: String,
    },
    /// Starts a child and waits for it.
    StartSubOrchestration {
        /// 0 in a call of the code, because the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// The name that the orchestration is registered under.
        name: String,
        /// The version that the caller asks for; `None` leaves the choice to the registry.
        version: Option<String>,
        /// The instance id of the child: the one that the caller chose, or a placeholder for the id that the
        /// engine makes when the call is recorded.
        instance: String,
        /// The input of the child, as the caller encoded it.
        input: String,
    },
    /// Ends this execution and starts the next.
    ContinueAsNew {
        /// The input of the next execution, as the caller encoded it.
        input: String,
        /// The version that the next execution shall run; `None` leaves the choice to the registry.
        version: Option<String>,
    },
    /// Sets or clears the custom status.
    UpdateCustomStatus {
        /// The new status; `None` clears it.
        status: Option<String>,
    },
    /// Takes the next message of a queue, or waits for it.
    DequeueEvent {
        /// 0 in a call of the code, because the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// The name of the queue, which belongs to the instance.
        name: String,
    },
    /// Sets a key of the instance's key-value store.
    SetKeyValue {
        /// The key, unique within the instance.
        key: String,
        /// The new value, which replaces the former one.
        value: String,
        /// The time of the turn that made the call, in milliseconds since the Unix epoch.
        last_updated_at_ms: u64,
    },
    /// Clears a key of the instance's key-value store.
    ClearKeyValue {
        /// The key to clear, unique within the instance.
        key: String,
    },
    /// Clears every key of the instance's key-value store.
    ClearKeyValues,
    /// Opens an owned session.
    OpenSession {
        /// 0 in a call of the code, because the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// The id of the session within its instance; for `None` the engine makes one from the id of the
        /// recording event.
        session_id: Option<String>,
        /// How long a session without running activities stays attached to its worker, in milliseconds;
        /// `None` keeps it attached until it is closed.
        idle_timeout_ms: Option<u64>,
        /// How many activities of the session may run at a time; `None` means
        /// [`SessionConcurrency::Unbounded`].
        concurrency: Option<SessionConcurrency>,
    },
    /// Closes an owned session.
    CloseSession {
        /// 0 in a call of the code, because the id of the recording event is not known yet. Kept for the
        /// compatible form.
        scheduling_event_id: u64,
        /// The id of the session within its instance; closing a session that is not open changes nothing.
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
