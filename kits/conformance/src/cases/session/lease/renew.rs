//! Renewing leases: what is extended, what is idle, what is lost (D17).

use std::time::Duration;

use steadfast_core::SessionKey;
use steadfast_store::{RenewSessions, SessionRef, SessionsRenewed};

use crate::Verdict;
use crate::bench::{Bench, LEASE, TICK, ok};
use crate::case::{cases, need};
use crate::cases::session::{IDLE, desk, leasing, renewal};

cases![
    s13_a_renewal_extends_every_session_of_the_owner,
    s13_a_renewal_leaves_others_alone,
    s13_a_renewal_never_revives,
    s13_a_renewal_of_nothing_says_nothing,
    s13_an_idle_session_is_not_extended,
    s13_idleness_begins_at_the_timeout,
    s13_a_running_activity_keeps_its_session,
    s13_a_running_activity_of_a_former_attachment_keeps_the_session,
    s13_an_activity_that_was_left_does_not_keep_its_session,
    s13_work_that_waits_does_not_keep_its_session,
    s13_each_owner_judges_idleness_for_itself,
    s13_what_somebody_else_took_is_lost,
    s13_an_epoch_that_has_passed_is_lost_beside_the_new_one,
    s13_a_renewal_answers_in_the_order_of_keys,
    s13_a_session_that_is_renewed_stays_for_ever,
];

/// Longer than any idle timeout.
const HOUR: Duration = Duration::from_secs(3_600);

async fn s13_a_renewal_extends_every_session_of_the_owner(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let held = vec![desk.attach("A", "S").await, desk.attach("A", "T").await];
    bench.advance(LEASE - TICK);
    let outcome = desk.renew(RenewSessions { held: held.clone(), ..renewal("A") }).await;
    assert_eq!(outcome, SessionsRenewed { renewed: held.clone(), ..SessionsRenewed::default() });
    for session in ["S", "T"] {
        assert_eq!(desk.shared(session).await.locked_until_ms, bench.now_ms() + LEASE.as_millis() as u64);
    }
    bench.advance(LEASE - TICK);
    desk.queue("S", 2).await;
    assert!(desk.fetch("B").await.is_none(), "the session is still A's");
    assert_eq!(
        crate::cases::session::attachment(&desk.fetched("A").await),
        held[0],
        "renewing keeps the epoch"
    );
    Verdict::Kept
}

async fn s13_a_renewal_leaves_others_alone(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    desk.attach("B", "T").await;
    let before = desk.shared("T").await;
    bench.advance(TICK);
    let outcome = desk.renew(renewal("A")).await;
    assert_eq!(outcome.renewed.len(), 1);
    assert_eq!(desk.shared("T").await, before);
    Verdict::Kept
}

async fn s13_a_renewal_never_revives(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let held = desk.attach("A", "S").await;
    bench.advance(LEASE);
    let outcome = desk.renew(RenewSessions { held: vec![held.clone()], ..renewal("A") }).await;
    assert_eq!(outcome, SessionsRenewed { lost: vec![held], ..SessionsRenewed::default() });
    desk.queue("S", 2).await;
    assert!(desk.fetch("B").await.is_some(), "an expired lease stays expired");
    Verdict::Kept
}

async fn s13_a_renewal_of_nothing_says_nothing(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    assert_eq!(desk.renew(renewal("A")).await, SessionsRenewed::default());
    let never = SessionRef { key: SessionKey::shared("never"), epoch: 7 };
    let outcome = desk.renew(RenewSessions { held: vec![never.clone()], ..renewal("A") }).await;
    assert_eq!(outcome, SessionsRenewed { lost: vec![never], ..SessionsRenewed::default() });
    Verdict::Kept
}

async fn s13_an_idle_session_is_not_extended(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let lease = desk.asked(leasing("A", LEASE, HOUR)).await;
    desk.finish(&lease).await;
    let before = desk.shared("S").await;
    bench.advance(IDLE + TICK);
    let held = vec![crate::cases::session::attachment(&lease)];
    let outcome = desk.renew(RenewSessions { held: held.clone(), ..renewal("A") }).await;
    assert_eq!(outcome, SessionsRenewed { idle: held, ..SessionsRenewed::default() });
    assert_eq!(desk.shared("S").await, before, "its lease runs on to its end");
    Verdict::Kept
}

async fn s13_idleness_begins_at_the_timeout(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let lease = desk.asked(leasing("A", LEASE, HOUR)).await;
    desk.finish(&lease).await;
    bench.advance(IDLE - TICK);
    let hour = || RenewSessions { extend_for: HOUR, ..renewal("A") };
    assert_eq!(desk.renew(hour()).await.renewed.len(), 1, "a moment before the timeout");
    bench.advance(TICK);
    assert_eq!(desk.renew(hour()).await.idle.len(), 1, "at the timeout");
    Verdict::Kept
}

async fn s13_a_running_activity_keeps_its_session(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.asked(leasing("A", HOUR, HOUR)).await;
    bench.advance(2 * IDLE);
    let outcome = desk.renew(renewal("A")).await;
    assert_eq!((outcome.renewed.len(), outcome.idle.len()), (1, 0), "an activity of it has a live lock");
    Verdict::Kept
}

async fn s13_a_running_activity_of_a_former_attachment_keeps_the_session(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.queue("S", 2).await;
    desk.asked(leasing("A", HOUR, TICK)).await;
    bench.advance(TICK);
    let second = desk.asked(leasing("B", LEASE, HOUR)).await;
    desk.finish(&second).await;
    bench.advance(2 * IDLE);
    let outcome = desk.renew(renewal("B")).await;
    assert_eq!((outcome.renewed.len(), outcome.idle.len()), (1, 0), "an item of it has a live lock, at A");
    Verdict::Kept
}

async fn s13_an_activity_that_was_left_does_not_keep_its_session(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.asked(leasing("A", LEASE, HOUR)).await;
    bench.advance(2 * IDLE);
    let outcome = desk.renew(renewal("A")).await;
    assert_eq!((outcome.renewed.len(), outcome.idle.len()), (0, 1), "its lock is over");
    Verdict::Kept
}

async fn s13_work_that_waits_does_not_keep_its_session(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let lease = desk.asked(leasing("A", LEASE, HOUR)).await;
    desk.finish(&lease).await;
    bench.advance(2 * IDLE);
    desk.queue("S", 2).await;
    let outcome = desk.renew(renewal("A")).await;
    assert_eq!((outcome.renewed.len(), outcome.idle.len()), (0, 1), "only running work counts");
    Verdict::Kept
}

async fn s13_each_owner_judges_idleness_for_itself(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    for (id, (owner, session)) in (1..).zip([("A", "S"), ("B", "T")]) {
        desk.queue(session, id).await;
        let lease = desk.asked(leasing(owner, LEASE, HOUR)).await;
        desk.finish(&lease).await;
    }
    bench.advance(Duration::from_secs(3));
    let patient = desk.renew(renewal("B")).await;
    let hasty = RenewSessions { idle_timeout: Duration::from_secs(3), ..renewal("A") };
    let hasty = desk.renew(hasty).await;
    assert_eq!((patient.renewed.len(), hasty.idle.len()), (1, 1));
    Verdict::Kept
}

async fn s13_what_somebody_else_took_is_lost(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let held = desk.attach("A", "S").await;
    bench.advance(LEASE);
    desk.attach("B", "S").await;
    let before = desk.shared("S").await;
    bench.advance(TICK);
    let outcome = desk.renew(RenewSessions { held: vec![held.clone()], ..renewal("A") }).await;
    assert_eq!(outcome, SessionsRenewed { lost: vec![held], ..SessionsRenewed::default() });
    assert_eq!(desk.shared("S").await, before, "B's lease is as it was");
    Verdict::Kept
}

async fn s13_an_epoch_that_has_passed_is_lost_beside_the_new_one(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let old = desk.attach("A", "S").await;
    bench.advance(LEASE);
    let new = desk.attach("A", "S").await;
    let outcome = desk.renew(RenewSessions { held: vec![old.clone()], ..renewal("A") }).await;
    let expected = SessionsRenewed { renewed: vec![new], lost: vec![old], ..SessionsRenewed::default() };
    assert_eq!(outcome, expected);
    Verdict::Kept
}

async fn s13_a_renewal_answers_in_the_order_of_keys(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    for session in ["b", "c", "a"] {
        desk.attach("A", session).await;
    }
    let stale = |id: &str| SessionRef { key: SessionKey::shared(id), epoch: 0 };
    let held = vec![stale("z"), stale("x"), stale("y")];
    let outcome = desk.renew(RenewSessions { held, ..renewal("A") }).await;
    let ids = |refs: &[SessionRef]| refs.iter().map(|one| one.key.session_id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&outcome.renewed), ["a", "b", "c"]);
    assert_eq!(ids(&outcome.lost), ["x", "y", "z"]);
    Verdict::Kept
}

async fn s13_a_session_that_is_renewed_stays_for_ever(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let held = desk.attach("A", "S").await;
    for _ in 0..20 {
        bench.advance(LEASE - TICK);
        let never_idle = RenewSessions { idle_timeout: Duration::MAX, ..renewal("A") };
        assert_eq!(ok(desk.store.renew_sessions(never_idle).await).renewed, std::slice::from_ref(&held));
    }
    Verdict::Kept
}
