//! The evidence, sorted by what the checks ask for.

use std::collections::BTreeMap;

use crate::{Case, Evidence, Fact, Fault, FaultKind, InstanceRecords, Life, Run, Told};

/// A run with its ends.
pub(super) struct SeenRun<'a> {
    pub(super) run: &'a Run,
    pub(super) began_us: u64,
    /// When the run ended, or its process did; the end of time for a run that was seen to begin only.
    pub(super) ended_us: u64,
    /// How it ended; `None` for a run that was dropped or killed.
    pub(super) outcome: Option<&'a Result<String, String>>,
}

/// A fault with its moment.
#[derive(Clone, Copy)]
pub(super) struct SeenFault<'a> {
    pub(super) fault: &'a Fault,
    pub(super) began_us: u64,
}

impl SeenFault<'_> {
    pub(super) fn ended_us(&self) -> u64 {
        self.began_us.saturating_add(self.fault.lasts_us)
    }
}

/// After a fault has ended its traces may last so long: leases of a minute, backoffs, restarts.
pub(super) const AFTERMATH_US: u64 = 120_000_000;

/// Returns the runs in the order of their beginnings.
pub(super) fn runs(evidence: &Evidence) -> Vec<SeenRun<'_>> {
    let mut runs: Vec<SeenRun<'_>> = Vec::new();
    // The runs that have not ended, by process and number.
    let mut open: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    for entry in evidence.entries() {
        let (process, numbers) = match &entry.fact {
            Fact::Began(run) => {
                open.insert((&run.process, run.number), runs.len());
                runs.push(SeenRun { run, began_us: entry.at_us, ended_us: u64::MAX, outcome: None });
                continue;
            }
            Fact::Ended { process, number, .. } | Fact::Dropped { process, number } => {
                (process, *number..=*number)
            }
            Fact::Process(process, Life::Dead) => (process, 0..=u64::MAX),
            Fact::Process(..) | Fact::Asked(_) | Fact::Told(_) | Fact::Fault(_) => continue,
        };
        let ended = open.range((process.as_str(), *numbers.start())..=(process.as_str(), *numbers.end()));
        let ended: Vec<((&str, u64), usize)> = ended.map(|(key, place)| (*key, *place)).collect();
        for (key, place) in ended {
            open.remove(&key);
            runs[place].ended_us = entry.at_us;
            if let Fact::Ended { outcome, .. } = &entry.fact {
                runs[place].outcome = Some(outcome);
            }
        }
    }
    runs
}

/// Returns the faults in the order of their beginnings.
pub(super) fn faults(evidence: &Evidence) -> Vec<SeenFault<'_>> {
    let seen = evidence.entries().iter().filter_map(|entry| match &entry.fact {
        Fact::Fault(seen) => Some(SeenFault { fault: seen, began_us: entry.at_us }),
        _ => None,
    });
    seen.collect()
}

/// Returns the calls of clients that were asked for, with their moments.
pub(super) fn asked(evidence: &Evidence) -> impl Iterator<Item = (u64, &Told)> {
    evidence.entries().iter().filter_map(|entry| match &entry.fact {
        Fact::Asked(told) => Some((entry.at_us, told)),
        _ => None,
    })
}

/// Returns the calls of clients that succeeded, with the moments of their answers.
pub(super) fn told(evidence: &Evidence) -> impl Iterator<Item = (u64, &Told)> {
    evidence.entries().iter().filter_map(|entry| match &entry.fact {
        Fact::Told(told) => Some((entry.at_us, told)),
        _ => None,
    })
}

/// Tells whether instances may have been deleted: it may take others along, and their ids come back.
pub(super) fn has_deletions(case: &Case) -> bool {
    case.terms.retention.is_some() || is_deletion_asked(&case.evidence)
}

/// Tells whether a client asked for a deletion.
pub(super) fn is_deletion_asked(evidence: &Evidence) -> bool {
    asked(evidence).any(|(_, told)| matches!(told, Told::Deleted(_)))
}

/// Tells whether no fault, and no trace of one, is between two moments of the store's time.
pub(super) fn is_calm(case: &Case, from_ms: u64, to_ms: u64) -> bool {
    let Some(began_ms) = case.terms.store_began_ms else { return false };
    let us = |ms: u64| ms.saturating_sub(began_ms).saturating_mul(1_000);
    let (from_us, to_us) = (us(from_ms), us(to_ms));
    let is_alive = case.evidence.entries().iter().any(|entry| {
        entry.at_us.saturating_add(1_000_000) < from_us
            && matches!(entry.fact, Fact::Process(_, Life::Started))
    });
    is_alive
        && faults(&case.evidence)
            .iter()
            .filter(|seen| !is_no_excuse(seen.fault.kind))
            .all(|seen| seen.began_us > to_us || seen.ended_us().saturating_add(AFTERMATH_US) < from_us)
}

/// Tells whether a fault excuses nothing that is late: a session that was released is claimed at once, and
/// the wall clock of a worker decides nothing (A12).
fn is_no_excuse(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::Released | FaultKind::Stepped)
}

/// Tells whether a process without the code of an activity lived before one of its runs began.
pub(super) fn was_lacked(case: &Case, seen: &SeenRun<'_>) -> bool {
    case.evidence.entries().iter().take_while(|entry| entry.at_us <= seen.began_us).any(|entry| {
        let Fact::Process(process, Life::Started) = &entry.fact else { return false };
        case.terms.lacks.get(process).is_some_and(|lacks| lacks.contains(&seen.run.name))
    })
}

/// Tells whether executions of an instance are missing because a client asked to remove old ones.
pub(super) fn was_pruned(case: &Case, id: &str, instance: &InstanceRecords) -> bool {
    let is_asked =
        || asked(&case.evidence).any(|(_, told)| matches!(told, Told::Pruned(pruned) if pruned == id));
    !instance.is_whole() && is_asked()
}
