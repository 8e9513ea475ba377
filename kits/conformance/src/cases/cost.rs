//! Bounded cost: a fetch costs the same whatever else is queued.
//!
//! Each case measures a fetch in an almost empty store, fills it with what must not matter, and measures
//! again. The cost is counted by the store in a unit of its own, so the machine does not matter.

use std::time::Duration;

use steadfast_core::TagFilter;

use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, activity, activity_with, raise, start_of, timer};
use crate::case::{cases, need};

cases![
    s20_future_timers_do_not_slow_a_turn_fetch,
    s20_leased_instances_do_not_slow_a_turn_fetch,
    s20_finished_instances_do_not_slow_a_turn_fetch,
    s20_waiting_instances_do_not_slow_a_turn_fetch,
    s20_the_backlog_does_not_slow_a_turn_fetch,
    s20_an_idle_turn_fetch_does_not_look_at_future_timers,
    s20_work_of_other_tags_does_not_slow_a_work_fetch,
    s20_work_of_other_sessions_does_not_slow_a_work_fetch,
    s20_idle_sessions_of_others_do_not_slow_a_work_fetch,
    s20_idle_sessions_of_its_own_do_not_slow_a_work_fetch,
    s20_leased_work_does_not_slow_a_work_fetch,
    s20_delayed_work_does_not_slow_a_work_fetch,
    s20_the_backlog_does_not_slow_a_work_fetch,
];

/// How many rows that must not matter are put in.
pub(super) const MANY: u64 = 2_000;

/// Longer than any case lasts.
const LONG: Duration = Duration::from_secs(86_400);

/// How much a cost may grow in addition, in the store's unit: a store that counts blocks reads one more block
/// of each index that got another level (S20 allows the logarithm of the total).
const LEVELS: u64 = 16;

/// Requires that a cost has not grown by more than half.
pub(super) fn unchanged(before: u64, after: u64) {
    assert!(
        after * 2 <= before * 3 + 2 * LEVELS,
        "the cost should stay what it was: {after} instead of {before}"
    );
}

/// How often a cost is measured. The first measurement does not count, because caches are filled; of the
/// others the least counts, because other programs and occasional upkeep only add.
pub(super) const TRIES: u64 = 5;

pub(super) fn least(cost: Option<u64>, number: u64, spent: u64) -> Option<u64> {
    if number == 0 { None } else { Some(cost.map_or(spent, |cost| cost.min(spent))) }
}

/// Counts what leasing a fresh instance costs.
async fn turn_cost(bench: &Bench, round: &str) -> Option<u64> {
    let mut cost = None;
    for number in 0..TRIES {
        let instance = format!("{round}-{number}");
        bench.start(&instance).await;
        let before = bench.cost().await?;
        let turn = bench.fetched().await;
        cost = least(cost, number, bench.cost().await? - before);
        assert_eq!(turn.item.instance, instance, "nothing else is ready");
        bench.commit(&turn, Commit::started(&instance)).await;
    }
    cost
}

/// Counts what leasing a fresh activity costs.
async fn work_cost(bench: &Bench, round: &str) -> Option<u64> {
    let mut cost = None;
    for number in 0..TRIES {
        bench.enqueue(activity(round, number)).await;
        let before = bench.cost().await?;
        let (item, token, _) = bench.working().await;
        cost = least(cost, number, bench.cost().await? - before);
        assert_eq!(item, activity(round, number), "nothing else is ready");
        bench.finish(&token, None).await;
    }
    cost
}

async fn s20_future_timers_do_not_slow_a_turn_fetch(bench: Bench) -> Verdict {
    let before = need!(turn_cost(&bench, "before").await, "cost");
    bench.begun("sleeper").await;
    for id in 0..MANY {
        bench.send_later(timer("sleeper", id, DAWN_MS), LONG).await;
    }
    unchanged(before, need!(turn_cost(&bench, "after").await, "cost"));
    Verdict::Kept
}

async fn s20_leased_instances_do_not_slow_a_turn_fetch(bench: Bench) -> Verdict {
    let before = need!(turn_cost(&bench, "before").await, "cost");
    for number in 0..MANY {
        bench.start(&format!("leased-{number}")).await;
        let leased = bench.try_fetch(LONG).await.expect("the fetch should succeed");
        assert!(leased.is_some(), "the instance is ready");
    }
    unchanged(before, need!(turn_cost(&bench, "after").await, "cost"));
    Verdict::Kept
}

async fn s20_finished_instances_do_not_slow_a_turn_fetch(bench: Bench) -> Verdict {
    let before = need!(turn_cost(&bench, "before").await, "cost");
    for number in 0..MANY {
        bench.ended(&format!("ended-{number}")).await;
    }
    unchanged(before, need!(turn_cost(&bench, "after").await, "cost"));
    Verdict::Kept
}

async fn s20_waiting_instances_do_not_slow_a_turn_fetch(bench: Bench) -> Verdict {
    let before = need!(turn_cost(&bench, "before").await, "cost");
    for number in 0..MANY {
        bench.begun(&format!("waiting-{number}")).await;
    }
    unchanged(before, need!(turn_cost(&bench, "after").await, "cost"));
    Verdict::Kept
}

async fn s20_the_backlog_does_not_slow_a_turn_fetch(bench: Bench) -> Verdict {
    let before = need!(turn_cost(&bench, "before").await, "cost");
    for number in 0..MANY {
        bench.start(&format!("ready-{number}")).await;
    }
    let mut cost = None;
    for number in 0..TRIES {
        let start = need!(bench.cost().await, "cost");
        let turn = bench.fetched().await;
        cost = least(cost, number, need!(bench.cost().await, "cost") - start);
        assert_eq!(turn.item.messages, [start_of(&format!("ready-{number}"))], "one of many is fetched");
    }
    unchanged(before, need!(cost, "cost"));
    Verdict::Kept
}

async fn s20_an_idle_turn_fetch_does_not_look_at_future_timers(bench: Bench) -> Verdict {
    bench.begun("sleeper").await;
    let mut costs = Vec::new();
    for _ in 0..2 {
        let mut cost = None;
        for number in 0..TRIES {
            let start = need!(bench.cost().await, "cost");
            assert!(bench.fetch().await.is_none(), "nothing is ready");
            cost = least(cost, number, need!(bench.cost().await, "cost") - start);
        }
        costs.push(need!(cost, "cost"));
        // The second round has them around.
        let many = if costs.len() == 1 { MANY } else { 0 };
        for id in 0..many {
            bench.send_later(raise("sleeper", &id.to_string()), LONG).await;
        }
    }
    let [before, after] = costs[..] else { panic!("there are two rounds") };
    unchanged(before, after);
    Verdict::Kept
}

async fn s20_work_of_other_tags_does_not_slow_a_work_fetch(bench: Bench) -> Verdict {
    let before = need!(work_cost(&bench, "before").await, "cost");
    for id in 0..MANY {
        bench.enqueue(activity_with("other", id, None, Some("gpu"))).await;
    }
    unchanged(before, need!(work_cost(&bench, "after").await, "cost"));
    Verdict::Kept
}

/// Counts what leasing an activity costs a worker that also serves sessions.
async fn session_work_cost(bench: &Bench, round: &str) -> Option<u64> {
    let mut cost = None;
    for number in 0..TRIES {
        bench.enqueue(activity(round, number)).await;
        let before = bench.cost().await?;
        let (item, token, _) = bench.fetch_work_for("node").await.expect("an activity should be ready");
        cost = least(cost, number, bench.cost().await? - before);
        assert_eq!(item, activity(round, number), "nothing else is for this worker");
        bench.finish(&token, None).await;
    }
    cost
}

async fn s20_work_of_other_sessions_does_not_slow_a_work_fetch(bench: Bench) -> Verdict {
    let before = need!(session_work_cost(&bench, "before").await, "cost");
    for session in 0..20 {
        bench.enqueue(activity_with("other", session, Some(&format!("s-{session}")), None)).await;
        assert!(bench.fetch_work_for("other node").await.is_some(), "the session is claimed");
    }
    for id in 0..MANY {
        bench.enqueue(activity_with("other", 100 + id, Some(&format!("s-{}", id % 20)), None)).await;
    }
    unchanged(before, need!(session_work_cost(&bench, "after").await, "cost"));
    Verdict::Kept
}

/// Makes an owner hold many sessions that have no work.
async fn idle_sessions(bench: &Bench, owner: &str) {
    for session in 0..MANY {
        bench.enqueue(activity_with("idle", session, Some(&format!("idle-{session}")), None)).await;
        let (_, token, _) = bench.fetch_work_for(owner).await.expect("the session is free");
        bench.finish(&token, None).await;
    }
}

async fn s20_idle_sessions_of_others_do_not_slow_a_work_fetch(bench: Bench) -> Verdict {
    let before = need!(session_work_cost(&bench, "before").await, "cost");
    idle_sessions(&bench, "other node").await;
    unchanged(before, need!(session_work_cost(&bench, "after").await, "cost"));
    Verdict::Kept
}

async fn s20_idle_sessions_of_its_own_do_not_slow_a_work_fetch(bench: Bench) -> Verdict {
    let before = need!(session_work_cost(&bench, "before").await, "cost");
    idle_sessions(&bench, "node").await;
    unchanged(before, need!(session_work_cost(&bench, "after").await, "cost"));
    Verdict::Kept
}

async fn s20_leased_work_does_not_slow_a_work_fetch(bench: Bench) -> Verdict {
    let before = need!(work_cost(&bench, "before").await, "cost");
    for id in 0..MANY {
        bench.enqueue(activity("leased", id)).await;
        let leased =
            bench.provider().fetch_work_item(LONG, Duration::ZERO, None, &TagFilter::DefaultOnly).await;
        assert!(matches!(leased, Ok(Some(_))), "the activity is ready");
    }
    unchanged(before, need!(work_cost(&bench, "after").await, "cost"));
    Verdict::Kept
}

async fn s20_delayed_work_does_not_slow_a_work_fetch(bench: Bench) -> Verdict {
    let before = need!(work_cost(&bench, "before").await, "cost");
    for id in 0..MANY {
        bench.enqueue(activity("delayed", id)).await;
        let (_, token, _) = bench.working().await;
        let abandoned = bench.provider().abandon_work_item(&token, Some(LONG), false).await;
        assert!(abandoned.is_ok(), "the activity is held back");
    }
    unchanged(before, need!(work_cost(&bench, "after").await, "cost"));
    Verdict::Kept
}

async fn s20_the_backlog_does_not_slow_a_work_fetch(bench: Bench) -> Verdict {
    let before = need!(work_cost(&bench, "before").await, "cost");
    for id in 0..MANY {
        bench.enqueue(activity("ready", id)).await;
    }
    let mut cost = None;
    for number in 0..TRIES {
        let start = need!(bench.cost().await, "cost");
        let (item, _, _) = bench.working().await;
        cost = least(cost, number, need!(bench.cost().await, "cost") - start);
        assert_eq!(item, activity("ready", number), "one of many is fetched");
    }
    unchanged(before, need!(cost, "cost"));
    Verdict::Kept
}
