//! Looking at sessions (D39).

use std::collections::BTreeSet;

use steadfast_core::{SessionConcurrency, SessionKey};
use steadfast_store::MAX_PAGE;

use super::{desk, leasing, owning};
use crate::Verdict;
use crate::bench::{Bench, LEASE, ok};
use crate::case::{cases, need};

cases![
    s13_sessions_are_listed_in_the_order_of_keys,
    s13_sessions_are_listed_page_by_page,
    s13_a_session_counts_what_waits_and_what_runs,
    s13_a_session_that_never_was_is_not_shown,
    s13_a_listing_says_the_same_as_a_look_at_one,
    s13_a_session_of_an_instance_shows_its_options,
];

async fn s13_sessions_are_listed_in_the_order_of_keys(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("b", |turn| turn.open("x")).await;
    desk.begin("a", |turn| turn.open("z").open("y")).await;
    for session in ["t", "s"] {
        desk.attach("A", session).await;
    }
    let keys: Vec<_> = ok(desk.store.sessions(None).await).into_iter().map(|session| session.key).collect();
    let expected = [
        SessionKey::shared("s"),
        SessionKey::shared("t"),
        SessionKey::owned("a", "y"),
        SessionKey::owned("a", "z"),
        SessionKey::owned("b", "x"),
    ];
    assert_eq!(keys, expected, "shared ones first, then by instance");
    for (at, key) in keys.iter().enumerate() {
        let behind = ok(desk.store.sessions(Some(key)).await);
        assert_eq!(behind.len(), keys.len() - at - 1, "behind {key:?}");
    }
    Verdict::Kept
}

async fn s13_sessions_are_listed_page_by_page(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let count = MAX_PAGE + 3;
    let open_all =
        |turn: super::Turn| (0..count).fold(turn, |turn, number| turn.open(&format!("{number:05}")));
    desk.begin("a", open_all).await;
    let first = ok(desk.store.sessions(None).await);
    assert_eq!(first.len(), MAX_PAGE);
    let second = ok(desk.store.sessions(first.last().map(|session| &session.key)).await);
    assert_eq!(second.len(), 3);
    let keys: BTreeSet<_> = first.into_iter().chain(second).map(|session| session.key).collect();
    assert_eq!(keys.len(), count, "each is on one page");
    Verdict::Kept
}

async fn s13_a_session_counts_what_waits_and_what_runs(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    for id in 1..=3 {
        desk.queue("S", id).await;
    }
    let running = desk.fetched("A").await;
    assert_eq!(desk.shared("S").await.queued, 3, "one runs, two wait");
    desk.finish(&running).await;
    assert_eq!(desk.shared("S").await.queued, 2);
    Verdict::Kept
}

async fn s13_a_session_that_never_was_is_not_shown(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    assert_eq!(desk.find(&SessionKey::shared("T")).await, None);
    assert_eq!(desk.find(&SessionKey::owned("i", "S")).await, None, "S is shared");
    Verdict::Kept
}

async fn s13_a_listing_says_the_same_as_a_look_at_one(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.asked(leasing("A", LEASE, LEASE / 2)).await;
    desk.attach("B", "T").await;
    bench.advance(LEASE / 2);
    for session in ok(desk.store.sessions(None).await) {
        assert_eq!(desk.show(&session.key).await, session);
    }
    Verdict::Kept
}

async fn s13_a_session_of_an_instance_shows_its_options(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("x").open_with("y", Some(LEASE), Some(SessionConcurrency::Serial)))
        .await;
    let (plain, other) = (SessionKey::owned("a", "x"), SessionKey::owned("a", "y"));
    let plain = desk.show(&plain).await;
    assert_eq!((plain.idle_timeout_ms, plain.concurrency), (None, SessionConcurrency::Unbounded));
    let other = desk.show(&other).await;
    assert_eq!(other.idle_timeout_ms, Some(LEASE.as_millis() as u64));
    assert_eq!(other.concurrency, SessionConcurrency::Serial);
    Verdict::Kept
}
