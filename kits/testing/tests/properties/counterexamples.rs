//! Three programs that the compatible engine does not replay as it ran them, because it polls a live turn and
//! a replayed one at different points. Here each is run kept, replayed and verified.
//!
//! `docs/decisions/0002-polls-follow-history.md` tells their story.

use std::sync::Arc;

use proptest::test_runner::TestCaseError;
use steadfast_core::{
    EventKind, WorkItem,
    replay::{Turn, Verdict, verify},
};
use steadfast_testing::{
    driver::{Driver, Keeping},
    program::{
        Program,
        ast::{Block, Operation, Step, Text},
        dice::Dice,
    },
    witness::Witness,
};

use crate::{
    agreement::side_by_side,
    feed::{INSTANCE, ORCHESTRATION},
};

type Outcome = Result<(), TestCaseError>;

/// Two dequeues of one queue, the newer one first in a race, while both messages wait.
#[test]
fn a_newer_dequeue_in_front_does_not_overtake_an_older_one() -> Outcome {
    let program = Program {
        body: Block(vec![
            hold(0, dequeue("q")),
            hold(1, dequeue("q")),
            Step::RaceSlots(1, 0),
            Step::Resume(1),
            Step::Resume(0),
        ]),
    };
    let turns = play(program, vec![vec![start(), message("q", "first"), message("q", "second")]])?;
    assert_eq!(output(&turns), Some("second"));
    Ok(())
}

/// A oneshot channel whose receiver stands before its sender in a join: nothing but the wake polls it again.
#[test]
fn a_receiver_that_stands_before_its_sender_goes_on_in_the_same_turn() -> Outcome {
    let program = Program {
        body: Block(vec![Step::Channel {
            sender: Block(vec![Step::Await(activity("a"))]),
            receiver: Block(vec![Step::Await(activity("b"))]),
            receiver_first: true,
        }]),
    };
    let turns = play(program, vec![vec![start()], vec![completed(2, "sent")], vec![completed(4, "done")]])?;
    assert_eq!(schedules(&turns[1]), ["b"]);
    assert_eq!(output(&turns), Some("done,sent"));
    Ok(())
}

/// A dequeue that a later branch drops hands its message to one in an earlier branch, which was polled before
/// the drop in this very poll. It goes on at once, before the branch that dropped it makes its next call
/// known, and in a replay too.
#[test]
fn an_earlier_branch_reads_the_message_of_a_dequeue_that_a_later_branch_drops() -> Outcome {
    let earlier = vec![
        Step::Await(Operation::Timer { millis: 0 }),
        Step::Await(dequeue("r")),
        Step::Await(activity("c")),
    ];
    let later =
        vec![hold(0, dequeue("r")), Step::Await(activity("a")), Step::Drop(0), Step::Await(activity("b"))];
    let program = Program { body: Block(vec![Step::Join(vec![Block(earlier), Block(later)])]) };
    let turns =
        play(program, vec![vec![start()], vec![fired(2)], vec![message("r", "m")], vec![completed(4, "x")]])?;
    assert_eq!(schedules(&turns[3]), ["b", "c"]);
    Ok(())
}

/// Runs a program on three drivers side by side, and verifies the history after each turn.
fn play(program: Program, batches: Vec<Vec<WorkItem>>) -> Result<Vec<Turn>, TestCaseError> {
    let program = Arc::new(program);
    let driver = |keeping| Driver::new(&program, INSTANCE, ORCHESTRATION, keeping);
    let mut drivers = [Keeping::Always, Keeping::Never, Keeping::ByChance(Dice::new(1))].map(driver);
    let mut turns = Vec::new();
    for (now_ms, batch) in (1_000..).zip(batches) {
        turns.push(side_by_side(&mut drivers, now_ms, &batch)?);
        let (setup, history) = (drivers[0].instance().setup(), drivers[0].instance().history().to_vec());
        verify(setup, history, Witness::default().handler(&program))
            .map_err(|mismatch| TestCaseError::fail(mismatch.to_string()))?;
    }
    Ok(turns)
}

fn output(turns: &[Turn]) -> Option<&str> {
    match turns.last().map(|turn| &turn.verdict) {
        Some(Verdict::Completed { output }) => Some(output),
        _ => None,
    }
}

/// The activities that a turn schedules, in order.
fn schedules(turn: &Turn) -> Vec<&str> {
    let scheduled = turn.events.iter().filter_map(|event| match &event.kind {
        EventKind::ActivityScheduled { name, .. } => Some(name.as_str()),
        _ => None,
    });
    scheduled.collect()
}

fn hold(slot: u8, operation: Operation) -> Step {
    Step::Hold { slot, operation }
}

fn dequeue(queue: &'static str) -> Operation {
    Operation::Dequeue(queue)
}

fn activity(name: &'static str) -> Operation {
    Operation::Activity { name, input: Text::Fixed(""), tag: None, session: None }
}

fn start() -> WorkItem {
    WorkItem::StartOrchestration {
        instance: INSTANCE.to_owned(),
        orchestration: ORCHESTRATION.to_owned(),
        input: "in".to_owned(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn message(queue: &str, data: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: INSTANCE.to_owned(), name: queue.to_owned(), data: data.to_owned() }
}

fn completed(id: u64, result: &str) -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: INSTANCE.to_owned(),
        execution_id: 1,
        id,
        result: result.to_owned(),
    }
}

fn fired(id: u64) -> WorkItem {
    WorkItem::TimerFired { instance: INSTANCE.to_owned(), execution_id: 1, id, fire_at_ms: 1_000 }
}
