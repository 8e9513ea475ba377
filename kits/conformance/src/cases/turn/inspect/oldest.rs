//! Telling the longest wait over everything.

use steadfast_core::TagFilter;
use steadfast_store::{Abandon, Attempt, LeaseToken, OldestWaiting, Store};

use super::{LEASE_MS, WHILE, WHILE_MS, telling};
use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, LEASE, TICK, activity, activity_with, ok, raise};
use crate::case::{cases, need};

cases![
    s18_nothing_waits_in_an_empty_store,
    s18_the_longest_wait_is_that_of_the_oldest_message,
    s18_a_message_waits_since_it_became_visible,
    s18_a_leased_instance_does_not_wait,
    s18_an_instance_waits_since_its_lease_ended,
    s18_late_messages_wait_since_the_commit,
    s18_the_longest_wait_is_that_of_the_oldest_activity,
    s18_an_activity_that_is_held_back_does_not_wait,
    s20_the_backlog_does_not_slow_the_look_for_the_longest_wait,
];

/// Since when the oldest turn and the oldest activity wait.
pub(super) async fn oldest(store: &dyn Store) -> (Option<u64>, Option<u64>) {
    let OldestWaiting { message_ms, work_ms, .. } = ok(store.oldest_waiting().await);
    (message_ms, work_ms)
}

async fn s18_nothing_waits_in_an_empty_store(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    let expected = OldestWaiting { message_ms: None, work_ms: None, now_ms: DAWN_MS };
    assert_eq!(ok(store.oldest_waiting().await), expected);
    bench.begun("a").await;
    assert_eq!(
        ok(store.oldest_waiting().await),
        expected,
        "an instance that waits for something does not count"
    );
    Verdict::Kept
}

async fn s18_the_longest_wait_is_that_of_the_oldest_message(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    for instance in ["a", "b", "a"] {
        bench.advance(TICK);
        bench.start(instance).await;
    }
    bench.advance(WHILE);
    assert_eq!(oldest(store).await, (Some(DAWN_MS + 1), None));
    let turn = bench.fetched().await;
    assert_eq!(turn.item.instance, "a");
    assert_eq!(oldest(store).await, (Some(DAWN_MS + 2), None), "the next one is b");
    Verdict::Kept
}

async fn s18_a_message_waits_since_it_became_visible(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.begun("a").await;
    bench.begun("b").await;
    bench.send_later(raise("a", "data"), WHILE).await;
    bench.advance(TICK);
    assert_eq!(oldest(store).await, (None, None), "not yet");
    bench.send(raise("b", "data")).await;
    bench.advance(WHILE);
    assert_eq!(oldest(store).await, (Some(DAWN_MS + 1), None), "the one that came later waits for longer");
    bench.fetched().await;
    bench.fetched().await;
    assert_eq!(oldest(store).await, (None, None));
    bench.begun("c").await;
    bench.send_later(raise("c", "data"), WHILE).await;
    let visible_at = bench.now_ms() + WHILE_MS;
    bench.advance(WHILE + TICK);
    assert_eq!(oldest(store).await, (Some(visible_at), None));
    Verdict::Kept
}

async fn s18_a_leased_instance_does_not_wait(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.send(raise("a", "late")).await;
    bench.send_later(raise("a", "later"), TICK).await;
    bench.advance(WHILE);
    assert_eq!(oldest(store).await, (None, None), "its messages wait for the holder, not for anybody");
    bench.commit(&turn, Commit::started("a")).await;
    assert!(oldest(store).await.0.is_some());
    Verdict::Kept
}

async fn s18_an_instance_waits_since_its_lease_ended(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.start("a").await;
    bench.fetched().await;
    bench.advance(LEASE + WHILE);
    assert_eq!(oldest(store).await, (Some(DAWN_MS + LEASE_MS), None));
    let again = bench.fetched().await;
    bench.advance(TICK);
    bench.abandon(&again, None).await;
    bench.advance(WHILE);
    assert_eq!(
        oldest(store).await,
        (Some(DAWN_MS + LEASE_MS + WHILE_MS + 1), None),
        "since it was given back"
    );
    Verdict::Kept
}

async fn s18_late_messages_wait_since_the_commit(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.advance(TICK);
    bench.send(raise("a", "late")).await;
    bench.advance(WHILE);
    bench.commit(&turn, Commit::started("a")).await;
    bench.advance(WHILE);
    assert_eq!(oldest(store).await, (Some(DAWN_MS + WHILE_MS + 1), None));
    Verdict::Kept
}

async fn s18_the_longest_wait_is_that_of_the_oldest_activity(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    for (id, (session, tag)) in (1..).zip([(None, Some("gpu")), (Some("S"), None), (None, None)]) {
        bench.advance(TICK);
        bench.enqueue(activity_with("a", id, session, tag)).await;
    }
    bench.advance(WHILE);
    let gpu = TagFilter::tags(["gpu"]);
    assert_eq!(oldest(store).await, (None, Some(DAWN_MS + 1)), "of a tag");
    assert!(bench.fetch_work_as(None, &gpu).await.is_some());
    assert_eq!(oldest(store).await, (None, Some(DAWN_MS + 2)), "of a session");
    assert!(bench.fetch_work_for("A").await.is_some());
    assert_eq!(oldest(store).await, (None, Some(DAWN_MS + 3)));
    bench.working().await;
    assert_eq!(oldest(store).await, (None, None), "all are leased");
    Verdict::Kept
}

async fn s18_an_activity_that_is_held_back_does_not_wait(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    bench.enqueue(activity("a", 1)).await;
    let (_, token, _) = bench.working().await;
    let how = Abandon { retry_after: Some(WHILE), attempt: Attempt::Counts };
    ok(store.abandon(&LeaseToken::Work(token), how).await);
    assert_eq!(oldest(store).await, (None, None));
    bench.advance(WHILE + TICK);
    assert_eq!(oldest(store).await, (None, Some(DAWN_MS + WHILE_MS)));
    Verdict::Kept
}

async fn s20_the_backlog_does_not_slow_the_look_for_the_longest_wait(bench: Bench) -> Verdict {
    let store = need!(telling(&bench).await, "oldest_waiting");
    let mut costs = Vec::new();
    for _ in 0..2 {
        let id = costs.len() as u64;
        bench.start(&format!("first-{id}")).await;
        bench.enqueue(activity("first", id)).await;
        oldest(store).await;
        let mut least = u64::MAX;
        for _ in 0..4 {
            let before = need!(bench.cost().await, "cost");
            oldest(store).await;
            least = least.min(need!(bench.cost().await, "cost") - before);
        }
        costs.push(least);
        // The second round has it around.
        let many = if costs.len() == 1 { 2_000 } else { 0 };
        for number in 0..many {
            bench.start(&format!("many-{number}")).await;
            bench.enqueue(activity_with("many", number, Some(&format!("s-{number}")), None)).await;
            bench.enqueue(activity("many", 10_000 + number)).await;
        }
    }
    assert!(costs[1] * 2 <= costs[0] * 3, "the cost should stay what it was: {costs:?}");
    Verdict::Kept
}
