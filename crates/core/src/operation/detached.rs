//! Detached starts: orchestrations that nobody waits for.

use crate::{Action, Event, EventKind, INITIAL_EXECUTION_ID, WorkItem};

/// The error of an id that could be taken for a child of the engine's naming.
pub(crate) fn reserved_id_error(instance: &str) -> String {
    format!("instance id '{instance}' uses the reserved sub-orchestration marker 'sub::'")
}

pub(crate) fn event(action: &Action) -> Option<EventKind> {
    let Action::StartOrchestrationDetached { name, instance, input, .. } = action else { return None };
    let (name, instance, input) = (name.clone(), instance.clone(), input.clone());
    Some(EventKind::OrchestrationChained { name, instance, input })
}

pub(crate) fn matches(
    action: &Action,
    event: &Event,
    recorded_name: &str,
    recorded_instance: &str,
    recorded_input: &str,
) -> bool {
    matches!(action, Action::StartOrchestrationDetached { name, instance, input, version, .. }
        if name == recorded_name
            && instance == recorded_instance
            && input == recorded_input
            && super::version_matches(version.as_deref(), event))
}

pub(crate) fn start(action: Action) -> Option<WorkItem> {
    let Action::StartOrchestrationDetached { name, version, instance, input, .. } = action else {
        return None;
    };
    Some(WorkItem::StartOrchestration {
        instance,
        orchestration: name,
        input,
        version,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: INITIAL_EXECUTION_ID,
    })
}
