//! Detached starts: another orchestration is started, and its result does not come back.

use super::bounds::check_start;
use super::{Effect, Operation, Record, Site, version_matches};
use crate::replay::Identity;
use crate::{Action, ErrorDetails, Event, EventKind, INITIAL_EXECUTION_ID, WorkItem};

pub(crate) struct DetachedRules;

impl Operation for DetachedRules {
    fn label(&self) -> &'static str {
        "Detached"
    }

    fn refuse(&self, action: &Action, _event_id: u64, site: &Site<'_>) -> Result<(), ErrorDetails> {
        let Action::StartOrchestrationDetached { name, instance, input, .. } = action else { return Ok(()) };
        check_start(name, instance, input, site)
    }

    fn record(&self, action: &Action, _event_id: u64, _identity: &Identity) -> Option<Record> {
        let Action::StartOrchestrationDetached { name, version, instance, input, .. } = action else {
            return None;
        };
        let (name, instance, input) = (name.clone(), instance.clone(), input.clone());
        let kind = EventKind::OrchestrationChained { name, instance, input };
        Some(Record { kind, child_version: version.clone() })
    }

    fn send(&self, action: Action, _event: &Event, _site: &Site<'_>) -> Option<Effect> {
        let Action::StartOrchestrationDetached { name, version, instance, input, .. } = action else {
            return None;
        };
        Some(Effect::Message(WorkItem::StartOrchestration {
            instance,
            orchestration: name,
            input,
            version,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: INITIAL_EXECUTION_ID,
        }))
    }

    fn is_sent_at_end(&self) -> bool {
        true
    }

    fn matches(&self, action: &Action, event: &Event) -> bool {
        let EventKind::OrchestrationChained { name, instance, input } = &event.kind else { return false };
        let Action::StartOrchestrationDetached { name: called, instance: id, input: given, version, .. } =
            action
        else {
            return false;
        };
        called == name && id == instance && given == input && version_matches(version.as_deref(), event)
    }

    fn missing_call(&self, _event: &EventKind) -> String {
        "history OrchestrationChained but no emitted action".to_owned()
    }
}

/// The error text for an id that looks like one that the engine makes for a child.
pub(crate) fn reserved_id_error(instance: &str) -> String {
    format!("instance id '{instance}' uses the reserved sub-orchestration marker 'sub::'")
}
