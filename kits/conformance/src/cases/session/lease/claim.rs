//! Claiming: owner, lease, epoch, and what the claimer learns (D15, D18, D19).

use std::time::Duration;

use steadfast_core::SessionKey;
use steadfast_store::{Claim, Owner, SessionRef};

use crate::Verdict;
use crate::bench::{Bench, LEASE, TICK, activity, lost, ok};
use crate::case::{cases, need};
use crate::cases::session::{attachment, desk, id_of, leasing, request};

cases![
    s13_a_claim_records_owner_lease_and_activity,
    s13_the_first_claim_is_new,
    s13_a_fetch_by_the_live_owner_keeps_the_epoch,
    s13_a_fetch_by_the_live_owner_extends_the_lease,
    s13_a_fetch_by_the_live_owner_never_shortens_the_lease,
    s13_a_takeover_names_the_former_owner,
    s13_a_takeover_leaves_one_session,
    s13_an_owner_that_returns_after_its_lease_is_attached_anew,
    s13_epochs_rise_over_all_sessions,
    s13_an_item_without_a_session_is_attached_to_nothing,
    s13_a_session_that_is_not_given_counts_no_attempt,
    s13_of_two_claimers_one_wins,
    s13_a_dead_owners_lease_decides_when_it_is_replaced,
    s13_a_new_owner_brings_its_own_lease,
    s13_an_activity_outlives_its_session_lease,
    s13_an_activity_whose_lock_ended_cannot_finish_whoever_holds_the_session,
    s13_a_new_owner_is_not_given_what_still_runs,
    s13_a_new_owner_is_given_what_the_old_one_left,
    s13_the_same_owner_may_take_up_what_it_left,
    s13_lock_and_lease_may_end_together,
];

async fn s13_a_claim_records_owner_lease_and_activity(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let lease = desk.fetched("A").await;
    let session = desk.shared("S").await;
    assert_eq!(session.owner, Some(Owner::unnamed("A")));
    assert_eq!(session.locked_until_ms, bench.now_ms() + LEASE.as_millis() as u64);
    assert_eq!(session.last_activity_at_ms, bench.now_ms());
    assert_eq!(SessionRef { key: session.key, epoch: session.epoch }, attachment(&lease));
    assert!(session.epoch > 0, "0 is before the first attachment");
    Verdict::Kept
}

async fn s13_the_first_claim_is_new(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let session = desk.fetched("A").await.session.expect("the item belongs to a session");
    assert_eq!(session.key, SessionKey::shared("S"));
    assert_eq!(session.claim, Claim::New);
    Verdict::Kept
}

async fn s13_a_fetch_by_the_live_owner_keeps_the_epoch(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let claimed = desk.attach("A", "S").await;
    desk.queue("S", 2).await;
    let lease = desk.fetched("A").await;
    assert_eq!(attachment(&lease), claimed);
    assert_eq!(lease.session.map(|session| session.claim), Some(Claim::Held));
    Verdict::Kept
}

async fn s13_a_fetch_by_the_live_owner_extends_the_lease(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    bench.advance(LEASE / 2);
    desk.queue("S", 2).await;
    desk.fetched("A").await;
    let session = desk.shared("S").await;
    assert_eq!(session.locked_until_ms, bench.now_ms() + LEASE.as_millis() as u64);
    bench.advance(LEASE - TICK);
    desk.queue("S", 3).await;
    assert!(desk.fetch("B").await.is_none(), "the lease runs from the last fetch");
    Verdict::Kept
}

async fn s13_a_fetch_by_the_live_owner_never_shortens_the_lease(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    let before = desk.shared("S").await.locked_until_ms;
    desk.queue("S", 2).await;
    desk.asked(leasing("A", LEASE, TICK)).await;
    assert_eq!(desk.shared("S").await.locked_until_ms, before, "a fetch extends");
    Verdict::Kept
}

async fn s13_a_takeover_names_the_former_owner(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let before = desk.attach("A", "S").await;
    bench.advance(LEASE);
    desk.queue("S", 2).await;
    let lease = desk.fetched("B").await;
    assert!(attachment(&lease).epoch > before.epoch, "a new attachment has a higher epoch");
    assert_eq!(lease.session.map(|session| session.claim), Some(Claim::Taken { from: "A".to_owned() }));
    assert_eq!(desk.shared("S").await.owner, Some(Owner::unnamed("B")));
    Verdict::Kept
}

async fn s13_a_takeover_leaves_one_session(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    for owner in ["A", "B", "C", "A"] {
        desk.attach(owner, "S").await;
        let sessions = ok(desk.store.sessions(None).await);
        let held: Vec<_> = sessions.into_iter().map(|session| (session.key, session.owner)).collect();
        assert_eq!(held, [(SessionKey::shared("S"), Some(Owner::unnamed(owner)))], "one session, one owner");
        bench.advance(LEASE);
    }
    Verdict::Kept
}

async fn s13_an_owner_that_returns_after_its_lease_is_attached_anew(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let before = desk.attach("A", "S").await;
    bench.advance(LEASE);
    desk.queue("S", 2).await;
    let lease = desk.fetched("A").await;
    assert!(attachment(&lease).epoch > before.epoch, "its lease was over: this is another attachment");
    assert_eq!(lease.session.map(|session| session.claim), Some(Claim::Taken { from: "A".to_owned() }));
    Verdict::Kept
}

async fn s13_epochs_rise_over_all_sessions(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let mut epochs = Vec::new();
    for round in 0..3 {
        for session in ["S", "T", "U"] {
            epochs.push(desk.attach(if round % 2 == 0 { "A" } else { "B" }, session).await.epoch);
        }
        bench.advance(LEASE);
    }
    assert!(epochs.is_sorted_by(|one, next| one < next), "one counter serves all sessions: {epochs:?}");
    Verdict::Kept
}

async fn s13_an_item_without_a_session_is_attached_to_nothing(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    ok(desk.store.enqueue_work(activity("i", 1).into()).await);
    assert_eq!(desk.fetched("A").await.session, None);
    assert_eq!(ok(desk.store.sessions(None).await), [], "it made no session");
    Verdict::Kept
}

async fn s13_a_session_that_is_not_given_counts_no_attempt(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    desk.queue("S", 2).await;
    for _ in 0..5 {
        assert!(desk.fetch("B").await.is_none(), "the session is A's");
    }
    assert_eq!(desk.fetched("A").await.attempt, 1, "only a fetch that is given the item counts");
    Verdict::Kept
}

async fn s13_of_two_claimers_one_wins(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    for round in 1..=20 {
        desk.queue("S", round).await;
        let (one, other) = tokio::join!(desk.fetch("A"), desk.fetch("B"));
        let winners: Vec<_> = one.into_iter().chain(other).collect();
        assert_eq!(winners.len(), 1, "exactly one of the two is given the item");
        assert_eq!(winners.first().map(|lease| lease.attempt), Some(1), "the other's try does not count");
        bench.advance(LEASE);
        let again = desk.fetched("C").await;
        assert_eq!(again.attempt, 2);
        desk.finish(&again).await;
        bench.advance(LEASE);
    }
    Verdict::Kept
}

async fn s13_a_dead_owners_lease_decides_when_it_is_replaced(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let (short, long) = (Duration::from_secs(5), Duration::from_secs(60));
    desk.queue("S", 1).await;
    desk.queue("S", 2).await;
    desk.asked(leasing("A", LEASE, short)).await;
    bench.advance(short - TICK);
    assert!(desk.ask(leasing("B", LEASE, long)).await.is_none(), "A's lease still runs");
    bench.advance(TICK);
    assert!(desk.ask(leasing("B", LEASE, long)).await.is_some(), "recovery takes the dead worker's lease");
    Verdict::Kept
}

async fn s13_a_new_owner_brings_its_own_lease(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let (short, long) = (Duration::from_secs(5), Duration::from_secs(60));
    for id in 1..=3 {
        desk.queue("S", id).await;
    }
    desk.asked(leasing("A", 2 * long, short)).await;
    bench.advance(short);
    desk.asked(leasing("B", 2 * long, long)).await;
    bench.advance(long - TICK);
    assert!(desk.fetch("C").await.is_none(), "B's lease is B's own");
    bench.advance(TICK);
    assert!(desk.fetch("C").await.is_some());
    Verdict::Kept
}

async fn s13_an_activity_outlives_its_session_lease(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.queue("S", 2).await;
    let session = Duration::from_secs(5);
    let running = desk.asked(leasing("A", LEASE, session)).await;
    bench.advance(session);
    desk.fetched("B").await;
    ok(desk.store.renew(&running.token, LEASE).await);
    desk.finish(&running).await;
    assert_eq!(desk.shared("S").await.owner, Some(Owner::unnamed("B")), "that changed nothing for B");
    Verdict::Kept
}

async fn s13_an_activity_whose_lock_ended_cannot_finish_whoever_holds_the_session(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let lock = Duration::from_secs(5);
    let lease = desk.asked(leasing("A", lock, LEASE)).await;
    bench.advance(lock);
    lost(desk.store.finish_work(&lease.token, crate::cases::session::completion("i", 1).into()).await);
    lost(desk.store.renew(&lease.token, LEASE).await);
    let again = desk.fetched("A").await;
    assert_eq!(
        (id_of(&again.item), again.attempt),
        (1, 2),
        "A still holds the session and is given it again"
    );
    Verdict::Kept
}

async fn s13_a_new_owner_is_not_given_what_still_runs(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.queue("S", 2).await;
    let session = Duration::from_secs(5);
    desk.asked(leasing("A", LEASE, session)).await;
    bench.advance(session);
    assert_eq!(id_of(&desk.fetched("B").await.item), 2, "item 1 runs at A, whose lock of it is good");
    assert!(desk.fetch("B").await.is_none());
    Verdict::Kept
}

async fn s13_a_new_owner_is_given_what_the_old_one_left(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.fetched("A").await;
    bench.advance(LEASE);
    let lease = desk.fetched("B").await;
    assert_eq!((id_of(&lease.item), lease.attempt), (1, 2));
    Verdict::Kept
}

async fn s13_the_same_owner_may_take_up_what_it_left(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let first = desk.fetched("A").await;
    bench.advance(LEASE);
    let again = desk.asked(request("A")).await;
    assert_eq!((id_of(&again.item), again.attempt), (1, 2));
    assert!(attachment(&again).epoch > attachment(&first).epoch);
    Verdict::Kept
}

async fn s13_lock_and_lease_may_end_together(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let left = desk.fetched("A").await;
    bench.advance(LEASE);
    let taken = desk.fetched("B").await;
    assert_eq!((id_of(&taken.item), taken.attempt), (1, 2), "B is given the session and what A left of it");
    assert!(attachment(&taken).epoch > attachment(&left).epoch);
    lost(desk.store.finish_work(&left.token, crate::cases::session::completion("i", 1).into()).await);
    lost(desk.store.renew(&left.token, LEASE).await);
    assert!(desk.fetch("A").await.is_none(), "nothing of it is A's");
    desk.finish(&taken).await;
    Verdict::Kept
}
