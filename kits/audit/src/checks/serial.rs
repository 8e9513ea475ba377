//! Serial sessions: one activity at a time, in the order of scheduling (D29).

use std::collections::{BTreeMap, BTreeSet};

use steadfast_core::{EventKind, SessionConcurrency};

use super::{broken, seen};
use crate::{Case, InstanceRecords, Violation};

/// Instance, and the place of the opening in the histories of the instance: an id that is closed and opened
/// again is another session.
type Opening<'a> = (&'a str, usize);

/// The activities of one serial session, by execution and event, in the order of scheduling.
type Scheduled = Vec<(u64, u64)>;

/// Returns the serial sessions with their activities.
fn serial(case: &Case) -> BTreeMap<Opening<'_>, Scheduled> {
    let mut all = BTreeMap::new();
    for (id, instance) in &case.records.instances {
        if instance.is_whole() {
            add(id, instance, &mut all);
        }
    }
    all
}

fn add<'a>(id: &'a str, instance: &'a InstanceRecords, all: &mut BTreeMap<Opening<'a>, Scheduled>) {
    // The sessions that are open, with the place of the opening of those that are serial.
    let mut open: BTreeMap<&str, Option<usize>> = BTreeMap::new();
    for (place, event) in instance.executions.values().flatten().enumerate() {
        match &event.kind {
            EventKind::SessionOpened { session_id, concurrency, .. } => {
                let serial = *concurrency == Some(SessionConcurrency::Serial);
                open.entry(session_id).or_insert(serial.then_some(place));
            }
            EventKind::SessionClosed { session_id } => drop(open.remove(session_id.as_str())),
            EventKind::ActivityScheduled { session_id: Some(session_id), .. } => {
                if let Some(Some(opening)) = open.get(session_id.as_str()) {
                    all.entry((id, *opening)).or_default().push((event.execution_id, event.event_id));
                }
            }
            _ => {}
        }
    }
}

/// D29: of a serial session one activity runs at a time. A process that is stopped, or does not reach the
/// store, may run on beside its successor.
pub(super) fn one_activity_runs_at_a_time(case: &Case) -> Vec<Violation> {
    if seen::has_deletions(case) {
        return Vec::new();
    }
    let (runs, faults) = (seen::runs(&case.evidence), seen::faults(&case.evidence));
    let mut violations = Vec::new();
    for ((id, _), scheduled) in serial(case) {
        let scheduled: BTreeSet<(u64, u64)> = scheduled.into_iter().collect();
        let mine = |seen: &&seen::SeenRun<'_>| {
            seen.run.instance == id && scheduled.contains(&(seen.run.execution, seen.run.id))
        };
        let mine: Vec<_> = runs.iter().filter(mine).collect();
        for (place, former) in mine.iter().enumerate() {
            let is_beside = |next: &&&seen::SeenRun<'_>| next.began_us < former.ended_us;
            let Some(next) = mine[place + 1..].iter().find(is_beside) else { continue };
            let excuses = |fault: &seen::SeenFault<'_>| {
                fault.fault.concerns(&former.run.process)
                    && fault.began_us <= next.began_us
                    && fault.ended_us().saturating_add(seen::AFTERMATH_US) >= former.began_us
            };
            if !faults.iter().any(excuses) {
                violations.push(broken("D29", format!("{} runs beside {}", next.run, former.run)));
            }
        }
    }
    violations
}

/// D29: the activities of a serial session begin in the order of scheduling.
pub(super) fn activities_keep_their_order(case: &Case) -> Vec<Violation> {
    if seen::has_deletions(case) {
        return Vec::new();
    }
    let runs = seen::runs(&case.evidence);
    let mut violations = Vec::new();
    for ((id, _), scheduled) in serial(case) {
        let first = |(execution, event): (u64, u64)| {
            runs.iter()
                .find(|seen| seen.run.key() == (id, execution, event))
                .map(|seen| (seen.began_us, seen))
        };
        let begun: Vec<_> = scheduled.into_iter().filter_map(first).collect();
        for pair in begun.windows(2) {
            let ((former_us, former), (next_us, next)) = (pair[0], pair[1]);
            if next_us < former_us {
                violations.push(broken("D29", format!("{} begins before {}", next.run, former.run)));
            }
        }
    }
    violations
}
