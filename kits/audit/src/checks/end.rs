//! What must be there, and what must not, when everything had time to end.

use steadfast_core::{ErrorDetails, EventKind, PoisonMessageType};
use steadfast_store::ExecutionState;

use super::{broken, seen};
use crate::{Case, FaultKind, Violation};

/// I7: with a capable worker and no further faults, every instance ends.
pub(super) fn everything_has_ended(case: &Case) -> Vec<Violation> {
    if !case.terms.all_ended {
        return Vec::new();
    }
    let running = case.records.instances.values().filter(|instance| !instance.state.status.is_ended());
    let text = |instance: &crate::InstanceRecords| {
        let last = instance.executions.values().next_back().and_then(|history| history.last());
        format!(
            "{} has not ended; last event {last:?}; {:?}; {:?}",
            instance.state.instance, instance.turn, instance.work
        )
    };
    running.map(|instance| broken("I7", text(instance))).collect()
}

/// I7: when all instances have ended, no message and no activity is left.
pub(super) fn nothing_is_left_in_the_queues(case: &Case) -> Vec<Violation> {
    let has_ended = case.records.instances.values().all(|instance| instance.state.status.is_ended());
    match &case.records.gauges {
        Some(gauges) if case.terms.all_ended && has_ended && (gauges.messages > 0 || gauges.work > 0) => {
            vec![broken("I7", format!("something is left: {gauges:?}"))]
        }
        _ => Vec::new(),
    }
}

/// A10: the end of an instance releases its sessions.
pub(super) fn no_session_outlives_its_instance(case: &Case) -> Vec<Violation> {
    let has_ended =
        |id: &String| case.records.instances.get(id).is_none_or(|instance| instance.state.status.is_ended());
    let owned = case.records.sessions.keys().filter(|key| key.instance.as_ref().is_some_and(has_ended));
    owned.map(|key| broken("A10", format!("{key:?} outlives its instance"))).collect()
}

/// How long a shared session without work may be in the store: it is idle, its lease ends, it is cleaned up.
const KEPT_MS: u64 = 800_000;

/// D20: sessions that have ended are cleaned up.
pub(super) fn ended_sessions_are_cleaned_up(case: &Case) -> Vec<Violation> {
    let turns = case.records.instances.values().filter_map(|instance| instance.turn.as_ref());
    let Some(now_ms) = turns.map(|turn| turn.now_ms).max().filter(|_| case.terms.all_ended) else {
        return Vec::new();
    };
    let old = case.records.sessions.values().filter(|session| {
        session.queued == 0 && session.last_activity_at_ms.saturating_add(KEPT_MS) < now_ms
    });
    old.map(|session| broken("D20", format!("at {now_ms} there is still {session:?}"))).collect()
}

/// I12: no row becomes unreadable by itself.
pub(super) fn nothing_is_set_aside(case: &Case) -> Vec<Violation> {
    case.records.set_aside.iter().map(|row| broken("I12", format!("{row:?} is set aside"))).collect()
}

/// I12: only the application fails an instance; a row is poison only if processes died of it. It is poison at
/// the first delivery after those that are allowed, so as many deaths as deliveries are allowed explain it.
pub(super) fn no_infrastructure_fails_an_instance(case: &Case) -> Vec<Violation> {
    let deaths = seen::faults(&case.evidence).iter().filter(|seen| kills(seen.fault.kind)).count();
    let mut violations = Vec::new();
    for instance in case.records.instances.values() {
        let ExecutionState::Failed(details) = &instance.state.status else { continue };
        let is_explained = match details {
            ErrorDetails::Application { .. } => true,
            ErrorDetails::Poison { attempt_count, max_attempts, .. } if attempt_count <= max_attempts => {
                let text = format!("{} is poison too soon: {details:?}", instance.state.instance);
                violations.push(broken("I12", text));
                continue;
            }
            ErrorDetails::Poison { .. } => deaths >= case.terms.max_attempts as usize,
            ErrorDetails::Infrastructure { .. } | ErrorDetails::Configuration { .. } => false,
        };
        let may_fail = case.terms.may_fail.as_ref();
        let is_expected = may_fail.is_some_and(|may| may(&instance.state, details));
        if !is_explained && !is_expected {
            let text = format!("{} failed: {}", instance.state.instance, details.display_message());
            violations.push(broken("I12", text));
        }
    }
    violations
}

/// I12: an activity is poison only if processes died of it, or a worker without its code met it.
pub(super) fn no_activity_is_poison_for_no_reason(case: &Case) -> Vec<Violation> {
    let deaths = seen::faults(&case.evidence).iter().filter(|seen| kills(seen.fault.kind)).count();
    let mut violations = Vec::new();
    for (id, instance) in &case.records.instances {
        for event in instance.executions.values().flatten() {
            let EventKind::ActivityFailed { details: details @ ErrorDetails::Poison { .. } } = &event.kind
            else {
                continue;
            };
            let ErrorDetails::Poison { attempt_count, max_attempts, message_type, .. } = details else {
                continue;
            };
            let is_lacked = match message_type {
                PoisonMessageType::Activity { activity_name, .. } => {
                    case.terms.lacks.values().any(|lacks| lacks.contains(activity_name))
                }
                _ => false,
            };
            if attempt_count <= max_attempts || deaths < case.terms.max_attempts as usize && !is_lacked {
                violations.push(broken("I12", format!("{id}: {details:?}, and {deaths} deaths")));
            }
        }
    }
    violations
}

fn kills(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::Killed | FaultKind::Unanswered | FaultKind::Cut | FaultKind::StoreKilled)
}
