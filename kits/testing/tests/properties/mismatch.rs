//! A program or a history that was changed is reported at the first event where the two part.

use std::sync::Arc;

use proptest::prelude::*;
use steadfast_core::{
    AppErrorKind, ConfigErrorKind, ErrorDetails, Event, Mismatch,
    replay::{Execution, Setup, Verdict, verify},
};
use steadfast_testing::{
    program::{
        Program,
        dice::Dice,
        generate::{self, Palette},
        mutate::{self, history::Spoiled},
        script::Chances,
    },
    witness::Witness,
};

use crate::{
    chapter::{Chapter, Story, chapters},
    feed::cases,
    judge::Judgement,
};

/// The retry helper makes calls that the program cannot tell of.
const PALETTE: Palette = Palette { retries: false, ..Palette::FULL };

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_deleted_schedule_is_reported_where_program_and_history_part(
        program in generate::program(PALETTE), seed in any::<u64>().no_shrink(),
    ) {
        let program = Arc::new(program);
        let mut dice = Dice::new(seed);
        for page in pages(&program, seed, &mut dice)? {
            let deleted = mutate::history::delete(&page.history, &mut dice);
            if let Some(Spoiled { what, event_id, history }) = deleted {
                let page = Page { history, ..page };
                let reported = page.check(&program, &what)?;
                prop_assert!(reported.is_none_or(|position| position >= event_id), "{what}: too early");
            }
        }
    }

    #[test]
    fn a_changed_field_is_reported_at_the_event_that_has_it(
        program in generate::program(PALETTE), seed in any::<u64>().no_shrink(),
    ) {
        let program = Arc::new(program);
        let mut dice = Dice::new(seed);
        for page in pages(&program, seed, &mut dice)? {
            let changed = mutate::history::change(&page.history, &mut dice);
            if let Some(Spoiled { what, event_id, history }) = changed {
                let page = Page { history, ..page };
                let reported = page.check(&program, &what)?;
                prop_assert_eq!(reported, Some(event_id), "{}\n{}", what, Story(&page.history));
            }
        }
    }

    #[test]
    fn a_changed_program_is_reported_where_program_and_history_part(
        program in generate::program(PALETTE), seed in any::<u64>().no_shrink(),
    ) {
        let mut dice = Dice::new(seed);
        let Some(mutation) = mutate::program::mutate(&program, &mut dice) else { return Ok(()) };
        for page in pages(&Arc::new(program), seed, &mut dice)? {
            page.check(&Arc::new(mutation.program.clone()), &mutation.what)?;
        }
    }
}

/// A history of one execution, whole or up to the end of one of its turns.
struct Page {
    setup: Setup,
    history: Vec<Event>,
}

/// For each execution its whole history and one that breaks off.
fn pages(program: &Arc<Program>, seed: u64, dice: &mut Dice) -> Result<Vec<Page>, TestCaseError> {
    let page =
        |chapter: &Chapter, turns| Page { setup: chapter.setup.clone(), history: chapter.history(turns) };
    let chapters = chapters(program, seed, Chances::ROUGH)?;
    let pages = chapters.iter().flat_map(|chapter| {
        let turns = chapter.turns.len();
        [page(chapter, turns), page(chapter, 1 + dice.below(turns))]
    });
    Ok(pages.collect())
}

impl Page {
    /// Lets the engine and the judge find where the program and this history part. Gives the position.
    fn check(&self, program: &Arc<Program>, what: &str) -> Result<Option<u64>, TestCaseError> {
        let witness = Witness::default();
        let reported = verify(self.setup.clone(), self.history.clone(), witness.handler(program)).err();
        self.compare(&witness, reported.as_ref())
            .and_then(|()| self.same_in_a_turn(program, &reported))
            .map_err(|error| {
                let found = Judgement::of(&witness, &self.history);
                let calls = witness.calls();
                let story = Story(&self.history);
                TestCaseError::fail(format!("{what}\n{error}\n{reported:?}\n{found:?}\n{calls:?}\n{story}"))
            })?;
        Ok(reported.map(|mismatch| mismatch.position))
    }

    fn compare(&self, witness: &Witness, reported: Option<&Mismatch>) -> Result<(), TestCaseError> {
        if witness.panicked() {
            // A panic ends a replay and is reported as itself.
            return Ok(());
        }
        let judged = Judgement::of(witness, &self.history);
        let Some(mismatch) = reported else {
            prop_assert!(judged.accepts_silence(), "not reported");
            return Ok(());
        };
        let position = mismatch.position;
        prop_assert!(judged.accepts(position, &self.history), "reported elsewhere");
        prop_assert_eq!(mismatch.found.is_some(), mismatch.call.is_some());
        if judged.blames_a_call_at(position) {
            let file = mismatch.call.as_ref().map_or("", |call| &*call.file);
            prop_assert!(file.ends_with("interpret.rs") || file.ends_with("own.rs"), "call site {file:?}");
        }
        let before = self.history.iter().rev().find(|event| event.event_id < position);
        let last = mismatch.last_match.as_ref().map(|last| last.event_id);
        prop_assert_eq!(last, before.map(|event| event.event_id), "the last event that matched");
        Ok(())
    }

    /// A turn on the same history fails with the same mismatch; an ended history takes no turn.
    fn same_in_a_turn(
        &self,
        program: &Arc<Program>,
        reported: &Option<Mismatch>,
    ) -> Result<(), TestCaseError> {
        let witness = Witness::default();
        let handler = witness.handler(program);
        let mut execution = Execution::replay(self.setup.clone(), self.history.clone(), handler);
        let mismatch = execution.mismatch().cloned();
        let turn = execution.turn(0, Vec::new());
        if self.history.iter().any(Event::is_terminal) {
            prop_assert_eq!(turn.verdict, Verdict::Ended);
            return Ok(());
        }
        if witness.panicked() {
            let panicked = matches!(
                turn.verdict,
                Verdict::Failed { details: ErrorDetails::Application { kind: AppErrorKind::Panicked, .. } }
            );
            prop_assert!(panicked, "{:?}", turn.verdict);
            return Ok(());
        }
        prop_assert_eq!(&mismatch, reported, "a replay finds something else");
        match (mismatch, turn.verdict) {
            (None, verdict) => prop_assert!(matches!(verdict, Verdict::Waiting { .. }), "{verdict:?}"),
            (Some(mismatch), Verdict::Failed { details }) => prop_assert_eq!(
                details,
                ErrorDetails::Configuration {
                    kind: ConfigErrorKind::Nondeterminism,
                    resource: String::new(),
                    message: Some(mismatch.to_string()),
                }
            ),
            (Some(_), verdict) => prop_assert!(false, "{verdict:?}"),
        }
        Ok(())
    }
}
