//! The kinds of operations an orchestration can ask for, one file each.
//!
//! Each kind says which event records it, when a recorded event matches a repeated call, and what it sends.
//! This file holds the matches over all kinds; an arm is one call into the kind's own file.

pub(crate) mod activity;
pub(crate) mod child;
pub(crate) mod detached;
pub(crate) mod kv;
pub(crate) mod queue;
pub(crate) mod session;
pub(crate) mod signal;
pub(crate) mod timer;

use crate::replay::Identity;
use crate::{Action, Event, EventKind};

/// The event that records `action`. Continue-as-new has none: the terminal event stands for it.
pub(crate) fn event_of(action: &Action, identity: &Identity, event_id: u64) -> Option<EventKind> {
    match action {
        Action::CallActivity { .. } => activity::event(action),
        Action::CreateTimer { fire_at_ms, .. } => Some(EventKind::TimerCreated { fire_at_ms: *fire_at_ms }),
        Action::WaitExternal { name, .. } => Some(signal::event(name)),
        Action::DequeueEvent { name, .. } => Some(queue::event(name)),
        Action::StartSubOrchestration { .. } => child::event(action, identity.execution_id, event_id),
        Action::StartOrchestrationDetached { .. } => detached::event(action),
        Action::UpdateCustomStatus { status } => {
            Some(EventKind::CustomStatusUpdated { status: status.clone() })
        }
        Action::SetKeyValue { key, value, last_updated_at_ms } => {
            Some(kv::set_event(key, value, *last_updated_at_ms))
        }
        Action::ClearKeyValue { key } => Some(kv::clear_event(key)),
        Action::ClearKeyValues => Some(EventKind::KeyValuesCleared),
        Action::OpenSession { .. } => {
            session::opened_event(action, &identity.instance, identity.execution_id, event_id)
        }
        Action::CloseSession { session_id, .. } => {
            Some(EventKind::SessionClosed { session_id: session_id.clone() })
        }
        Action::ContinueAsNew { .. } => None,
    }
}

/// Does `action`, repeated by the code, ask for what `event` recorded? Events that record no call match none.
pub(crate) fn matches(action: &Action, event: &Event) -> bool {
    match &event.kind {
        EventKind::ActivityScheduled { name, input, session_id, tag } => {
            activity::matches(action, name, input, session_id.as_deref(), tag.as_deref())
        }
        EventKind::TimerCreated { .. } => timer::matches(action),
        EventKind::ExternalSubscribed { name } => signal::matches(action, name),
        EventKind::QueueSubscribed { name } => queue::matches(action, name),
        EventKind::SubOrchestrationScheduled { name, input, .. } => {
            child::matches(action, event, name, input)
        }
        EventKind::OrchestrationChained { name, instance, input } => {
            detached::matches(action, event, name, instance, input)
        }
        EventKind::CustomStatusUpdated { .. } => matches!(action, Action::UpdateCustomStatus { .. }),
        EventKind::KeyValueSet { key, value, .. } => kv::set_matches(action, key, value),
        EventKind::KeyValueCleared { key } => kv::clear_matches(action, key),
        EventKind::KeyValuesCleared => kv::clear_all_matches(action),
        EventKind::SessionOpened { session_id, idle_timeout_ms, concurrency } => {
            session::opened_matches(action, event, session_id, *idle_timeout_ms, *concurrency)
        }
        EventKind::SessionClosed { session_id } => session::closed_matches(action, session_id),
        EventKind::OrchestrationStarted { .. }
        | EventKind::OrchestrationCompleted { .. }
        | EventKind::OrchestrationFailed { .. }
        | EventKind::OrchestrationContinuedAsNew { .. }
        | EventKind::OrchestrationCancelRequested { .. }
        | EventKind::ActivityCompleted { .. }
        | EventKind::ActivityFailed { .. }
        | EventKind::ActivityCancelRequested { .. }
        | EventKind::TimerFired { .. }
        | EventKind::ExternalEvent { .. }
        | EventKind::ExternalSubscribedCancelled { .. }
        | EventKind::QueueEventDelivered { .. }
        | EventKind::QueueSubscriptionCancelled { .. }
        | EventKind::SubOrchestrationCompleted { .. }
        | EventKind::SubOrchestrationFailed { .. }
        | EventKind::SubOrchestrationCancelRequested { .. }
        | EventKind::SessionMigrated { .. }
        | EventKind::SessionsCarried { .. } => false,
    }
}

/// The version that a call asks for, which its event records beside the compatible fields (F16).
pub(crate) fn requested_version(action: &Action) -> Option<String> {
    match action {
        Action::StartSubOrchestration { version, .. }
        | Action::StartOrchestrationDetached { version, .. } => version.clone(),
        _ => None,
    }
}

/// Notes which event recorded the call, for the work that is made of it.
pub(crate) fn set_scheduling_event(action: &mut Action, event_id: u64) {
    match action {
        Action::CallActivity { scheduling_event_id, .. }
        | Action::CreateTimer { scheduling_event_id, .. }
        | Action::WaitExternal { scheduling_event_id, .. }
        | Action::DequeueEvent { scheduling_event_id, .. }
        | Action::StartSubOrchestration { scheduling_event_id, .. }
        | Action::StartOrchestrationDetached { scheduling_event_id, .. }
        | Action::OpenSession { scheduling_event_id, .. }
        | Action::CloseSession { scheduling_event_id, .. } => *scheduling_event_id = event_id,
        Action::ContinueAsNew { .. }
        | Action::UpdateCustomStatus { .. }
        | Action::SetKeyValue { .. }
        | Action::ClearKeyValue { .. }
        | Action::ClearKeyValues => {}
    }
}

/// Histories written before 0.2.0 do not record the version of a child, so there is nothing to compare.
fn version_matches(asked: Option<&str>, event: &Event) -> bool {
    match event.child_version.as_deref() {
        Some(recorded) => asked == Some(recorded),
        None => asked.is_none() || !crate::vocabulary::version::records_everything(&event.duroxide_version),
    }
}
