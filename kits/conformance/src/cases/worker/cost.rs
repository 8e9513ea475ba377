//! Bounded cost (S20) with routed work: what is routed does not slow those who are not given it, nor those
//! who are.

use steadfast_store::{TurnCommit, WorkerReport};

use super::{Fleet, capable, fleet, parking, the_activity, the_orchestration, worker};
use crate::Verdict;
use crate::bench::{Bench, Commit, activity, ok};
use crate::case::{cases, need};
use crate::cases::cost::{MANY, TRIES, least, unchanged};

cases![
    s20_turns_routed_to_others_do_not_slow_a_turn_fetch,
    s20_work_routed_to_others_does_not_slow_a_work_fetch,
    s20_the_backlog_of_routed_turns_does_not_slow_a_turn_fetch,
    s20_the_backlog_of_routed_work_does_not_slow_a_work_fetch,
];

/// The worker that refuses: it has no handlers.
const OLD: &str = "old";

/// The worker that has the handlers.
const NEW: &str = "new";

async fn staffed(bench: &Bench) -> Option<Fleet<'_>> {
    let fleet = fleet(bench)?;
    fleet.report(worker(OLD)).await;
    fleet.report(WorkerReport { takes_unlisted: true, ..capable(NEW) }).await;
    Some(fleet)
}

/// Makes the worker without handlers refuse many instances.
async fn routed_turns(fleet: &Fleet<'_>) {
    for number in 0..MANY {
        fleet.bench.start(&format!("routed-{number}")).await;
        let lease = fleet.turned(OLD).await;
        fleet.refuse(&lease.token, parking(the_orchestration())).await;
    }
}

/// Makes the worker without handlers refuse many activities.
async fn routed_work(fleet: &Fleet<'_>) {
    for id in 0..MANY {
        fleet.bench.enqueue(activity("routed", id)).await;
        let lease = fleet.worked(OLD).await;
        fleet.refuse(&lease.token, parking(the_activity())).await;
    }
}

/// Counts what leasing an instance costs; there are fresh ones for those who are given no routed ones.
async fn turn_cost(fleet: &Fleet<'_>, id: &str, round: &str, starts: bool) -> Option<u64> {
    let mut cost = None;
    for number in 0..TRIES {
        let instance = format!("{round}-{number}");
        if starts {
            fleet.bench.start(&instance).await;
        }
        let before = fleet.bench.cost().await?;
        let lease = fleet.turned(id).await;
        cost = least(cost, number, fleet.bench.cost().await? - before);
        assert_eq!(lease.instance == instance, starts, "that one is next");
        let started = Commit::started(&lease.instance);
        let (events, metadata) = (started.events, started.metadata);
        let commit = TurnCommit { events, metadata, ..TurnCommit::empty(1) };
        ok(fleet.store.commit_turn(&lease.token, commit).await);
    }
    cost
}

/// Counts what leasing an activity costs; there are fresh ones for those who are given no routed ones.
async fn work_cost(fleet: &Fleet<'_>, id: &str, round: &str, queues: bool) -> Option<u64> {
    let mut cost = None;
    for number in 0..TRIES {
        if queues {
            fleet.bench.enqueue(activity(round, number)).await;
        }
        let before = fleet.bench.cost().await?;
        let lease = fleet.worked(id).await;
        cost = least(cost, number, fleet.bench.cost().await? - before);
        assert_eq!(lease.item == activity(round, number), queues, "that one is next");
        fleet.bench.finish(lease.token.as_str(), None).await;
    }
    cost
}

async fn s20_turns_routed_to_others_do_not_slow_a_turn_fetch(bench: Bench) -> Verdict {
    let fleet = need!(staffed(&bench).await, "Store");
    let before = need!(turn_cost(&fleet, OLD, "before", true).await, "cost");
    routed_turns(&fleet).await;
    unchanged(before, need!(turn_cost(&fleet, OLD, "after", true).await, "cost"));
    Verdict::Kept
}

async fn s20_work_routed_to_others_does_not_slow_a_work_fetch(bench: Bench) -> Verdict {
    let fleet = need!(staffed(&bench).await, "Store");
    let before = need!(work_cost(&fleet, OLD, "before", true).await, "cost");
    routed_work(&fleet).await;
    unchanged(before, need!(work_cost(&fleet, OLD, "after", true).await, "cost"));
    Verdict::Kept
}

async fn s20_the_backlog_of_routed_turns_does_not_slow_a_turn_fetch(bench: Bench) -> Verdict {
    let fleet = need!(staffed(&bench).await, "Store");
    let before = need!(turn_cost(&fleet, NEW, "before", true).await, "cost");
    routed_turns(&fleet).await;
    unchanged(before, need!(turn_cost(&fleet, NEW, "after", false).await, "cost"));
    Verdict::Kept
}

async fn s20_the_backlog_of_routed_work_does_not_slow_a_work_fetch(bench: Bench) -> Verdict {
    let fleet = need!(staffed(&bench).await, "Store");
    let before = need!(work_cost(&fleet, NEW, "before", true).await, "cost");
    routed_work(&fleet).await;
    unchanged(before, need!(work_cost(&fleet, NEW, "after", false).await, "cost"));
    Verdict::Kept
}
