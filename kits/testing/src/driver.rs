//! Runs a program turn by turn on the engine, kept in memory or replayed from history.

use std::sync::Arc;

use steadfast_core::{
    WorkItem,
    replay::{Effort, Execution, Options, Start, Turn},
};

use crate::{
    instance::{Batch, Instance, NotKept},
    program::{Program, dice::Dice},
    witness::Witness,
};

/// Whether an execution stays in memory between two turns.
#[derive(Debug, Clone)]
pub enum Keeping {
    /// It does, and is given new messages only.
    Always,
    /// It does not, and repeats its history before each turn.
    Never,
    /// Dice decide after each turn.
    ByChance(Dice),
}

impl Keeping {
    fn keeps(&mut self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::ByChance(dice) => dice.chance(500),
        }
    }
}

/// Runs one program, from the first execution of its instance to the last.
#[derive(Debug)]
pub struct Driver {
    program: Arc<Program>,
    keeping: Keeping,
    instance: Instance,
    kept: Option<Held>,
}

#[derive(Debug)]
struct Held {
    execution: Execution,
    witness: Witness,
}

/// What one turn did, and how much had been done until its end.
#[derive(Debug)]
pub struct Played {
    /// The events, effects and verdict of the turn.
    pub turn: Turn,
    /// The work of this execution in memory: all of its history, whether it was kept or replayed.
    pub effort: Effort,
    /// The calls and polls of the program in this execution so far.
    pub witness: Witness,
    /// What `is_replaying` said in each poll that repeated history before the turn.
    pub replay_polls: Vec<bool>,
    /// What `is_replaying` said in each poll of the turn itself.
    pub turn_polls: Vec<bool>,
}

impl Driver {
    /// Makes a driver for an instance that has not begun; the first batch must have its start.
    pub fn new(program: &Arc<Program>, id: &str, orchestration: &str, keeping: Keeping) -> Self {
        let options = Options { owned_sessions: true, ..Options::default() };
        let instance = Instance::new(id, orchestration, options);
        Self { program: Arc::clone(program), keeping, instance, kept: None }
    }

    /// Returns the instance as a store keeps it between two turns.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Runs and commits one turn.
    ///
    /// # Errors
    ///
    /// [`NotKept`] names an event that is another one after it was written to JSON and read back.
    pub fn turn(&mut self, now_ms: u64, batch: Vec<WorkItem>) -> Result<Played, NotKept> {
        let Batch { start, messages } = self.instance.triage(batch);
        let (mut held, known_polls) = match (start, self.kept.take()) {
            (None, Some(kept)) => {
                let polls = kept.witness.polls().len();
                (kept, polls)
            }
            (start, _) => (self.hold(start), 0),
        };
        let before = held.witness.polls().len();
        let turn = held.execution.turn(now_ms, messages);
        let mut replay_polls = held.witness.polls();
        let turn_polls = replay_polls.split_off(before);
        replay_polls.drain(..known_polls);
        self.instance.commit(&turn)?;
        let (effort, witness) = (held.execution.effort(), held.witness.clone());
        if self.keeping.keeps() {
            self.kept = Some(held);
        }
        Ok(Played { turn, effort, witness, replay_polls, turn_polls })
    }

    fn hold(&self, start: Option<Start>) -> Held {
        let witness = Witness::default();
        let (setup, handler) = (self.instance.setup(), witness.handler(&self.program));
        let execution = match start {
            Some(start) => Execution::start(setup, start, handler),
            None => Execution::replay(setup, self.instance.history().to_vec(), handler),
        };
        Held { execution, witness }
    }
}
