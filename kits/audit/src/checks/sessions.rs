//! Sessions: who served them, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use steadfast_core::{EventKind, Policy, SessionKey};

use super::{broken, seen};
use crate::{Case, Fact, FaultKind, Life, SessionRun, Violation};

/// Runs a check on each run on a session, in the order of their beginnings.
fn each<'a>(runs: &'a [seen::SeenRun<'a>]) -> impl Iterator<Item = (&'a seen::SeenRun<'a>, &'a SessionRun)> {
    runs.iter().filter_map(|seen| Some((seen, seen.run.session.as_ref()?)))
}

/// A1, A2: an epoch belongs to one session and to one process.
pub(super) fn an_epoch_has_one_process(case: &Case) -> Vec<Violation> {
    let runs = seen::runs(&case.evidence);
    let mut owners: BTreeMap<u64, (SessionKey, &str)> = BTreeMap::new();
    let mut violations = Vec::new();
    for (seen, session) in each(&runs).filter(|(_, session)| session.epoch > 0) {
        let own = (session.key(), seen.run.process.as_str());
        let owner = owners.entry(session.epoch).or_insert_with(|| own.clone());
        if owner.0 != own.0 {
            violations.push(broken("A2", format!("{}, but the epoch is that of {:?}", seen.run, owner.0)));
        } else if owner.1 != own.1 {
            violations.push(broken("A1", format!("{}, but the epoch is that of {}", seen.run, owner.1)));
        }
    }
    violations
}

/// A4: work of an older epoch does not begin after work of a newer one. An owner whose session an operator
/// released learns of it with its next renewal; a process that is stopped between its last look at the lease
/// and the first step of the code cannot know better.
pub(super) fn older_epochs_do_not_begin_after_newer_ones(case: &Case) -> Vec<Violation> {
    let (runs, faults) = (seen::runs(&case.evidence), seen::faults(&case.evidence));
    let excuses = |fault: &seen::SeenFault<'_>, seen: &seen::SeenRun<'_>| {
        let patience = match fault.fault.kind {
            FaultKind::Released => case.terms.session_lease,
            FaultKind::Paused if fault.fault.concerns(&seen.run.process) => case.terms.blur,
            _ => return false,
        };
        let patience = u64::try_from(patience.as_micros()).unwrap_or(u64::MAX);
        fault.began_us <= seen.began_us && fault.ended_us().saturating_add(patience) > seen.began_us
    };
    let mut newest: BTreeMap<SessionKey, u64> = BTreeMap::new();
    let mut violations = Vec::new();
    for (seen, session) in each(&runs) {
        let newest = newest.entry(session.key()).or_insert(session.epoch);
        if session.epoch < *newest && !faults.iter().any(|fault| excuses(fault, seen)) {
            violations.push(broken("A4", format!("{} begins after work of epoch {newest}", seen.run)));
        }
        *newest = (*newest).max(session.epoch);
    }
    violations
}

/// A4: no activity begins when the lease of its session has ended by the store's clock.
pub(super) fn nothing_begins_after_the_lease(case: &Case) -> Vec<Violation> {
    let (Some(watch), Some(began_ms)) = (case.whole_watch(), case.terms.store_began_ms) else {
        return Vec::new();
    };
    let runs = seen::runs(&case.evidence);
    let mut violations = Vec::new();
    for (seen, session) in each(&runs) {
        let at_ms = began_ms.saturating_add(seen.began_us / 1_000);
        match watch.claim_until_ms(&session.key(), session.epoch) {
            Some(until_ms) if at_ms <= until_ms => {}
            Some(until_ms) => {
                let text = format!("{} begins at {at_ms}, its lease ended at {until_ms}", seen.run);
                violations.push(broken("A4", text));
            }
            None => violations.push(broken("A1", format!("{} has a claim that no fetch made", seen.run))),
        }
    }
    violations
}

/// A7: an activity sees no session state that was built for another attachment.
pub(super) fn state_is_of_this_attachment(case: &Case) -> Vec<Violation> {
    let runs = seen::runs(&case.evidence);
    let foreign =
        each(&runs).filter(|(_, session)| session.state_epoch.is_some_and(|epoch| epoch != session.epoch));
    foreign
        .map(|(seen, session)| broken("A7", format!("{} sees state of {:?}", seen.run, session.state_epoch)))
        .collect()
}

/// A15: an activity is told that the session is new here exactly until one of the attachment has completed.
/// One that was cancelled has not completed, although its code may have returned a result.
pub(super) fn the_first_activity_sees_the_move(case: &Case) -> Vec<Violation> {
    let runs = seen::runs(&case.evidence);
    let blur = u64::try_from(case.terms.blur.as_micros()).unwrap_or(u64::MAX);
    let mut violations = Vec::new();
    for (seen, session) in each(&runs) {
        let completed_by = |by_us: u64| {
            each(&runs).filter(move |(other, on)| {
                on.epoch == session.epoch
                    && on.key() == session.key()
                    && other.run.process == seen.run.process
                    && matches!(other.outcome, Some(Ok(_)))
                    && other.ended_us < by_us
            })
        };
        let before = seen.began_us.saturating_sub(blur);
        if session.is_first && completed_by(before).any(|(other, _)| !may_be_cancelled(case, other))
            || !session.is_first
                && completed_by(seen.began_us).next().is_none()
                && !overlaps(&runs, seen, session)
        {
            violations.push(broken("A15", format!("{} is told is_first = {}", seen.run, session.is_first)));
        }
    }
    violations
}

/// Tells whether the activity of a run was cancelled, its try may have taken too long, or its history is gone
/// and cannot tell.
fn may_be_cancelled(case: &Case, seen: &seen::SeenRun<'_>) -> bool {
    let (id, execution, activity) = seen.run.key();
    let history = case.records.instances.get(id).and_then(|instance| instance.executions.get(&execution));
    let took = Duration::from_micros(seen.ended_us.saturating_sub(seen.began_us));
    // The clock of the worker decides, which may go at another pace.
    let is_too_long = |timeout: Duration| took * 2 >= timeout;
    history.is_none_or(|history| {
        history.iter().any(|event| {
            let policy = event.call.as_ref().and_then(|call| call.policy.as_ref());
            let timeout = policy.and_then(Policy::try_timeout).filter(|_| event.event_id == activity);
            timeout.is_some_and(is_too_long)
                || event.source_event_id == Some(activity)
                    && matches!(event.kind, EventKind::ActivityCancelRequested { .. })
        })
    })
}

/// Tells whether another activity of the attachment may have completed at the moment in which a run began.
fn overlaps(runs: &[seen::SeenRun<'_>], seen: &seen::SeenRun<'_>, session: &SessionRun) -> bool {
    each(runs).any(|(other, on)| {
        on.key() == session.key()
            && on.epoch == session.epoch
            && other.began_us <= seen.began_us
            && other.ended_us == seen.began_us
    })
}

/// A8: a process serves no more sessions at a time than it may.
pub(super) fn capacity_holds(case: &Case) -> Vec<Violation> {
    let runs = seen::runs(&case.evidence);
    let mut violations = Vec::new();
    for (seen, _) in each(&runs) {
        let Some(capacity) = case.terms.capacity.get(&seen.run.process) else { continue };
        let at_once = each(&runs).filter(|(other, _)| {
            other.run.process == seen.run.process
                && other.began_us <= seen.began_us
                && other.ended_us > seen.began_us
        });
        let sessions: BTreeSet<SessionKey> = at_once.map(|(_, session)| session.key()).collect();
        if sessions.len() > *capacity {
            violations.push(broken("A8", format!("{}: {} sessions at once", seen.run, sessions.len())));
        }
    }
    violations
}

/// D17: the lease of a session that is not idle is extended, if all is well.
pub(super) fn sessions_in_use_are_renewed(case: &Case) -> Vec<Violation> {
    let Some(watch) = &case.terms.watch else { return Vec::new() };
    let lost = watch
        .expired_claims()
        .into_iter()
        .filter(|expired| seen::is_calm(case, expired.since_ms.saturating_sub(60_000), expired.until_ms));
    lost.map(|expired| broken("D17", format!("a session is lost for no reason: {expired:?}"))).collect()
}

/// D25: a process that drains releases its sessions before it ends, if all is well.
pub(super) fn a_drained_process_releases_its_sessions(case: &Case) -> Vec<Violation> {
    let (Some(watch), Some(began_ms)) = (case.whole_watch(), case.terms.store_began_ms) else {
        return Vec::new();
    };
    let (runs, faults) = (seen::runs(&case.evidence), seen::faults(&case.evidence));
    let mut violations = Vec::new();
    for entry in case.evidence.entries() {
        let Fact::Process(process, Life::Dead) = &entry.fact else { continue };
        let mine: Vec<_> = faults.iter().filter(|seen| seen.fault.concerns(process)).collect();
        let has_drained = mine.iter().all(|seen| seen.fault.kind == FaultKind::Drained) && !mine.is_empty();
        let dead_ms = began_ms.saturating_add(entry.at_us / 1_000);
        for (seen, session) in each(&runs).filter(|(seen, _)| has_drained && seen.run.process == *process) {
            if session.owner.is_some() && seen::has_deletions(case) {
                // It may have gone with its instance.
                continue;
            }
            let end_ms = watch.claim_end_ms(&session.key(), session.epoch);
            if end_ms.is_some_and(|end_ms| end_ms > dead_ms) {
                violations
                    .push(broken("D25", format!("{} holds its session after it has drained", seen.run)));
            }
        }
    }
    violations
}
