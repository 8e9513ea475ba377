//! The story of a world: who runs what, and what goes wrong when. A story is data, so it can be shortened.

use std::{
    fmt::{self, Display, Formatter},
    sync::Arc,
    time::Duration,
};

use proptest::strategy::{Strategy, ValueTree};
use steadfast_store::ProviderErrorKind;
use steadfast_testing::program::{
    Program,
    ast::{Name, names},
    dice::Dice,
    generate::{Palette, program, runner},
    shrink::shorter,
};

use crate::wire::{Disturbance, Planned};

/// All that decides what happens in a world.
#[derive(Clone, Debug)]
pub struct Story {
    /// Decides the delays of calls, the lengths and outcomes of activities, and who runs first.
    pub seed: u64,
    /// The workers. The first one has all code.
    pub workers: Vec<Worker>,
    /// The programs of the children `Kid` and `Lad`.
    pub children: Vec<Arc<Program>>,
    /// The instances that a client starts.
    pub instances: Vec<Instance>,
    /// What happens, in the order of time.
    pub events: Vec<Happening>,
}

/// A worker of the world.
#[derive(Clone, Debug)]
pub struct Worker {
    /// How far its wall time is ahead, in milliseconds.
    pub ahead_ms: i64,
    /// How much faster its time runs, in millionths.
    pub drift: i64,
    /// Whether it has a node id, which it keeps when it is started again.
    pub named: bool,
    /// The activities that it has no code for.
    pub lacks: Vec<Name>,
    /// How many sessions it may hold.
    pub sessions: usize,
}

/// An instance that a client starts.
#[derive(Clone, Debug)]
pub struct Instance {
    /// When it is started.
    pub at: Duration,
    /// What it runs.
    pub program: Arc<Program>,
}

/// Something that happens at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Happening {
    /// The moment, in true time.
    pub at: Duration,
    /// What happens.
    pub what: Trouble,
}

/// The kinds of things that happen. Numbers name workers and instances; a number too large names none.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// A worker is killed, and started again after a while.
    Kill(usize, Duration),
    /// A worker is stopped for a while, as by a signal.
    Freeze(usize, Duration),
    /// The machine of a worker sleeps.
    Sleep(usize, Duration),
    /// The wall time of a worker is set.
    Step(usize, i64),
    /// A worker does not reach the store.
    Cut(usize, Duration),
    /// No worker reaches the store.
    Outage(Duration),
    /// The calls of a worker take longer.
    Slow(usize, Duration, Duration),
    /// One call of a worker is disturbed.
    Disturb(usize, Planned),
    /// A worker gives up its sessions and stops, and is started again after a while.
    Drain(usize, Duration),
    /// A client asks an instance to cancel.
    Cancel(usize),
    /// A client terminates an instance.
    Terminate(usize),
    /// A client deletes an instance by force and starts it again.
    StartAnew(usize),
    /// A client raises an event.
    Raise(usize, Name),
    /// A client sends a message.
    Enqueue(usize, Name),
    /// An operator releases a shared session.
    Release(Name),
}

impl Trouble {
    /// Tells whether this is a fault: after it an activity may run once more.
    pub fn is_fault(&self) -> bool {
        !matches!(
            self,
            Self::Step(..) | Self::Cancel(_) | Self::Terminate(_) | Self::Raise(..) | Self::Enqueue(..)
        )
    }
}

/// The longest time at which trouble begins.
const LAST_TROUBLE: u64 = 120;

impl Story {
    /// Makes the story of a seed.
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0x5EED);
        let mut programs = Programs::of(seed);
        let workers = (0..1 + dice.below(3)).map(|number| worker(&mut dice, number)).collect::<Vec<_>>();
        let instances: Vec<_> = (0..1 + dice.below(6))
            .map(|_| Instance { at: millis(&mut dice, 0, 20_000), program: programs.next() })
            .collect();
        let count = if dice.chance(100) { 0 } else { dice.below(12) };
        let mut events: Vec<_> =
            (0..count).map(|_| happening(&mut dice, workers.len(), instances.len())).collect();
        events.sort_by_key(|event| event.at);
        // Children that start children would never end.
        let children = (0..names::CHILDREN.len()).map(|_| Arc::new(programs.next().childless())).collect();
        Self { seed, workers, children, instances, events }
    }

    /// Returns the stories that are shorter by one step, the boldest first.
    pub fn shorter(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut Self)| {
            let mut next = self.clone();
            change(&mut next);
            all.push(next);
        };
        add(&|story| story.events.clear());
        for number in (1..self.workers.len()).rev() {
            add(&|story| drop(story.workers.remove(number)));
        }
        for number in 0..self.instances.len() {
            add(&|story| drop(story.instances.remove(number)));
        }
        for number in 0..self.events.len() {
            add(&|story| {
                story.events.remove(number);
            });
        }
        for (number, instance) in self.instances.iter().enumerate() {
            for program in shorter(&instance.program) {
                let program = Arc::new(program);
                add(&|story| story.instances[number].program = Arc::clone(&program));
            }
        }
        for number in 0..self.children.len() {
            for program in shorter(&self.children[number]) {
                let program = Arc::new(program);
                add(&|story| story.children[number] = Arc::clone(&program));
            }
        }
        for number in 0..self.workers.len() {
            add(&|story| story.workers[number] = Worker { named: false, ..Worker::plain() });
        }
        all
    }
}

impl Worker {
    fn plain() -> Self {
        Self { ahead_ms: 0, drift: 0, named: false, lacks: Vec::new(), sessions: 10 }
    }
}

/// Makes programs, one after the other.
struct Programs {
    runner: proptest::test_runner::TestRunner,
}

impl Programs {
    fn of(seed: u64) -> Self {
        Self { runner: runner(seed) }
    }

    fn next(&mut self) -> Arc<Program> {
        let tree = program(Palette::FULL).new_tree(&mut self.runner);
        Arc::new(tree.map(|tree| tree.current()).unwrap_or_default())
    }
}

fn worker(dice: &mut Dice, number: usize) -> Worker {
    let skewed = dice.chance(400);
    let ahead = [0, -86_400_000, -5_000, 5_000, 3_600_000];
    Worker {
        ahead_ms: if skewed { dice.pick(&ahead).copied().unwrap_or(0) } else { 0 },
        drift: if skewed { dice.pick(&[-200, 0, 200]).copied().unwrap_or(0) } else { 0 },
        named: dice.chance(500),
        lacks: names::ACTIVITIES.iter().copied().filter(|_| number > 0 && dice.chance(150)).collect(),
        sessions: if number > 0 && dice.chance(200) { 0 } else { 1 + dice.below(4) },
    }
}

fn happening(dice: &mut Dice, workers: usize, instances: usize) -> Happening {
    let at = millis(dice, 0, LAST_TROUBLE * 1_000);
    let (worker, instance) = (dice.below(workers), dice.below(instances));
    let short = millis(dice, 1, 3_000);
    let long = millis(dice, 1_000, 90_000);
    let lasts = if dice.chance(500) { short } else { long };
    let what = match dice.below(19) {
        0 | 1 => Trouble::Kill(worker, lasts),
        2 | 3 => Trouble::Freeze(worker, lasts),
        4 => Trouble::Sleep(worker, lasts),
        5 => Trouble::Step(worker, dice.pick(&[-3_600_000, -2_000, 2_000, 86_400_000]).copied().unwrap_or(0)),
        6 => Trouble::Cut(worker, lasts),
        7 => Trouble::Outage(lasts),
        8 => Trouble::Slow(worker, millis(dice, 10, 5_000), lasts),
        9..=12 => Trouble::Disturb(worker, planned(dice, long)),
        13 => Trouble::Drain(worker, short),
        14 => Trouble::Cancel(instance),
        15 => Trouble::Terminate(instance),
        16 => Trouble::StartAnew(instance),
        17 => Trouble::Raise(instance, dice.pick(names::EVENTS).copied().unwrap_or("e")),
        _ => match dice.pick(names::QUEUES) {
            Some(queue) if dice.chance(800) => Trouble::Enqueue(instance, queue),
            _ => Trouble::Release(dice.pick(names::SESSIONS).copied().unwrap_or("s")),
        },
    };
    Happening { at, what }
}

/// The methods that disturbances are for.
const METHODS: &[&str] = &[
    "fetch_turn",
    "commit_turn",
    "fetch_work",
    "finish_work",
    "renew",
    "abandon",
    "excuse",
    "refuse",
    "report_worker",
    "register_node",
    "renew_sessions",
    "release_sessions",
    "read_history",
];

fn planned(dice: &mut Dice, late: Duration) -> Planned {
    use ProviderErrorKind::{Busy, Full, Unavailable};
    let kind = dice.pick(&[Busy, Unavailable, Full]).copied().unwrap_or(Busy);
    let what = match dice.below(5) {
        0 => Disturbance::Fails(kind),
        1 => Disturbance::LosesAnswer(Unavailable),
        2 => Disturbance::Late(late),
        3 => Disturbance::DiesBefore,
        _ => Disturbance::DiesAfter,
    };
    let method = if dice.chance(800) { dice.pick(METHODS).copied() } else { None };
    Planned { method, skip: u32::try_from(dice.below(8)).unwrap_or(0), what }
}

fn millis(dice: &mut Dice, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + dice.roll() % (to - from))
}

impl Display for Story {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        for (number, worker) in self.workers.iter().enumerate() {
            let Worker { ahead_ms, drift, named, lacks, sessions } = worker;
            write!(f, "worker {number}: {sessions} sessions")?;
            if *named {
                write!(f, ", named")?;
            }
            if *ahead_ms != 0 || *drift != 0 {
                write!(f, ", wall time ahead by {ahead_ms} ms, drift {drift} ppm")?;
            }
            if !lacks.is_empty() {
                write!(f, ", lacks {}", lacks.join(" "))?;
            }
            writeln!(f)?;
        }
        for (name, child) in names::CHILDREN.iter().zip(&self.children) {
            write!(f, "{name}:\n{child}")?;
        }
        for (number, instance) in self.instances.iter().enumerate() {
            write!(f, "instance {number} at {:?}:\n{}", instance.at, instance.program)?;
        }
        self.events.iter().try_for_each(|event| writeln!(f, "at {:?}: {:?}", event.at, event.what))
    }
}
