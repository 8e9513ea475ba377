//! How a story is made from a seed.

use std::time::Duration;

use proptest::strategy::{Strategy, ValueTree};
use steadfast_testing::program::{
    Program,
    ast::{Name, names},
    dice::Dice,
    generate::{Palette, program, runner},
};

use super::{Change, Happening, Instance, Story, Tags, Target, Trouble, Worker, theme};
use crate::wire::{Disturbance, Failure, Planned};

/// The longest time at which trouble begins.
const LAST_TROUBLE: u64 = 120;

impl Story {
    /// Makes the story of a seed.
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed ^ 0x5EED);
        let mut programs = Programs::of(seed);
        let workers = (0..1 + dice.below(3)).map(|number| worker(&mut dice, number)).collect::<Vec<_>>();
        let instances: Vec<_> = (0..1 + dice.below(6))
            .map(|_| Instance { at: millis(&mut dice, 0, 20_000), program: programs.next(), is_large: false })
            .collect();
        let count = match dice.below(10) {
            0 => 0,
            1 => 20 + dice.below(20),
            _ => dice.below(12),
        };
        let mut events: Vec<_> =
            (0..count).map(|_| happening(&mut dice, &workers, instances.len())).collect();
        events.sort_by_key(|event| event.at);
        // Children that start children would never end.
        let children = (0..names::CHILDREN.len()).map(|_| programs.next().childless()).collect();
        let mut story = Self { seed, workers, children, instances, events };
        theme::add(&mut story);
        story
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
pub(super) fn target(dice: &mut Dice, instance: usize) -> Target {
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
    "end_try",
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

pub(super) fn planned(dice: &mut Dice, methods: &[Name], late: Duration) -> Planned {
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

pub(super) fn millis(dice: &mut Dice, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + dice.roll() % (to - from))
}
