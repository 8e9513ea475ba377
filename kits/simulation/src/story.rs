//! The story of a world: who runs what, and what goes wrong when. A story is data, so it can be shortened.

mod make;
mod tell;
mod theme;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_testing::program::{Program, ast::Name, dice::Dice, mutate::program::mutate, shrink::shorter};

pub use theme::Theme;

use crate::{
    ground::DiskTrouble,
    wire::{Disturbance, Planned},
};

/// All that decides what happens in a world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Story {
    /// Decides the delays of calls, the lengths and outcomes of activities, and who runs first.
    pub seed: u64,
    /// The workers. When all trouble has ended, the first one has all code ([`healed`](Self::healed)).
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
    /// Whether it runs only executions that are pinned to older engines.
    #[serde(default)]
    pub older_engine: bool,
    /// How long it keeps what has ended; `None` is for ever.
    #[serde(default)]
    pub retains: Option<Duration>,
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
    /// Whether its input takes pages of its own on a disk.
    #[serde(default)]
    pub is_large: bool,
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
    /// Something is wrong with the disk of the machine, if all processes run on one.
    Disk(DiskTrouble),
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
    /// A client removes old executions of an instance.
    Prune(Target),
    /// A client lists what there is, and asks for an explanation of an instance.
    Inspect(Target),
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
            Self::Step(..)
                | Self::Cancel(_)
                | Self::Terminate(_)
                | Self::Raise(..)
                | Self::Enqueue(..)
                | Self::Prune(_)
                | Self::Inspect(_)
        )
    }
}

impl Story {
    /// Returns the program that an instance runs on a worker.
    pub fn program_on(&self, worker: &Worker, number: usize) -> Program {
        let program = self.instances.get(number).map(|instance| instance.program.clone()).unwrap_or_default();
        let change = worker.changed.iter().find(|change| change.instance == number);
        let changed = change.and_then(|change| mutate(&program, &mut Dice::new(change.seed)));
        changed.map_or(program, |mutation| mutation.program)
    }

    /// Returns every program that an instance ran on some worker: the one that it was written for, and those
    /// that it was changed to.
    pub fn programs_of(&self, number: usize) -> Vec<Program> {
        let deployed = self.events.iter().filter_map(|event| match &event.what {
            Trouble::Deploy(_, worker, _) => Some(worker),
            _ => None,
        });
        let mut all = vec![self.program_on(&Worker::plain(), number)];
        for worker in deployed.chain(&self.workers) {
            let program = self.program_on(worker, number);
            if !all.contains(&program) {
                all.push(program);
            }
        }
        all
    }

    /// Returns a worker as it is when all trouble has ended: as the story gives it. If changed code starts
    /// what no worker has code for, the first one does not park: that start would wait for ever (S21), and no
    /// worker could end it (I7).
    pub fn healed(&self, number: usize) -> Option<Worker> {
        let worker = self.workers.get(number)?.clone();
        let parks = worker.parks && (number > 0 || !self.starts_intruders());
        Some(Worker { parks, ..worker })
    }

    /// Tells whether some code starts an orchestration that no worker has code for.
    fn starts_intruders(&self) -> bool {
        let mut programs = (0..self.instances.len()).flat_map(|number| self.programs_of(number));
        programs.any(|program| program.starts(INTRUDER))
    }

    /// Returns the input that an instance is started with.
    pub fn input_of(&self, number: usize) -> String {
        match self.instances.get(number) {
            Some(Instance { is_large: true, .. }) => LARGE_TEXT.to_string().repeat(LARGE_BYTES),
            _ => "x".to_owned(),
        }
    }

    /// Tells whether the disk does not return some histories for a while.
    pub fn is_torn(&self) -> bool {
        let is_lost = |event: &Happening| matches!(event.what, Trouble::Disk(DiskTrouble::History(..)));
        self.events.iter().any(is_lost)
    }

    /// Tells whether the disk must do what it is told, beside that it does not return some histories: a store
    /// takes back what a dropped fetch was given, and what is torn is in the way of nothing else.
    pub fn needs_a_sound_disk(&self) -> bool {
        let is_drop = |event: &Happening| {
            matches!(event.what, Trouble::Disturb(_, Planned { what: Disturbance::Drops(_), .. }))
        };
        self.is_torn() || self.events.iter().any(is_drop)
    }

    /// Returns the shortest time for which a worker keeps what has ended; `None` if all keep it for ever.
    pub fn retention(&self) -> Option<Duration> {
        let deployed = self.events.iter().filter_map(|event| match &event.what {
            Trouble::Deploy(_, worker, _) => Some(worker),
            _ => None,
        });
        deployed.chain(&self.workers).filter_map(|worker| worker.retains).min()
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

/// The letter that a large input is made of, and its length: more than two pages of a file.
pub(crate) const LARGE_TEXT: char = 'z';
const LARGE_BYTES: usize = 9_000;

/// The name of what a change of code starts or waits for. No worker has code of this name.
pub const INTRUDER: &str = "intruder";

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
            older_engine: false,
            retains: None,
        }
    }
}
