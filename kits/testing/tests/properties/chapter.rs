//! A run of a program, written down execution by execution.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use proptest::test_runner::TestCaseError;
use steadfast_core::{
    Event, WorkItem,
    replay::{Setup, Turn},
};
use steadfast_testing::{
    driver::{Driver, Keeping, Played},
    program::{Program, journal::Call, script::Chances},
};

use crate::feed::{Feed, INSTANCE, ORCHESTRATION};

/// One execution.
pub(crate) struct Chapter {
    pub(crate) setup: Setup,
    pub(crate) turns: Vec<Turn>,
    /// The calls that the program made, in order.
    pub(crate) calls: Vec<Call>,
}

impl Chapter {
    /// Gives the history after that many turns.
    pub(crate) fn history(&self, turns: usize) -> Vec<Event> {
        self.turns.iter().take(turns).flat_map(|turn| turn.events.iter().cloned()).collect()
    }
}

/// Runs a program to where it rests, kept in memory.
pub(crate) fn chapters(
    program: &Arc<Program>,
    seed: u64,
    chances: Chances,
) -> Result<Vec<Chapter>, TestCaseError> {
    let mut feed = Feed::new(seed, chances);
    let mut driver = Driver::new(program, INSTANCE, ORCHESTRATION, Keeping::Always);
    let mut chapters: Vec<Chapter> = Vec::new();
    while let Some((now_ms, batch)) = feed.next() {
        let begins = batch.iter().any(is_start);
        let Played { turn, witness, .. } =
            driver.turn(now_ms, batch).map_err(|error| TestCaseError::fail(error.to_string()))?;
        feed.observe(&turn);
        if begins {
            let setup = driver.instance().setup();
            chapters.push(Chapter { setup, turns: Vec::new(), calls: Vec::new() });
        }
        let Some(chapter) = chapters.last_mut() else { break };
        let rests = is_last(&turn);
        chapter.turns.push(turn);
        chapter.calls = witness.calls();
        if rests {
            break;
        }
    }
    Ok(chapters)
}

/// Does this turn end the instance, not only its execution?
pub(crate) fn is_last(turn: &Turn) -> bool {
    use steadfast_core::replay::Verdict;
    match turn.verdict {
        Verdict::Waiting { .. } | Verdict::ContinuedAsNew { .. } => false,
        Verdict::Completed { .. } | Verdict::Failed { .. } | Verdict::Ended => true,
    }
}

fn is_start(item: &WorkItem) -> bool {
    matches!(
        item,
        WorkItem::StartOrchestration { .. }
            | WorkItem::ContinueAsNew { .. }
            | WorkItem::ContinueAsNewWithSessions { .. }
    )
}

/// A history on one line per event, for the person who reads a failure.
pub(crate) struct Story<'a>(pub(crate) &'a [Event]);

impl Display for Story<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for event in self.0 {
            let source = event.source_event_id.map(|id| format!(" <- {id}")).unwrap_or_default();
            writeln!(f, "  {}{source} {:?}", event.event_id, event.kind)?;
        }
        Ok(())
    }
}
