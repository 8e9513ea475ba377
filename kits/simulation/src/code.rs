//! The code of the application in a world: activities that take time and may fail, and random orchestrations.

use std::{sync::Arc, time::Duration};

use steadfast::OrchestrationContext;
use steadfast_audit::{Fact, Run};
use steadfast_clock::Clock;
use steadfast_testing::program::{Program, ast::names, dice::Dice, interpret, journal};

use crate::{
    engine::{ActivityContext, ActivityRegistry, OrchestrationRegistry},
    journal::Journal,
    process::Life,
    story::{Story, Worker},
};

/// Where an activity runs.
#[derive(Clone, Debug)]
pub struct Place {
    /// The name of the process.
    pub process: String,
    /// Its life.
    pub life: Life,
    /// The clock of its host.
    pub clock: Arc<dyn Clock>,
    /// Where runs are noted.
    pub journal: Journal,
    /// Decides how long activities take and how they end.
    pub seed: u64,
}

/// Registers the activities that a worker has.
pub fn activities(place: &Place, worker: &Worker) -> ActivityRegistry {
    let mut builder = ActivityRegistry::builder();
    for name in names::ACTIVITIES.iter().filter(|name| !worker.lacks.contains(name)) {
        let place = place.clone();
        builder = builder.register(*name, move |ctx, _input: String| run(place.clone(), ctx));
    }
    builder.build()
}

/// Registers the orchestrations of a story that a worker has: one for each instance, and the children.
pub fn orchestrations(story: &Story, worker: &Worker) -> OrchestrationRegistry {
    let mut builder = OrchestrationRegistry::builder();
    let instances =
        (0..story.instances.len()).map(|number| (orchestration(number), story.program_on(worker, number)));
    let children = names::CHILDREN.iter().map(|name| (*name).to_owned()).zip(story.children.iter().cloned());
    for (name, program) in instances.chain(children) {
        let program = Arc::new(program);
        builder = builder.register(name, move |ctx, input| interpreted(ctx, input, Arc::clone(&program)));
    }
    builder.build()
}

/// Returns the name of the orchestration of an instance.
pub fn orchestration(number: usize) -> String {
    format!("Main-{number}")
}

pub(crate) async fn interpreted(
    ctx: OrchestrationContext,
    input: String,
    program: Arc<Program>,
) -> Result<String, String> {
    interpret::run(ctx, input, program, journal::Journal::default()).await
}

async fn run(place: Place, ctx: ActivityContext) -> Result<String, String> {
    if place.life.has_ended() {
        return std::future::pending().await;
    }
    let run = place.journal.begin(&place.process, &ctx).await;
    let (takes, outcome) = decide(place.seed, &run);
    let mut open = OpenRun { place: &place, run: &run, outcome: None };
    let mut wait = place.clock.sleep(takes);
    let outcome = tokio::select! {
        biased;
        () = &mut wait => outcome,
        () = ctx.cancelled() => Err("cancelled".to_owned()),
    };
    open.outcome = Some(outcome.clone());
    drop(open);
    outcome
}

/// A run that has begun. Its end is noted when this is dropped, unless the process is dead.
struct OpenRun<'a> {
    place: &'a Place,
    run: &'a Run,
    outcome: Option<Result<String, String>>,
}

impl Drop for OpenRun<'_> {
    fn drop(&mut self) {
        if self.place.life.has_ended() {
            return;
        }
        let (process, number) = (self.run.process.clone(), self.run.number);
        self.place.journal.fact(match self.outcome.take() {
            Some(outcome) => Fact::Ended { process, number, outcome },
            None => Fact::Dropped { process, number },
        });
    }
}

/// Decides how long a run takes and how it ends. All runs of one try end alike.
fn decide(seed: u64, run: &Run) -> (Duration, Result<String, String>) {
    let again = if run.tried > 1 { format!("/{}", run.tried) } else { String::new() };
    let text = format!("{}/{}/{}{again}", run.instance, run.execution, run.id);
    let hash = text
        .bytes()
        .fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3).rotate_left(5));
    let mut dice = Dice::new(hash);
    let longest = if dice.chance(150) { 50_000 } else { 40 };
    let takes = Duration::from_millis(dice.roll() % longest);
    let outcome = if dice.chance(200) {
        Err(format!("{} fails", run.name))
    } else {
        Ok(format!("{}-{}", run.name, dice.roll() % 1_000))
    };
    (takes, outcome)
}

/// Makes a seed of a seed and a text.
pub(crate) fn hash_of(seed: u64, text: &str) -> u64 {
    text.bytes()
        .fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3).rotate_left(5))
}
