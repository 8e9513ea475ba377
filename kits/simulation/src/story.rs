//! The story of a world: who runs what, and what goes wrong when. A story is data, so it can be shortened.

use std::{
    fmt::{self, Display, Formatter},
    time::Duration,
};

use proptest::strategy::{Strategy, ValueTree};
use serde::{Deserialize, Serialize};
use steadfast_testing::program::{
    Program,
    ast::{Name, names},
    dice::Dice,
    generate::{Palette, program, runner},
    mutate::program::mutate,
    shrink::shorter,
};

use crate::wire::{Disturbance, Failure, Planned};

/// All that decides what happens in a world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Story {
    /// Decides the delays of calls, the lengths and outcomes of activities, and who runs first.
    pub seed: u64,
    /// The workers. When all trouble has ended, the first one has all code.
    pub workers: Vec<Worker>,
    /// The programs of the children `Kid` and `Lad`.
    pub children: Vec<Program>,
    /// The instances that a client starts.
    pub instances: Vec<Instance>,
    /// What happens, in the order of time.
    pub events: Vec<Happening>,
}

/// A worker of the world: its host, its code and its options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Worker {
    /// How far its wall time is ahead, in milliseconds.
    pub ahead_ms: i64,
    /// How much faster its time runs, in millionths.
    pub drift: i64,
    /// Whether it has a node id, which it keeps when it is started again.
    pub named: bool,
    /// The activities that it has no code for.
    pub lacks: Vec<Name>,
    /// The instances whose code is another one than the one that they were written for.
    pub changed: Vec<Change>,
    /// How many sessions it may serve at once.
    pub sessions: usize,
    /// How many sessions it may hold; `None` is any number.
    pub attached: Option<usize>,
    /// How many turns it runs at once.
    pub turns: usize,
    /// How many activities it runs at once.
    pub work: usize,
    /// How many orchestrations it keeps in memory.
    pub warm: usize,
    /// The activities that it takes.
    pub tags: Tags,
    /// Whether what it has no code for is parked for ever.
    pub parks: bool,
}

/// A change of the code of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The number of the instance.
    pub instance: usize,
    /// Decides what is changed.
    pub seed: u64,
}

/// Which activities a worker takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tags {
    /// All.
    Any,
    /// Those without a tag.
    Plain,
    /// Those that are tagged.
    Tagged,
}

/// An instance that a client starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Instance {
    /// When it is started.
    pub at: Duration,
    /// What it runs.
    pub program: Program,
}

/// Something that happens at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Happening {
    /// The moment, in true time.
    pub at: Duration,
    /// What happens.
    pub what: Trouble,
}

/// The kinds of things that happen. Numbers name workers; a number too large names none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum Trouble {
    /// A worker is killed, and started again after a while.
    Kill(usize, Duration),
    /// A worker is stopped for a while, as by a signal.
    Freeze(usize, Duration),
    /// The machine of a worker sleeps.
    Sleep(usize, Duration),
    /// The wall time of a worker is set.
    Step(usize, i64),
    /// The wall time of the store is set.
    StepStore(i64),
    /// A worker does not reach the store.
    Cut(usize, Duration),
    /// No worker and no client reaches the store.
    Outage(Duration),
    /// The disk of the store is full.
    Full(Duration),
    /// The calls of a worker take longer.
    Slow(usize, Duration, Duration),
    /// One call of a worker is disturbed.
    Disturb(usize, Planned),
    /// One call of a client is disturbed.
    DisturbClient(Planned),
    /// A worker gives up its sessions and stops, and is started again after a while.
    Drain(usize, Duration),
    /// A worker is shut down, and comes back after a while with other code and options.
    Deploy(usize, Worker, Duration),
    /// A worker is started again while its older process runs on for a while, under the same name.
    Twin(usize, Duration),
    /// A client asks an instance to cancel.
    Cancel(Target),
    /// A client terminates an instance.
    Terminate(Target),
    /// A client deletes an instance by force, with its children.
    Delete(Target),
    /// A client deletes an instance by force and starts it again.
    StartAnew(usize),
    /// A client raises an event.
    Raise(Target, Name),
    /// A client sends a message.
    Enqueue(Target, Name),
    /// An operator releases a session: a shared one, or one of an instance.
    Release(Option<Target>, Name),
}

/// An instance that a client calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub enum Target {
    /// An instance of the story.
    Instance(usize),
    /// An instance that a program starts under this id, if one does.
    Named(Name),
}

impl Target {
    /// Returns the id of the instance.
    pub fn id(self) -> String {
        match self {
            Self::Instance(number) => format!("i{number}"),
            Self::Named(name) => name.to_owned(),
        }
    }
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
            (0..count).map(|_| happening(&mut dice, &workers, instances.len())).collect();
        events.sort_by_key(|event| event.at);
        // Children that start children would never end.
        let children = (0..names::CHILDREN.len()).map(|_| programs.next().childless()).collect();
        Self { seed, workers, children, instances, events }
    }

    /// Returns the program that an instance runs on a worker.
    pub fn program_on(&self, worker: &Worker, number: usize) -> Program {
        let program = self.instances.get(number).map(|instance| instance.program.clone()).unwrap_or_default();
        let change = worker.changed.iter().find(|change| change.instance == number);
        let changed = change.and_then(|change| mutate(&program, &mut Dice::new(change.seed)));
        changed.map_or(program, |mutation| mutation.program)
    }

    /// Tells whether the code of an instance, or of an instance that it starts, is changed while it runs: that
    /// it fails is no fault of the engine.
    pub fn changes_code_of(&self, instance: &str) -> bool {
        let deployed = self.events.iter().filter_map(|event| match &event.what {
            Trouble::Deploy(_, worker, _) => Some(worker),
            _ => None,
        });
        let mut changes = deployed.chain(&self.workers).flat_map(|worker| &worker.changed);
        changes.any(|change| {
            let id = Target::Instance(change.instance).id();
            let is_child = instance.strip_prefix(&id).is_some_and(|rest| rest.starts_with(':'));
            instance == id || is_child || instance == INTRUDER
        })
    }

    /// Tells whether at some time no worker may have had the code of some activity.
    pub fn lacks_code(&self) -> bool {
        let deployed = self.events.iter().any(|event| match &event.what {
            Trouble::Deploy(_, worker, _) => !worker.lacks.is_empty(),
            _ => false,
        });
        deployed || self.workers.iter().any(|worker| !worker.lacks.is_empty())
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
        for (from, to) in halves(self.events.len()) {
            add(&|story| drop(story.events.drain(from..to)));
        }
        for (from, to) in halves(self.instances.len()) {
            add(&|story| drop(story.instances.drain(from..to)));
        }
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
                add(&|story| story.instances[number].program = program.clone());
            }
        }
        for number in 0..self.children.len() {
            for program in shorter(&self.children[number]) {
                add(&|story| story.children[number] = program.clone());
            }
        }
        for number in 0..self.workers.len() {
            add(&|story| story.workers[number] = Worker::plain());
        }
        for (number, event) in self.events.iter().enumerate() {
            for what in event.what.milder() {
                add(&|story| story.events[number].what = what.clone());
            }
        }
        for number in 0..self.events.len() {
            add(&|story| story.events[number].at = whole_seconds(story.events[number].at));
        }
        for number in 0..self.instances.len() {
            add(&|story| story.instances[number].at = whole_seconds(story.instances[number].at));
        }
        all.retain(|story| story != self);
        all
    }
}

/// Returns the halves of a list that is longer than two.
fn halves(length: usize) -> impl Iterator<Item = (usize, usize)> {
    let half = length / 2;
    [(half, length), (0, half)].into_iter().filter(move |_| length > 2)
}

fn whole_seconds(at: Duration) -> Duration {
    Duration::from_secs(at.as_secs())
}

/// The name of what a change of code starts or waits for.
const INTRUDER: &str = "intruder";

impl Trouble {
    /// Returns things like this one that are simpler to think about.
    fn milder(&self) -> Vec<Self> {
        match self {
            Self::Deploy(number, worker, back) => {
                let plain = Worker::plain();
                let changed = Worker { changed: worker.changed.clone(), ..plain.clone() };
                let lacks = Worker { lacks: worker.lacks.clone(), ..plain.clone() };
                let all = [plain, changed, lacks].map(|worker| Self::Deploy(*number, worker, *back));
                std::iter::once(Self::Kill(*number, *back)).chain(all).collect()
            }
            Self::Sleep(number, lasts) | Self::Cut(number, lasts) => vec![Self::Freeze(*number, *lasts)],
            Self::Outage(lasts) => vec![Self::Cut(0, *lasts)],
            Self::Twin(number, _) => vec![Self::Kill(*number, Duration::from_secs(2))],
            Self::Disturb(number, planned) if planned.skip > 0 => {
                vec![Self::Disturb(*number, Planned { skip: 0, ..*planned })]
            }
            _ => Vec::new(),
        }
    }
}

impl Worker {
    /// Returns a worker with all code and ordinary options.
    pub fn plain() -> Self {
        Self {
            ahead_ms: 0,
            drift: 0,
            named: false,
            lacks: Vec::new(),
            changed: Vec::new(),
            sessions: 10,
            attached: None,
            turns: 2,
            work: 3,
            warm: 1_000,
            tags: Tags::Any,
            parks: false,
        }
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

    fn next(&mut self) -> Program {
        let tree = program(Palette::FULL).new_tree(&mut self.runner);
        tree.map(|tree| tree.current()).unwrap_or_default()
    }
}

fn worker(dice: &mut Dice, number: usize) -> Worker {
    let skewed = dice.chance(400);
    let ahead = [0, -86_400_000, -5_000, 5_000, 3_600_000];
    let host = Worker {
        ahead_ms: if skewed { dice.pick(&ahead).copied().unwrap_or(0) } else { 0 },
        drift: if skewed { dice.pick(&[-200, 0, 200]).copied().unwrap_or(0) } else { 0 },
        named: dice.chance(500),
        ..Worker::plain()
    };
    let worker = deployed(dice, &host);
    let (lacks, tags) = if number > 0 { (worker.lacks, worker.tags) } else { (Vec::new(), Tags::Any) };
    let sessions = if number > 0 { worker.sessions } else { worker.sessions.max(1) };
    Worker { lacks, tags, sessions, ..worker }
}

/// Chooses code and options for a host.
fn deployed(dice: &mut Dice, host: &Worker) -> Worker {
    Worker {
        lacks: names::ACTIVITIES.iter().copied().filter(|_| dice.chance(150)).collect(),
        sessions: if dice.chance(200) { 0 } else { 1 + dice.below(4) },
        attached: dice.chance(200).then(|| 1 + dice.below(3)),
        turns: 1 + dice.below(3),
        work: 1 + dice.below(4),
        warm: dice.pick(&[0, 1, 1_000, 1_000]).copied().unwrap_or(0),
        tags: dice
            .pick(&[Tags::Any, Tags::Any, Tags::Any, Tags::Plain, Tags::Tagged])
            .copied()
            .unwrap_or(Tags::Any),
        parks: dice.chance(500),
        ..host.clone()
    }
}

fn deployment(
    dice: &mut Dice,
    number: usize,
    workers: &[Worker],
    instances: usize,
    back: Duration,
) -> Trouble {
    let host = workers.get(number).cloned().unwrap_or_else(Worker::plain);
    let mut worker = deployed(dice, &host);
    if dice.chance(400) {
        worker.changed.push(Change { instance: dice.below(instances), seed: dice.roll() });
    }
    Trouble::Deploy(number, worker, back)
}

fn happening(dice: &mut Dice, workers: &[Worker], instances: usize) -> Happening {
    let at = millis(dice, 0, LAST_TROUBLE * 1_000);
    let (worker, instance) = (dice.below(workers.len()), dice.below(instances));
    let target = target(dice, instance);
    let short = millis(dice, 1, 3_000);
    let long = millis(dice, 1_000, 90_000);
    let lasts = if dice.chance(500) { short } else { long };
    let steps = [-3_600_000, -2_000, 2_000, 86_400_000];
    let what = match dice.below(28) {
        0 | 1 => Trouble::Kill(worker, lasts),
        2 | 3 => Trouble::Freeze(worker, lasts),
        4 => Trouble::Sleep(worker, lasts),
        5 => Trouble::Step(worker, dice.pick(&steps).copied().unwrap_or(0)),
        6 => Trouble::Cut(worker, lasts),
        7 => Trouble::Outage(lasts),
        8 => Trouble::Slow(worker, millis(dice, 10, 5_000), lasts),
        9..=13 => Trouble::Disturb(worker, planned(dice, METHODS, long)),
        14 => Trouble::Drain(worker, short),
        15 => Trouble::Cancel(target),
        16 => Trouble::Terminate(target),
        17 => Trouble::StartAnew(instance),
        18 => Trouble::Raise(target, dice.pick(names::EVENTS).copied().unwrap_or("e")),
        19 | 20 => Trouble::Enqueue(target, dice.pick(names::QUEUES).copied().unwrap_or("q")),
        21 => {
            let of = dice.chance(500).then_some(target);
            Trouble::Release(of, dice.pick(names::SESSIONS).copied().unwrap_or("s"))
        }
        22 | 23 => deployment(dice, worker, workers, instances, short),
        24 => Trouble::Twin(worker, lasts),
        25 => Trouble::Full(lasts),
        26 => Trouble::DisturbClient(planned(dice, CLIENT_METHODS, long)),
        _ if dice.chance(500) => Trouble::Delete(target),
        _ => Trouble::StepStore(dice.pick(&[-60_000, -500, 500, 60_000]).copied().unwrap_or(0)),
    };
    Happening { at, what }
}

/// Chooses an instance of the story, or one that a program may start under an id of its own.
fn target(dice: &mut Dice, instance: usize) -> Target {
    let named: Vec<Name> = names::CHILD_IDS.iter().chain(names::STRANGERS).copied().collect();
    match dice.pick(&named) {
        Some(name) if dice.chance(250) => Target::Named(name),
        _ => Target::Instance(instance),
    }
}

/// The methods of workers that disturbances are for.
const METHODS: &[Name] = &[
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
    "cleanup_sessions",
    "read_history",
];

/// The methods of clients that disturbances are for.
const CLIENT_METHODS: &[Name] = &["start", "send", "state", "instances"];

fn planned(dice: &mut Dice, methods: &[Name], late: Duration) -> Planned {
    use Failure::{Busy, Full, Unavailable};
    let all = if dice.chance(600) { &[Busy, Unavailable, Full][..] } else { &Failure::ALL[..] };
    let failure = dice.pick(all).copied().unwrap_or(Busy);
    let what = match dice.below(6) {
        0 => Disturbance::Fails(failure),
        1 => Disturbance::LosesAnswer(failure),
        2 => Disturbance::Late(late),
        3 => Disturbance::Twice,
        4 => Disturbance::DiesBefore,
        _ => Disturbance::DiesAfter,
    };
    let method = if dice.chance(800) { dice.pick(methods).copied() } else { None };
    Planned { method, skip: u32::try_from(dice.below(8)).unwrap_or(0), what }
}

fn millis(dice: &mut Dice, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + dice.roll() % (to - from))
}

impl Display for Story {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        for (number, worker) in self.workers.iter().enumerate() {
            writeln!(f, "worker {number}: {worker}")?;
        }
        for (name, child) in names::CHILDREN.iter().zip(&self.children) {
            write!(f, "{name}:\n{child}")?;
        }
        for (number, instance) in self.instances.iter().enumerate() {
            write!(f, "instance {number} at {:?}:\n{}", instance.at, instance.program)?;
        }
        self.events.iter().try_for_each(|event| writeln!(f, "at {:?}: {}", event.at, event.what))
    }
}

impl Display for Worker {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            ahead_ms,
            drift,
            named,
            lacks,
            changed,
            sessions,
            attached,
            turns,
            work,
            warm,
            tags,
            parks,
        } = self;
        write!(f, "{turns} turns, {work} activities, {sessions} sessions, {warm} warm")?;
        if *named {
            write!(f, ", named")?;
        }
        if let Some(attached) = attached {
            write!(f, ", holds {attached} sessions")?;
        }
        if *ahead_ms != 0 || *drift != 0 {
            write!(f, ", wall time ahead by {ahead_ms} ms, drift {drift} ppm")?;
        }
        if *tags != Tags::Any {
            write!(f, ", takes {tags:?} activities")?;
        }
        if *parks {
            write!(f, ", parks")?;
        }
        if !lacks.is_empty() {
            write!(f, ", lacks {}", lacks.join(" "))?;
        }
        changed.iter().try_for_each(|change| write!(f, ", has other code for i{}", change.instance))
    }
}

impl Display for Trouble {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deploy(number, worker, back) => {
                write!(f, "worker {number} becomes, after {back:?}: {worker}")
            }
            other => write!(f, "{other:?}"),
        }
    }
}
