//! Routes and sessions: a session moves on from an owner that is not given its work.

use steadfast_core::{SessionKey, TagFilter};
use steadfast_store::{Appetite, Owner, RenewSessions, SessionsRenewed, WorkLease, WorkerId, WorkerReport};

use super::{Fleet, capable, counting, eager, fleet, the_activity, worker};
use crate::Verdict;
use crate::bench::{Bench, LEASE, TICK, activity_with, ok};
use crate::case::{cases, need};

cases![
    s21_a_session_moves_on_from_an_owner_that_lacks_the_handler_of_its_work,
    s21_a_session_stays_with_an_owner_that_lists_the_handler,
    s21_a_session_stays_with_an_owner_that_does_not_say_which_worker_it_is,
    s21_routed_work_of_a_session_goes_to_the_next_owner,
    s21_routed_work_makes_no_worker_claim_its_session,
];

/// After how long work is untaken.
const PATIENCE: std::time::Duration = LEASE;

fn renewal(id: &str) -> RenewSessions {
    RenewSessions {
        owner: Owner::unnamed(id),
        extend_for: LEASE * 10,
        idle_timeout: LEASE * 100,
        untaken_after: PATIENCE,
        tags: TagFilter::Any,
        appetite: Appetite::Hungry,
        worker: Some(WorkerId(id.to_owned())),
        held: Vec::new(),
    }
}

async fn renew(fleet: &Fleet<'_>, request: RenewSessions) -> (usize, usize) {
    let SessionsRenewed { renewed, untaken, .. } = ok(fleet.store.renew_sessions(request).await);
    (renewed.len(), untaken.len())
}

/// Makes a worker own a session, and leases it the activity of that session.
async fn owned(fleet: &Fleet<'_>, id: &str) -> WorkLease {
    fleet.queue(activity_with("i", 2, Some("S"), None), Some(SessionKey::shared("S"))).await;
    let lease = fleet.worked(id).await;
    assert_eq!(renew(fleet, renewal(id)).await, (1, 0), "it owns the session");
    lease
}

async fn s21_a_session_moves_on_from_an_owner_that_lacks_the_handler_of_its_work(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    for report in [eager("old"), worker("older")] {
        let id = report.id.0.clone();
        fleet.report(capable("new")).await;
        fleet.report(report).await;
        let lease = owned(&fleet, &id).await;
        fleet.refuse(&lease.token, counting(the_activity())).await;
        bench.advance(PATIENCE);
        assert_eq!(renew(&fleet, renewal(&id)).await, (1, 0), "it has waited no longer than it may");
        bench.advance(TICK);
        assert_eq!(renew(&fleet, renewal(&id)).await, (0, 1), "the owner is not given the work");
        let lease = fleet.worked("new").await;
        ok(fleet.store.finish_work(&lease.token, steadfast_store::Outcome::default()).await);
        let session = lease.session.expect("the work is of a session");
        let claim = steadfast_store::SessionRef { key: session.key, epoch: session.epoch };
        ok(fleet.store.release_sessions(&Owner::unnamed("new"), &[claim]).await);
    }
    Verdict::Kept
}

async fn s21_a_session_stays_with_an_owner_that_lists_the_handler(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(worker("owner")).await;
    let lease = owned(&fleet, "owner").await;
    fleet.refuse(&lease.token, counting(the_activity())).await;
    fleet.report(capable("owner")).await;
    bench.advance(PATIENCE + TICK);
    assert_eq!(renew(&fleet, renewal("owner")).await, (1, 0), "it will take the work");
    Verdict::Kept
}

async fn s21_a_session_stays_with_an_owner_that_does_not_say_which_worker_it_is(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(worker("old")).await;
    let lease = owned(&fleet, "old").await;
    fleet.refuse(&lease.token, counting(the_activity())).await;
    bench.advance(PATIENCE + TICK);
    let unnamed = RenewSessions { worker: None, ..renewal("old") };
    assert_eq!(renew(&fleet, unnamed).await, (1, 0), "it accepts all");
    Verdict::Kept
}

async fn s21_routed_work_of_a_session_goes_to_the_next_owner(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(WorkerReport { tags: TagFilter::Any, ..capable("new") }).await;
    fleet.report(worker("old")).await;
    let lease = owned(&fleet, "old").await;
    let first = lease.session.as_ref().map(|session| session.epoch);
    fleet.refuse(&lease.token, counting(the_activity())).await;
    assert!(fleet.work("new").await.is_none(), "the session has an owner");
    assert!(fleet.work("old").await.is_none(), "the owner lacks the handler");
    bench.advance(PATIENCE + TICK);
    renew(&fleet, renewal("old")).await;
    let lease = fleet.worked("new").await;
    assert_eq!(lease.attempt, 1, "the refusal did not count");
    assert!(lease.session.map(|session| session.epoch) > first, "it is a claim of its own");
    Verdict::Kept
}

async fn s21_routed_work_makes_no_worker_claim_its_session(bench: Bench) -> Verdict {
    let fleet = need!(fleet(&bench), "Store");
    fleet.report(capable("new")).await;
    fleet.report(worker("old")).await;
    let lease = owned(&fleet, "old").await;
    let claim = lease.session.as_ref().expect("the work is of a session");
    fleet.refuse(&lease.token, counting(the_activity())).await;
    let held = steadfast_store::SessionRef { key: claim.key.clone(), epoch: claim.epoch };
    ok(fleet.store.release_sessions(&Owner::unnamed("old"), &[held]).await);
    fleet.report(worker("other")).await;
    assert!(fleet.work("other").await.is_none(), "it lacks the handler");
    let info = ok(fleet.store.session(&claim.key).await).expect("the session has work");
    assert_eq!(info.epoch, claim.epoch, "no worker has claimed it since");
    assert!(fleet.work("new").await.is_some(), "it can be claimed by one that has the handler");
    Verdict::Kept
}
