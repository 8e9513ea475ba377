//! A history that is repeated asks for nothing new.

use std::sync::Arc;

use proptest::prelude::*;
use steadfast_core::{
    Event,
    replay::{Effects, Execution, Verdict, verify},
};
use steadfast_testing::{
    program::{
        Program,
        generate::{self, Palette},
        script::Chances,
    },
    witness::Witness,
};

use crate::{
    chapter::{Chapter, Story, chapters},
    feed::cases,
};

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn repeating_a_history_decides_nothing(
        program in generate::program(Palette::FULL), seed in any::<u64>().no_shrink(),
    ) {
        let program = Arc::new(program);
        for chapter in chapters(&program, seed, Chances::ROUGH)? {
            for turns in 1..=chapter.turns.len() {
                let history = chapter.history(turns);
                stands_still(&program, &chapter, turns, &history)
                    .map_err(|error| TestCaseError::fail(format!("{error}\n{}", Story(&history))))?;
            }
        }
    }
}

fn stands_still(
    program: &Arc<Program>,
    chapter: &Chapter,
    turns: usize,
    history: &[Event],
) -> Result<(), TestCaseError> {
    let witness = Witness::default();
    let verified = verify(chapter.setup.clone(), history.to_vec(), witness.handler(program));
    prop_assert!(verified.is_ok(), "verify: {:?}", verified);

    let handler = Witness::default().handler(program);
    let mut execution = Execution::replay(chapter.setup.clone(), history.to_vec(), handler);
    prop_assert!(execution.mismatch().is_none(), "replay: {:?}", execution.mismatch());
    let (visited, turn) = (execution.effort().events_visited, execution.turn(0, Vec::new()));
    prop_assert_eq!(&turn.events, &[]);
    prop_assert_eq!(&turn.effects, &Effects::default());
    prop_assert_eq!(&turn.notices, &[]);
    match &chapter.turns[turns - 1].verdict {
        waiting @ Verdict::Waiting { .. } => {
            prop_assert_eq!(&turn.verdict, waiting);
            prop_assert_eq!(visited, history.len() as u64, "a replay is one pass");
        }
        _ => prop_assert_eq!(&turn.verdict, &Verdict::Ended),
    }
    Ok(())
}
