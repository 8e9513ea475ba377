//! Clean-up changes nothing that a worker can notice (D20, A14).

use std::time::Duration;

use steadfast_core::SessionKey;
use steadfast_store::{Claim, NewWork, Outcome, RenewSessions};

use crate::Verdict;
use crate::bench::{Bench, LEASE, TICK, activity_with, event, ok, started};
use crate::case::{cases, need};
use crate::cases::session::{Desk, attachment, desk, id_of, leasing, owning, queue, renewal};

cases![
    s13_clean_up_removes_ended_sessions_without_work,
    s13_clean_up_keeps_live_leases,
    s13_clean_up_keeps_sessions_with_work,
    s13_clean_up_keeps_sessions_whose_work_runs,
    s13_epochs_never_repeat_after_clean_up,
    s13_clean_up_changes_nothing_for_anybody,
    s13_a_former_attachment_is_fenced_after_clean_up,
    s13_clean_up_beside_new_work_loses_nothing,
    s13_clean_up_of_nothing_removes_nothing,
    s13_clean_up_keeps_open_sessions_of_instances,
    s13_clean_up_keeps_sessions_of_an_instance_that_only_has_a_history,
    s13_clean_up_keeps_sessions_of_an_instance_that_is_about_to_start,
    s13_the_idle_timeout_of_a_clean_up_decides_nothing,
];

async fn s13_clean_up_removes_ended_sessions_without_work(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    for session in ["S", "T"] {
        desk.attach("A", session).await;
    }
    bench.advance(LEASE);
    desk.attach("B", "U").await;
    assert_eq!(ok(desk.store.cleanup_sessions().await), 2);
    let left: Vec<_> = ok(desk.store.sessions(None).await).into_iter().map(|session| session.key).collect();
    assert_eq!(left, [SessionKey::shared("U")]);
    Verdict::Kept
}

async fn s13_clean_up_keeps_live_leases(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    bench.advance(LEASE - TICK);
    let before = desk.shared("S").await;
    assert_eq!(ok(desk.store.cleanup_sessions().await), 0);
    assert_eq!(desk.shared("S").await, before);
    Verdict::Kept
}

async fn s13_clean_up_keeps_sessions_with_work(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.attach("A", "S").await;
    desk.queue("S", 2).await;
    bench.advance(LEASE);
    let before = desk.shared("S").await;
    assert_eq!(ok(desk.store.cleanup_sessions().await), 0);
    assert_eq!(desk.shared("S").await, before);
    Verdict::Kept
}

async fn s13_clean_up_keeps_sessions_whose_work_runs(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    desk.asked(leasing("A", 2 * LEASE, LEASE)).await;
    bench.advance(LEASE);
    assert_eq!(ok(desk.store.cleanup_sessions().await), 0, "an activity of it still runs");
    assert!(desk.find(&SessionKey::shared("S")).await.is_some());
    Verdict::Kept
}

async fn s13_epochs_never_repeat_after_clean_up(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let mut last = 0;
    for round in 0..5 {
        let epoch = desk.attach("A", "S").await.epoch;
        assert!(epoch > last, "round {round}: epoch {epoch} follows {last}");
        last = epoch;
        bench.advance(LEASE);
        ok(desk.store.cleanup_sessions().await);
    }
    Verdict::Kept
}

async fn s13_clean_up_changes_nothing_for_anybody(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let held = desk.attach("A", "S").await;
    bench.advance(LEASE);
    ok(desk.store.cleanup_sessions().await);
    let outcome = desk.renew(RenewSessions { held: vec![held.clone()], ..renewal("A") }).await;
    assert_eq!(outcome.lost, [held], "A learns that it lost the session, as without the clean-up");
    desk.queue("S", 2).await;
    let lease = desk.fetched("B").await;
    assert_ne!(lease.session.map(|session| session.claim), Some(Claim::Held));
    Verdict::Kept
}

async fn s13_a_former_attachment_is_fenced_after_clean_up(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let old = desk.attach("A", "S").await;
    bench.advance(LEASE);
    ok(desk.store.cleanup_sessions().await);
    let new = desk.attach("A", "S").await;
    assert_eq!(desk.release("A", &[old]).await, [], "the old epoch is worth nothing");
    assert_eq!(desk.renew(renewal("A")).await.renewed, [new]);
    Verdict::Kept
}

async fn s13_clean_up_beside_new_work_loses_nothing(bench: Bench) {
    let provider = bench.provider();
    for round in 1..=20 {
        queue(&bench, "S", 2 * round).await;
        let (_, token, _) = bench.fetch_work_for("A").await.expect("nobody holds the session");
        ok(provider.ack_work_item(&token, None).await);
        bench.advance(LEASE);
        let (removed, ()) =
            tokio::join!(provider.cleanup_orphaned_sessions(LEASE), queue(&bench, "S", 2 * round + 1));
        assert!(ok(removed) <= 1, "there is one session");
        let (item, token, attempt) = bench.fetch_work_for("B").await.expect("the new work is there");
        assert_eq!((id_of(&item), attempt), (2 * round + 1, 1));
        assert!(bench.fetch_work_for("A").await.is_none(), "and B has claimed its session");
        ok(provider.ack_work_item(&token, None).await);
        bench.advance(LEASE);
    }
}

async fn s13_clean_up_of_nothing_removes_nothing(bench: Bench) {
    assert_eq!(ok(bench.provider().cleanup_orphaned_sessions(LEASE).await), 0);
}

async fn s13_clean_up_keeps_open_sessions_of_instances(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    desk.begin("a", |turn| turn.open("X").open("Y").work("Y")).await;
    let lease = desk.fetched("A").await;
    desk.finish(&lease).await;
    bench.advance(2 * LEASE);
    desk.inbox("a").await;
    assert_eq!(ok(desk.store.cleanup_sessions().await), 0, "both are open");
    for session in ["X", "Y"] {
        assert!(desk.find(&SessionKey::owned("a", session)).await.is_some(), "{session} is open");
    }
    assert_eq!(desk.show(&SessionKey::owned("a", "Y")).await.epoch, attachment(&lease).epoch);
    Verdict::Kept
}

/// Makes a session of an instance that has no row: its work was queued by hand. Lets the lease end.
async fn session_without_a_row(bench: &Bench, desk: &Desk<'_>) -> SessionKey {
    let key = SessionKey::owned("a", "X");
    let work = NewWork { session: Some(key.clone()), ..activity_with("a", 2, Some("X"), None).into() };
    ok(desk.store.enqueue_work(work).await);
    let lease = desk.fetched("A").await;
    ok(desk.store.finish_work(&lease.token, Outcome::default()).await);
    bench.advance(2 * LEASE);
    key
}

async fn s13_clean_up_keeps_sessions_of_an_instance_that_only_has_a_history(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let key = session_without_a_row(&bench, &desk).await;
    ok(desk.store.append_history("a", 1, vec![event("a", 1, started())]).await);
    assert_eq!(ok(desk.store.cleanup_sessions().await), 0, "an instance with a history exists");
    assert!(desk.find(&key).await.is_some());
    Verdict::Kept
}

async fn s13_clean_up_keeps_sessions_of_an_instance_that_is_about_to_start(bench: Bench) -> Verdict {
    let desk = need!(owning(&bench), "owned sessions");
    let key = session_without_a_row(&bench, &desk).await;
    bench.start("a").await;
    assert_eq!(ok(desk.store.cleanup_sessions().await), 0, "an instance with a queued start exists");
    assert!(desk.find(&key).await.is_some());
    Verdict::Kept
}

async fn s13_the_idle_timeout_of_a_clean_up_decides_nothing(bench: Bench) {
    queue(&bench, "S", 1).await;
    let (_, token, _) = bench.fetch_work_for("A").await.expect("A claims the session");
    ok(bench.provider().ack_work_item(&token, None).await);
    bench.advance(LEASE - TICK);
    let provider = bench.provider();
    assert_eq!(ok(provider.cleanup_orphaned_sessions(Duration::ZERO).await), 0, "the lease is live");
    queue(&bench, "S", 2).await;
    assert!(bench.fetch_work_for("B").await.is_none(), "the session is still A's");
}
