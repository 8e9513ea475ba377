//! Work is counted, not timed.

use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use steadfast_core::OrchestrationContext;
use steadfast_core::replay::{Effort, Verdict};

use crate::support::*;

type Gather = fn(OrchestrationContext, u64) -> futures::future::BoxFuture<'static, usize>;

const GATHERS: [(&str, Gather); 3] = [
    ("join", |ctx, n| {
        Box::pin(
            async move { ctx.join((0..n).map(|_| ctx.schedule_activity("a", "")).collect()).await.len() },
        )
    }),
    ("join_all", |ctx, n| {
        Box::pin(async move { join_all((0..n).map(|_| ctx.schedule_activity("a", ""))).await.len() })
    }),
    ("FuturesUnordered", |ctx, n| {
        Box::pin(async move {
            let set: FuturesUnordered<_> = (0..n).map(|_| ctx.schedule_activity("a", "")).collect();
            set.count().await
        })
    }),
];

/// The effort of a fan-in of `n`, answered in one turn each or all at once, on the kept execution.
fn fan_in(gather: Gather, n: u64, per_turn: usize) -> (Effort, Story) {
    let mut story = story(move |ctx, _| async move { Ok(gather(ctx, n).await.to_string()) }).warm_only();
    story.turn([]);
    let ids: Vec<u64> = (2..n + 2).rev().collect();
    let mut verdict = None;
    for batch in ids.chunks(per_turn) {
        verdict = Some(story.turn(batch.iter().map(|id| done(*id, ""))).verdict);
    }
    assert_eq!(verdict, Some(Verdict::Completed { output: n.to_string() }));
    (story.effort(), story)
}

#[test]
fn a_fan_in_polls_each_child_at_most_three_times() {
    for n in (1..=40).chain([100, 333, 1_000]) {
        for per_turn in [1, 1_000] {
            let (effort, _) = fan_in(GATHERS[0].1, n, per_turn);
            assert!(effort.future_polls <= 3 * n, "join of {n}: {effort:?}");
        }
    }
}

#[test]
fn a_fan_in_of_other_peoples_making_is_linear_too() {
    for (name, gather) in &GATHERS[1..] {
        for n in [31, 100, 1_000] {
            let (effort, _) = fan_in(*gather, n, 10);
            assert!(effort.future_polls <= 3 * n, "{name} of {n}: {effort:?}");
        }
    }
}

#[test]
fn the_root_is_polled_a_constant_number_of_times_for_each_answer() {
    for (name, gather) in GATHERS {
        let (effort, _) = fan_in(gather, 1_000, 100);
        assert!(effort.root_polls <= 2 * 1_000 + 10, "{name}: {effort:?}");
    }
}

#[test]
fn a_cold_replay_visits_each_event_once() {
    let mut story = story(|ctx, _| async move {
        for n in 0..50 {
            ctx.set_custom_status(n.to_string());
            ctx.schedule_activity("a", "").await?;
            ctx.dequeue_event("q").await;
        }
        Ok(String::new())
    })
    .warm_only();
    story.turn([]);
    for _ in 0..20 {
        let scheduled = story
            .history
            .iter()
            .rev()
            .find(|event| matches!(event.kind, steadfast_core::EventKind::ActivityScheduled { .. }));
        let id = scheduled.unwrap().event_id;
        story.turn([enqueue("q", ""), done(id, "")]);
    }
    let given = story.history.len() as u64;
    assert!(given > 80);
    assert_eq!(story.replayed().effort().events_visited, given);
}

#[test]
fn a_finished_history_is_visited_once_and_its_code_never_runs() {
    let (_, story) = fan_in(GATHERS[0].1, 100, 10);
    let effort = story.replayed().effort();
    assert_eq!(effort.events_visited, story.history.len() as u64);
    assert_eq!((effort.root_polls, effort.future_polls), (0, 0));
}

#[test]
fn a_warm_turn_visits_only_what_is_new() {
    let (before, after) = {
        let mut story = story(|ctx, _| async move {
            loop {
                ctx.dequeue_event("q").await;
            }
        })
        .warm_only();
        story.turn([]);
        for _ in 0..100 {
            story.turn((0..10).map(|_| enqueue("q", "")));
        }
        let before = story.effort();
        story.turn([enqueue("q", ""), enqueue("q", "")]);
        (before, story.effort())
    };
    assert_eq!(after.events_visited - before.events_visited, 2);
    assert!(after.root_polls - before.root_polls <= 6, "{before:?} {after:?}");
    assert!(after.future_polls - before.future_polls <= 6, "{before:?} {after:?}");
}

#[test]
fn a_warm_turn_costs_the_same_after_a_long_history_as_after_a_short_one() {
    let cost_after = |turns: usize| {
        let mut story = story(|ctx, _| async move {
            loop {
                ctx.schedule_wait("go").await;
            }
        })
        .warm_only();
        story.turn([]);
        for _ in 0..turns {
            story.turn([raise("go", "")]);
        }
        let before = story.effort();
        story.turn([raise("go", "")]);
        let after = story.effort();
        (
            after.events_visited - before.events_visited,
            after.root_polls - before.root_polls,
            after.future_polls - before.future_polls,
        )
    };
    assert_eq!(cost_after(3), cost_after(1_000));
}
