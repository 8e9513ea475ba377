//! Timers: one whose future is dropped fires without effect, and the turn that dropped it tells so.

use std::time::Duration;

use steadfast_core::WorkItem;
use steadfast_core::replay::Turn;

use crate::support::*;

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The ids of the timers that a turn tells as dropped.
fn dropped(turn: &Turn) -> Vec<u64> {
    let id = |item: &WorkItem| match item {
        WorkItem::TimerFired { id, .. } => *id,
        other => panic!("no message of a timer: {other:?}"),
    };
    turn.effects.dropped_timers.iter().map(id).collect()
}

#[test]
fn a_turn_tells_the_timers_that_its_code_dropped_and_no_earlier_ones() {
    let mut story = story(|ctx, _| async move {
        drop(ctx.schedule_timer(WEEK));
        ctx.select2(ctx.schedule_wait("go"), ctx.schedule_timer(WEEK)).await;
        ctx.schedule_wait("go").await;
        ctx.schedule_wait("go").await;
        Ok(String::new())
    });
    let first = story.waits([]);
    assert_eq!(dropped(&first), [2], "it is dropped in the turn that sets it");
    assert_eq!(first.effects.dropped_timers[0], first.effects.messages[0], "it is told by its message");
    let second = story.waits([raise("go", "")]);
    assert_eq!(dropped(&second), [4], "it has lost the race");
    assert_eq!(dropped(&story.waits([raise("go", "")])), [0; 0], "an earlier turn has told it");
    story.restart();
    assert_eq!(dropped(&story.turn([raise("go", "")])), [0; 0], "nothing is told of an end");
}

#[test]
fn a_timer_that_fires_in_the_turn_that_drops_it_is_not_told() {
    let mut story = story(|ctx, _| async move {
        ctx.select2(ctx.schedule_wait("go"), ctx.schedule_timer(WEEK)).await;
        Ok(ctx.schedule_wait("go").await)
    });
    let first = story.waits([]);
    let fired = first.effects.messages[0].clone();
    assert_eq!(dropped(&story.waits([raise("go", ""), fired])), [0; 0], "its message is consumed");
}

#[test]
fn continue_as_new_leaves_every_open_timer_behind() {
    let mut story = story(|ctx, _| async move {
        let kept = ctx.schedule_timer(WEEK);
        ctx.schedule_wait("go").await;
        let unsent = ctx.schedule_timer(WEEK);
        let next = ctx.continue_as_new("next").await;
        drop((kept, unsent));
        next
    });
    assert_eq!(dropped(&story.waits([])), [0; 0]);
    assert_eq!(dropped(&story.turn([raise("go", "")])), [2], "those that were sent");
}
