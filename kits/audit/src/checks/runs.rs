//! Runs of activities: what ran, how often, and what became of it.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_core::{AppErrorKind, ErrorDetails, Event, EventKind, FailureKind, Policy};

use super::{broken, seen};
use crate::{Case, Entry, Fact, FaultKind, Life, Violation};

/// I6: a result in a history is one that a run of the activity had.
pub(super) fn results_are_those_of_runs(case: &Case) -> Vec<Violation> {
    let runs = seen::runs(&case.evidence);
    let mut violations = Vec::new();
    for (id, instance) in &case.records.instances {
        for (execution, history) in &instance.executions {
            for event in history {
                let source = event.source_event_id.unwrap_or(0);
                if event.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Timeout) {
                    // The worker has ended the last try, whatever its code would have returned.
                    continue;
                }
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
                let is_builtin = history.iter().any(|event| event.event_id == source && is_builtin(event));
                let key = (id.as_str(), *execution, source);
                let is_known = runs.iter().any(|seen| seen.run.key() == key && seen.outcome == Some(&result));
                if !is_builtin && !is_known {
                    let text = format!("{id}/{execution} #{source} has a result that no run had: {result:?}");
                    violations.push(broken("I6", text));
                }
            }
        }
    }
    violations
}

/// Tells whether an event schedules an activity of the engine's own.
fn is_builtin(event: &Event) -> bool {
    matches!(&event.kind, EventKind::ActivityScheduled { name, .. } if name.starts_with("__"))
}

/// Effects: without a fault nothing runs twice; with faults, at most once more for each that can concern the
/// process of the run before.
pub(super) fn nothing_runs_twice_without_a_fault(case: &Case) -> Vec<Violation> {
    if seen::has_deletions(case) {
        return Vec::new();
    }
    let (runs, faults) = (seen::runs(&case.evidence), seen::faults(&case.evidence));
    // The tries of a call are no repetitions.
    let mut by_try = BTreeMap::<_, Vec<&seen::SeenRun<'_>>>::new();
    for seen in &runs {
        by_try.entry((seen.run.key(), seen.run.tried)).or_default().push(seen);
    }
    let mut violations = Vec::new();
    for runs in by_try.values() {
        let mut used = vec![false; faults.len()];
        for pair in runs.windows(2) {
            let (former, next) = (pair[0], pair[1]);
            let possible: Vec<usize> =
                (0..faults.len()).filter(|number| is_cause(&faults[*number], former, next)).collect();
            let is_enough = possible.iter().any(|number| faults[*number].fault.kind.ends_leases_at_once())
                || possible.iter().map(|number| faults[*number].fault.lasts_us).sum::<u64>()
                    >= u64::try_from(case.terms.work_lease.as_micros() / 3).unwrap_or(u64::MAX);
            match possible.iter().find(|number| !used[**number]) {
                Some(number) if is_enough => used[*number] = true,
                _ => violations.push(broken("effects", format!("{} runs again as {}", former.run, next.run))),
            }
        }
    }
    violations
}

/// Tells whether a fault can be the reason why an activity runs again. Calls that fail or lose their answer
/// are made again, so they are none; the clocks of workers decide nothing (A12); and leases outlast a sleep
/// of the machine that all processes run on (S16).
fn is_cause(seen: &seen::SeenFault<'_>, former: &seen::SeenRun<'_>, next: &seen::SeenRun<'_>) -> bool {
    let repeats = match seen.fault.kind {
        FaultKind::Killed
        | FaultKind::Paused
        | FaultKind::Cut
        | FaultKind::Late
        | FaultKind::Slow
        | FaultKind::Drained
        | FaultKind::Misled
        | FaultKind::StoreKilled
        | FaultKind::Released => true,
        FaultKind::Failed | FaultKind::Unanswered | FaultKind::Stepped | FaultKind::Slept => false,
    };
    repeats
        && seen.fault.concerns(&former.run.process)
        && seen.began_us <= next.began_us
        && seen.ended_us().saturating_add(seen::AFTERMATH_US) >= former.began_us
}

/// S22: a call is tried as often as its policy allows, and no more. A call without a policy is tried once.
pub(super) fn tries_are_those_of_the_policy(case: &Case) -> Vec<Violation> {
    if seen::has_deletions(case) {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for seen in seen::runs(&case.evidence) {
        let run = seen.run;
        let history = case.records.instances.get(&run.instance);
        let history = history.and_then(|instance| instance.executions.get(&run.execution));
        let call = history.and_then(|events| events.iter().find(|event| event.event_id == run.id));
        let Some(call) = call.and_then(|event| event.call.as_deref()) else { continue };
        let most = call.policy.as_ref().map_or(Some(1), Policy::max);
        let most = most.map(|most| most.saturating_add(call.tried_before));
        if most.is_some_and(|most| run.tried > most) || run.tried <= call.tried_before {
            violations.push(broken("S22", format!("{run}, of a call with {call:?}")));
        }
        if run.call_key != call.key {
            violations
                .push(broken("G4", format!("{run} has the key {:?}, its call {:?}", run.call_key, call.key)));
        }
    }
    violations
}

/// G4: no two calls have one key, but for the tries that an orchestration makes itself.
pub(super) fn calls_have_keys_of_their_own(case: &Case) -> Vec<Violation> {
    let mut keys = BTreeSet::new();
    let mut violations = Vec::new();
    for (id, instance) in &case.records.instances {
        for (execution, history) in &instance.executions {
            let calls = history.iter().filter_map(|event| Some((event.event_id, event.call.as_deref()?)));
            for (event, call) in calls.filter(|(_, call)| call.tried_before == 0) {
                if !keys.insert(&call.key) {
                    let text = format!("{id}/{execution} #{event} has the key of another call: {}", call.key);
                    violations.push(broken("G4", text));
                }
            }
        }
    }
    violations
}

/// How long a process may take to excuse the deliveries that it outlived.
const EXCUSE_US: u64 = 10_000_000;

/// I12: a delivery counts if its process died of it, or never learned of it. A process that was paused
/// excuses its deliveries when it goes on, unless it is killed before it can, and one that drains gives them
/// back, if it reaches the store in time. What a process without the code was given is left out: that counts
/// if no live worker has the code.
pub(super) fn deliveries_count_deaths_only(case: &Case) -> Vec<Violation> {
    let faults = seen::faults(&case.evidence);
    let runs = seen::runs(&case.evidence);
    let is_start = |entry: &&crate::Entry| matches!(entry.fact, Fact::Process(_, Life::Started));
    let started = case.evidence.entries().iter().filter(is_start).count();
    // What a fault can cost does not depend on the run, and there are many of both.
    let costs: Vec<(&seen::SeenFault<'_>, Cost)> =
        faults.iter().map(|fault| (fault, Cost::of(case, fault, &faults))).collect();
    let over = runs.iter().filter(|seen| !seen::was_lacked(case, seen)).filter(|seen| {
        let before = costs.iter().filter(|(fault, _)| fault.began_us <= seen.began_us);
        let counted = before.filter(|(fault, cost)| match cost {
            Cost::None => false,
            Cost::Always => true,
            Cost::UntilExcused => fault.ended_us().saturating_add(EXCUSE_US) > seen.began_us,
        });
        // A fault that concerns all processes can cost a delivery in each of them.
        let deliveries: usize =
            counted.map(|(fault, _)| if fault.fault.process.is_some() { 1 } else { started }).sum();
        seen.run.attempt as usize > 1 + deliveries
    });
    over.map(|seen| broken("I12", seen.run.to_string())).collect()
}

/// Whether a fault can cost a delivery.
enum Cost {
    None,
    /// Until the process has had time to excuse it.
    UntilExcused,
    Always,
}

impl Cost {
    fn of(case: &Case, fault: &seen::SeenFault<'_>, faults: &[seen::SeenFault<'_>]) -> Self {
        match fault.fault.kind {
            FaultKind::Slow
            | FaultKind::Stepped
            | FaultKind::Released
            | FaultKind::Failed
            | FaultKind::Slept => Self::None,
            FaultKind::Drained if !is_hindered(fault, faults) => Self::None,
            FaultKind::Paused if !is_killed_before_it_excuses(case, fault, faults) => Self::UntilExcused,
            FaultKind::Drained
            | FaultKind::Paused
            | FaultKind::Killed
            | FaultKind::Cut
            | FaultKind::Late
            | FaultKind::Misled
            | FaultKind::StoreKilled
            | FaultKind::Unanswered => Self::Always,
        }
    }
}

/// Tells whether a process was killed before it could excuse what it had lost in a pause. Then the pause and
/// the death can cost a delivery each: one whose lease ended in the pause, and one that the process was given
/// since. A pause that is much shorter than a lease ends none.
fn is_killed_before_it_excuses(
    case: &Case,
    pause: &seen::SeenFault<'_>,
    faults: &[seen::SeenFault<'_>],
) -> bool {
    let before = pause.began_us..pause.ended_us().saturating_add(EXCUSE_US);
    let shortest_us = u64::try_from(case.terms.work_lease.as_micros() / 3).unwrap_or(u64::MAX);
    let is_drained = |process: &str, by_us: u64| {
        faults.iter().any(|seen| {
            seen.fault.kind == FaultKind::Drained && seen.fault.concerns(process) && seen.began_us <= by_us
        })
    };
    pause.fault.lasts_us >= shortest_us
        && case.evidence.entries().iter().any(|entry| {
            let Fact::Process(process, Life::Dead) = &entry.fact else { return false };
            pause.fault.concerns(process)
                && before.contains(&entry.at_us)
                && !is_drained(process, entry.at_us)
        })
}

/// How long a process that drains may take to end.
const DRAINS_US: u64 = 10_000_000;

/// Tells whether a process that drains may not have reached the store in time to give its leases back.
fn is_hindered(drain: &seen::SeenFault<'_>, faults: &[seen::SeenFault<'_>]) -> bool {
    let Some(process) = drain.fault.process.as_deref() else { return false };
    faults.iter().any(|seen| {
        matches!(seen.fault.kind, FaultKind::Slow | FaultKind::Cut | FaultKind::Paused | FaultKind::Late)
            && seen.fault.concerns(process)
            && seen.began_us <= drain.began_us.saturating_add(DRAINS_US)
            && seen.ended_us() >= drain.began_us
    })
}

/// I7: an instance with a message that is due gets its turn soon, if all is well.
pub(super) fn turns_are_prompt(case: &Case) -> Vec<Violation> {
    let Some(watch) = case.terms.watch.as_ref().filter(|_| !seen::has_deletions(case)) else {
        return Vec::new();
    };
    let prompt = u64::try_from(case.terms.prompt.as_millis()).unwrap_or(u64::MAX);
    let waits = watch.turn_waits().into_iter().filter(|wait| {
        wait.until_ms.saturating_sub(wait.since_ms) > prompt
            && seen::is_calm(case, wait.since_ms, wait.until_ms)
    });
    waits.map(|wait| broken("I7", format!("a message waits for no reason: {wait:?}"))).collect()
}

/// I9: an activity that was withdrawn does not begin any more, if all is well.
pub(super) fn withdrawn_activities_do_not_begin(case: &Case) -> Vec<Violation> {
    let Some(began_ms) = case.terms.store_began_ms else { return Vec::new() };
    let prompt = u64::try_from(case.terms.prompt.as_millis()).unwrap_or(u64::MAX);
    let runs = seen::runs(&case.evidence);
    let mut violations = Vec::new();
    for (key, withdrawn_ms) in withdrawn(case) {
        for seen in runs.iter().filter(|seen| seen.run.key() == key) {
            let at_ms = began_ms.saturating_add(seen.began_us / 1_000);
            let is_late = at_ms > withdrawn_ms.saturating_add(prompt);
            if is_late && seen::is_calm(case, withdrawn_ms, at_ms) && !seen::has_deletions(case) {
                let text = format!("{} begins at {at_ms}, it was withdrawn at {withdrawn_ms}", seen.run);
                violations.push(broken("I9", text));
            }
        }
    }
    violations
}

/// F24: an activity that is withdrawn learns of it at once, if all turns and activities are in one process.
pub(super) fn withdrawn_activities_end_at_once(case: &Case) -> Vec<Violation> {
    let started = |entry: &&Entry| matches!(entry.fact, Fact::Process(_, Life::Started));
    let is_alone = case.evidence.entries().iter().filter(started).count() == 1;
    let Some(began_ms) = case.terms.store_began_ms.filter(|_| is_alone) else { return Vec::new() };
    let runs = seen::runs(&case.evidence);
    let mut violations = Vec::new();
    for (key, withdrawn_ms) in withdrawn(case) {
        for seen in runs.iter().filter(|seen| seen.run.key() == key) {
            let ms = |us: u64| began_ms.saturating_add(us / 1_000);
            let (from, to) = (ms(seen.began_us), ms(seen.ended_us));
            let is_late = from < withdrawn_ms && to > withdrawn_ms.saturating_add(1_000);
            if is_late && seen::is_calm(case, withdrawn_ms, withdrawn_ms.saturating_add(1_000)) {
                let text = format!("{} goes on until {to}, it was withdrawn at {withdrawn_ms}", seen.run);
                violations.push(broken("F24", text));
            }
        }
    }
    violations
}

/// Returns the activities that histories withdraw, with the moments.
fn withdrawn(case: &Case) -> Vec<((&str, u64, u64), u64)> {
    let mut all = Vec::new();
    for (id, instance) in &case.records.instances {
        for (execution, history) in &instance.executions {
            for event in history {
                if let (EventKind::ActivityCancelRequested { .. }, Some(source)) =
                    (&event.kind, event.source_event_id)
                {
                    all.push(((id.as_str(), *execution, source), event.timestamp_ms));
                }
            }
        }
    }
    all
}

/// G5: a delivery to a worker that lacks the code does not count while another one has it, if all is well.
pub(super) fn refusals_do_not_count(case: &Case) -> Vec<Violation> {
    let Some(began_ms) = case.terms.store_began_ms else { return Vec::new() };
    let runs = seen::runs(&case.evidence);
    let counted = runs.iter().filter(|seen| {
        let at_ms = began_ms.saturating_add(seen.began_us / 1_000);
        seen.run.attempt > 1 && seen::is_calm(case, at_ms.saturating_sub(60_000), at_ms)
    });
    counted.map(|seen| broken("G5", format!("{}, and nothing went wrong", seen.run))).collect()
}

/// I12: a process that outlives a lease excuses the delivery, if nothing but pauses happened.
pub(super) fn outlived_deliveries_are_excused(case: &Case) -> Vec<Violation> {
    let Some(watch) = case.whole_watch() else { return Vec::new() };
    let only_pauses = seen::faults(&case.evidence).iter().all(|seen| {
        matches!(
            seen.fault.kind,
            FaultKind::Paused | FaultKind::Stepped | FaultKind::Failed | FaultKind::Released
        )
    });
    if !only_pauses || seen::has_deletions(case) {
        return Vec::new();
    }
    let left = watch.outlived().into_iter();
    left.map(|row| broken("I12", format!("the lease of {row} ended, and its holder did not excuse it")))
        .collect()
}
