//! Leases of instances: how long they last, and what becomes of what they held.

use std::collections::HashMap;
use std::pin::pin;
use std::task::Poll;

use steadfast_store::{InstanceInfo, MAX_TURN_MESSAGES, ProviderError, QueueDepths};

use crate::Verdict;
use crate::bench::{
    Bench, Commit, LEASE, TICK, Turning, event, kv_set, lost, ok, raise, start_of, status_set,
};
use crate::case::{cases, need};

cases![
    s1_a_renewed_lease_lasts_from_the_renewal,
    s1_a_renewed_lease_ends_in_its_turn,
    s1_a_committed_instance_is_free_at_once,
    s1_an_abandoned_instance_is_free_at_once,
    s1_of_two_commits_with_one_token_one_succeeds,
    s4_an_expired_token_cannot_commit,
    s4_an_expired_token_cannot_renew,
    s4_an_expired_token_cannot_abandon,
    s4_a_lease_is_lost_at_its_very_end,
    s4_a_replaced_token_cannot_commit,
    s4_a_replaced_token_cannot_renew,
    s4_a_replaced_token_cannot_abandon,
    s4_a_replaced_token_leaves_the_new_holder_alone,
    s4_a_token_that_was_never_given_holds_nothing,
    s4_a_token_holds_nothing_after_its_commit,
    s4_a_token_holds_nothing_after_its_abandon,
    s4_a_token_holds_nothing_of_a_deleted_instance,
    s4_a_stale_commit_does_not_bring_a_deleted_instance_back,
    s4_a_token_of_a_deleted_instance_holds_nothing_of_its_successor,
    s4_a_token_of_work_holds_no_instance,
    s4_a_renewed_token_commits_after_its_first_end,
    s5_messages_of_an_expired_lease_come_back,
    s5_each_fetch_counts_one_attempt,
    s5_messages_come_back_together_with_later_ones,
    s5_a_holder_that_vanished_has_changed_nothing,
    s5_messages_beyond_the_bound_count_no_attempt,
    s5_a_waiting_fetch_that_is_dropped_leaves_no_lease,
    s5_a_fetch_that_is_dropped_at_any_point_leaves_no_lease,
    s5_a_fetch_that_found_nothing_counts_no_attempt,
];

async fn s1_a_renewed_lease_lasts_from_the_renewal(bench: Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.advance(LEASE / 2);
    ok(bench.try_renew(&turn, LEASE).await);
    bench.advance(LEASE - TICK);
    assert!(bench.fetch().await.is_none(), "the renewed lease has not ended");
}

async fn s1_a_renewed_lease_ends_in_its_turn(bench: Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.advance(LEASE / 2);
    ok(bench.try_renew(&turn, LEASE).await);
    bench.advance(LEASE);
    assert!(bench.fetch().await.is_some(), "the renewed lease has ended, to the millisecond");
}

async fn s1_a_committed_instance_is_free_at_once(bench: Bench) {
    bench.begun("a").await;
    bench.send(raise("a", "data")).await;
    assert!(bench.fetch().await.is_some(), "a commit ends its lease");
}

async fn s1_an_abandoned_instance_is_free_at_once(bench: Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    ok(bench.try_abandon(&turn, None).await);
    assert!(bench.fetch().await.is_some(), "an abandon ends its lease");
}

async fn s1_of_two_commits_with_one_token_one_succeeds(bench: Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    let (one, other) = tokio::join!(
        bench.try_commit(&turn, Commit::started("a")),
        bench.try_commit(&turn, Commit::started("a"))
    );
    assert_eq!(usize::from(one.is_ok()) + usize::from(other.is_ok()), 1, "{one:?} {other:?}");
    assert_eq!(bench.event_ids("a").await, [1], "the commit should be there once");
}

async fn s4_an_expired_token_cannot_commit(bench: Bench) {
    let turn = expired(&bench).await;
    unchanged(&bench, bench.try_commit(&turn, everything()), Picture::of(&bench).await).await;
}

async fn s4_an_expired_token_cannot_renew(bench: Bench) {
    let turn = expired(&bench).await;
    lost(bench.try_renew(&turn, LEASE).await);
    assert!(bench.fetch().await.is_some(), "a lease that has ended cannot be brought back");
}

async fn s4_an_expired_token_cannot_abandon(bench: Bench) {
    let turn = expired(&bench).await;
    lost(bench.try_abandon(&turn, Some(LEASE)).await);
    assert!(bench.fetch().await.is_some(), "the delay should not count");
}

async fn s4_a_lease_is_lost_at_its_very_end(bench: Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.advance(LEASE);
    lost(bench.try_commit(&turn, Commit::started("a")).await);
}

async fn s4_a_replaced_token_cannot_commit(bench: Bench) {
    let (old, _) = replaced(&bench).await;
    unchanged(&bench, bench.try_commit(&old, everything()), Picture::of(&bench).await).await;
}

async fn s4_a_replaced_token_cannot_renew(bench: Bench) {
    let (old, _) = replaced(&bench).await;
    lost(bench.try_renew(&old, 2 * LEASE).await);
    bench.advance(LEASE);
    assert!(bench.fetch().await.is_some(), "the lease of the new holder should end when it did");
}

async fn s4_a_replaced_token_cannot_abandon(bench: Bench) {
    let (old, _) = replaced(&bench).await;
    lost(bench.try_abandon(&old, None).await);
    assert!(bench.fetch().await.is_none(), "the new holder should keep its lease");
}

async fn s4_a_replaced_token_leaves_the_new_holder_alone(bench: Bench) {
    let (old, new) = replaced(&bench).await;
    lost(bench.try_commit(&old, everything()).await);
    lost(bench.try_renew(&old, LEASE).await);
    lost(bench.try_abandon(&old, None).await);
    bench.commit(&new, Commit::default()).await;
    assert!(bench.fetch().await.is_none(), "the commit should have removed what was leased");
}

async fn s4_a_token_that_was_never_given_holds_nothing(bench: Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    for token in ["never-given", "", "'; --"] {
        holds_nothing(&bench, &Turning { token: token.to_owned(), ..turn.clone() }).await;
    }
    bench.commit(&turn, Commit::started("a")).await;
}

async fn s4_a_token_holds_nothing_after_its_commit(bench: Bench) {
    let turn = bench.leased("a").await;
    bench.commit(&turn, Commit::default().message(raise("a", "next"))).await;
    holds_nothing(&bench, &turn).await;
    assert!(bench.fetch().await.is_some(), "the next message should be there to be leased");
}

async fn s4_a_token_holds_nothing_after_its_abandon(bench: Bench) {
    let turn = bench.leased("a").await;
    ok(bench.try_abandon(&turn, None).await);
    holds_nothing(&bench, &turn).await;
    assert!(bench.fetch().await.is_some(), "what was abandoned should be there to be leased");
}

async fn s4_a_token_holds_nothing_of_a_deleted_instance(bench: Bench) -> Verdict {
    let turn = bench.leased("a").await;
    let admin = need!(bench.admin(), "ProviderAdmin");
    ok(admin.delete_instances_atomic(&["a".to_owned()], true).await);
    holds_nothing(&bench, &turn).await;
    Verdict::Kept
}

async fn s4_a_stale_commit_does_not_bring_a_deleted_instance_back(bench: Bench) -> Verdict {
    let turn = bench.leased("a").await;
    let admin = need!(bench.admin(), "ProviderAdmin");
    ok(admin.delete_instances_atomic(&["a".to_owned()], true).await);
    lost(bench.try_commit(&turn, Commit::started("a").and(everything())).await);
    assert_eq!(ok(admin.list_instances().await), Vec::<String>::new(), "the instance was deleted");
    assert_eq!(bench.event_ids("a").await, Vec::<u64>::new(), "its history was deleted");
    assert!(bench.fetch_work().await.is_none(), "its work was deleted");
    Verdict::Kept
}

async fn s4_a_token_of_a_deleted_instance_holds_nothing_of_its_successor(bench: Bench) -> Verdict {
    let old = bench.leased("a").await;
    let admin = need!(bench.admin(), "ProviderAdmin");
    ok(admin.delete_instances_atomic(&["a".to_owned()], true).await);
    bench.start("a").await;
    let new = bench.fetched().await;
    holds_nothing(&bench, &old).await;
    bench.commit(&new, Commit::started("a")).await;
    Verdict::Kept
}

async fn s4_a_token_of_work_holds_no_instance(bench: Bench) {
    let turn = bench.leased("a").await;
    let (_, token, _) = bench.working().await;
    holds_nothing(&bench, &Turning { token, ..turn.clone() }).await;
    bench.commit(&turn, Commit::default()).await;
}

async fn s4_a_renewed_token_commits_after_its_first_end(bench: Bench) {
    bench.start("a").await;
    let turn = bench.fetched().await;
    bench.advance(LEASE - TICK);
    ok(bench.try_renew(&turn, LEASE).await);
    bench.advance(LEASE - TICK);
    bench.commit(&turn, Commit::started("a")).await;
}

async fn s5_messages_of_an_expired_lease_come_back(bench: Bench) {
    bench.begun("a").await;
    bench.send(raise("a", "1")).await;
    bench.send(raise("a", "2")).await;
    let first = bench.fetched().await;
    bench.advance(LEASE);
    let second = bench.fetched().await;
    assert_eq!(second.item.messages, first.item.messages, "the same messages in the same order");
    assert_eq!(second.attempt, 2);
}

async fn s5_each_fetch_counts_one_attempt(bench: Bench) {
    bench.start("a").await;
    for attempt in 1..=5 {
        assert_eq!(bench.fetched().await.attempt, attempt);
        bench.advance(LEASE);
    }
}

async fn s5_messages_come_back_together_with_later_ones(bench: Bench) {
    bench.start("a").await;
    bench.fetched().await;
    bench.send(raise("a", "later")).await;
    bench.advance(LEASE);
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [start_of("a"), raise("a", "later")]);
}

async fn s5_a_holder_that_vanished_has_changed_nothing(bench: Bench) {
    bench.begun_with_work("a").await;
    bench.send(raise("a", "data")).await;
    let before = Picture::of(&bench).await;
    bench.fetched().await;
    bench.advance(LEASE);
    assert_eq!(Picture::of(&bench).await, before, "what is not committed has not been");
}

async fn s5_messages_beyond_the_bound_count_no_attempt(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    let sent = (0..=MAX_TURN_MESSAGES).map(|number| raise("a", &number.to_string()).into());
    ok(store.send(sent.collect()).await);
    for _ in 0..3 {
        bench.fetched().await;
        bench.advance(LEASE);
    }
    let turn = bench.fetched().await;
    assert_eq!(turn.attempt, 4, "the first thousand were fetched four times");
    bench.commit(&turn, Commit::default()).await;
    assert_eq!(bench.fetched().await.attempt, 1, "the one beyond the bound is fetched for the first time");
    Verdict::Kept
}

async fn s5_a_waiting_fetch_that_is_dropped_leaves_no_lease(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let call = bench.waiting_fetch(LEASE).await;
    call.abort();
    assert!(call.await.is_err_and(|error| error.is_cancelled()), "the call should still wait");
    bench.start("a").await;
    bench.settle().await;
    assert_eq!(bench.fetched().await.attempt, 1, "a call that was dropped counts no attempt");
    Verdict::Kept
}

async fn s5_a_fetch_that_is_dropped_at_any_point_leaves_no_lease(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.start("a").await;
    for polls in 0..32 {
        if answers_within(&bench, polls).await {
            break;
        }
    }
    // A store may still be abandoning the lease of the dropped fetch; a waiting fetch is told when it has.
    let provider = bench.provider().clone();
    let fetch = async move { ok(provider.fetch_orchestration_item(LEASE, LEASE / 2, None).await) };
    let (_, _, attempt) = bench.soon(tokio::spawn(fetch)).await.expect("the instance should be free");
    assert_eq!(attempt, 1, "calls that were dropped count no attempt");
    Verdict::Kept
}

async fn s5_a_fetch_that_found_nothing_counts_no_attempt(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.send_later(start_of("a"), LEASE).await;
    let call = bench.waiting_fetch(LEASE / 2).await;
    bench.advance(LEASE / 2);
    assert!(bench.soon(call).await.is_none(), "the start is still to come");
    bench.advance(LEASE / 2);
    assert_eq!(bench.fetched().await.attempt, 1, "a call that found nothing tried nothing");
    Verdict::Kept
}

async fn expired(bench: &Bench) -> Turning {
    let turn = bench.leased("a").await;
    bench.advance(LEASE + TICK);
    turn
}

/// An expired lease, and the one that replaced it.
async fn replaced(bench: &Bench) -> (Turning, Turning) {
    let old = expired(bench).await;
    (old, bench.fetched().await)
}

/// Requires that a token can neither commit nor renew nor abandon.
async fn holds_nothing(bench: &Bench, turn: &Turning) {
    let before = Picture::of(bench).await;
    lost(bench.try_renew(turn, LEASE).await);
    lost(bench.try_abandon(turn, Some(LEASE)).await);
    unchanged(bench, bench.try_commit(turn, everything()), before).await;
}

async fn unchanged(bench: &Bench, call: impl Future<Output = Result<(), ProviderError>>, before: Picture) {
    lost(call.await);
    assert_eq!(Picture::of(bench).await, before, "a stale commit should change nothing");
}

/// A commit that would change everything there is of instance `a`.
fn everything() -> Commit {
    Commit::default()
        .event(event("a", 50, status_set(Some("stale"))))
        .event(event("a", 51, kv_set("stale", "stale")))
        .schedule("a", 52)
        .message(raise("a", "stale"))
        .message(start_of("stale"))
        .cancel("a", 1, 2)
        .complete("a", 53, "stale")
}

/// What can be seen of instance `a`, and of the queues.
#[derive(Debug, PartialEq)]
struct Picture {
    events: Vec<u64>,
    custom_status: Option<(Option<String>, u64)>,
    values: HashMap<String, String>,
    info: Option<String>,
    depths: Option<(usize, usize)>,
}

impl Picture {
    async fn of(bench: &Bench) -> Self {
        let (mut info, mut depths) = (None, None);
        if let Some(admin) = bench.admin() {
            info = admin.get_instance_info("a").await.ok().map(|info: InstanceInfo| format!("{info:?}"));
            let QueueDepths { orchestrator_queue, worker_queue, .. } = ok(admin.get_queue_depths().await);
            depths = Some((orchestrator_queue, worker_queue));
        }
        Self {
            events: bench.event_ids("a").await,
            custom_status: ok(bench.provider().get_custom_status("a", 0).await),
            values: ok(bench.provider().get_kv_all_values("a").await),
            info,
            depths,
        }
    }
}

/// Polls a fetch a few times and drops it. If it answered, abandons the lease.
async fn answers_within(bench: &Bench, polls: usize) -> bool {
    let mut fetch = pin!(bench.try_fetch(LEASE));
    for _ in 0..polls {
        let polled = std::future::poll_fn(|context| Poll::Ready(fetch.as_mut().poll(context))).await;
        if let Poll::Ready(fetched) = polled {
            if let Some(turn) = ok(fetched) {
                bench.abandon(&turn, None).await;
            }
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}
