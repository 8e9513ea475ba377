//! Themes: what random programs and random trouble seldom meet, so that a part of all stories is about it.

use std::time::Duration;

use steadfast_testing::program::{
    Program,
    ast::{Block, Name, Operation, Own, SessionName, Step, Text},
    dice::Dice,
};

use super::{
    Happening, Instance, Story, Target, Trouble, Worker,
    make::{millis, planned, target},
};
use crate::{
    ground::{DiskTrouble, LostRead},
    wire::{Disturbance, Planned},
};

/// The session, the child and the text of the themes.
const SESSION: Name = "s";
const CHILD: Name = "kid-1";
const PLAIN: Text = Text::Fixed("");

/// The methods of management that disturbances are for.
const DESK_METHODS: &[Name] = &[
    "instances",
    "delete_instance",
    "prune_executions",
    "list_executions",
    "get_instance_info",
    "get_instance_tree",
    "get_queue_depths",
    "turn_of",
    "work_of",
    "sessions",
    "session",
    "release_sessions",
];

/// What a story is about, beside what its programs and its troubles are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// A session that is closed, opened again and carried over continue-as-new.
    Chat,
    /// Two parents of one child id.
    TwoParents,
    /// Processes that die of their commits.
    Deaths,
    /// Workers that run other engines.
    Engines,
    /// Sessions that move while executions wait for it.
    Moves,
    /// A desk that inspects, prunes, releases and deletes.
    Desk,
    /// Workers that delete what has ended, with clocks that are ahead.
    Retention,
    /// A parent that is deleted and started again while its child is about to begin.
    Heirs,
    /// Fetches that are dropped while others of the process are given work of the same session.
    Drops,
    /// Clocks that are set while long activities run, and machines that sleep.
    Clocks,
    /// A history that the disk does not return for a while, beside instances that must go on.
    Torn,
}

/// Adds a theme to three of four stories. What else happens in a story does not depend on it.
pub(super) fn add(story: &mut Story) {
    let mut dice = Dice::new(story.seed ^ 0x07E3E);
    let theme = match dice.below(14) {
        0 | 1 => Theme::Chat,
        2 => Theme::TwoParents,
        3 => Theme::Deaths,
        4 => Theme::Engines,
        5 => Theme::Moves,
        6 => Theme::Desk,
        7 => Theme::Retention,
        8 => Theme::Heirs,
        9 => Theme::Drops,
        10 => Theme::Clocks,
        _ => return,
    };
    theme.add_with(story, &mut dice);
}

impl Theme {
    /// Adds the theme to a story.
    pub fn add(self, story: &mut Story) {
        self.add_with(story, &mut Dice::new(story.seed ^ 0x7E11));
    }

    fn add_with(self, story: &mut Story, dice: &mut Dice) {
        match self {
            Self::Chat => chat(story, dice),
            Self::TwoParents => two_parents(story, dice),
            Self::Deaths => deaths(story, dice),
            Self::Engines => engines(story, dice),
            Self::Moves => moves(story, dice),
            Self::Desk => desk(story, dice),
            Self::Retention => retention(story, dice),
            Self::Heirs => heirs(story, dice),
            Self::Drops => drops(story, dice),
            Self::Clocks => clocks(story, dice),
            Self::Torn => torn(story, dice),
        }
        story.events.sort_by_key(|event| event.at);
    }
}

fn happens(story: &mut Story, at: Duration, what: Trouble) {
    story.events.push(Happening { at, what });
}

/// Puts statements before and behind those of a program.
fn wrap(program: &mut Program, before: Vec<Step>, behind: Vec<Step>) {
    let own = std::mem::take(&mut program.body.0);
    program.body = Block(before.into_iter().chain(own).chain(behind).collect());
}

fn on_session(name: Name) -> Step {
    Step::Own(Own::OnSession { name, input: PLAIN, session: SessionName::Id(SESSION) })
}

fn open(serial: bool) -> Step {
    Step::Own(Own::OpenSessionWith { id: SESSION, serial, idle_millis: None })
}

fn close() -> Step {
    Step::Own(Own::CloseSession(SessionName::Id(SESSION)))
}

/// Activities that are scheduled on the session at once.
fn held() -> impl Iterator<Item = Step> {
    (0..).zip(["a", "b", "c"]).map(|(slot, name)| Step::Hold {
        slot,
        operation: Operation::Activity { name, input: PLAIN, tag: None, session: Some(SESSION) },
    })
}

/// A session that runs one activity at a time, is closed and opened again, in the middle of its activities or
/// after them, and is carried over continue-as-new.
fn chat(story: &mut Story, dice: &mut Dice) {
    for instance in story.instances.iter_mut().take(2) {
        let serial = dice.chance(800);
        let mut before = vec![open(serial)];
        before.extend(held());
        let again = [close(), open(serial), on_session("b")];
        match dice.below(4) {
            0 => before.extend(again),
            1 => before.extend(std::iter::once(Step::ResumeAll).chain(again)),
            _ => before.push(Step::ResumeAll),
        }
        wrap(&mut instance.program, before, vec![Step::ContinueAsNew(PLAIN)]);
    }
    for number in 0..story.workers.len() {
        let at = millis(dice, 1_000, 40_000);
        if dice.chance(400) {
            happens(story, at, Trouble::Kill(number, millis(dice, 1, 3_000)));
        }
    }
}

/// Two instances that start a child under the same id.
fn two_parents(story: &mut Story, dice: &mut Dice) {
    while story.instances.len() < 2 {
        story.instances.push(Instance { at: Duration::ZERO, program: Program::default(), is_large: false });
    }
    let first = story.instances[0].at;
    story.instances[1].at = first.saturating_add(millis(dice, 0, 3_000));
    for instance in story.instances.iter_mut().take(2) {
        let operation = Operation::Child { name: "Kid", input: PLAIN, id: Some(CHILD) };
        wrap(&mut instance.program, vec![Step::Await(operation)], Vec::new());
    }
}

/// Processes that die of their commits, again and again: the deliveries of messages count.
fn deaths(story: &mut Story, dice: &mut Dice) {
    story.workers.truncate(1 + dice.below(2));
    let (at, count) = (millis(dice, 0, 15_000), 1 + dice.below(13));
    for number in 0..story.workers.len() {
        for _ in 0..count {
            let what = if dice.chance(900) { Disturbance::DiesBefore } else { Disturbance::DiesAfter };
            let planned = Planned { method: Some("commit_turn"), skip: 0, what };
            happens(story, at, Trouble::Disturb(number, planned));
        }
    }
}

/// Workers that run other engines beside the first one.
fn engines(story: &mut Story, dice: &mut Dice) {
    while story.workers.len() < 2 {
        story.workers.push(Worker::plain());
    }
    story.workers[1].older_engine = true;
    let worker = Worker { older_engine: true, ..Worker::plain() };
    let number = dice.below(story.workers.len());
    let (at, back) = (millis(dice, 0, 40_000), millis(dice, 1, 3_000));
    happens(story, at, Trouble::Deploy(number, worker, back));
}

/// Executions that wait until their session moves, and sessions that move.
fn moves(story: &mut Story, dice: &mut Dice) {
    for number in 0..story.instances.len().min(2) {
        let wait = Own::AwaitMigration { session: SessionName::Id(SESSION), millis: 60_000 };
        let pause = |millis| Step::Await(Operation::Timer { millis });
        let use_it = vec![pause(10_000), on_session("c"), pause(10_000), on_session("a")];
        let before = vec![
            open(dice.chance(300)),
            on_session("a"),
            Step::Join(vec![Block(vec![Step::Own(wait)]), Block(use_it)]),
        ];
        wrap(&mut story.instances[number].program, before, Vec::new());
        let at = story.instances[number].at.saturating_add(millis(dice, 500, 12_000));
        let what = match dice.below(3) {
            0 => Trouble::Kill(dice.below(story.workers.len()), millis(dice, 1, 3_000)),
            1 => Trouble::Drain(dice.below(story.workers.len()), millis(dice, 1, 3_000)),
            _ => Trouble::Release(Some(Target::Instance(number)), SESSION),
        };
        happens(story, at, what);
    }
}

/// A desk that looks at everything and removes what is old, over a line with trouble.
fn desk(story: &mut Story, dice: &mut Dice) {
    for instance in &mut story.instances {
        wrap(&mut instance.program, Vec::new(), vec![Step::ContinueAsNew(PLAIN)]);
    }
    for _ in 0..3 + dice.below(6) {
        let (at, instance) = (millis(dice, 0, 60_000), dice.below(story.instances.len()));
        let target = target(dice, instance);
        let what = match dice.below(6) {
            0 | 1 => Trouble::Inspect(target),
            2 | 3 => Trouble::Prune(target),
            4 => Trouble::Release(Some(target), SESSION),
            _ => Trouble::Delete(target),
        };
        happens(story, at, what);
        if dice.chance(400) {
            let late = millis(dice, 1_000, 30_000);
            happens(story, at, Trouble::DisturbClient(planned(dice, DESK_METHODS, late)));
        }
    }
}

/// Makes a story have at least so many workers.
fn with_workers(story: &mut Story, count: usize) {
    while story.workers.len() < count {
        story.workers.push(Worker::plain());
    }
}

/// Workers that delete what has ended, of which one has a clock that is ahead by more than the time for which
/// they keep it. No client deletes anything.
fn retention(story: &mut Story, dice: &mut Dice) {
    with_workers(story, 2);
    let keeps = Duration::from_secs(dice.pick(&[120, 600, 1_200]).copied().unwrap_or(600));
    story.workers.iter_mut().for_each(|worker| worker.retains = Some(keeps));
    let ahead = dice.below(story.workers.len());
    story.workers[ahead].ahead_ms = 3_600_000;
    story.events.retain(|event| !matches!(event.what, Trouble::Delete(_) | Trouble::StartAnew(_)));
}

/// A parent that starts its child with an input that no other run of it has. The process dies with the start
/// of the child, or with the first turn of it, or is slow; meanwhile the parent is deleted and started again.
fn heirs(story: &mut Story, dice: &mut Dice) {
    story.workers.truncate(1);
    for instance in story.instances.iter_mut().skip(1) {
        instance.at = instance.at.saturating_add(Duration::from_secs(20));
    }
    let parent = &mut story.instances[0];
    let child = Operation::Child { name: "Kid", input: Text::Answer, id: Some(CHILD) };
    wrap(&mut parent.program, vec![Step::Guid, Step::Await(child)], Vec::new());
    let at = parent.at;
    story.events.retain(|event| event.at > at.saturating_add(Duration::from_secs(20)));
    let dies = |skip, what| Trouble::Disturb(0, Planned { method: Some("commit_turn"), skip, what });
    let (what, after) = match dice.below(3) {
        0 => (dies(1, Disturbance::DiesAfter), millis(dice, 200, 1_900)),
        1 => (dies(2, Disturbance::DiesBefore), millis(dice, 200, 1_900)),
        _ => {
            // The first turn of the child ends four calls after the start of its parent.
            let by = millis(dice, 1_000, 2_000);
            (Trouble::Slow(0, by, Duration::from_secs(20)), by * 5 / 2 + millis(dice, 0, 3_000))
        }
    };
    happens(story, at.saturating_sub(Duration::from_millis(100)), what);
    happens(story, at.saturating_add(after), Trouble::StartAnew(0));
}

/// Several activities at once on a session that is new again and again, and fetches of a process that are
/// dropped while others of it are given such work.
fn drops(story: &mut Story, dice: &mut Dice) {
    story.events.retain(|event| !matches!(event.what, Trouble::Full(_)));
    for worker in &mut story.workers {
        (worker.work, worker.sessions) = (4, 10);
    }
    for instance in story.instances.iter_mut().take(2) {
        let branches = ["a", "b", "c", "a"].map(|name| Block(vec![on_session(name)]));
        let pause = Step::Await(Operation::Timer { millis: 2_000 });
        let body = Block(vec![pause, open(false), Step::Join(branches.to_vec()), close()]);
        wrap(&mut instance.program, vec![Step::Repeat { times: 4, body }], Vec::new());
    }
    for _ in 0..12 + dice.below(12) {
        let what = Disturbance::Drops(2 + u32::try_from(dice.below(6)).unwrap_or(0));
        let skip = u32::try_from(dice.below(3)).unwrap_or(0);
        let method = if dice.chance(800) { "fetch_work" } else { "fetch_turn" };
        let planned = Planned { method: Some(method), skip, what };
        let (at, worker) = (millis(dice, 0, 60_000), dice.below(story.workers.len()));
        happens(story, at, Trouble::Disturb(worker, planned));
    }
}

/// Activities of which some take long, wall clocks that are set while they run, processes that are started
/// after that, and a machine that sleeps for longer than a lease.
fn clocks(story: &mut Story, dice: &mut Dice) {
    with_workers(story, 2);
    for instance in story.instances.iter_mut().take(2) {
        let activity = |name| Operation::Activity { name, input: PLAIN, tag: None, session: None };
        let held = (0..).zip(["a", "b", "c", "a", "b", "c"]);
        let held = held.map(|(slot, name)| Step::Hold { slot, operation: activity(name) });
        wrap(&mut instance.program, held.chain([Step::ResumeAll]).collect(), Vec::new());
        instance.at = millis(dice, 0, 3_000);
    }
    let set = millis(dice, 3_500, 8_000);
    let by = dice.pick(&[-3_600_000, 60_000, 3_600_000]).copied().unwrap_or(0);
    let started_late = dice.below(story.workers.len());
    happens(story, set, Trouble::Step(0, by));
    let (killed, back) = (set.saturating_add(millis(dice, 1, 500)), millis(dice, 1, 500));
    happens(story, killed, Trouble::Kill(started_late, back));
    let (at, lasts) = (millis(dice, 8_000, 25_000), millis(dice, 32_000, 90_000));
    let sleeper = dice.below(story.workers.len());
    happens(story, at, Trouble::Sleep(sleeper, lasts));
}

/// One instance whose history the disk does not return for a while, and others that have a turn every few
/// seconds meanwhile. All of them are cold, so that each turn reads its history. Nothing else happens.
fn torn(story: &mut Story, dice: &mut Dice) {
    let pause = |seconds: u64| Step::Await(Operation::Timer { millis: seconds * 1_000 });
    let cold = |worker: Worker| Worker { warm: 0, turns: worker.turns, work: worker.work, ..Worker::plain() };
    let workers = std::mem::take(&mut story.workers);
    story.workers = workers.into_iter().map(cold).collect();
    story.events.clear();
    let often = |from: u64, times: u8| {
        let body = Block(vec![pause(3)]);
        Program { body: Block(vec![pause(from), Step::Repeat { times, body }]) }
    };
    let instance = |at: u64, program: Program, is_large: bool| Instance {
        at: Duration::from_secs(at),
        program,
        is_large,
    };
    let activity = Operation::Activity { name: "a", input: PLAIN, tag: None, session: None };
    let damaged = Program { body: Block(vec![pause(140), Step::Await(activity)]) };
    story.instances = vec![
        instance(1, damaged, true),
        instance(2, often(1, 20), false),
        instance(2, often(130, 14), false),
    ];
    let failure = if dice.chance(500) { LostRead::Torn } else { LostRead::Refused };
    let at = Duration::from_secs(138);
    happens(story, at, Trouble::Disk(DiskTrouble::History(Duration::from_secs(30), failure)));
}
