//! Waiting for a change of an instance.

use std::time::Duration;

use steadfast_store::{Store, WaitFor, Waited};
use tokio::task::JoinHandle;

use super::{go_on, seen, state, waiting};
use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, TICK, ok, raise};
use crate::case::{cases, need};

cases![
    api_a_wait_for_an_instance_ends_with_its_next_change,
    api_a_wait_for_an_instance_that_changed_already_ends_at_once,
    api_a_wait_for_an_instance_ends_when_its_time_is_over,
    api_a_wait_for_an_unknown_instance_ends_when_it_comes_to_be,
    api_a_wait_for_an_instance_ends_when_it_is_deleted,
    api_a_change_of_another_instance_does_not_end_a_wait,
];

/// Waits for the next change of an instance that exists.
async fn watching(bench: &Bench, store: &dyn Store, instance: &'static str) -> JoinHandle<Option<Waited>> {
    let seen = state(store, instance).await.change;
    waiting(bench, WaitFor::Instance { instance, seen }).await
}

async fn api_a_wait_for_an_instance_ends_with_its_next_change(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = watching(&bench, store, "a").await;
    go_on(&bench, "a", Commit::default().complete("a", 2, "output")).await;
    assert_eq!(bench.soon(call).await, Some(seen(store, "a").await), "a commit should end the wait");
    Verdict::Kept
}

async fn api_a_wait_for_an_instance_that_changed_already_ends_at_once(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let known = state(store, "a").await.change;
    go_on(&bench, "a", Commit::default()).await;
    for known in [0, known] {
        let wait = store.wait(WaitFor::Instance { instance: "a", seen: known }, Duration::ZERO);
        assert_eq!(ok(wait.await), seen(store, "a").await, "there is more to see than {known}");
    }
    Verdict::Kept
}

async fn api_a_wait_for_an_instance_ends_when_its_time_is_over(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = watching(&bench, store, "a").await;
    bench.send(raise("a", "1")).await;
    bench.advance(LEASE - TICK);
    bench.settle().await;
    assert!(!call.is_finished(), "a message alone is no change");
    bench.advance(TICK);
    assert_eq!(bench.soon(call).await, Some(Waited::TimedOut), "nothing changed");
    Verdict::Kept
}

async fn api_a_wait_for_an_unknown_instance_ends_when_it_comes_to_be(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let call = waiting(&bench, WaitFor::Instance { instance: "a", seen: 0 }).await;
    bench.begun("b").await;
    bench.settle().await;
    assert!(!call.is_finished(), "it is still to come");
    bench.begun("a").await;
    assert_eq!(bench.soon(call).await, Some(seen(store, "a").await));
    Verdict::Kept
}

async fn api_a_wait_for_an_instance_ends_when_it_is_deleted(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    bench.begun("a").await;
    let call = watching(&bench, store, "a").await;
    ok(admin.delete_instance("a", true).await);
    assert_eq!(bench.soon(call).await, Some(Waited::Seen(None)), "an instance that is gone has changed");
    Verdict::Kept
}

async fn api_a_change_of_another_instance_does_not_end_a_wait(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let call = watching(&bench, store, "a").await;
    bench.begun("b").await;
    bench.settle().await;
    assert!(!call.is_finished(), "another instance changed");
    bench.advance(LEASE);
    assert_eq!(bench.soon(call).await, Some(Waited::TimedOut));
    Verdict::Kept
}
