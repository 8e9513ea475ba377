//! Our engine on the arrivals that the published crate was given.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use steadfast_core::{
    Event, Mismatch, WorkItem,
    replay::{self, Execution, Options, verify},
};
use steadfast_testing::{instance::Instance, program::Program, witness::Witness};

use crate::record::{self, Run, Turn};

/// The time of every turn of ours; the time of an event is circumstance.
const NOW_MS: u64 = 1_000_000;

/// One turn of the published crate, and what ours makes of the same history and the same arrivals.
#[derive(Debug)]
pub struct Answer {
    /// Which turn of the run.
    pub index: usize,
    /// What ours decides.
    pub turn: Turn,
    /// Where our replay of the history up to this turn parts from it.
    pub parted: Option<Mismatch>,
    /// Where our check of the history with this turn does.
    pub refuted: Option<Mismatch>,
}

/// Gives every turn of the run to our engine, each on top of what the published crate recorded before it.
///
/// So a difference does not carry over into the turns after it, and every published history is replayed.
///
/// # Errors
///
/// Fails if our types cannot read what the published crate wrote.
pub fn answers(program: &Arc<Program>, run: &Run) -> Result<Vec<Answer>, serde_json::Error> {
    let mut instance = Instance::new("me", "Program", Options::default());
    let mut answers = Vec::with_capacity(run.turns.len());
    for (index, theirs) in run.turns.iter().enumerate() {
        let batch = instance.triage(read(&theirs.arrivals)?);
        let setup = instance.setup();
        let handler = Witness::default().handler(program);
        let mut execution = match batch.start {
            Some(start) => Execution::start(setup, start, handler),
            None => Execution::replay(setup, instance.history().to_vec(), handler),
        };
        let parted = execution.mismatch().cloned();
        let turn = execution.turn(NOW_MS, batch.messages);
        instance.record(read(&theirs.history)?);
        let handler = Witness::default().handler(program);
        let refuted = verify(instance.setup(), instance.history().to_vec(), handler).err();
        let turn = recorded(theirs, &turn, refuted.is_none())?;
        answers.push(Answer { index, turn, parted, refuted });
    }
    Ok(answers)
}

fn read<T: DeserializeOwned>(values: &[Value]) -> Result<Vec<T>, serde_json::Error> {
    values.iter().cloned().map(serde_json::from_value).collect()
}

fn recorded(theirs: &Turn, turn: &replay::Turn, replays: bool) -> Result<Turn, serde_json::Error> {
    let work: Vec<_> = turn.effects.work.iter().map(|queued| &queued.item).collect();
    let mut messages: Vec<WorkItem> = turn.effects.messages.clone();
    messages.extend(turn.effects.parent.clone().map(|notice| notice.into_message(1)));
    let cancelled = &turn.effects.cancelled_activities;
    Ok(Turn {
        execution_id: theirs.execution_id,
        arrivals: theirs.arrivals.clone(),
        history: record::raw::<Event>(&turn.events)?,
        events: record::decisions(&turn.events)?,
        work: record::decisions(&work)?,
        messages: record::decisions(&messages)?,
        cancelled: cancelled.iter().map(|activity| activity.activity_id).collect(),
        replays: Some(replays),
    })
}
