//! Children: sub-orchestrations that answer their parent.

use std::collections::BTreeMap;

use super::bounds::check_start;
use super::{
    AnswerLabels, Cancellation, Effect, InstanceEnd, Kind, Operation, Record, Role, Site, version_matches,
};
use crate::replay::admit::{Judgement, Reply};
use crate::replay::decide::Draft;
use crate::replay::ledger::{Answer, Ledger};
use crate::replay::outline::Outline;
use crate::replay::play::Next;
use crate::replay::{AnsweredChild, Effects, Identity};
use crate::{
    Action, ErrorDetails, Event, EventKind, INITIAL_EXECUTION_ID, OpenKind, WorkItem, auto_child_suffix,
    build_child_instance_id,
};

pub(crate) struct ChildRules;

/// The open children of an execution, by the event that scheduled them.
pub(crate) type OpenChildren = BTreeMap<u64, OpenChild>;

#[derive(Debug)]
pub(crate) struct OpenChild {
    name: String,
    instance: String,
    since_ms: u64,
}

impl Operation for ChildRules {
    fn label(&self) -> &'static str {
        "SubOrchestration"
    }

    fn refuse(&self, action: &Action, event_id: u64, site: &Site<'_>) -> Result<(), ErrorDetails> {
        let Action::StartSubOrchestration { name, instance, input, .. } = action else { return Ok(()) };
        check_start(name, &full_id(instance, site.identity, event_id), input, site)
    }

    fn record(&self, action: &Action, event_id: u64, identity: &Identity) -> Option<Record> {
        let Action::StartSubOrchestration { name, version, instance, input, .. } = action else {
            return None;
        };
        let kind = EventKind::SubOrchestrationScheduled {
            name: name.clone(),
            instance: recorded_id(instance, identity.execution_id, event_id),
            input: input.clone(),
        };
        Some(Record { kind, child_version: version.clone() })
    }

    fn send(&self, action: Action, event: &Event, site: &Site<'_>) -> Option<Effect> {
        let Action::StartSubOrchestration { name, version, instance, input, .. } = action else {
            return None;
        };
        Some(Effect::Message(WorkItem::StartOrchestration {
            instance: full_id(&instance, site.identity, event.event_id),
            orchestration: name,
            input,
            version,
            parent_instance: Some(site.identity.instance.clone()),
            parent_id: Some(event.event_id),
            parent_execution_id: Some(site.identity.execution_id),
            execution_id: INITIAL_EXECUTION_ID,
        }))
    }

    /// The id of the child is not compared: the engine may have made it.
    fn matches(&self, action: &Action, event: &Event) -> bool {
        let EventKind::SubOrchestrationScheduled { name, input, .. } = &event.kind else { return false };
        matches!(action, Action::StartSubOrchestration { name: called, input: given, version, .. }
            if called == name && given == input && version_matches(version.as_deref(), event))
    }

    fn open(&self, event: &Event, identity: &Identity, outline: &mut Outline) {
        let EventKind::SubOrchestrationScheduled { name, instance, .. } = &event.kind else { return };
        let instance = build_child_instance_id(&identity.instance, instance);
        let child = OpenChild { name: name.clone(), instance, since_ms: event.timestamp_ms };
        outline.schedule(event.event_id, Kind::Child);
        outline.children.insert(event.event_id, child);
    }

    fn admit(&self, message: WorkItem, site: &Site<'_>) -> Judgement {
        let (execution_id, id, event) =
            if let WorkItem::SubOrchCompleted { parent_execution_id, parent_id, result, .. } = message {
                (parent_execution_id, parent_id, EventKind::SubOrchestrationCompleted { result })
            } else if let WorkItem::SubOrchFailed { parent_execution_id, parent_id, details, .. } = message {
                (parent_execution_id, parent_id, EventKind::SubOrchestrationFailed { details })
            } else {
                return Judgement::misaddressed();
            };
        Reply { kind: Kind::Child, execution_id, id }.judge(event, site)
    }

    fn answer_labels(&self) -> Option<AnswerLabels> {
        Some(AnswerLabels { schedule: "suborchestration", unmatched: "sub-orchestration" })
    }

    fn failure<'a>(&self, event: &'a EventKind) -> Option<&'a ErrorDetails> {
        let EventKind::SubOrchestrationFailed { details } = event else { return None };
        Some(details)
    }

    fn settle(&self, event: Event, ledger: &mut Ledger) -> Next {
        let result = if let EventKind::SubOrchestrationCompleted { result } = event.kind {
            Ok(result)
        } else if let Some(details) = self.failure(&event.kind) {
            Err(details.display_message())
        } else {
            return Next::Go;
        };
        Next::settle(event.source_event_id, Answer::Result(result), ledger)
    }

    fn close(&self, event: &Event, outline: &mut Outline) {
        outline.close(event.source_event_id);
    }

    fn closed(&self, id: u64, outline: &mut Outline) {
        outline.children.remove(&id);
    }

    fn cancellation(&self) -> Option<Cancellation> {
        Some(Cancellation {
            label: "sub-orchestrations",
            event: |reason| EventKind::SubOrchestrationCancelRequested { reason },
        })
    }

    fn cancel(&self, event: &Event, outline: &mut Outline) {
        outline.request_cancel(event.source_event_id);
    }

    /// Sends the child a cancellation. A child that this turn scheduled is started and then cancelled if the
    /// execution goes on. If the execution ends in this turn, that child is never started, so no cancellation
    /// is sent.
    fn stop(&self, id: u64, site: &Site<'_>, draft: &mut Draft) {
        let Some(child) = site.outline.children.get(&id) else { return };
        let message = cancellation(child, "parent dropped sub-orchestration future");
        let is_sent_at_end = id < draft.first_event_id;
        draft.push_effect(Effect::Message(message), is_sent_at_end);
    }

    fn unanswered(&self, outline: &Outline) -> Vec<u64> {
        outline.running(Kind::Child)
    }

    fn end_instance(&self, end: &InstanceEnd<'_>, outline: &Outline, effects: &mut Effects) {
        let started = self.unanswered(outline).into_iter().filter(|id| *id < end.first_event_id);
        let children = started.filter_map(|id| outline.children.get(&id));
        effects.messages.extend(children.map(|child| cancellation(child, end.reason)));
    }

    fn explain(&self, event: &Event, _instance: &str, outline: &Outline) -> Option<OpenKind> {
        let EventKind::SubOrchestrationScheduled { name, .. } = &event.kind else { return None };
        if outline.open_schedule(event.event_id, Kind::Child)?.cancel_requested {
            return None;
        }
        let child = outline.children.get(&event.event_id)?;
        Some(OpenKind::Child { name: name.clone(), instance: child.instance.clone() })
    }
}

/// Begins the placeholder that a call holds until the engine makes the id of the child, when the event is
/// recorded.
pub(crate) const PENDING_PREFIX: &str = "sub::pending_";

/// The error text for an id that the caller chose and that begins with the prefix reserved for the engine.
pub(crate) fn reserved_id_error(instance: &str) -> String {
    format!("sub-orchestration instance id '{instance}' uses the reserved marker 'sub::'")
}

/// The open child that `event` answers, if it answers one.
pub(crate) fn answered_by(event: &Event, outline: &Outline) -> Option<AnsweredChild> {
    if event.kind.role() != Role::Answers(Kind::Child) {
        return None;
    }
    let succeeded = ChildRules.failure(&event.kind).is_none();
    let child = outline.children.get(&event.source_event_id?)?;
    let took_ms = event.timestamp_ms.saturating_sub(child.since_ms);
    Some(AnsweredChild { name: child.name.clone(), took_ms, succeeded })
}

/// The id of the child as history records it: only the suffix if the engine makes the id, the caller's text
/// otherwise.
fn recorded_id(instance: &str, execution_id: u64, event_id: u64) -> String {
    if instance.starts_with(PENDING_PREFIX) {
        auto_child_suffix(execution_id, event_id)
    } else {
        instance.to_owned()
    }
}

/// The id under which the child is started.
fn full_id(instance: &str, parent: &Identity, event_id: u64) -> String {
    build_child_instance_id(&parent.instance, &recorded_id(instance, parent.execution_id, event_id))
}

fn cancellation(child: &OpenChild, reason: &str) -> WorkItem {
    WorkItem::CancelInstance { instance: child.instance.clone(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_children_are_known_by_their_full_ids() {
        let identity = Identity {
            instance: "order-1".into(),
            execution_id: 1,
            name: "Order".into(),
            version: "1.0.0".into(),
        };
        let made = EventKind::SubOrchestrationScheduled {
            name: "c".into(),
            instance: "sub::1".into(),
            input: String::new(),
        };
        let mut outline = Outline::default();
        outline.play(&Event::at(0, 1, "order-1", 1, None, made), &identity);
        assert_eq!(ChildRules.unanswered(&outline), [1]);
        assert_eq!(outline.children[&1].instance, "order-1::sub::1");
    }
}
