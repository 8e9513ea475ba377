//! Activities: work that runs outside the orchestration.

use crate::{Action, EventKind, WorkItem};

/// The error that an activity of a closed session resolves to.
pub(crate) fn session_closed_error(session_id: &str) -> String {
    format!("canceled: session '{session_id}' closed")
}

pub(crate) const CANCELLED_BY_CLOSE: &str = "session_closed";

pub(crate) fn event(action: &Action) -> Option<EventKind> {
    let Action::CallActivity { name, input, session_id, tag, .. } = action else { return None };
    Some(EventKind::ActivityScheduled {
        name: name.clone(),
        input: input.clone(),
        session_id: session_id.clone(),
        tag: tag.clone(),
    })
}

pub(crate) fn matches(
    action: &Action,
    recorded_name: &str,
    recorded_input: &str,
    recorded_session: Option<&str>,
    recorded_tag: Option<&str>,
) -> bool {
    matches!(action, Action::CallActivity { name, input, session_id, tag, .. }
        if name == recorded_name
            && input == recorded_input
            && session_id.as_deref() == recorded_session
            && tag.as_deref() == recorded_tag)
}

pub(crate) fn work(action: Action, instance: &str, execution_id: u64) -> Option<WorkItem> {
    let Action::CallActivity { scheduling_event_id, name, input, session_id, tag } = action else {
        return None;
    };
    let instance = instance.to_owned();
    Some(WorkItem::ActivityExecute {
        instance,
        execution_id,
        id: scheduling_event_id,
        name,
        input,
        session_id,
        tag,
    })
}
