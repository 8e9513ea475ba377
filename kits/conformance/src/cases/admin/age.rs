//! Deleting what ended long ago (G3): the store is told a duration and compares its own times.

use std::time::Duration;

use steadfast_store::{DeleteInstanceResult, Store};

use super::{child, ended_child};
use crate::Verdict;
use crate::bench::{Bench, Commit, TICK, ok};
use crate::case::{cases, need};

cases![
    s16_a_worker_whose_clock_is_ahead_deletes_nothing_early,
    s16_a_worker_whose_clock_is_behind_deletes_nothing_late,
    s16_what_ended_at_least_so_long_ago_is_deleted,
    s16_deletion_by_age_spares_what_runs,
    s16_deletion_by_age_spares_an_instance_between_two_executions,
    s16_deletion_by_age_counts_from_the_end_of_the_last_execution,
    s16_deletion_by_age_takes_whole_trees,
    s16_deletion_by_age_takes_no_child_alone,
    s16_deletion_by_age_takes_a_child_whose_parent_is_gone,
    s16_deletion_by_age_takes_a_child_whose_parent_was_deleted_before_it_began,
    s16_deletion_by_age_takes_the_oldest_end_first,
    s16_deletion_by_age_is_bounded,
    s16_deletion_by_age_comes_to_its_end_in_some_calls,
    s16_deletion_by_age_passes_trees_that_are_alive,
    s16_any_age_can_be_asked_for,
];

const HOUR: Duration = Duration::from_secs(3_600);

/// Bounds the calls that a case makes until nothing is left.
const MOST_CALLS: usize = 1_000;

async fn deleted(store: &dyn Store, ended_for: Duration, limit: u32) -> u64 {
    ok(store.delete_ended(ended_for, limit).await).instances_deleted
}

async fn left(bench: &Bench) -> Vec<String> {
    let mut left = ok(bench.admin().expect("the store can list instances").list_instances().await);
    left.sort();
    left
}

async fn s16_a_worker_whose_clock_is_ahead_deletes_nothing_early(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    need!(bench.admin(), "ProviderAdmin");
    bench.ended("a").await;
    bench.clock().set_wall_ms(bench.now_ms() + 24 * HOUR.as_millis() as u64);
    assert_eq!(deleted(store, HOUR, 10).await, 0, "no time has passed in the store");
    assert_eq!(left(&bench).await, ["a"]);
    Verdict::Kept
}

async fn s16_a_worker_whose_clock_is_behind_deletes_nothing_late(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.ended("a").await;
    bench.clock().set_wall_ms(bench.now_ms() - 24 * HOUR.as_millis() as u64);
    bench.advance(HOUR);
    assert_eq!(deleted(store, HOUR, 10).await, 1, "an hour has passed in the store");
    Verdict::Kept
}

async fn s16_what_ended_at_least_so_long_ago_is_deleted(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.ended("a").await;
    bench.advance(HOUR - TICK);
    bench.ended("b").await;
    assert_eq!(deleted(store, HOUR, 10).await, 0, "an hour has not passed");
    bench.advance(TICK);
    let expected = DeleteInstanceResult {
        instances_deleted: 1,
        executions_deleted: 1,
        events_deleted: 2,
        queue_messages_deleted: 0,
    };
    assert_eq!(ok(store.delete_ended(HOUR, 10).await), expected, "the other ended later");
    assert!(ok(store.state("a").await).is_none() && ok(store.state("b").await).is_some());
    Verdict::Kept
}

async fn s16_deletion_by_age_spares_what_runs(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    need!(bench.admin(), "ProviderAdmin");
    bench.begun("running").await;
    bench.start("starting").await;
    bench.advance(HOUR * 2);
    assert_eq!(deleted(store, HOUR, 10).await, 0);
    assert_eq!(left(&bench).await, ["running"]);
    assert_eq!(bench.fetched().await.item.instance, "starting");
    Verdict::Kept
}

async fn s16_deletion_by_age_spares_an_instance_between_two_executions(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begin("a", Commit::default().continue_as_new("a", 2)).await;
    bench.advance(HOUR);
    assert_eq!(deleted(store, HOUR, 10).await, 0, "its next execution is about to begin");
    assert!(bench.fetch().await.is_some(), "its start is still there");
    Verdict::Kept
}

async fn s16_deletion_by_age_counts_from_the_end_of_the_last_execution(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begin("a", Commit::default().continue_as_new("a", 2)).await;
    bench.advance(HOUR);
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::continued("a", 2).complete("a", 2, "output")).await;
    assert_eq!(deleted(store, HOUR, 10).await, 0, "it ended just now");
    bench.advance(HOUR);
    assert_eq!(deleted(store, HOUR, 10).await, 1);
    Verdict::Kept
}

async fn s16_deletion_by_age_takes_whole_trees(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    need!(bench.admin(), "ProviderAdmin");
    bench.ended("root").await;
    ended_child(&bench, "child", "root").await;
    ended_child(&bench, "grandchild", "child").await;
    bench.advance(HOUR);
    assert_eq!(deleted(store, HOUR, 1).await, 3, "the limit counts roots");
    assert!(left(&bench).await.is_empty());
    Verdict::Kept
}

async fn s16_deletion_by_age_takes_no_child_alone(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    need!(bench.admin(), "ProviderAdmin");
    bench.begun("root").await;
    ended_child(&bench, "child", "root").await;
    bench.advance(HOUR);
    assert_eq!(deleted(store, HOUR, 10).await, 0, "its parent may still ask for it");
    assert_eq!(left(&bench).await, ["child", "root"]);
    Verdict::Kept
}

async fn s16_deletion_by_age_takes_a_child_whose_parent_is_gone(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    need!(bench.admin(), "ProviderAdmin");
    ended_child(&bench, "child", "gone").await;
    ended_child(&bench, "grandchild", "child").await;
    child(&bench, "running", "gone").await;
    bench.ended("root").await;
    bench.advance(HOUR);
    assert_eq!(all_deleted(store, 1).await, 3, "the child is a root, and its own child goes with it");
    assert_eq!(left(&bench).await, ["running"]);
    Verdict::Kept
}

async fn s16_deletion_by_age_takes_a_child_whose_parent_was_deleted_before_it_began(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let admin = need!(bench.admin(), "ProviderAdmin");
    bench.ended("parent").await;
    child(&bench, "child", "parent").await;
    // The tree of the parent is deleted between the lease and the first commit of another child.
    bench.start("late").await;
    let turn = bench.fetched().await;
    ok(admin.delete_instance("parent", true).await);
    bench.commit(&turn, Commit::started("late").parent("parent").complete("late", 2, "output")).await;
    assert_eq!(left(&bench).await, ["late"]);
    bench.advance(HOUR);
    assert_eq!(deleted(store, HOUR, 10).await, 1, "its parent cannot ask for it any more");
    assert!(left(&bench).await.is_empty());
    Verdict::Kept
}

async fn s16_deletion_by_age_takes_the_oldest_end_first(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    need!(bench.admin(), "ProviderAdmin");
    bench.begun("first to begin").await;
    bench.ended("first to end").await;
    bench.advance(TICK);
    bench.send(crate::bench::raise("first to begin", "end")).await;
    let turn = bench.fetched().await;
    bench.commit(&turn, Commit::default().complete("first to begin", 2, "output")).await;
    bench.advance(HOUR);
    assert_eq!(deleted(store, HOUR, 1).await, 1);
    assert_eq!(left(&bench).await, ["first to begin"]);
    Verdict::Kept
}

async fn s16_deletion_by_age_is_bounded(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    need!(bench.admin(), "ProviderAdmin");
    for number in 0..5 {
        bench.ended(&format!("i-{number}")).await;
    }
    bench.advance(HOUR);
    assert_eq!(deleted(store, HOUR, 0).await, 0, "no more than was asked for");
    assert_eq!(deleted(store, HOUR, 2).await, 2, "no more than was asked for");
    assert_eq!(left(&bench).await.len(), 3);
    Verdict::Kept
}

/// Deletes until a call deletes nothing, and returns how much that was.
async fn all_deleted(store: &dyn Store, limit: u32) -> u64 {
    let mut total = 0;
    for _ in 0..MOST_CALLS {
        match deleted(store, HOUR, limit).await {
            0 => return total,
            some => total += some,
        }
    }
    panic!("{MOST_CALLS} calls did not come to an end");
}

async fn s16_deletion_by_age_comes_to_its_end_in_some_calls(bench: Bench) -> Verdict {
    const MANY: u64 = 300;
    let store = need!(bench.store(), "Store");
    for number in 0..MANY {
        bench.ended(&format!("i-{number}")).await;
    }
    bench.advance(HOUR);
    assert_eq!(all_deleted(store, u32::MAX).await, MANY, "a call may do less than all, and more than none");
    Verdict::Kept
}

async fn s16_deletion_by_age_passes_trees_that_are_alive(bench: Bench) -> Verdict {
    const MANY: usize = 150;
    let store = need!(bench.store(), "Store");
    need!(bench.admin(), "ProviderAdmin");
    for number in 0..MANY {
        let root = format!("root-{number}");
        bench.ended(&root).await;
        child(&bench, &format!("child-{number}"), &root).await;
    }
    bench.advance(TICK);
    bench.ended("last").await;
    bench.advance(HOUR);
    assert_eq!(all_deleted(store, 10).await, 1, "what cannot be deleted holds up nothing");
    assert_eq!(left(&bench).await.len(), 2 * MANY, "the trees that are alive stay");
    Verdict::Kept
}

async fn s16_any_age_can_be_asked_for(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.ended("a").await;
    for ended_for in [Duration::MAX, Duration::from_secs(u64::MAX / 1_000), HOUR * 24 * 365 * 10_000] {
        assert_eq!(deleted(store, ended_for, 10).await, 0, "nothing is that old");
    }
    assert_eq!(deleted(store, Duration::ZERO, 10).await, 1, "all that has ended is so old");
    Verdict::Kept
}
