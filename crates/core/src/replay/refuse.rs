//! The limits that a new decision must keep. Judged once, when the decision is made; never on replay.

use super::{Execution, application_error};
use crate::limits::{
    MAX_CUSTOM_STATUS_BYTES, MAX_KV_KEYS, MAX_KV_VALUE_BYTES, MAX_NAME_BYTES, MAX_TAG_NAME_BYTES,
};
use crate::operation::child;
use crate::operation::session::check_id;
use crate::{Action, ErrorDetails, Event, EventKind, build_child_instance_id};

type Verdict = Result<(), ErrorDetails>;

impl Execution {
    /// Refuses a call that breaks a rule; nothing of it is recorded. `event_id` is the one it would have.
    pub(super) fn refuse(&self, action: &Action, event_id: u64) -> Verdict {
        match action {
            Action::CallActivity { name, input, session_id, tag, .. } => {
                check_name("activity name", name)?;
                self.check_payload("activity input", input)?;
                if tag.as_deref().is_some_and(|tag| tag.contains('\0')) {
                    return Err(application_error(format!(
                        "the tag of activity '{name}' contains a NUL character"
                    )));
                }
                match session_id {
                    Some(id) => self.outline.sessions.check_schedule(id, tag.as_deref(), &self.options),
                    None => Ok(()),
                }
            }
            Action::CreateTimer { .. } | Action::ClearKeyValues => Ok(()),
            Action::WaitExternal { name, .. } => check_name("event name", name),
            Action::DequeueEvent { name, .. } => check_name("queue name", name),
            Action::StartSubOrchestration { name, instance, input, .. } => {
                let recorded = child::recorded_id(instance, self.identity.execution_id, event_id);
                let child = build_child_instance_id(&self.identity.instance, &recorded);
                self.check_start(name, &child, input)
            }
            Action::StartOrchestrationDetached { name, instance, input, .. } => {
                self.check_start(name, instance, input)
            }
            Action::ContinueAsNew { input, .. } => self.check_payload("continue-as-new input", input),
            // Sizes of status and values are judged at the end of the turn, as the compatible API has it.
            Action::UpdateCustomStatus { .. } => Ok(()),
            Action::SetKeyValue { key, .. } | Action::ClearKeyValue { key } => check_name("KV key", key),
            Action::OpenSession { session_id, .. } => {
                self.outline.sessions.check_open(session_id.as_deref(), &self.options)
            }
            Action::CloseSession { session_id, .. } => check_id(session_id),
        }
    }

    fn check_start(&self, name: &str, instance: &str, input: &str) -> Verdict {
        check_name("orchestration name", name)?;
        check_name("instance id", instance)?;
        self.check_payload("orchestration input", input)
    }

    pub(super) fn check_payload(&self, what: &str, payload: &str) -> Verdict {
        check_size(what, payload.len(), self.options.max_payload_bytes)
    }

    /// The first limit that the events of a turn break, in the order that the compatible API names.
    pub(super) fn check_events(&self, events: &[Event]) -> Verdict {
        check_sizes(events)?;
        let writes = events.iter().any(|event| matches!(event.kind, EventKind::KeyValueSet { .. }));
        if writes { self.check_keys() } else { Ok(()) }
    }

    /// The keys of the instance, not of a turn, have a limit (F21).
    pub(super) fn check_keys(&self) -> Verdict {
        let keys = self.shared.lock().kv.len();
        if keys > MAX_KV_KEYS {
            return Err(application_error(format!("KV key count ({keys}) exceeds limit ({MAX_KV_KEYS})")));
        }
        Ok(())
    }
}

/// The sizes that are judged at the end of a turn.
pub(super) fn check_sizes(events: &[Event]) -> Verdict {
    let status = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::CustomStatusUpdated { status: Some(status) } => Some(status.len()),
        _ => None,
    });
    check_size("Custom status", status.unwrap_or(0), MAX_CUSTOM_STATUS_BYTES)?;
    for event in events {
        if let EventKind::ActivityScheduled { name, tag: Some(tag), .. } = &event.kind {
            check_size(&format!("Activity '{name}' tag"), tag.len(), MAX_TAG_NAME_BYTES)?;
        }
    }
    for event in events {
        if let EventKind::KeyValueSet { key, value, .. } = &event.kind {
            let (size, max) = (value.len(), MAX_KV_VALUE_BYTES);
            if size > max {
                let text = format!("KV value for key '{key}' ({size} bytes) exceeds limit ({max} bytes)");
                return Err(application_error(text));
            }
        }
    }
    Ok(())
}

fn check_name(what: &str, name: &str) -> Verdict {
    check_size(what, name.len(), MAX_NAME_BYTES)?;
    if name.contains('\0') {
        return Err(application_error(format!(
            "{what} {name:?} contains a NUL character, which no name or id may"
        )));
    }
    Ok(())
}

fn check_size(what: &str, size: usize, max: usize) -> Verdict {
    if size > max {
        return Err(application_error(format!("{what} size ({size} bytes) exceeds limit ({max} bytes)")));
    }
    Ok(())
}
