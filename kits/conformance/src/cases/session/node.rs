//! Nodes and their incarnations: the newest start of a name is the node (A13).

use std::time::Duration;

use steadfast_store::{Claim, NodeRegistration, NodeStart, Owner, ProviderError, RenewSessions};

use super::{Desk, attachment, desk, renewal, request_as};
use crate::Verdict;
use crate::bench::{Bench, LEASE, TICK, lost, ok, start_node};
use crate::case::{cases, need};

cases![
    s13_each_start_of_a_node_has_a_higher_number,
    s13_a_start_that_is_registered_again_keeps_its_number_and_fences_nobody,
    s13_a_registration_that_comes_late_takes_no_node_from_a_newer_start,
    s13_a_start_that_was_replaced_gets_no_new_number_by_a_late_call,
    s13_a_registration_is_told_of_the_start_that_it_did_not_know,
    s13_ids_of_starts_belong_to_their_node,
    s13_an_older_incarnation_is_given_nothing,
    s13_an_older_incarnation_renews_nothing,
    s13_an_older_incarnation_releases_nothing,
    s13_an_older_incarnation_is_told_of_both_numbers,
    s13_a_new_incarnation_takes_its_sessions_at_once,
    s13_a_new_incarnation_does_not_renew_what_it_has_not_claimed,
    s13_a_node_that_is_replaced_keeps_its_lease_from_others,
    s13_nodes_do_not_fence_each_other,
    s13_the_work_of_an_older_incarnation_may_finish,
    s13_compatible_methods_are_judged_by_owner_id,
    s13_a_waiting_fetch_of_an_older_incarnation_is_given_nothing,
];

async fn start(desk: &Desk<'_>, node: &str) -> Owner {
    let incarnation = Some(ok(start_node(desk.store, node).await));
    Owner { id: node.to_owned(), incarnation }
}

/// Makes a node hold S, with nothing running.
async fn attach(desk: &Desk<'_>, owner: &Owner) -> steadfast_store::SessionRef {
    desk.queue("S", 1).await;
    let lease = desk.asked(request_as(owner.clone())).await;
    desk.finish(&lease).await;
    attachment(&lease)
}

async fn s13_each_start_of_a_node_has_a_higher_number(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let mut last = ok(start_node(desk.store, "n").await);
    for _ in 0..5 {
        ok(start_node(desk.store, "m").await);
        let next = ok(start_node(desk.store, "n").await);
        assert!(next > last, "{next} follows {last}");
        last = next;
    }
    Verdict::Kept
}

const SECOND: Duration = Duration::from_secs(1);

/// Registers a start once, without following the answer.
async fn register(desk: &Desk<'_>, start: &NodeStart) -> NodeRegistration {
    ok(desk.store.register_node(start).await)
}

async fn s13_a_start_that_is_registered_again_keeps_its_number_and_fences_nobody(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let first = NodeStart::new("n", "first");
    let NodeRegistration::Registered(number) = register(&desk, &first).await else { panic!("a new node") };
    let owner = Owner { id: "n".to_owned(), incarnation: Some(number) };
    let held = attach(&desk, &owner).await;
    for replaces in [None, Some(number), Some(number + 1)] {
        let again = NodeStart { replaces, ..first.clone() };
        assert_eq!(register(&desk, &again).await, NodeRegistration::Registered(number), "{replaces:?}");
    }
    let request = RenewSessions { owner, ..renewal("n") };
    assert_eq!(desk.renew(request).await.renewed, [held], "its own calls fence it not");
    Verdict::Kept
}

async fn s13_a_registration_that_comes_late_takes_no_node_from_a_newer_start(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let seen = start(&desk, "n").await.incarnation;
    let newer = start(&desk, "n").await;
    // Both calls were sent before the newer process started.
    for replaces in [None, seen] {
        let late = NodeStart { replaces, ..NodeStart::new("n", "late") };
        let answer = register(&desk, &late).await;
        assert!(matches!(answer, NodeRegistration::Taken { .. }), "{replaces:?}: {answer:?}");
    }
    let held = attach(&desk, &newer).await;
    let request = RenewSessions { owner: newer, ..renewal("n") };
    assert_eq!(desk.renew(request).await.renewed, [held]);
    Verdict::Kept
}

async fn s13_a_start_that_was_replaced_gets_no_new_number_by_a_late_call(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let first = NodeStart::new("n", "first");
    register(&desk, &first).await;
    let newer = start(&desk, "n").await;
    let taken = NodeRegistration::Taken { incarnation: newer.incarnation.unwrap_or(0), is_younger: false };
    assert_eq!(register(&desk, &first).await, taken);
    attach(&desk, &newer).await;
    Verdict::Kept
}

async fn s13_a_registration_is_told_of_the_start_that_it_did_not_know(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let aged = |id: &str, seconds| NodeStart { age: seconds * SECOND, ..NodeStart::new("n", id) };
    let first = register(&desk, &aged("first", 10)).await;
    let NodeRegistration::Registered(number) = first else { panic!("a new node") };
    bench.advance(5 * SECOND);
    // By the store's clock the first one started 15 s ago.
    for (age, is_younger) in [(0, false), (14, false), (16, true), (1_000_000_000, true)] {
        let taken = NodeRegistration::Taken { incarnation: number, is_younger };
        assert_eq!(register(&desk, &aged("second", age)).await, taken, "started {age} s ago");
    }
    let second = NodeStart { replaces: Some(number), ..aged("second", 0) };
    let answer = register(&desk, &second).await;
    let is_newer = |next: u64| next > number;
    assert!(matches!(answer, NodeRegistration::Registered(next) if is_newer(next)), "{answer:?}");
    Verdict::Kept
}

async fn s13_ids_of_starts_belong_to_their_node(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let numbers =
        [register(&desk, &NodeStart::new("n", "x")).await, register(&desk, &NodeStart::new("m", "x")).await];
    assert_ne!(numbers[0], numbers[1]);
    // A start without an id is never taken for another one without an id.
    let nameless = NodeStart::new("k", "");
    assert!(matches!(register(&desk, &nameless).await, NodeRegistration::Registered(_)));
    assert!(matches!(register(&desk, &nameless).await, NodeRegistration::Taken { .. }));
    Verdict::Kept
}

async fn s13_an_older_incarnation_is_given_nothing(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let old = start(&desk, "n").await;
    attach(&desk, &old).await;
    let new = start(&desk, "n").await;
    desk.queue("S", 2).await;
    replaced(desk.store.fetch_work(request_as(old)).await);
    assert_eq!(desk.asked(request_as(new)).await.attempt, 1, "it counted no attempt either");
    Verdict::Kept
}

async fn s13_an_older_incarnation_renews_nothing(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let old = start(&desk, "n").await;
    attach(&desk, &old).await;
    start(&desk, "n").await;
    let before = desk.shared("S").await;
    bench.advance(TICK);
    replaced(desk.store.renew_sessions(RenewSessions { owner: old, ..renewal("n") }).await);
    assert_eq!(desk.shared("S").await, before);
    Verdict::Kept
}

async fn s13_an_older_incarnation_releases_nothing(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let old = start(&desk, "n").await;
    let held = attach(&desk, &old).await;
    start(&desk, "n").await;
    let before = desk.shared("S").await;
    replaced(desk.store.release_sessions(&old, &[held]).await);
    assert_eq!(desk.shared("S").await, before);
    Verdict::Kept
}

async fn s13_an_older_incarnation_is_told_of_both_numbers(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let (old, new) = (start(&desk, "n").await, start(&desk, "n").await);
    let error = replaced(desk.store.fetch_work(request_as(old.clone())).await);
    for owner in [&old, &new] {
        let number = owner.incarnation.unwrap_or_default().to_string();
        assert!(error.message.contains(&number), "the text should name {number}: {error}");
    }
    assert!(error.message.contains("'n'"), "the text should name the node: {error}");
    Verdict::Kept
}

async fn s13_a_new_incarnation_takes_its_sessions_at_once(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let old = start(&desk, "n").await;
    let held = attach(&desk, &old).await;
    let new = start(&desk, "n").await;
    desk.queue("S", 2).await;
    let lease = desk.asked(request_as(new.clone())).await;
    assert!(attachment(&lease).epoch > held.epoch, "another process, another attachment");
    assert_eq!(lease.session.map(|session| session.claim), Some(Claim::Taken { from: "n".to_owned() }));
    assert_eq!(desk.shared("S").await.owner, Some(new));
    Verdict::Kept
}

async fn s13_a_new_incarnation_does_not_renew_what_it_has_not_claimed(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let old = start(&desk, "n").await;
    let held = attach(&desk, &old).await;
    let new = start(&desk, "n").await;
    let before = desk.shared("S").await;
    bench.advance(TICK);
    let request = RenewSessions { owner: new, held: vec![held.clone()], ..renewal("n") };
    let outcome = desk.renew(request).await;
    assert_eq!((outcome.renewed, outcome.lost), (vec![], vec![held]), "the attachment is the old one's");
    assert_eq!(desk.shared("S").await, before);
    Verdict::Kept
}

async fn s13_a_node_that_is_replaced_keeps_its_lease_from_others(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let old = start(&desk, "n").await;
    attach(&desk, &old).await;
    start(&desk, "n").await;
    desk.queue("S", 2).await;
    assert!(desk.fetch("B").await.is_none(), "the lease is the node's, whichever start of it holds it");
    bench.advance(LEASE);
    assert!(desk.fetch("B").await.is_some());
    Verdict::Kept
}

async fn s13_nodes_do_not_fence_each_other(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let one = start(&desk, "n").await;
    start(&desk, "m").await;
    let held = attach(&desk, &one).await;
    let request = RenewSessions { owner: one.clone(), ..renewal("n") };
    assert_eq!(desk.renew(request).await.renewed, std::slice::from_ref(&held));
    assert_eq!(ok(desk.store.release_sessions(&one, std::slice::from_ref(&held)).await), [held]);
    Verdict::Kept
}

async fn s13_the_work_of_an_older_incarnation_may_finish(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let old = start(&desk, "n").await;
    desk.queue("S", 1).await;
    let running = desk.asked(request_as(old)).await;
    start(&desk, "n").await;
    ok(desk.store.renew(&running.token, LEASE).await);
    desk.finish(&running).await;
    Verdict::Kept
}

async fn s13_compatible_methods_are_judged_by_owner_id(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let old = start(&desk, "n").await;
    let held = attach(&desk, &old).await;
    start(&desk, "n").await;
    let renewed = bench.provider().renew_session_lock(&["n"], LEASE, super::IDLE).await;
    assert_eq!(ok(renewed), 1, "the owner id is the node's");
    desk.queue("S", 2).await;
    assert!(bench.fetch_work_for("n").await.is_some(), "and so is the session");
    assert_eq!(desk.shared("S").await.epoch, held.epoch);
    Verdict::Kept
}

async fn s13_a_waiting_fetch_of_an_older_incarnation_is_given_nothing(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let old = start(&desk, "n").await;
    let request = steadfast_store::WorkRequest { poll_timeout: LEASE, ..request_as(old) };
    let restart = async {
        bench.parked(1).await;
        start(&desk, "n").await;
        desk.queue("S", 1).await;
    };
    let (waited, ()) = tokio::join!(desk.store.fetch_work(request), restart);
    replaced(waited);
    assert_eq!(desk.fetched("B").await.attempt, 1);
    Verdict::Kept
}

/// Requires the answer to a process that another one has replaced.
fn replaced<T: std::fmt::Debug>(result: Result<T, ProviderError>) -> ProviderError {
    let error = result.as_ref().err().cloned();
    lost(result);
    error.expect("a lost lease is an error")
}
