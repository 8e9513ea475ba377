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
use crate::wire::{Disturbance, Planned};

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

/// Adds a theme to half of all stories. What else happens in a story does not depend on it.
pub(super) fn add(story: &mut Story) {
    let mut dice = Dice::new(story.seed ^ 0x07E3E);
    match dice.below(14) {
        0 | 1 => chat(story, &mut dice),
        2 => two_parents(story, &mut dice),
        3 => deaths(story, &mut dice),
        4 => engines(story, &mut dice),
        5 => moves(story, &mut dice),
        6 => desk(story, &mut dice),
        _ => {}
    }
    story.events.sort_by_key(|event| event.at);
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
        story.instances.push(Instance { at: Duration::ZERO, program: Program::default() });
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
