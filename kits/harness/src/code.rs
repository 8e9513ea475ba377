//! The code of the application under trouble: random orchestrations, and activities that write a ledger.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, anyhow};
use proptest::strategy::{Strategy, ValueTree};
use steadfast::{
    ActivityContext, Event, OrchestrationContext,
    runtime::registry::{ActivityRegistry, OrchestrationRegistry},
};
use steadfast_audit::{Fact, Replayer, Run, SessionRun};
use steadfast_clock::{Clock, SystemClock};
use steadfast_core::replay::{Execution, Setup};
use steadfast_testing::program::{
    Program,
    ast::names,
    dice::Dice,
    generate::{Palette, program, runner},
    interpret, journal,
};

use crate::notes::Notes;

/// How many programs clients choose from.
pub const PROGRAMS: usize = 64;

/// Most activities take up to this long, in milliseconds.
const SHORT_MS: u64 = 40;
/// Some take up to this long, which is more than their lease.
const LONG_MS: u64 = 5_000;

/// The orchestrations of a run: a function of its seed.
#[derive(Clone)]
pub struct Code {
    seed: u64,
    /// By name.
    programs: Vec<(String, Arc<Program>)>,
}

impl Code {
    /// Makes the orchestrations of a seed.
    ///
    /// # Errors
    ///
    /// Says that the generator gave up, which no seed is known for.
    pub fn of(seed: u64) -> Result<Self> {
        let (mut runner, strategy) = (runner(seed), program(Palette::FULL));
        let mut make = || {
            let made = strategy.new_tree(&mut runner).map(|tree| tree.current());
            made.map_err(|reason| anyhow!("no program: {reason}"))
        };
        let mut programs = Vec::new();
        for number in 0..PROGRAMS {
            programs.push((name(number), Arc::new(make()?)));
        }
        for child in names::CHILDREN {
            // Children that start children would never end.
            programs.push(((*child).to_owned(), Arc::new(make()?.childless())));
        }
        Ok(Self { seed, programs })
    }

    /// Registers the orchestrations that a worker has. A fleet is not all alike: one of four lacks some.
    pub fn orchestrations(&self, worker: usize) -> OrchestrationRegistry {
        let mut builder = OrchestrationRegistry::builder();
        let lacks = |place: usize| lacks(worker) && place % 4 == 3;
        let has = self.programs.iter().enumerate().filter(|(place, _)| !lacks(*place));
        for (_, (name, program)) in has {
            let program = Arc::clone(program);
            builder = builder.register(name, move |ctx, input| interpreted(ctx, input, Arc::clone(&program)));
        }
        builder.build()
    }

    /// Registers the activities that a worker has, which write to the ledger of their process.
    pub fn activities(&self, worker: usize, notes: &Notes) -> ActivityRegistry {
        let mut builder = ActivityRegistry::builder();
        for name in names::ACTIVITIES.iter().filter(|name| !lacks(worker) || **name != "c") {
            let (notes, seed) = (notes.clone(), self.seed);
            builder = builder.register(*name, move |ctx, _: String| act(notes.clone(), seed, ctx));
        }
        builder.build()
    }

    fn program(&self, name: &str) -> Option<&Arc<Program>> {
        self.programs.iter().find(|(known, _)| known == name).map(|(_, program)| program)
    }
}

impl Replayer for Code {
    fn replay(&self, setup: Setup, history: Vec<Event>) -> Result<(), String> {
        let name = &setup.identity.name;
        let program = Arc::clone(self.program(name).ok_or_else(|| format!("there is no program {name}"))?);
        let handler = move |ctx, input| interpreted(ctx, input, program);
        match Execution::replay(setup, history, handler).mismatch() {
            Some(mismatch) => Err(mismatch.to_string()),
            None => Ok(()),
        }
    }
}

/// Tells whether a worker is one that lacks some of the code.
fn lacks(worker: usize) -> bool {
    worker % 4 == 3
}

/// Returns the name of a program.
pub fn name(number: usize) -> String {
    format!("Program-{number}")
}

async fn interpreted(
    ctx: OrchestrationContext,
    input: String,
    program: Arc<Program>,
) -> Result<String, String> {
    interpret::run(ctx, input, program, journal::Journal::default()).await
}

/// The state that an activity builds for its session: the epoch at that time.
struct BuiltFor(u64);

async fn act(notes: Notes, seed: u64, ctx: ActivityContext) -> Result<String, String> {
    let run = notes.run(&ctx, session_of(&ctx).await);
    notes.noted(Fact::Began(run.clone())).await?;
    let decided = Decided::of(seed, &run);
    let mut dropped =
        Dropped { notes: notes.clone(), process: run.process.clone(), number: run.number, ended: false };
    let mut wait = SystemClock.sleep(decided.takes);
    let outcome = tokio::select! {
        biased;
        () = &mut wait => decided.outcome,
        () = ctx.cancelled(), if decided.heeds => Err("cancelled".to_owned()),
    };
    dropped.ended = true;
    let (process, number) = (run.process, run.number);
    notes.noted(Fact::Ended { process, number, outcome: outcome.clone() }).await?;
    outcome
}

/// Notes that a run was dropped before it ended.
struct Dropped {
    notes: Notes,
    process: String,
    number: u64,
    ended: bool,
}

impl Drop for Dropped {
    fn drop(&mut self) {
        if !self.ended {
            let fact = Fact::Dropped { process: self.process.clone(), number: self.number };
            // A ledger that cannot be written ends the next activity, which says so.
            drop(self.notes.note(fact));
        }
    }
}

async fn session_of(ctx: &ActivityContext) -> Option<SessionRun> {
    let session = ctx.session()?;
    let (key, epoch) = (session.key(), session.epoch());
    let is_first = session.is_first_turn();
    // It fails if the session was detached meanwhile.
    let state = session.state_or_init(async { Ok(BuiltFor(epoch)) }).await.ok();
    let (owner, id) = (key.instance.clone(), key.session_id.clone());
    Some(SessionRun { owner, id, epoch, is_first, state_epoch: state.map(|state| state.0) })
}

/// How a run goes.
#[derive(Debug, PartialEq, Eq)]
struct Decided {
    takes: Duration,
    /// Whether it stops when it is cancelled.
    heeds: bool,
    /// Names the process and the delivery, so that a recorded result tells which run it is of.
    outcome: Result<String, String>,
}

impl Decided {
    /// All runs of an activity take as long and end alike.
    fn of(seed: u64, run: &Run) -> Self {
        let text = format!("{}/{}/{}", run.instance, run.execution, run.id);
        let mixed = text.bytes().fold(seed ^ 0xCBF2_9CE4_8422_2325, |mixed, byte| {
            (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        let mut dice = Dice::new(mixed);
        let longest = if dice.chance(80) { LONG_MS } else { SHORT_MS };
        let takes = Duration::from_millis(dice.roll() % longest);
        let (heeds, fails) = (dice.chance(700), dice.chance(150));
        let text = format!("{}{} {} {}", run.name, dice.roll() % 100, run.process, run.number);
        Self { takes, heeds, outcome: if fails { Err(text) } else { Ok(text) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(process: &str, instance: &str) -> Run {
        Run {
            number: 7,
            process: process.to_owned(),
            instance: instance.to_owned(),
            execution: 1,
            id: 2,
            name: "a".to_owned(),
            attempt: 1,
            tried: 1,
            call_key: String::new(),
            session: None,
        }
    }

    #[test]
    fn all_runs_of_an_activity_go_alike_and_are_told_apart_by_their_results() {
        let (one, two) = (Decided::of(1, &run("w0.1", "i")), Decided::of(1, &run("w1.4", "i")));
        assert_eq!((one.takes, one.heeds, one.outcome.is_ok()), (two.takes, two.heeds, two.outcome.is_ok()));
        assert_ne!(one.outcome, two.outcome);
        let longs = (0..1_000)
            .filter(|n| {
                let takes = Decided::of(1, &run("w0.1", &format!("i{n}"))).takes;
                takes > Duration::from_millis(SHORT_MS)
            })
            .count();
        assert!((20..200).contains(&longs), "{longs} of a thousand are long");
    }

    #[test]
    fn the_programs_are_a_function_of_the_seed() {
        let programs = |seed| Code::of(seed).unwrap().programs;
        assert!(programs(1) == programs(1));
        assert!(programs(1) != programs(2));
        assert_eq!(programs(1).len(), PROGRAMS + names::CHILDREN.len());
    }
}
