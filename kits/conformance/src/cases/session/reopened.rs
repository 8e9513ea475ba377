//! Sessions that an instance closes and opens again while the lease of their owner lasts: other processes
//! wait until that owner has detached the session, or its lease has ended (S13, A9, G41).

use std::time::Duration;

use steadfast_core::SessionKey;
use steadfast_store::{Claim, Owner, RenewSessions, SessionRef, SessionScope, WorkRequest};

use super::{Desk, attachment, owning, renewal, request};
use crate::Verdict;
use crate::bench::{Bench, LEASE, TICK, ok, start_node};
use crate::case::{cases, need};

cases![
    s13_a_reopened_session_waits_until_its_former_owner_has_detached_it,
    s13_a_reopened_session_waits_until_the_lease_of_its_former_owner_has_ended,
    s13_a_renewal_does_not_extend_the_lease_of_a_closed_session,
    s13_the_former_owner_claims_a_reopened_session_at_once,
    s13_a_claim_of_its_former_owner_ends_the_wait_for_the_closed_claim,
    s13_a_full_former_owner_is_not_given_a_reopened_session,
    s13_a_new_start_of_the_former_owners_node_claims_a_reopened_session_at_once,
    s13_a_reopened_session_does_not_wait_for_an_owner_whose_lease_has_ended,
    s13_only_the_closed_claim_is_waited_for,
    s13_closing_a_reopened_session_forgets_no_former_owner,
    s13_a_session_of_a_deleted_instance_waits_for_its_former_owner_too,
    s13_the_lease_of_a_closed_session_wakes_a_waiting_fetch_when_it_ends,
    s13_a_former_owner_that_has_detached_wakes_a_waiting_fetch,
    s13_clean_up_keeps_the_lease_of_a_closed_session,
];

/// How long fetches of these cases wait.
const WAIT: Duration = Duration::from_secs(600);

fn waiting(owner: &str) -> WorkRequest {
    WorkRequest { poll_timeout: WAIT, ..request(owner) }
}

fn x() -> SessionKey {
    SessionKey::owned("a", "X")
}

/// Lets the owner claim session X of the instance `a`, closes it, and opens it again with an activity that
/// waits. Returns the claim that was closed.
async fn reopened(desk: &Desk<'_>, owner: &str) -> SessionRef {
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    let closed = attachment(&desk.fetched(owner).await);
    reopen(desk).await;
    closed
}

async fn reopen(desk: &Desk<'_>) {
    desk.turn("a", |turn| turn.close("X")).await;
    desk.turn("a", |turn| turn.open("X").work("X")).await;
}

async fn s13_a_reopened_session_waits_until_its_former_owner_has_detached_it(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let closed = reopened(&desk, "A").await;
    assert!(desk.fetch("B").await.is_none(), "A may not know of the close");
    let shown = desk.show(&x()).await;
    assert_eq!((shown.owner, shown.epoch, shown.locked_until_ms, shown.queued), (None, 0, 0, 1));
    let told = desk.renew(RenewSessions { held: vec![closed.clone()], ..renewal("A") }).await;
    assert_eq!((told.lost, told.renewed.len()), (vec![closed.clone()], 0));
    assert_eq!(
        desk.release("A", std::slice::from_ref(&closed)).await,
        [],
        "it was closed, and so is not released"
    );
    let lease = desk.fetched("B").await;
    assert!(attachment(&lease).epoch > closed.epoch);
    assert_eq!(lease.session.map(|session| session.claim), Some(Claim::New), "nobody owned it since");
    Verdict::Kept
}

async fn s13_a_reopened_session_waits_until_the_lease_of_its_former_owner_has_ended(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let closed = reopened(&desk, "A").await;
    bench.advance(LEASE - TICK);
    assert!(desk.fetch("B").await.is_none(), "the lease lasts");
    bench.advance(TICK);
    let lease = desk.fetched("B").await;
    assert!(attachment(&lease).epoch > closed.epoch);
    assert_eq!(lease.session.map(|session| session.claim), Some(Claim::New));
    Verdict::Kept
}

async fn s13_a_renewal_does_not_extend_the_lease_of_a_closed_session(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    reopened(&desk, "A").await;
    bench.advance(LEASE - TICK);
    desk.renew(renewal("A")).await;
    bench.advance(TICK);
    assert_eq!(attachment(&desk.fetched("B").await).key, x());
    Verdict::Kept
}

async fn s13_the_former_owner_claims_a_reopened_session_at_once(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let closed = reopened(&desk, "A").await;
    let lease = desk.fetched("A").await;
    let claimed = attachment(&lease);
    assert!(claimed.epoch > closed.epoch, "a reopened session has an attachment of its own");
    assert_eq!(lease.session.as_ref().map(|session| &session.claim), Some(&Claim::New));
    assert_eq!(desk.release("A", &[closed]).await, [], "which the detach of the former one leaves alone");
    assert_eq!(desk.renew(renewal("A")).await.renewed, [claimed]);
    Verdict::Kept
}

async fn s13_a_claim_of_its_former_owner_ends_the_wait_for_the_closed_claim(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    reopened(&desk, "A").await;
    let claimed = attachment(&desk.fetched("A").await);
    desk.turn("a", |turn| turn.work("X")).await;
    assert!(desk.fetch("B").await.is_none(), "A holds it");
    assert_eq!(desk.release("A", std::slice::from_ref(&claimed)).await, [claimed]);
    let lease = desk.fetched("B").await;
    let taken = Claim::Taken { from: "A".to_owned() };
    assert_eq!(lease.session.map(|session| session.claim), Some(taken), "its claim is the only one left");
    Verdict::Kept
}

async fn s13_a_full_former_owner_is_not_given_a_reopened_session(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    reopened(&desk, "A").await;
    let mut full = request("A");
    if let Some(session) = &mut full.session {
        session.scope = SessionScope::Only(vec![x()]);
    }
    assert!(ok(desk.store.fetch_work(full).await).is_none(), "it would be a claim");
    Verdict::Kept
}

async fn s13_a_new_start_of_the_former_owners_node_claims_a_reopened_session_at_once(
    bench: Bench,
) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let first = ok(start_node(desk.store, "n").await);
    let started = |incarnation: u64| {
        let mut request = request("n");
        if let Some(session) = &mut request.session {
            session.owner = Owner { id: "n".to_owned(), incarnation: Some(incarnation) };
        }
        request
    };
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    let closed = attachment(&desk.asked(started(first)).await);
    reopen(&desk).await;
    let second = ok(start_node(desk.store, "n").await);
    assert!(desk.fetch("B").await.is_none(), "another node waits");
    let lease = desk.asked(started(second)).await;
    assert!(attachment(&lease).epoch > closed.epoch);
    Verdict::Kept
}

async fn s13_a_reopened_session_does_not_wait_for_an_owner_whose_lease_has_ended(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    desk.fetched("A").await;
    bench.advance(LEASE);
    reopen(&desk).await;
    assert_eq!(attachment(&desk.fetched("B").await).key, x());
    Verdict::Kept
}

async fn s13_only_the_closed_claim_is_waited_for(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let closed = reopened(&desk, "A").await;
    let older = SessionRef { epoch: closed.epoch - 1, ..closed.clone() };
    desk.release("A", &[older]).await;
    desk.release("B", std::slice::from_ref(&closed)).await;
    assert!(desk.fetch("B").await.is_none(), "neither another epoch nor another owner ends the wait");
    Verdict::Kept
}

async fn s13_closing_a_reopened_session_forgets_no_former_owner(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let closed = reopened(&desk, "A").await;
    reopen(&desk).await;
    assert!(desk.fetch("B").await.is_none(), "A was the last to claim it");
    desk.release("A", &[closed]).await;
    assert_eq!(attachment(&desk.fetched("B").await).key, x());
    Verdict::Kept
}

async fn s13_a_session_of_a_deleted_instance_waits_for_its_former_owner_too(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let admin = need!(bench.admin(), "ProviderAdmin");
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    let closed = attachment(&desk.fetched("A").await);
    ok(admin.delete_instance("a", true).await);
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    assert!(desk.fetch("B").await.is_none(), "an instance of the same id has a session of the same key");
    desk.release("A", &[closed]).await;
    assert_eq!(attachment(&desk.fetched("B").await).key, x());
    Verdict::Kept
}

async fn s13_the_lease_of_a_closed_session_wakes_a_waiting_fetch_when_it_ends(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    reopened(&desk, "A").await;
    let time = async {
        bench.parked(1).await;
        bench.advance(LEASE);
    };
    let (woken, ()) = tokio::join!(desk.ask(waiting("B")), time);
    assert_eq!(woken.map(|lease| attachment(&lease).key), Some(x()));
    Verdict::Kept
}

async fn s13_a_former_owner_that_has_detached_wakes_a_waiting_fetch(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let closed = reopened(&desk, "A").await;
    let detach = async {
        bench.parked(1).await;
        desk.release("A", &[closed]).await
    };
    let (woken, _) = tokio::join!(desk.ask(waiting("B")), detach);
    assert_eq!(woken.map(|lease| attachment(&lease).key), Some(x()), "no time had to pass");
    Verdict::Kept
}

async fn s13_clean_up_keeps_the_lease_of_a_closed_session(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").work("X")).await;
    desk.fetched("A").await;
    desk.turn("a", |turn| turn.close("X")).await;
    ok(desk.store.cleanup_sessions().await);
    desk.turn("a", |turn| turn.open("X").work("X")).await;
    ok(desk.store.cleanup_sessions().await);
    assert!(desk.fetch("B").await.is_none(), "its owner is still waited for");
    bench.advance(LEASE);
    ok(desk.store.cleanup_sessions().await);
    assert_eq!(attachment(&desk.fetched("B").await).key, x());
    Verdict::Kept
}
