//! Histories: what each of them must look like, whatever the code does.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_core::{
    ErrorDetails, Event, EventKind, KvEntry, build_child_instance_id,
    replay::{Identity, Options, Setup},
};
use steadfast_store::ExecutionState;

use super::{broken, seen};
use crate::{Case, InstanceRecords, Violation};

/// Runs a check on the history of each execution.
fn each(case: &Case, check: impl Fn(&str, u64, &[Event], &mut Vec<Violation>)) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (id, instance) in &case.records.instances {
        for (execution, history) in &instance.executions {
            check(id, *execution, history, &mut violations);
        }
    }
    violations
}

/// I6: one completion is accepted for each scheduled action.
pub(super) fn an_action_is_answered_once(case: &Case) -> Vec<Violation> {
    each(case, |id, execution, history, violations| {
        let mut answered = BTreeSet::new();
        for event in history.iter().filter(|event| is_completion(&event.kind)) {
            let source = event.source_event_id.unwrap_or(0);
            if !history.iter().any(|event| event.event_id == source) {
                violations.push(broken("I6", format!("{id}/{execution} #{source} is answered and unknown")));
            }
            if !answered.insert(source) {
                violations.push(broken("I6", format!("{id}/{execution} #{source} is answered twice")));
            }
        }
    })
}

/// I9: one terminal event, and nothing after it that decides.
pub(super) fn an_end_is_final(case: &Case) -> Vec<Violation> {
    each(case, |id, execution, history, violations| {
        let mut has_ended = false;
        for event in history {
            if has_ended && !closes(&event.kind) {
                violations.push(broken("I9", format!("{id}/{execution} goes on after its end: {event:?}")));
            }
            has_ended |= event.is_terminal();
        }
        let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
        if !ids.is_sorted_by(|one, next| one < next) {
            violations.push(broken("S8", format!("{id}/{execution} has the event ids {ids:?}")));
        }
        let foreign = history.iter().find(|event| event.instance_id != id || event.execution_id != execution);
        if let Some(event) = foreign {
            violations.push(broken("S10", format!("{id}/{execution} has a foreign event: {event:?}")));
        }
    })
}

/// I10: how an instance stands is what its last history says: cancelled or completed, never both.
pub(super) fn the_state_is_that_of_the_history(case: &Case) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (id, instance) in &case.records.instances {
        let history = instance.executions.get(&instance.state.execution_id).map_or(&[][..], Vec::as_slice);
        let end = history.iter().find(|event| event.is_terminal()).map(|event| &event.kind);
        let is_same = match (end, &instance.state.status) {
            (Some(EventKind::OrchestrationCompleted { output }), ExecutionState::Completed(told)) => {
                output == told
            }
            (Some(EventKind::OrchestrationFailed { details }), ExecutionState::Failed(told)) => {
                details == told
            }
            (Some(EventKind::OrchestrationContinuedAsNew { .. }), ExecutionState::ContinuedAsNew)
            | (None, ExecutionState::Running) => true,
            _ => false,
        };
        if !is_same {
            let text = format!("{id} is {:?}, its history ends with {end:?}", instance.state.status);
            violations.push(broken("I10", text));
        }
    }
    violations
}

/// I8: a timer never fires before its time by the store's clock, and soon after it if all is well.
pub(super) fn timers_fire_on_time(case: &Case) -> Vec<Violation> {
    let prompt = u64::try_from(case.terms.prompt.as_millis()).unwrap_or(u64::MAX);
    each(case, |id, execution, history, violations| {
        let may_be_late = case.terms.damaged.contains(id);
        for event in history {
            let EventKind::TimerFired { fire_at_ms } = event.kind else { continue };
            // What counts is the time that the code asked for.
            let created = history.iter().find(|created| Some(created.event_id) == event.source_event_id);
            let fire_at_ms = match created.map(|created| &created.kind) {
                Some(EventKind::TimerCreated { fire_at_ms }) => *fire_at_ms,
                _ => fire_at_ms,
            };
            let at = event.timestamp_ms;
            let late =
                !may_be_late && at.saturating_sub(fire_at_ms) > prompt && seen::is_calm(case, fire_at_ms, at);
            if at < fire_at_ms || late {
                let text = format!("{id}/{execution}: a timer for {fire_at_ms} fires at {at}");
                violations.push(broken("I8", text));
            }
        }
    })
}

/// I2: each execution but the last continued as new, with the input that the next one began with.
pub(super) fn executions_follow_each_other(case: &Case) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (id, instance) in &case.records.instances {
        for (execution, history) in &instance.executions {
            let Some(next) = instance.executions.get(&(execution + 1)) else { continue };
            let left = history.iter().find_map(|event| match &event.kind {
                EventKind::OrchestrationContinuedAsNew { input } => Some(input),
                _ => None,
            });
            let begun = next.first().and_then(|event| match &event.kind {
                EventKind::OrchestrationStarted { input, .. } => Some(input),
                _ => None,
            });
            if left.is_none() || left != begun {
                let text =
                    format!("{id}/{execution} leaves {left:?}, and the next one begins with {begun:?}");
                violations.push(broken("I2", text));
            }
        }
    }
    violations
}

/// I9: the outcome of a child that its parent recorded is the one that the child ended with.
pub(super) fn a_parent_is_told_the_outcome(case: &Case) -> Vec<Violation> {
    if seen::has_deletions(case) {
        return Vec::new();
    }
    each(case, |id, execution, history, violations| {
        for event in history {
            let (Some(source), true) = (event.source_event_id, is_answer_of_child(&event.kind)) else {
                continue;
            };
            let Some(child) = child_of(history, id, source).and_then(|id| case.records.instances.get(&id))
            else {
                continue;
            };
            if !is_for(child, id, execution, source) {
                continue;
            }
            let is_same = match (&event.kind, &child.state.status) {
                (EventKind::SubOrchestrationCompleted { result }, ExecutionState::Completed(output)) => {
                    result == output
                }
                (EventKind::SubOrchestrationFailed { details }, ExecutionState::Failed(told)) => {
                    details == told
                }
                _ => false,
            };
            if !is_same {
                let text = format!("{id}/{execution} #{source} is told {event:?}; {:?}", child.state.status);
                violations.push(broken("I9", text));
            }
        }
    })
}

/// S17: a child that its parent was told of began with the input that its parent gave it. The start of a
/// child carries the life of its parent: one that a former instance of the id sent is not given to a later
/// one.
pub(super) fn a_child_has_the_input_of_its_parent(case: &Case) -> Vec<Violation> {
    each(case, |id, execution, history, violations| {
        for event in history {
            let (Some(source), true) = (event.source_event_id, is_answer_of_child(&event.kind)) else {
                continue;
            };
            let Some(child) = child_of(history, id, source).and_then(|id| case.records.instances.get(&id))
            else {
                continue;
            };
            let (given, begun) = (input_of_child(history, source), first_input(child));
            if begun.is_some() && begun != given && is_for(child, id, execution, source) {
                let child = &child.state.instance;
                let text =
                    format!("{id}/{execution} #{source} gives {child} {given:?}; it began with {begun:?}");
                violations.push(broken("S17", text));
            }
        }
    })
}

/// Returns the input that an event gave a child.
fn input_of_child(history: &[Event], source: u64) -> Option<&str> {
    history.iter().find(|event| event.event_id == source).and_then(|event| match &event.kind {
        EventKind::SubOrchestrationScheduled { input, .. } => Some(input.as_str()),
        _ => None,
    })
}

/// Returns the input that an instance began with; `None` if its first execution was removed.
fn first_input(instance: &InstanceRecords) -> Option<&str> {
    match &instance.executions.get(&1)?.first()?.kind {
        EventKind::OrchestrationStarted { input, .. } => Some(input.as_str()),
        _ => None,
    }
}

/// I9: of all starts under one id, one has the instance; the others are told that the id is taken.
pub(super) fn a_child_has_one_parent(case: &Case) -> Vec<Violation> {
    if seen::has_deletions(case) {
        return Vec::new();
    }
    each(case, |id, execution, history, violations| {
        for event in history {
            let (Some(source), true) = (event.source_event_id, is_any_answer_of_child(&event.kind)) else {
                continue;
            };
            let Some(name) = child_of(history, id, source) else { continue };
            let Some(child) = case.records.instances.get(&name) else { continue };
            let is_refused = !is_answer_of_child(&event.kind);
            if is_whole(child) && is_refused == is_for(child, id, execution, source) {
                let text = format!("{id}/{execution} #{source} is told {:?} of {name}", event.kind);
                violations.push(broken("I9", text));
            }
        }
    })
}

/// Tells whether the first execution of an instance is there, which names its parent.
fn is_whole(child: &InstanceRecords) -> bool {
    child.executions.contains_key(&1)
}

/// F25: an orchestration that the code started without waiting for it exists.
pub(super) fn detached_orchestrations_exist(case: &Case) -> Vec<Violation> {
    if seen::has_deletions(case) {
        return Vec::new();
    }
    each(case, |id, execution, history, violations| {
        for event in history {
            if let EventKind::OrchestrationChained { instance, .. } = &event.kind
                && !case.records.instances.contains_key(instance)
            {
                violations
                    .push(broken("F25", format!("{id}/{execution} starts {instance}, which is not there")));
            }
        }
    })
}

/// I4: the code, replayed from the recorded history, asks for exactly what was recorded.
pub(super) fn code_repeats_the_history(case: &Case) -> Vec<Violation> {
    let Some(code) = &case.terms.code else { return Vec::new() };
    let mut violations = Vec::new();
    for (id, instance) in &case.records.instances {
        if seen::was_pruned(case, id, instance) {
            // The values that an execution begins with are not known.
            continue;
        }
        let mut kv = BTreeMap::new();
        for (execution, history) in &instance.executions {
            let Some((name, version)) = history.first().and_then(started) else { continue };
            let identity = Identity { instance: id.clone(), execution_id: *execution, name, version };
            let options = Options { owned_sessions: true, ..Options::default() };
            let setup = Setup { identity, kv: kv.clone(), options };
            if let Err(difference) = code.replay(setup, history.clone()) {
                violations.push(broken("I4", format!("{id}/{execution}: {difference}")));
            }
            history.iter().for_each(|event| fold_value(&mut kv, &event.kind));
        }
    }
    violations
}

/// Applies an event to key-value state.
pub(super) fn fold_value(kv: &mut BTreeMap<String, KvEntry>, kind: &EventKind) {
    match kind {
        EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
            let entry = KvEntry { value: value.clone(), last_updated_at_ms: *last_updated_at_ms };
            kv.insert(key.clone(), entry);
        }
        EventKind::KeyValueCleared { key } => drop(kv.remove(key)),
        EventKind::KeyValuesCleared => kv.clear(),
        _ => {}
    }
}

fn started(event: &Event) -> Option<(String, String)> {
    match &event.kind {
        EventKind::OrchestrationStarted { name, version, .. } => Some((name.clone(), version.clone())),
        _ => None,
    }
}

/// What the text of such an answer contains.
const TAKEN: &str = "already exists";

fn is_any_answer_of_child(kind: &EventKind) -> bool {
    matches!(kind, EventKind::SubOrchestrationCompleted { .. } | EventKind::SubOrchestrationFailed { .. })
}

fn is_answer_of_child(kind: &EventKind) -> bool {
    // A start that met another instance of the id is answered without a child.
    match kind {
        EventKind::SubOrchestrationCompleted { .. } => true,
        EventKind::SubOrchestrationFailed { details } => {
            !matches!(details, ErrorDetails::Application { message, .. } if message.contains(TAKEN))
        }
        _ => false,
    }
}

/// Returns the id of the child that an event scheduled.
fn child_of(history: &[Event], parent: &str, source: u64) -> Option<String> {
    history.iter().find(|event| event.event_id == source).and_then(|event| match &event.kind {
        EventKind::SubOrchestrationScheduled { instance, .. } => {
            Some(build_child_instance_id(parent, instance))
        }
        _ => None,
    })
}

/// Tells whether an instance is the child of one event.
fn is_for(child: &InstanceRecords, parent: &str, execution: u64, source: u64) -> bool {
    let first = child.executions.values().next().and_then(|history| history.first());
    first.is_some_and(|event| match &event.kind {
        EventKind::OrchestrationStarted { parent_instance, parent_id, parent_execution_id, .. } => {
            parent_instance.as_deref() == Some(parent)
                && *parent_id == Some(source)
                && *parent_execution_id == Some(execution)
        }
        _ => false,
    })
}

/// Tells whether an event is the one answer of an action.
fn is_completion(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ActivityCompleted { .. }
            | EventKind::ActivityFailed { .. }
            | EventKind::TimerFired { .. }
            | EventKind::SubOrchestrationCompleted { .. }
            | EventKind::SubOrchestrationFailed { .. }
    )
}

/// Tells whether an event closes open work of an execution that has ended: it decides nothing.
fn closes(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ActivityCancelRequested { .. }
            | EventKind::SubOrchestrationCancelRequested { .. }
            | EventKind::ExternalSubscribedCancelled { .. }
            | EventKind::QueueSubscriptionCancelled { .. }
    )
}
