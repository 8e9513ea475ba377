//! The journal of a program, kept by the interpreter, against the history that the engine writes.

use std::sync::Arc;

use proptest::prelude::*;
use steadfast_testing::program::{
    generate::{self, Palette},
    journal::parting,
    script::Chances,
};

use crate::{
    chapter::{Story, chapters},
    feed::cases,
};

proptest! {
    #![proptest_config(cases(200))]

    /// One action per call, in call order: what the comparison with spoiled programs relies on.
    #[test]
    fn the_journal_tells_every_schedule_that_history_records(
        program in generate::program(Palette { retries: false, ..Palette::FULL }),
        seed in any::<u64>().no_shrink(),
    ) {
        for chapter in chapters(&Arc::new(program), seed, Chances::ROUGH)? {
            let history = chapter.history(chapter.turns.len());
            let parted = parting(&chapter.calls, &history).map(|event| event.event_id);
            prop_assert_eq!(parted, None, "{}", Story(&history));
        }
    }
}
