//! Making walks: which steps are likely, and with what.

use std::collections::HashSet;
use std::time::Duration;

use steadfast_core::TagFilter;

use super::step::{Ask, Deed, Finish, Held, Note, Place, Step, Warmth, Who};
use super::worker::{Duty, Leased, Listed};
use crate::dice::Dice;

/// Few names, so that steps meet each other.
pub(super) const INSTANCES: [&str; 4] = ["a", "b", "c", "d"];
pub(super) const SHARED: [&str; 3] = ["s", "t", "x"];
pub(super) const OWNED: [&str; 2] = ["x", "y"];
pub(super) const KEYS: [&str; 2] = ["k", "l"];
const PROCESSES: [&str; 2] = ["P", "Q"];
const NODES: [&str; 2] = ["n", "m"];
const WORKERS: [&str; 2] = ["u", "v"];

/// How many leases of a kind a walk has at a time.
pub(super) const HOLDERS: usize = 3;

/// Times of delays and waits, and by how much time moves. Few, so that things end together, which is where
/// stores go wrong; short ones more often, so that much happens before a lease expires.
const TIMES: [Duration; 7] = [
    Duration::from_millis(1),
    Duration::from_millis(1),
    Duration::from_secs(1),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
];

/// Times of leases.
const LEASES: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
];

/// Bounds what one turn decides.
const MOST_DEEDS: usize = 5;

pub(super) fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let mut steps = Vec::with_capacity(count + 1);
    while steps.len() < count {
        let step = dice.step();
        // Most turns are committed by the one who asked, before anything comes between.
        let follows = match step {
            Step::FetchTurn { holder, .. } if dice.percent(70) => {
                Some(Step::CommitTurn { lease: Held { holder, former: false }, deeds: dice.deeds() })
            }
            _ => None,
        };
        steps.push(step);
        steps.extend(follows);
    }
    steps
}

impl Dice {
    fn step(&mut self) -> Step {
        match self.below(100) {
            0..9 => Step::Advance(self.pick(&TIMES)),
            9..16 => Step::Start { instance: self.pick(&INSTANCES), also: self.percent(20) },
            16..22 => Step::Send { instance: self.pick(&INSTANCES), note: self.note(), delay: self.delay() },
            22..39 => Step::FetchTurn {
                holder: self.below(HOLDERS),
                lease: self.pick(&LEASES),
                warm: self.pick(&[Warmth::Cold, Warmth::Newest, Warmth::Newest, Warmth::Former]),
                worker: self.maybe(30, &WORKERS),
            },
            39..44 => Step::CommitTurn { lease: self.held(), deeds: self.deeds() },
            44..46 => Step::RenewTurn { lease: self.held(), time: self.pick(&LEASES) },
            46..48 => {
                Step::AbandonTurn { lease: self.held(), delay: self.delay(), uncounted: self.percent(50) }
            }
            48..52 => Step::Enqueue {
                instance: self.pick(&INSTANCES),
                session: self.maybe(70, &SHARED),
                tag: self.tag(),
            },
            52..69 => Step::FetchWork {
                holder: self.below(HOLDERS),
                lease: self.pick(&LEASES),
                tags: self.tags(),
                session: self.percent(85).then(|| self.ask()),
                worker: self.maybe(30, &WORKERS),
            },
            69..74 => Step::FinishWork { lease: self.held(), outcome: self.finish() },
            74..77 => Step::RenewWork { lease: self.held(), time: self.pick(&LEASES) },
            77..79 => match (self.held(), self.delay(), self.percent(50)) {
                (lease, Some(delay), false) => Step::EndTry { lease, delay },
                (lease, delay, uncounted) => Step::AbandonWork { lease, delay, uncounted },
            },
            79..84 => Step::Worker(self.duty()),
            84..86 => Step::Register { node: self.pick(&NODES) },
            86..90 => Step::RenewSessions {
                owner: self.who(),
                time: self.pick(&LEASES),
                idle: self.pick(&TIMES),
                patience: self.pick(&TIMES),
                full: self.percent(50),
                tags: self.tags(),
                worker: self.maybe(30, &WORKERS),
            },
            90 => Step::RenewCompatible {
                owners: vec![self.pick(&PROCESSES), self.pick(&NODES)],
                time: self.pick(&LEASES),
                idle: self.pick(&TIMES),
            },
            91..93 => Step::Release { owner: self.who(), stale: self.percent(30) },
            93 => Step::CleanUp,
            94 => Step::Delete { instance: self.pick(&INSTANCES), force: self.percent(60) },
            95 => self.seldom(),
            96..99 => Step::Look { instance: self.pick(&INSTANCES) },
            _ => Step::LookAtSessions,
        }
    }

    fn duty(&mut self) -> Duty {
        let held = self.held();
        let lease = if self.percent(50) { Leased::Turn(held) } else { Leased::Work(held) };
        match self.below(10) {
            0..3 => Duty::Report {
                worker: self.pick(&WORKERS),
                lists: self.pick(&[Listed::Ours, Listed::Others]),
                takes_unlisted: self.percent(50),
                is_stopped: self.percent(10),
            },
            3..7 => Duty::Refuse {
                lease,
                handler: self.pick(&[Listed::Ours, Listed::Ours, Listed::Others]),
                delay: self.delay(),
                uncounted: self.percent(50),
            },
            _ => Duty::Excuse { lease },
        }
    }

    fn seldom(&mut self) -> Step {
        match self.below(4) {
            3 => Step::DeleteEnded { age: self.pick(&TIMES) },
            0 => Step::DeleteBulk { limit: self.pick(&[1, 2, 10]) },
            1 => Step::Prune { instance: self.pick(&INSTANCES), keep: self.pick(&[0, 1, 2]) },
            _ => Step::PruneBulk { keep: self.pick(&[1, 2]) },
        }
    }

    fn deeds(&mut self) -> Vec<Deed> {
        let count = self.below(MOST_DEEDS + 1);
        let mut deeds: Vec<Deed> = (0..count).map(|_| self.deed()).collect();
        match self.below(100) {
            0..8 => deeds.push(Deed::ContinueAsNew),
            8..12 => deeds.push(Deed::Complete),
            12..14 => deeds.push(Deed::Fail),
            _ => {}
        }
        deeds
    }

    fn deed(&mut self) -> Deed {
        match self.below(100) {
            0..30 => Deed::Schedule {
                session: self.percent(80).then(|| self.place()),
                tag: self.tag(),
                times: self.pick(&[1, 1, 2, 3]),
            },
            30..36 => Deed::Timer(self.pick(&TIMES)),
            36..45 => Deed::Set { key: self.pick(&KEYS), value: self.number() },
            45..50 => Deed::Clear { key: self.pick(&KEYS) },
            50..52 => Deed::ClearAll,
            52..57 => Deed::Status(self.percent(75).then(|| self.number())),
            57..75 => Deed::Open {
                session: self.pick(&OWNED),
                idle: self.percent(60).then(|| self.pick(&TIMES)),
                serial: self.percent(50),
            },
            75..79 => Deed::Close { session: self.pick(&OWNED) },
            79..84 => Deed::Watch(self.place()),
            84..90 => Deed::Cancel { nth: self.below(8) },
            90..95 => Deed::Tell { instance: self.pick(&INSTANCES) },
            95..99 => Deed::Child { instance: self.pick(&INSTANCES) },
            _ => Deed::Repeat,
        }
    }

    fn note(&mut self) -> Note {
        let number = self.number();
        match self.below(9) {
            0..2 => Note::Event(number),
            2..4 => Note::Queue(number),
            4..6 => Note::Cancel,
            6..8 => Note::Start,
            _ => Note::Terminate,
        }
    }

    fn number(&mut self) -> u8 {
        u8::try_from(self.below(100)).unwrap_or(0)
    }

    fn delay(&mut self) -> Option<Duration> {
        self.percent(30).then(|| self.pick(&TIMES))
    }

    fn held(&mut self) -> Held {
        Held { holder: self.below(HOLDERS), former: self.percent(10) }
    }

    fn finish(&mut self) -> Finish {
        match self.below(20) {
            0..14 => Finish::Completed,
            14..17 => Finish::Failed,
            17..19 => Finish::Nothing,
            _ => Finish::Nonsense,
        }
    }

    fn ask(&mut self) -> Ask {
        Ask {
            owner: self.who(),
            lease: self.pick(&LEASES),
            only: self.percent(10).then(|| self.place()),
            leave_out: self.percent(10).then(|| self.place()),
        }
    }

    fn who(&mut self) -> Who {
        if self.percent(50) {
            Who::Process(self.pick(&PROCESSES))
        } else {
            Who::Node { name: self.pick(&NODES), former: self.percent(15) }
        }
    }

    fn place(&mut self) -> Place {
        if self.percent(40) { Place::Shared(self.pick(&SHARED)) } else { Place::Owned(self.pick(&OWNED)) }
    }

    fn tag(&mut self) -> Option<&'static str> {
        self.maybe(15, &["gpu"])
    }

    fn tags(&mut self) -> TagFilter {
        let gpu = || HashSet::from(["gpu".to_owned()]);
        match self.below(10) {
            0..3 => TagFilter::DefaultOnly,
            3 => TagFilter::Tags(gpu()),
            4 => TagFilter::DefaultAnd(gpu()),
            _ => TagFilter::Any,
        }
    }

    fn maybe<const N: usize>(&mut self, chance: usize, choices: &[&'static str; N]) -> Option<&'static str> {
        self.percent(chance).then(|| self.pick(choices))
    }
}
