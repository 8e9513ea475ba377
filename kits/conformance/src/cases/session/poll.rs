//! Waiting fetches: a session that comes free, or work of a session, ends the wait.

use std::time::Duration;

use steadfast_core::SessionKey;
use steadfast_store::{SessionScope, WorkRequest};

use super::{attachment, desk, id_of, leasing, request};
use crate::Verdict;
use crate::bench::{Bench, LEASE, TICK};
use crate::case::{cases, need};

cases![
    s13_the_end_of_a_session_lease_wakes_a_waiting_fetch,
    s13_a_release_wakes_a_waiting_fetch,
    s13_new_work_of_a_held_session_wakes_its_owner,
    s13_new_work_of_a_session_goes_past_those_who_may_not_have_it,
    s13_a_waiting_fetch_gives_up_at_its_time,
    s13_a_fetch_that_is_dropped_claims_nothing,
];

/// How long fetches of these cases wait.
const WAIT: Duration = Duration::from_secs(600);

fn waiting(owner: &str) -> WorkRequest {
    WorkRequest { poll_timeout: WAIT, ..request(owner) }
}

async fn s13_the_end_of_a_session_lease_wakes_a_waiting_fetch(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.queue("S", 2).await;
    desk.asked(leasing("A", 2 * WAIT, LEASE)).await;
    let time = async {
        bench.parked(1).await;
        bench.advance(LEASE);
    };
    let (woken, ()) = tokio::join!(desk.ask(waiting("B")), time);
    assert_eq!(woken.map(|lease| id_of(&lease.item)), Some(2), "A's lease is over");
    Verdict::Kept
}

async fn s13_a_release_wakes_a_waiting_fetch(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let held = desk.attach("A", "S").await;
    desk.queue("S", 2).await;
    let releasing = async {
        bench.parked(1).await;
        desk.release("A", &[held]).await
    };
    let (woken, _) = tokio::join!(desk.ask(waiting("B")), releasing);
    assert_eq!(woken.map(|lease| id_of(&lease.item)), Some(2), "no time had to pass");
    Verdict::Kept
}

async fn s13_new_work_of_a_held_session_wakes_its_owner(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    let mut full = waiting("A");
    if let Some(asked) = &mut full.session {
        asked.scope = SessionScope::Only(vec![SessionKey::shared("S")]);
    }
    let queueing = async {
        bench.parked(1).await;
        desk.queue("S", 2).await;
    };
    let (woken, ()) = tokio::join!(desk.ask(full), queueing);
    assert_eq!(woken.map(|lease| id_of(&lease.item)), Some(2));
    Verdict::Kept
}

async fn s13_new_work_of_a_session_goes_past_those_who_may_not_have_it(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    let mut other = std::pin::pin!(desk.ask(WorkRequest { poll_timeout: TICK, ..request("B") }));
    let owner = async {
        let queueing = async {
            bench.parked(2).await;
            desk.queue("S", 2).await;
        };
        tokio::join!(desk.ask(waiting("A")), queueing).0
    };
    tokio::select! {
        biased;
        _ = &mut other => panic!("the session is A's"),
        woken = owner => assert_eq!(woken.map(|lease| id_of(&lease.item)), Some(2)),
    }
    bench.advance(TICK);
    assert!(other.await.is_none(), "the session is A's");
    Verdict::Kept
}

async fn s13_a_waiting_fetch_gives_up_at_its_time(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.asked(leasing("A", 2 * WAIT, 2 * WAIT)).await;
    desk.queue("S", 2).await;
    let time = async {
        bench.parked(1).await;
        bench.advance(WAIT);
    };
    let (woken, ()) = tokio::join!(desk.ask(waiting("B")), time);
    assert!(woken.is_none(), "the session was A's all the time");
    Verdict::Kept
}

async fn s13_a_fetch_that_is_dropped_claims_nothing(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let held = desk.attach("A", "S").await;
    desk.queue("S", 2).await;
    tokio::select! {
        biased;
        _ = desk.ask(waiting("B")) => panic!("the session is A's"),
        () = bench.parked(1) => {}
    }
    desk.release("A", std::slice::from_ref(&held)).await;
    let lease = desk.fetched("C").await;
    assert_eq!(lease.attempt, 1, "the fetch that went away counted nothing");
    assert!(attachment(&lease).epoch > held.epoch);
    Verdict::Kept
}
