//! What clients sent: nothing is lost, nothing is made up, and the order stays.

use std::collections::BTreeMap;

use steadfast_core::{AppErrorKind, ErrorDetails, EventKind};
use steadfast_store::ExecutionState;

use super::{broken, seen};
use crate::{Case, Told, Violation};

/// I1: an instance that was started exists, unless it was deleted. What retention deletes has a check of its
/// own.
pub(super) fn what_a_client_was_told_is_there(case: &Case) -> Vec<Violation> {
    let is_deleted = |id: &str| {
        seen::asked(&case.evidence).any(|(_, told)| matches!(told, Told::Deleted(deleted) if deleted == id))
    };
    let mut violations = Vec::new();
    for (_, told) in seen::told(&case.evidence) {
        if let Told::Started(id) = told
            && !case.records.instances.contains_key(id)
            && !is_deleted(id)
            && case.terms.retention.is_none()
        {
            violations.push(broken("I1", format!("{id} was started and does not exist")));
        }
    }
    violations
}

/// A message of a client: whether it came through a queue, its name and its data.
type Given<'a> = (bool, &'a str, &'a str);

fn sent(told: &Told) -> Option<Given<'_>> {
    match told {
        Told::Raised(_, name, data) => Some((false, name, data)),
        Told::Enqueued(_, name, data) => Some((true, name, data)),
        Told::Started(_) | Told::Cancelled(_) | Told::Terminated(_) | Told::Deleted(_) | Told::Pruned(_) => {
            None
        }
    }
}

/// Returns the messages that an execution recorded, in order.
fn recorded(history: &[steadfast_core::Event]) -> Vec<Given<'_>> {
    let message = |event: &'_ steadfast_core::Event| match &event.kind {
        EventKind::ExternalEvent { .. } => Some(false),
        EventKind::QueueEventDelivered { .. } => Some(true),
        _ => None,
    };
    let mut all = Vec::new();
    for event in history {
        if let (
            Some(queued),
            EventKind::ExternalEvent { name, data } | EventKind::QueueEventDelivered { name, data },
        ) = (message(event), &event.kind)
        {
            all.push((queued, name.as_str(), data.as_str()));
        }
    }
    all
}

/// Returns the messages to each instance, with their moments.
fn by_instance<'a>(calls: impl Iterator<Item = (u64, &'a Told)>) -> BTreeMap<&'a str, Vec<(u64, Given<'a>)>> {
    let mut all: BTreeMap<&str, Vec<(u64, Given<'_>)>> = BTreeMap::new();
    for (at_us, told) in calls {
        all.entry(told.instance()).or_default().extend(sent(told).map(|sent| (at_us, sent)));
    }
    all
}

/// I5: each message that an execution recorded was sent by a client, and is recorded once.
pub(super) fn no_message_is_made_up(case: &Case) -> Vec<Violation> {
    let mut violations = Vec::new();
    let by_instance = by_instance(seen::asked(&case.evidence));
    for (id, instance) in &case.records.instances {
        let mut asked: BTreeMap<Given<'_>, usize> = BTreeMap::new();
        let mine = by_instance.get(id.as_str()).into_iter().flatten();
        mine.for_each(|(_, sent)| *asked.entry(*sent).or_default() += 1);
        for (execution, history) in &instance.executions {
            let mut left = asked.clone();
            for message in recorded(history) {
                match left.get_mut(&message).filter(|count| **count > 0) {
                    Some(count) => *count -= 1,
                    None => violations
                        .push(broken("I5", format!("{id}/{execution} has {message:?} once too often"))),
                }
            }
        }
    }
    violations
}

/// I5: of two messages with one name, the one that was sent first is recorded first; and if the second one
/// is recorded, so is the first.
pub(super) fn messages_keep_their_order(case: &Case) -> Vec<Violation> {
    if seen::has_deletions(case) {
        return Vec::new();
    }
    let (all_asked, all_told) =
        (by_instance(seen::asked(&case.evidence)), by_instance(seen::told(&case.evidence)));
    let mut violations = Vec::new();
    for (id, instance) in &case.records.instances {
        let Some(started) = instance.executions.get(&1).and_then(|history| history.first()) else { continue };
        let Some(began_ms) = case.terms.store_began_ms else { continue };
        let started_us = started.timestamp_ms.saturating_sub(began_ms).saturating_mul(1_000);
        let histories = instance.executions.values();
        let all: Vec<Given<'_>> = histories.flat_map(|history| recorded(history)).collect();
        let place = |message: Given<'_>| all.iter().position(|recorded| *recorded == message);
        let firsts = all_told.get(id.as_str()).into_iter().flatten().filter(|(at, _)| *at >= started_us);
        for (told_at, first) in firsts {
            let later = all_asked.get(id.as_str()).into_iter().flatten().filter(|(at, _)| at > told_at);
            let later = later.map(|(_, sent)| *sent).filter(|sent| (sent.0, sent.1) == (first.0, first.1));
            let found = later.filter_map(|later| Some((later, place(later)?))).next();
            if let Some((later, later_place)) = found
                && place(*first).is_none_or(|place| place > later_place)
            {
                violations.push(broken("I5", format!("{id}: {first:?} was sent before {later:?}; {all:?}")));
            }
        }
    }
    violations
}

/// I1: an instance that was terminated ends soon, if all is well.
pub(super) fn a_termination_ends_its_instance(case: &Case) -> Vec<Violation> {
    let Some(began_ms) = case.terms.store_began_ms else { return Vec::new() };
    if seen::has_deletions(case) {
        return Vec::new();
    }
    let prompt = u64::try_from(case.terms.prompt.as_millis()).unwrap_or(u64::MAX);
    let mut violations = Vec::new();
    for (at_us, told) in seen::told(&case.evidence) {
        let Told::Terminated(id) = told else { continue };
        let Some(instance) = case.records.instances.get(id) else { continue };
        if instance.state.created_at_ms > began_ms.saturating_add(at_us / 1_000) {
            // The call met no instance, or an earlier one.
            continue;
        }
        let is_terminated = matches!(
            &instance.state.status,
            ExecutionState::Failed(ErrorDetails::Application { kind: AppErrorKind::Terminated { .. }, .. })
        );
        let told_ms = began_ms.saturating_add(at_us / 1_000);
        let history = instance.executions.values().next_back().map_or(&[][..], Vec::as_slice);
        let end = history.iter().find(|event| event.is_terminal());
        let Some(ended_ms) = end.map(|event| event.timestamp_ms) else { continue };
        if instance.state.created_at_ms > told_ms {
            continue;
        }
        let is_late = ended_ms > told_ms.saturating_add(prompt) && seen::is_calm(case, told_ms, ended_ms);
        if !is_terminated && is_late {
            let text = format!("{id} was terminated at {told_ms} and goes on until {ended_ms}");
            violations.push(broken("I1", text));
        }
    }
    violations
}
