//! Which sessions a fetch may serve: a full worker, sessions to leave out, tags (D26, D30, D33).

use std::collections::HashSet;

use steadfast_core::{SessionKey, TagFilter};
use steadfast_store::{SessionScope, WorkRequest};

use super::{desk, id_of, request};
use crate::Verdict;
use crate::bench::{Bench, LEASE, activity, activity_with, ok};
use crate::case::{cases, need};

cases![
    s13_a_full_worker_is_given_only_the_sessions_it_names,
    s13_a_full_worker_claims_nothing,
    s13_a_full_worker_does_not_serve_what_it_lost,
    s13_a_full_worker_is_given_other_work,
    s13_a_full_worker_that_serves_nothing_takes_no_session_work,
    s13_a_session_that_is_left_out_is_not_served,
    s13_a_session_that_is_left_out_stays_for_others,
    s13_a_session_that_is_left_out_hides_no_other_however_many_tags_it_has,
    s13_a_refused_tag_claims_no_session,
    s13_a_pinned_session_is_not_given_to_another_pool,
    s13_a_refused_item_does_not_hide_the_next_of_its_session,
];

fn only(owner: &str, sessions: &[&str]) -> WorkRequest {
    let mut request = request(owner);
    if let Some(asked) = &mut request.session {
        asked.scope = SessionScope::Only(sessions.iter().copied().map(SessionKey::shared).collect());
    }
    request
}

fn without(owner: &str, sessions: &[&str]) -> WorkRequest {
    let mut request = request(owner);
    if let Some(asked) = &mut request.session {
        asked.leave_out = sessions.iter().copied().map(SessionKey::shared).collect();
    }
    request
}

fn tagged(owner: &str, tag: &str) -> WorkRequest {
    WorkRequest { tags: TagFilter::Tags(HashSet::from([tag.to_owned()])), ..request(owner) }
}

async fn s13_a_full_worker_is_given_only_the_sessions_it_names(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let before = [desk.attach("A", "S").await, desk.attach("A", "T").await];
    desk.queue("S", 2).await;
    desk.queue("T", 3).await;
    let lease = desk.asked(only("A", &["T"])).await;
    assert_eq!(id_of(&lease.item), 3, "S is held and not named");
    assert_eq!(super::attachment(&lease).epoch, before[1].epoch);
    assert!(desk.ask(only("A", &["T"])).await.is_none());
    Verdict::Kept
}

async fn s13_a_full_worker_claims_nothing(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    assert!(desk.ask(only("A", &["S"])).await.is_none(), "it names a session that it does not hold");
    assert_eq!(desk.fetched("B").await.attempt, 1, "looking left nothing behind");
    Verdict::Kept
}

async fn s13_a_full_worker_does_not_serve_what_it_lost(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    desk.queue("S", 2).await;
    bench.advance(LEASE);
    assert!(desk.ask(only("A", &["S"])).await.is_none(), "to serve it again is to claim it");
    assert!(desk.fetch("A").await.is_some());
    Verdict::Kept
}

async fn s13_a_full_worker_is_given_other_work(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    ok(desk.store.enqueue_work(activity("i", 2).into()).await);
    assert_eq!(id_of(&desk.asked(only("A", &[])).await.item), 2);
    Verdict::Kept
}

async fn s13_a_full_worker_that_serves_nothing_takes_no_session_work(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    desk.queue("S", 2).await;
    desk.queue("T", 3).await;
    assert!(desk.ask(only("A", &[])).await.is_none());
    Verdict::Kept
}

async fn s13_a_session_that_is_left_out_is_not_served(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    for (id, session) in (2..).zip(["S", "T", "U"]) {
        desk.queue(session, id).await;
    }
    let lease = desk.asked(without("A", &["S", "T"])).await;
    assert_eq!(id_of(&lease.item), 4, "S is held, T is free, both are left out");
    assert!(desk.ask(without("A", &["S", "T"])).await.is_none());
    Verdict::Kept
}

async fn s13_a_session_that_is_left_out_stays_for_others(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    assert!(desk.ask(without("A", &["S"])).await.is_none());
    assert_eq!(desk.fetched("B").await.attempt, 1);
    Verdict::Kept
}

/// A session has a place in line for each of its tags; leaving it out steps over all of them.
async fn s13_a_session_that_is_left_out_hides_no_other_however_many_tags_it_has(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    for (id, tag) in [(1, None), (2, Some("red")), (3, Some("green")), (4, Some("blue"))] {
        ok(bench.provider().enqueue_for_worker(activity_with("a", id, Some("S"), tag)).await);
    }
    ok(bench.provider().enqueue_for_worker(activity_with("a", 5, Some("T"), Some("red"))).await);
    let any = WorkRequest { tags: TagFilter::Any, ..without("A", &["S"]) };
    assert_eq!(id_of(&desk.asked(any.clone()).await.item), 5, "the work of T stands behind that of S");
    assert!(desk.ask(any).await.is_none(), "S is left out");
    Verdict::Kept
}

async fn s13_a_refused_tag_claims_no_session(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    ok(desk.store.enqueue_work(activity_with("i", 1, Some("S"), Some("gpu")).into()).await);
    assert!(desk.fetch("A").await.is_none(), "A serves no tags");
    let lease = desk.asked(tagged("B", "gpu")).await;
    assert_eq!((id_of(&lease.item), lease.attempt), (1, 1), "A left the session free");
    Verdict::Kept
}

async fn s13_a_pinned_session_is_not_given_to_another_pool(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    ok(desk.store.enqueue_work(activity_with("i", 2, Some("S"), Some("gpu")).into()).await);
    assert!(desk.ask(tagged("B", "gpu")).await.is_none(), "the session chooses the worker, and it is A's");
    assert!(desk.fetch("A").await.is_none(), "the tag chooses the pool, and A is not in it");
    Verdict::Kept
}

async fn s13_a_refused_item_does_not_hide_the_next_of_its_session(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    ok(desk.store.enqueue_work(activity_with("i", 1, Some("S"), Some("gpu")).into()).await);
    desk.queue("S", 2).await;
    assert_eq!(id_of(&desk.fetched("A").await.item), 2);
    Verdict::Kept
}
