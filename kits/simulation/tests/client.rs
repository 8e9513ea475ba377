//! Clients of a world: one that dies is followed by another, which can look at the store.

use std::time::Duration;

use steadfast_simulation::{
    journal::{Note, Noted},
    story::{Happening, Instance, Story, Target, Trouble, Worker},
    wire::{Disturbance, Planned},
    world::play,
};
use steadfast_testing::program::{
    Program,
    ast::{Block, Operation, Step},
};

/// A story of one instance that waits for an event. The client dies of the call that raises it.
fn story_of_a_client_that(dies: Disturbance) -> Story {
    let at = Duration::from_secs;
    let planned = Planned { method: None, skip: 0, what: dies };
    Story {
        seed: 1,
        workers: vec![Worker::plain()],
        children: vec![Program::default(), Program::default()],
        instances: vec![Instance {
            at: at(1),
            program: Program { body: Block(vec![Step::Await(Operation::Wait("e"))]) },
            is_large: false,
        }],
        events: vec![
            Happening { at: at(5), what: Trouble::DisturbClient(planned) },
            Happening { at: at(6), what: Trouble::Raise(Target::Instance(0), "e") },
        ],
    }
}

#[test]
fn a_story_whose_client_dies_is_audited_to_its_end() {
    for dies in [Disturbance::DiesBefore, Disturbance::DiesAfter] {
        let played = play(&story_of_a_client_that(dies)).expect("plays");
        assert!(played.violations.is_empty(), "{dies:?}: {:?}", played.violations);
        let is_death = |note: &Note| matches!(&note.what, Noted::World(text) if text.contains("died"));
        assert!(played.notes.iter().any(is_death), "{dies:?}: no client died");
        // What an audit reads last.
        let is_last_read = |note: &Note| match &note.what {
            Noted::Call { process, method, .. } => process == "client" && *method == "set_aside",
            Noted::World(_) | Noted::Fact(_) => false,
        };
        assert!(played.notes.iter().any(is_last_read), "{dies:?}: nobody looked at the store");
    }
}
