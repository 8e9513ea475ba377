//! Withdrawn work (G42): its holder is told why its lease is lost.

use std::fmt::Debug;

use steadfast_core::{EventKind, SessionKey, TagFilter};
use steadfast_store::{
    LeaseToken, NewWork, Owner, ProviderError, ProviderErrorKind, SessionRequest, SessionScope,
    WITHDRAWN_KNOWN_FOR, WorkRequest,
};

use super::{any_work, poked};
use crate::Verdict;
use crate::bench::{Bench, Commit, LEASE, TICK, activity_with, completion, event, ok, scheduled};
use crate::case::{cases, need};

cases![
    s12_the_holder_of_withdrawn_work_is_told_that_it_was_withdrawn,
    s12_the_deletion_of_an_instance_withdraws_its_work,
    s12_the_close_of_an_owned_session_withdraws_its_work,
    s12_the_end_of_an_instance_withdraws_the_work_of_its_sessions,
    s12_work_whose_lease_had_expired_is_lost_and_not_withdrawn,
    s12_an_earlier_holder_of_withdrawn_work_lost_its_lease,
    s12_a_token_that_was_used_up_is_lost_and_not_withdrawn,
    s12_withdrawn_work_is_known_for_an_hour_after_its_lease,
    s12_withdrawn_work_is_known_after_a_restart_of_the_store,
    s12_withdrawn_work_is_known_after_a_sleep_of_the_machine,
    s12_a_renewal_of_withdrawn_work_does_not_bring_it_back,
];

fn withdrawn<T: Debug>(answer: Result<T, ProviderError>) {
    told(answer, ProviderErrorKind::Withdrawn);
}

fn lost<T: Debug>(answer: Result<T, ProviderError>) {
    told(answer, ProviderErrorKind::LeaseLost);
}

fn told<T: Debug>(answer: Result<T, ProviderError>, kind: ProviderErrorKind) {
    let error = answer.expect_err("the lease is lost");
    assert_eq!(error.kind, kind, "{error}");
    assert!(error.is_lease_lost() && !error.is_retryable(), "{error}");
    assert!(error.message.contains("Invalid lock token"), "{error}");
}

/// Cancels the activity of event 2 of an instance.
async fn cancel(bench: &Bench, instance: &str) {
    let turn = poked(bench, instance).await;
    bench.commit(&turn, Commit::default().cancel(instance, 1, 2)).await;
}

async fn s12_the_holder_of_withdrawn_work_is_told_that_it_was_withdrawn(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    cancel(&bench, "a").await;
    for _ in 0..2 {
        withdrawn(bench.provider().renew_work_item_lock(&token, LEASE).await);
        withdrawn(bench.provider().ack_work_item(&token, Some(completion("a", 2))).await);
        withdrawn(bench.provider().abandon_work_item(&token, None, false).await);
    }
    assert!(bench.fetch().await.is_none(), "its result is not delivered");
    Verdict::Kept
}

async fn s12_the_deletion_of_an_instance_withdraws_its_work(bench: Bench) -> Verdict {
    let admin = need!(bench.admin(), "ProviderAdmin");
    need!(bench.store(), "Store");
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    ok(admin.delete_instance("a", true).await);
    withdrawn(bench.provider().renew_work_item_lock(&token, LEASE).await);
    Verdict::Kept
}

/// Begins an instance with an open session, and leases the activity of event 3 on it.
async fn on_session(bench: &Bench) -> Option<LeaseToken> {
    let store = bench.store().filter(|store| store.supports_owned_sessions())?;
    bench.start("a").await;
    let turn = bench.fetched().await;
    let opened = EventKind::SessionOpened {
        session_id: "session".to_owned(),
        idle_timeout_ms: None,
        concurrency: None,
    };
    bench.commit(&turn, Commit::started("a").event(event("a", 2, opened))).await;
    let item = activity_with("a", 3, Some("session"), None);
    let work = NewWork { session: Some(SessionKey::owned("a", "session")), ..item.into() };
    ok(store.enqueue_work(work).await);
    let session = SessionRequest {
        owner: Owner::unnamed("owner"),
        lock_timeout: LEASE,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    let request = WorkRequest { session: Some(session), tags: TagFilter::Any, ..any_work() };
    let lease = ok(store.fetch_work(request).await).expect("the activity should be ready");
    Some(lease.token)
}

async fn s12_the_close_of_an_owned_session_withdraws_its_work(bench: Bench) -> Verdict {
    let token = need!(on_session(&bench).await, "owned sessions");
    let turn = poked(&bench, "a").await;
    let closed = EventKind::SessionClosed { session_id: "session".to_owned() };
    bench.commit(&turn, Commit::default().event(event("a", 4, closed))).await;
    withdrawn(bench.provider().renew_work_item_lock(token.as_str(), LEASE).await);
    Verdict::Kept
}

async fn s12_the_end_of_an_instance_withdraws_the_work_of_its_sessions(bench: Bench) -> Verdict {
    let token = need!(on_session(&bench).await, "owned sessions");
    let turn = poked(&bench, "a").await;
    bench.commit(&turn, Commit::default().complete("a", 4, "output")).await;
    withdrawn(bench.provider().ack_work_item(token.as_str(), None).await);
    Verdict::Kept
}

async fn s12_work_whose_lease_had_expired_is_lost_and_not_withdrawn(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    bench.advance(LEASE);
    cancel(&bench, "a").await;
    lost(bench.provider().renew_work_item_lock(&token, LEASE).await);
    Verdict::Kept
}

async fn s12_an_earlier_holder_of_withdrawn_work_lost_its_lease(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.begun_with_work("a").await;
    let (_, earlier, _) = bench.working().await;
    bench.advance(LEASE);
    let (_, holder, _) = bench.working().await;
    cancel(&bench, "a").await;
    lost(bench.provider().renew_work_item_lock(&earlier, LEASE).await);
    withdrawn(bench.provider().renew_work_item_lock(&holder, LEASE).await);
    Verdict::Kept
}

async fn s12_a_token_that_was_used_up_is_lost_and_not_withdrawn(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    let commit = Commit::default().event(event("a", 2, scheduled())).schedule("a", 3);
    bench.begin("a", commit.work(activity_with("a", 2, None, None))).await;
    let (first, one, _) = bench.working().await;
    let (_, other, _) = bench.working().await;
    assert_eq!(first, activity_with("a", 3, None, None), "in the order of the commit");
    bench.finish(&one, None).await;
    ok(bench.provider().abandon_work_item(&other, None, true).await);
    let turn = poked(&bench, "a").await;
    bench.commit(&turn, Commit::default().cancel("a", 1, 2).cancel("a", 1, 3)).await;
    lost(bench.provider().renew_work_item_lock(&one, LEASE).await);
    lost(bench.provider().renew_work_item_lock(&other, LEASE).await);
    Verdict::Kept
}

async fn s12_withdrawn_work_is_known_for_an_hour_after_its_lease(bench: Bench) -> Verdict {
    let store = need!(bench.store(), "Store");
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    cancel(&bench, "a").await;
    bench.advance(LEASE + WITHDRAWN_KNOWN_FOR - TICK);
    ok(store.cleanup_sessions().await);
    bench.begun_with_work("b").await;
    withdrawn(bench.provider().renew_work_item_lock(&token, LEASE).await);
    Verdict::Kept
}

async fn s12_withdrawn_work_is_known_after_a_restart_of_the_store(bench: Bench) -> Verdict {
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    cancel(&bench, "a").await;
    let bench = need!(bench.reopen().await, "reopen");
    need!(bench.store(), "Store");
    withdrawn(bench.provider().ack_work_item(&token, None).await);
    Verdict::Kept
}

async fn s12_withdrawn_work_is_known_after_a_sleep_of_the_machine(bench: Bench) -> Verdict {
    let machine = need!(bench.machine(), "the clock of this machine");
    let store = need!(bench.store(), "Store");
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    cancel(&bench, "a").await;
    machine.suspend(LEASE * 2 + WITHDRAWN_KNOWN_FOR);
    ok(store.cleanup_sessions().await);
    bench.begun_with_work("b").await;
    bench.working().await;
    cancel(&bench, "b").await;
    withdrawn(bench.provider().renew_work_item_lock(&token, LEASE).await);
    Verdict::Kept
}

async fn s12_a_renewal_of_withdrawn_work_does_not_bring_it_back(bench: Bench) -> Verdict {
    need!(bench.store(), "Store");
    bench.begun_with_work("a").await;
    let (_, token, _) = bench.working().await;
    ok(bench.provider().renew_work_item_lock(&token, LEASE * 2).await);
    cancel(&bench, "a").await;
    withdrawn(bench.provider().renew_work_item_lock(&token, LEASE).await);
    bench.advance(LEASE * 4);
    assert!(bench.fetch_work().await.is_none(), "withdrawn work is gone");
    Verdict::Kept
}
