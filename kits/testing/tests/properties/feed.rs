//! What arrives at one instance, and when: the script, a clock, and now and then a parent.

use proptest::test_runner::Config;
use steadfast_core::{WorkItem, replay::Turn};
use steadfast_testing::program::{
    dice::Dice,
    script::{self, Chances, Script},
};

/// The instance that every program runs as.
pub(crate) const INSTANCE: &str = "me";
/// The name under which it runs.
pub(crate) const ORCHESTRATION: &str = "Program";

/// Hands out the batches of one run.
pub(crate) struct Feed {
    script: Script,
    dice: Dice,
    now_ms: u64,
    next: Option<Vec<WorkItem>>,
}

impl Feed {
    pub(crate) fn new(seed: u64, chances: Chances) -> Self {
        let mut script = Script::new(seed, INSTANCE, chances);
        // Another sequence than the script's own.
        let mut dice = Dice::new(!seed);
        let mut opening = script.opening(ORCHESTRATION, "in");
        if dice.chance(300) {
            opening.iter_mut().for_each(adopt);
        }
        Self { script, dice, now_ms: 1_000_000, next: Some(opening) }
    }

    /// Gives the next batch and its time; `None` when nothing is left that could arrive.
    pub(crate) fn next(&mut self) -> Option<(u64, Vec<WorkItem>)> {
        let batch = self.next.take().or_else(|| self.script.next_batch())?;
        // The clock of a store may be set back between two turns.
        let step = self.dice.below(200) as u64;
        self.now_ms = if self.dice.chance(50) { self.now_ms - step } else { self.now_ms + step };
        Some((self.now_ms, batch))
    }

    pub(crate) fn observe(&mut self, turn: &Turn) {
        let work: Vec<_> = turn.effects.work.iter().map(|queued| queued.item.clone()).collect();
        let cancelled = &turn.effects.cancelled_activities;
        let cancelled: Vec<_> = cancelled.iter().map(|activity| activity.activity_id).collect();
        self.script.observe(script::Turn {
            events: &turn.events,
            work: &work,
            messages: &turn.effects.messages,
            cancelled: &cancelled,
        });
    }
}

/// Makes a start that of a child.
fn adopt(item: &mut WorkItem) {
    if let WorkItem::StartOrchestration { parent_instance, parent_id, parent_execution_id, .. } = item {
        *parent_instance = Some("mother".to_owned());
        *parent_id = Some(7);
        *parent_execution_id = Some(2);
    }
}

/// Sizes a property: `cases` in an ordinary run, and `STEADFAST_CASES` times as many by hand.
pub(crate) fn cases(cases: u32) -> Config {
    let factor = std::env::var("STEADFAST_CASES").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    // A program shrinks by a few hundred cuts, each a whole run.
    Config { cases: cases.saturating_mul(factor), max_shrink_iters: 20_000, ..Config::default() }
}
