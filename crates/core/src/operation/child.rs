//! Children: sub-orchestrations that answer their parent.

use crate::{
    Action, Event, EventKind, INITIAL_EXECUTION_ID, WorkItem, auto_child_suffix, build_child_instance_id,
};

/// Stands in a call for the id that the engine gives when the event is recorded.
pub(crate) const PENDING_PREFIX: &str = "sub::pending_";

/// The error of an explicit id that could be taken for one of the engine's.
pub(crate) fn reserved_id_error(instance: &str) -> String {
    format!("sub-orchestration instance id '{instance}' uses the reserved marker 'sub::'")
}

/// The id as history records it: the suffix for ids of the engine's making, else the caller's text.
pub(crate) fn recorded_id(instance: &str, execution_id: u64, event_id: u64) -> String {
    if instance.starts_with(PENDING_PREFIX) {
        auto_child_suffix(execution_id, event_id)
    } else {
        instance.to_owned()
    }
}

pub(crate) fn event(action: &Action, execution_id: u64, event_id: u64) -> Option<EventKind> {
    let Action::StartSubOrchestration { name, instance, input, .. } = action else { return None };
    let instance = recorded_id(instance, execution_id, event_id);
    Some(EventKind::SubOrchestrationScheduled { name: name.clone(), instance, input: input.clone() })
}

pub(crate) fn matches(action: &Action, event: &Event, recorded_name: &str, recorded_input: &str) -> bool {
    matches!(action, Action::StartSubOrchestration { name, input, version, .. }
        if name == recorded_name && input == recorded_input && super::version_matches(version.as_deref(), event))
}

/// The message that starts the child recorded as `recorded_id` by event `event_id`.
pub(crate) fn start(
    action: Action,
    recorded_id: &str,
    parent: &str,
    parent_execution_id: u64,
) -> Option<WorkItem> {
    let Action::StartSubOrchestration { scheduling_event_id, name, version, input, .. } = action else {
        return None;
    };
    Some(WorkItem::StartOrchestration {
        instance: build_child_instance_id(parent, recorded_id),
        orchestration: name,
        input,
        version,
        parent_instance: Some(parent.to_owned()),
        parent_id: Some(scheduling_event_id),
        parent_execution_id: Some(parent_execution_id),
        execution_id: INITIAL_EXECUTION_ID,
    })
}
