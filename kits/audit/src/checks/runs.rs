//! Runs of activities: what ran, how often, and what became of it.

use std::collections::BTreeMap;

use steadfast_core::{AppErrorKind, ErrorDetails, EventKind};

use super::{broken, seen};
use crate::{Case, FaultKind, Violation};

/// I6: a result in a history is one that a run of the activity had.
pub(super) fn results_are_those_of_runs(case: &Case) -> Vec<Violation> {
    let runs = seen::runs(&case.evidence);
    let mut outcomes: BTreeMap<(&str, u64, u64), Vec<&Result<String, String>>> = BTreeMap::new();
    for seen in &runs {
        outcomes.entry(seen.run.key()).or_default().extend(seen.outcome);
    }
    let mut violations = Vec::new();
    for (id, instance) in &case.records.instances {
        for (execution, history) in &instance.executions {
            for event in history {
                let source = event.source_event_id.unwrap_or(0);
                let result = match &event.kind {
                    EventKind::ActivityCompleted { result } => Ok(result.clone()),
                    EventKind::ActivityFailed {
                        details:
                            ErrorDetails::Application {
                                kind: AppErrorKind::ActivityFailed | AppErrorKind::SessionLost,
                                message,
                                ..
                            },
                    } => Err(message.clone()),
                    _ => continue,
                };
                let is_builtin = history.iter().any(|event| {
                    event.event_id == source
                        && matches!(&event.kind, EventKind::ActivityScheduled { name, .. } if name.starts_with("__"))
                });
                let known = outcomes.get(&(id.as_str(), *execution, source));
                if !is_builtin && !known.is_some_and(|known| known.contains(&&result)) {
                    let text = format!("{id}/{execution} #{source} has a result that no run had: {result:?}");
                    violations.push(broken("I6", text));
                }
            }
        }
    }
    violations
}

/// Effects: without a fault nothing runs twice; with faults, at most once more for each that can concern the
/// process of the run before.
pub(super) fn nothing_runs_twice_without_a_fault(case: &Case) -> Vec<Violation> {
    let (runs, faults) = (seen::runs(&case.evidence), seen::faults(&case.evidence));
    let mut by_key: BTreeMap<(&str, u64, u64), Vec<&seen::SeenRun<'_>>> = BTreeMap::new();
    for seen in &runs {
        by_key.entry(seen.run.key()).or_default().push(seen);
    }
    let mut violations = Vec::new();
    for runs in by_key.values() {
        let mut used = vec![false; faults.len()];
        for pair in runs.windows(2) {
            let (former, next) = (pair[0], pair[1]);
            let is_cause = |fault: &seen::SeenFault<'_>| {
                repeats(fault.fault.kind)
                    && fault.fault.concerns(&former.run.process)
                    && fault.began_us <= next.began_us
                    && fault.ended_us().saturating_add(seen::AFTERMATH_US) >= former.began_us
            };
            let cause = (0..faults.len()).find(|number| !used[*number] && is_cause(&faults[*number]));
            match cause {
                Some(number) => used[number] = true,
                None if seen::has_deletions(&case.evidence) => {}
                None => {
                    violations.push(broken("effects", format!("{} runs again as {}", former.run, next.run)))
                }
            }
        }
    }
    violations
}

/// Tells whether a fault can make an activity run again.
fn repeats(kind: FaultKind) -> bool {
    match kind {
        FaultKind::Killed
        | FaultKind::Paused
        | FaultKind::Cut
        | FaultKind::Disturbed
        | FaultKind::Drained
        | FaultKind::StoreKilled
        | FaultKind::Released => true,
        FaultKind::Slow | FaultKind::Stepped => false,
    }
}

/// I12: a delivery counts if its process died of it, or never learned of it; not if it was paused.
pub(super) fn deliveries_count_deaths_only(case: &Case) -> Vec<Violation> {
    let counts = |kind| {
        !matches!(kind, FaultKind::Paused | FaultKind::Slow | FaultKind::Stepped | FaultKind::Released)
    };
    let faults = seen::faults(&case.evidence);
    let runs = seen::runs(&case.evidence);
    let over = runs.iter().filter(|seen| {
        let before =
            faults.iter().filter(|fault| counts(fault.fault.kind) && fault.began_us <= seen.began_us);
        seen.run.attempt as usize > 1 + before.count()
    });
    over.map(|seen| broken("I12", seen.run.to_string())).collect()
}

/// I7: an instance with a message that is due gets its turn soon, if all is well.
pub(super) fn turns_are_prompt(case: &Case) -> Vec<Violation> {
    let Some(watch) = &case.terms.watch else { return Vec::new() };
    let prompt = u64::try_from(case.terms.prompt.as_millis()).unwrap_or(u64::MAX);
    let waits = watch.turn_waits().into_iter().filter(|wait| {
        wait.until_ms.saturating_sub(wait.since_ms) > prompt
            && seen::is_calm(case, wait.since_ms, wait.until_ms)
    });
    waits.map(|wait| broken("I7", format!("a message waits for no reason: {wait:?}"))).collect()
}
