//! Kept in memory, replayed from history, or now this and now that: the decisions are the same.

use std::sync::Arc;

use proptest::prelude::*;
use steadfast_core::{WorkItem, replay::Turn};
use steadfast_testing::{
    driver::{Driver, Keeping, Played},
    program::{
        Program,
        dice::Dice,
        generate::{self, Palette},
        script::Chances,
    },
};

use crate::{
    chapter::{Story, is_last},
    feed::{Feed, INSTANCE, ORCHESTRATION, cases},
};

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn kept_replayed_and_evicted_executions_decide_alike(
        program in generate::program(Palette::FULL), seed in any::<u64>().no_shrink(),
    ) {
        agree(&Arc::new(program), seed)?;
    }
}

/// Runs a program kept, replayed, and evicted by chance. The replayed ones read their history back from JSON.
fn agree(program: &Arc<Program>, seed: u64) -> Result<(), TestCaseError> {
    let driver = |keeping| Driver::new(program, INSTANCE, ORCHESTRATION, keeping);
    let mut drivers = [Keeping::Always, Keeping::Never, Keeping::ByChance(Dice::new(seed))].map(driver);
    let mut feed = Feed::new(seed, Chances::ROUGH);
    while let Some((now_ms, batch)) = feed.next() {
        let turn = side_by_side(&mut drivers, now_ms, &batch)?;
        feed.observe(&turn);
        if is_last(&turn) {
            break;
        }
    }
    Ok(())
}

/// Plays one turn on every driver, of which the first keeps its executions. Gives what all of them decide.
pub(crate) fn side_by_side(
    drivers: &mut [Driver],
    now_ms: u64,
    batch: &[WorkItem],
) -> Result<Turn, TestCaseError> {
    let play = |driver: &mut Driver| {
        driver.turn(now_ms, batch.to_vec()).map_err(|error| TestCaseError::fail(error.to_string()))
    };
    let (first, others) = drivers.split_first_mut().ok_or_else(|| TestCaseError::fail("no driver"))?;
    let kept = play(first)?;
    prop_assert!(kept.replay_polls.is_empty());
    for other in others {
        let played = play(other)?;
        prop_assert!(
            played.turn == kept.turn,
            "{}\narrivals: {batch:?}\nhistory:\n{}",
            differs(&kept.turn, &played.turn),
            Story(first.instance().history())
        );
        polls_alike(&kept, &played)?;
    }
    Ok(kept.turn)
}

/// The sequence of polls is a function of history alone, and each knows whether it repeats it (F14).
fn polls_alike(kept: &Played, other: &Played) -> Result<(), TestCaseError> {
    let polls = |played: &Played| (played.effort.root_polls, played.effort.future_polls);
    prop_assert_eq!(polls(kept), polls(other), "polls of the root and of futures");
    prop_assert!(other.replay_polls.iter().all(|replaying| *replaying), "a repeated poll says it is new");
    prop_assert!(!other.turn_polls.contains(&true), "a new poll says it repeats");
    Ok(())
}

/// Names what two turns disagree about, shortly.
fn differs(kept: &Turn, other: &Turn) -> String {
    if kept.events != other.events {
        return format!("events\n{}  instead of\n{}", Story(&other.events), Story(&kept.events));
    }
    if kept.effects != other.effects {
        return format!("effects {:?}\n  instead of {:?}", other.effects, kept.effects);
    }
    if kept.verdict != other.verdict {
        return format!("verdict {:?} instead of {:?}", other.verdict, kept.verdict);
    }
    format!("notices {:?} instead of {:?}", other.notices, kept.notices)
}
