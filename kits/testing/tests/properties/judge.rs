//! Where a program and a history part, judged without the engine: the calls that the program made while it
//! was replayed, as the program tells them, against the schedules that history has.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_core::{AppErrorKind, ErrorDetails, Event, EventKind};
use steadfast_testing::{
    program::journal::{Call, parting},
    witness::Witness,
};

use crate::invariants::{answered_family, scheduled_family};

/// What the judge knows of one replay.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// The first event that the calls do not account for, before the end.
    parted: Option<u64>,
    /// Is there a call in the place of that event, or of the end?
    call_waits: bool,
    /// The position of the end: that of the terminal event, or of the one that is still to come.
    end_position: u64,
    end: End,
}

/// How the end of a replay compares with the end of history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Alike,
    Differs,
    /// The engine ended the recorded execution, and what the code did last is not recorded.
    Unknown,
}

impl Judgement {
    pub(crate) fn of(witness: &Witness, history: &[Event]) -> Self {
        let calls = witness.calls();
        let wrong_call = parting(&calls, history).map(|event| event.event_id);
        let parted = wrong_call.into_iter().chain(unasked(history)).min();
        let until = parted.unwrap_or(u64::MAX);
        let is_call = |event: &&Event| event.event_id < until && Call::recorded_in(&event.kind).is_some();
        let recorded = history.iter().filter(is_call).count();
        let made = calls.iter().filter(|call| !matches!(call, Call::ContinueAsNew { .. })).count();
        let terminal = history.iter().find(|event| event.is_terminal());
        let end_position = match terminal {
            Some(event) => event.event_id,
            None => history.last().map_or(1, |event| event.event_id + 1),
        };
        let end = match end(witness, &calls, terminal) {
            End::Alike if made > recorded => End::Differs,
            end => end,
        };
        let call_waits = made > recorded && parted.is_none_or(|_| parted == wrong_call);
        Self { parted, call_waits, end_position, end }
    }

    /// May a replay report nothing?
    pub(crate) fn accepts_silence(&self) -> bool {
        self.parted.is_none() && self.end != End::Differs
    }

    /// May a replay report this position? Only the engine knows what was dropped: a report that something was
    /// not is accepted where nothing parts earlier.
    pub(crate) fn accepts(&self, position: u64, history: &[Event]) -> bool {
        let parts = self.parted.unwrap_or(self.end_position);
        if parts == position {
            return self.parted.is_some() || self.end != End::Alike;
        }
        let event = history.iter().find(|event| event.event_id == position);
        position < parts && event.is_some_and(|event| is_drop(&event.kind))
    }

    /// Must a report at this position name the call that stands in its place?
    pub(crate) fn blames_a_call_at(&self, position: u64) -> bool {
        let parts = self.parted.unwrap_or(self.end_position);
        parts == position && self.call_waits && (self.parted.is_some() || self.end == End::Differs)
    }
}

/// The first answer, or sign of a dropped future, whose schedule history does not have.
fn unasked(history: &[Event]) -> Option<u64> {
    let mut recorded = BTreeSet::new();
    let mut open = BTreeMap::new();
    let unasked = history.iter().find(|event| {
        recorded.insert(event.event_id);
        if let Some(family) = scheduled_family(&event.kind) {
            open.insert(event.event_id, family);
        }
        let source = event.source_event_id.unwrap_or(0);
        let answers_nothing =
            answered_family(&event.kind).is_some_and(|family| open.remove(&source) != Some(family));
        answers_nothing || (is_drop(&event.kind) && !recorded.contains(&source))
    });
    unasked.map(|event| event.event_id)
}

fn end(witness: &Witness, calls: &[Call], terminal: Option<&Event>) -> End {
    let output = witness.output();
    let continued = calls.iter().find_map(|call| match call {
        Call::ContinueAsNew { input } => Some(input),
        _ => None,
    });
    let alike = match terminal.map(|event| &event.kind) {
        None => output.is_none() && continued.is_none(),
        Some(EventKind::OrchestrationCompleted { output: recorded }) => {
            output == Some(Ok(recorded.clone())) && continued.is_none()
        }
        Some(EventKind::OrchestrationContinuedAsNew { input: recorded }) => continued == Some(recorded),
        Some(EventKind::OrchestrationFailed { details: ErrorDetails::Application { kind, message, .. } }) => {
            match kind {
                // A cancelled execution runs to the end of its turn.
                AppErrorKind::Cancelled { .. } => true,
                AppErrorKind::OrchestrationFailed if output == Some(Err(message.clone())) => true,
                // It may have been refused a call, or have panicked.
                _ => return End::Unknown,
            }
        }
        _ => return End::Unknown,
    };
    if alike { End::Alike } else { End::Differs }
}

fn is_drop(kind: &EventKind) -> bool {
    match kind {
        EventKind::ActivityCancelRequested { reason }
        | EventKind::SubOrchestrationCancelRequested { reason }
        | EventKind::ExternalSubscribedCancelled { reason }
        | EventKind::QueueSubscriptionCancelled { reason } => reason == "dropped_future",
        _ => false,
    }
}
