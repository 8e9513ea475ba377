//! Excuses (G38): a holder that outlived its lease takes its delivery off the count, and changes nothing
//! else.

use std::time::Duration;

use steadfast_store::{
    Abandon, Attempt, LeaseToken, OldestWaiting, Owner, SessionRequest, SessionScope, Store, WorkRequest,
};

use crate::Verdict;
use crate::bench::{Bench, Commit, DAWN_MS, LEASE, TICK, activity, activity_with, ok, raise, start_node};
use crate::case::{cases, need};

cases![
    s5_an_excused_turn_is_not_counted,
    s5_an_excused_delivery_of_work_is_not_counted,
    s5_a_live_lease_cannot_be_excused,
    s5_an_expired_turn_is_excused_once,
    s5_an_expired_delivery_of_work_is_excused_once,
    s5_a_turn_excused_ahead_of_the_next_fetch_is_not_excused_again,
    s5_work_excused_ahead_of_the_next_fetch_is_not_excused_again,
    s5_a_turn_is_excused_while_another_holds_the_instance,
    s5_work_is_excused_while_another_holds_it,
    s5_each_expired_turn_is_excused_for_itself,
    s5_each_expired_delivery_of_work_is_excused_for_itself,
    s5_deliveries_that_nobody_excuses_stay_counted,
    s5_an_excuse_takes_off_only_what_the_lease_held,
    s5_a_renewed_lease_that_expired_can_be_excused,
    s5_an_abandoned_lease_cannot_be_excused,
    s5_a_token_that_was_never_given_cannot_be_excused,
    s5_an_excuse_never_takes_a_count_below_zero,
    s5_a_turn_that_was_committed_since_cannot_be_excused,
    s5_work_that_was_finished_since_cannot_be_excused,
    s5_work_that_was_withdrawn_since_cannot_be_excused,
    s5_what_was_deleted_since_cannot_be_excused,
    s5_a_process_whose_node_was_replaced_can_excuse,
    s5_an_excuse_leaves_the_wait_as_it_was,
    s5_an_expired_delivery_is_excused_after_a_restart_of_the_store,
];

fn turn(token: &str) -> LeaseToken {
    LeaseToken::Turn(token.to_owned())
}

fn work(token: &str) -> LeaseToken {
    LeaseToken::Work(token.to_owned())
}

async fn excused(store: &dyn Store, lease: LeaseToken) -> bool {
    ok(store.excuse(&lease).await)
}

/// Leases the one instance that is ready, and lets the lease expire.
async fn expired_turn(bench: &Bench) -> LeaseToken {
    let leased = bench.fetched().await;
    bench.advance(LEASE);
    turn(&leased.token)
}

/// Leases the one activity that is ready, and lets the lease expire.
async fn expired_work(bench: &Bench) -> LeaseToken {
    let (_, token, _) = bench.working().await;
    bench.advance(LEASE);
    work(&token)
}

async fn turn_attempt(bench: &Bench) -> u32 {
    bench.fetched().await.attempt
}

async fn work_attempt(bench: &Bench) -> u32 {
    bench.working().await.2
}

async fn s5_an_excused_turn_is_not_counted(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    let lease = expired_turn(&bench).await;
    assert!(excused(store, lease).await, "the lease has expired");
    assert_eq!(turn_attempt(&bench).await, 1, "the expired delivery is not counted");
    Verdict::Kept
}

async fn s5_an_excused_delivery_of_work_is_not_counted(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.enqueue(activity("a", 2)).await;
    let lease = expired_work(&bench).await;
    assert!(excused(store, lease).await, "the lease has expired");
    assert_eq!(work_attempt(&bench).await, 1, "the expired delivery is not counted");
    Verdict::Kept
}

async fn s5_a_live_lease_cannot_be_excused(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let leased = bench.fetched().await;
    let (_, token, _) = bench.working().await;
    bench.advance(LEASE - TICK);
    assert!(!excused(store, turn(&leased.token)).await, "the lease of the turn lasts");
    assert!(!excused(store, work(&token)).await, "the lease of the activity lasts");
    bench.advance(TICK);
    assert_eq!((turn_attempt(&bench).await, work_attempt(&bench).await), (2, 2), "both count");
    Verdict::Kept
}

async fn s5_an_expired_turn_is_excused_once(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    let (one, other) = (expired_turn(&bench).await, expired_turn(&bench).await);
    assert!(excused(store, one.clone()).await, "the lease has expired");
    assert!(!excused(store, one).await, "it was excused before");
    assert_eq!(turn_attempt(&bench).await, 2, "the delivery of {other:?} is counted");
    Verdict::Kept
}

async fn s5_an_expired_delivery_of_work_is_excused_once(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.enqueue(activity("a", 2)).await;
    let (one, other) = (expired_work(&bench).await, expired_work(&bench).await);
    assert!(excused(store, one.clone()).await, "the lease has expired");
    assert!(!excused(store, one).await, "it was excused before");
    assert_eq!(work_attempt(&bench).await, 2, "the delivery of {other:?} is counted");
    Verdict::Kept
}

async fn s5_a_turn_excused_ahead_of_the_next_fetch_is_not_excused_again(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    let lease = expired_turn(&bench).await;
    assert!(excused(store, lease.clone()).await, "the lease has expired");
    assert!(!excused(store, lease.clone()).await, "it was excused before");
    assert_eq!(turn_attempt(&bench).await, 1);
    assert!(!excused(store, lease).await, "the next fetch forgets nothing");
    bench.advance(LEASE);
    assert_eq!(turn_attempt(&bench).await, 2, "the second delivery counts");
    Verdict::Kept
}

async fn s5_work_excused_ahead_of_the_next_fetch_is_not_excused_again(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.enqueue(activity("a", 2)).await;
    let lease = expired_work(&bench).await;
    assert!(excused(store, lease.clone()).await, "the lease has expired");
    assert!(!excused(store, lease.clone()).await, "it was excused before");
    assert_eq!(work_attempt(&bench).await, 1);
    assert!(!excused(store, lease).await, "the next fetch forgets nothing");
    bench.advance(LEASE);
    assert_eq!(work_attempt(&bench).await, 2, "the second delivery counts");
    Verdict::Kept
}

async fn s5_a_turn_is_excused_while_another_holds_the_instance(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    let lease = expired_turn(&bench).await;
    let holder = bench.fetched().await;
    assert!(excused(store, lease).await, "whoever holds the instance");
    assert!(bench.fetch().await.is_none(), "the instance is still leased");
    ok(bench.try_renew(&holder, LEASE).await);
    ok(bench.try_abandon(&holder, None).await);
    assert_eq!(turn_attempt(&bench).await, 2, "the holder's delivery counts, the excused one does not");
    Verdict::Kept
}

async fn s5_work_is_excused_while_another_holds_it(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.enqueue(activity("a", 2)).await;
    let lease = expired_work(&bench).await;
    let (_, holder, _) = bench.working().await;
    assert!(excused(store, lease).await, "whoever holds the activity");
    assert!(bench.fetch_work().await.is_none(), "the activity is still leased");
    ok(bench.provider().renew_work_item_lock(&holder, LEASE).await);
    ok(bench.provider().abandon_work_item(&holder, None, false).await);
    assert_eq!(work_attempt(&bench).await, 2, "the holder's delivery counts, the excused one does not");
    Verdict::Kept
}

async fn s5_each_expired_turn_is_excused_for_itself(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    let leases = [expired_turn(&bench).await, expired_turn(&bench).await, expired_turn(&bench).await];
    for lease in leases {
        assert!(excused(store, lease).await, "each lease has expired");
    }
    assert_eq!(turn_attempt(&bench).await, 1, "no earlier delivery is counted");
    Verdict::Kept
}

async fn s5_each_expired_delivery_of_work_is_excused_for_itself(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.enqueue(activity("a", 2)).await;
    let leases = [expired_work(&bench).await, expired_work(&bench).await, expired_work(&bench).await];
    for lease in leases {
        assert!(excused(store, lease).await, "each lease has expired");
    }
    assert_eq!(work_attempt(&bench).await, 1, "no earlier delivery is counted");
    Verdict::Kept
}

async fn s5_deliveries_that_nobody_excuses_stay_counted(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    for number in 0..6 {
        let leased = bench.fetched().await;
        let (_, token, _) = bench.working().await;
        bench.advance(LEASE);
        if number % 3 == 0 {
            assert!(excused(store, turn(&leased.token)).await, "the turn has expired");
            assert!(excused(store, work(&token)).await, "the activity has expired");
        }
    }
    let attempts = (turn_attempt(&bench).await, work_attempt(&bench).await);
    assert_eq!(attempts, (5, 5), "four deliveries without an excuse, and this one");
    Verdict::Kept
}

async fn s5_an_excuse_takes_off_only_what_the_lease_held(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun("a").await;
    bench.send(raise("a", "first")).await;
    let lease = expired_turn(&bench).await;
    let next = bench.fetched().await;
    bench.abandon(&next, Some(LEASE * 10)).await;
    bench.send(raise("a", "second")).await;
    expired_turn(&bench).await;
    assert!(excused(store, lease).await, "the first message is still there");
    let turn = bench.fetched().await;
    assert_eq!(turn.item.messages, [raise("a", "second")], "the first message is held back");
    assert_eq!(turn.attempt, 2, "the first lease did not hold the second message");
    Verdict::Kept
}

async fn s5_a_renewed_lease_that_expired_can_be_excused(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let leased = bench.fetched().await;
    let (_, token, _) = bench.working().await;
    bench.advance(LEASE - TICK);
    ok(bench.try_renew(&leased, LEASE).await);
    ok(bench.provider().renew_work_item_lock(&token, LEASE).await);
    bench.advance(LEASE);
    assert!(excused(store, turn(&leased.token)).await, "the lease of the turn has expired");
    assert!(excused(store, work(&token)).await, "the lease of the activity has expired");
    assert_eq!((turn_attempt(&bench).await, work_attempt(&bench).await), (1, 1));
    Verdict::Kept
}

async fn s5_an_abandoned_lease_cannot_be_excused(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let leased = bench.fetched().await;
    let (_, token, _) = bench.working().await;
    ok(bench.try_abandon(&leased, None).await);
    ok(bench.provider().abandon_work_item(&token, None, false).await);
    for _ in 0..2 {
        assert!(!excused(store, turn(&leased.token)).await, "the holder gave the turn back itself");
        assert!(!excused(store, work(&token)).await, "the holder gave the activity back itself");
        bench.advance(LEASE);
    }
    assert_eq!((turn_attempt(&bench).await, work_attempt(&bench).await), (2, 2), "both count");
    assert!(!excused(store, turn(&leased.token)).await, "the next fetch changes nothing of that");
    assert!(!excused(store, work(&token)).await, "the next fetch changes nothing of that");
    Verdict::Kept
}

async fn s5_a_token_that_was_never_given_cannot_be_excused(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let (leased, held) = (expired_turn(&bench).await, expired_work(&bench).await);
    assert!(!excused(store, turn("no such token")).await, "there is no such turn");
    assert!(!excused(store, work("no such token")).await, "there is no such activity");
    assert!(!excused(store, turn(held.as_str())).await, "the token of an activity holds no turn");
    assert!(!excused(store, work(leased.as_str())).await, "the token of a turn holds no activity");
    Verdict::Kept
}

async fn s5_an_excuse_never_takes_a_count_below_zero(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let (leased, held) = (expired_turn(&bench).await, expired_work(&bench).await);
    let how = Abandon { retry_after: None, attempt: Attempt::Uncounted };
    let (turn, (_, token, _)) = (bench.fetched().await, bench.working().await);
    assert!(excused(store, leased).await && excused(store, held).await, "both leases have expired");
    bench.abandon(&turn, None).await;
    ok(store.abandon(&work(&token), how).await);
    assert_eq!((turn_attempt(&bench).await, work_attempt(&bench).await), (1, 1), "the count begins anew");
    Verdict::Kept
}

async fn s5_a_turn_that_was_committed_since_cannot_be_excused(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    let lease = expired_turn(&bench).await;
    let next = bench.fetched().await;
    bench.commit(&next, Commit::started("a")).await;
    bench.send(raise("a", "data")).await;
    assert!(!excused(store, lease).await, "the messages of that lease are gone");
    assert_eq!(turn_attempt(&bench).await, 1, "the next message is not touched");
    Verdict::Kept
}

async fn s5_work_that_was_finished_since_cannot_be_excused(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.enqueue(activity("a", 2)).await;
    let lease = expired_work(&bench).await;
    let (_, token, _) = bench.working().await;
    bench.finish(&token, None).await;
    assert!(!excused(store, lease).await, "the activity is gone");
    assert!(!excused(store, work(&token)).await, "so is that of its last holder");
    Verdict::Kept
}

async fn s5_work_that_was_withdrawn_since_cannot_be_excused(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun_with_work("a").await;
    let lease = expired_work(&bench).await;
    let (_, token, _) = bench.working().await;
    bench.send(raise("a", "data")).await;
    let next = bench.fetched().await;
    bench.commit(&next, Commit::default().cancel("a", 1, 2)).await;
    bench.advance(LEASE);
    assert!(!excused(store, lease).await, "the activity is gone");
    assert!(!excused(store, work(&token)).await, "so is that of its last holder");
    Verdict::Kept
}

async fn s5_what_was_deleted_since_cannot_be_excused(bench: Bench) -> Verdict {
    let (store, admin) = (need!(bench.store(), "Store"), need!(bench.admin(), "ProviderAdmin"));
    bench.begun_with_work("a").await;
    bench.send(raise("a", "data")).await;
    let leased = bench.fetched().await;
    let (_, token, _) = bench.working().await;
    bench.advance(LEASE);
    ok(admin.delete_instance("a", true).await);
    bench.begun_with_work("a").await;
    bench.send(raise("a", "data")).await;
    assert!(!excused(store, turn(&leased.token)).await, "the messages of that lease are gone");
    assert!(!excused(store, work(&token)).await, "the activity is gone");
    Verdict::Kept
}

async fn s5_a_process_whose_node_was_replaced_can_excuse(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    let request = |incarnation| WorkRequest {
        worker_id: "node".to_owned(),
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        tags: steadfast_core::TagFilter::Any,
        session: Some(SessionRequest {
            owner: Owner { id: "node".to_owned(), incarnation: Some(incarnation) },
            lock_timeout: LEASE,
            scope: SessionScope::Claim,
            leave_out: Vec::new(),
        }),
        worker: None,
    };
    bench.enqueue(activity_with("a", 2, Some("session"), None)).await;
    let old = ok(start_node(store, "node").await);
    let lease = ok(store.fetch_work(request(old)).await).expect("the activity should be ready");
    bench.advance(LEASE);
    let new = ok(start_node(store, "node").await);
    assert!(excused(store, lease.token).await, "it did not die, it was paused");
    let next = ok(store.fetch_work(request(new)).await).expect("the activity should be ready");
    assert_eq!(next.attempt, 1, "the expired delivery is not counted");
    Verdict::Kept
}

async fn s5_an_excuse_leaves_the_wait_as_it_was(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let leased = bench.fetched().await;
    let (_, token, _) = bench.working().await;
    bench.advance(LEASE * 2);
    assert!(excused(store, turn(&leased.token)).await, "the lease of the turn has expired");
    assert!(excused(store, work(&token)).await, "the lease of the activity has expired");
    let OldestWaiting { message_ms, work_ms, .. } = ok(store.oldest_waiting().await);
    let ended = Some(DAWN_MS + LEASE.as_millis() as u64);
    assert_eq!((message_ms, work_ms), (ended, ended), "both wait since their leases ended");
    Verdict::Kept
}

async fn s5_an_expired_delivery_is_excused_after_a_restart_of_the_store(bench: Bench) -> Verdict {
    bench.start("a").await;
    bench.enqueue(activity("a", 2)).await;
    let (leased, held) = (expired_turn(&bench).await, expired_work(&bench).await);
    let (_, _) = (bench.fetched().await, bench.working().await);
    let bench = need!(bench.reopen().await, "reopen");
    let store = need!(bench.store(), "Store");
    assert!(excused(store, leased).await && excused(store, held).await, "the store has not forgotten");
    bench.advance(LEASE);
    assert_eq!((turn_attempt(&bench).await, work_attempt(&bench).await), (2, 2), "one of two counts");
    Verdict::Kept
}
