//! Releasing: by key and epoch, so that others claim at once (D23, D39).

use steadfast_core::SessionKey;
use steadfast_store::{Claim, Owner, SessionRef};

use crate::Verdict;
use crate::bench::{Bench, LEASE, ok, start_node};
use crate::case::{cases, need};
use crate::cases::session::{attachment, desk};

cases![
    s13_a_released_session_is_free_at_once,
    s13_a_stale_epoch_releases_nothing,
    s13_nobody_releases_what_another_holds,
    s13_what_has_ended_is_not_released_again,
    s13_a_release_answers_what_was_live,
    s13_a_release_leaves_running_activities_alone,
    s13_an_owner_that_released_is_attached_anew,
    s13_a_session_is_released_by_hand,
];

async fn s13_a_released_session_is_free_at_once(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let held = desk.attach("A", "S").await;
    desk.queue("S", 2).await;
    assert_eq!(desk.release("A", std::slice::from_ref(&held)).await, std::slice::from_ref(&held));
    let lease = desk.fetched("B").await;
    assert!(attachment(&lease).epoch > held.epoch, "B's is another attachment");
    assert_eq!(lease.session.map(|session| session.claim), Some(Claim::Taken { from: "A".to_owned() }));
    Verdict::Kept
}

async fn s13_a_stale_epoch_releases_nothing(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let old = desk.attach("A", "S").await;
    bench.advance(LEASE);
    desk.attach("A", "S").await;
    let before = desk.shared("S").await;
    assert_eq!(desk.release("A", &[old]).await, [], "the release is of a former attachment");
    assert_eq!(desk.shared("S").await, before);
    let ahead = SessionRef { key: SessionKey::shared("S"), epoch: before.epoch + 1 };
    assert_eq!(desk.release("A", &[ahead]).await, []);
    assert_eq!(desk.shared("S").await, before);
    Verdict::Kept
}

async fn s13_nobody_releases_what_another_holds(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let held = desk.attach("A", "S").await;
    let before = desk.shared("S").await;
    assert_eq!(desk.release("B", &[held]).await, []);
    assert_eq!(desk.shared("S").await, before);
    Verdict::Kept
}

async fn s13_what_has_ended_is_not_released_again(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let expired = desk.attach("A", "S").await;
    bench.advance(LEASE);
    assert_eq!(desk.release("A", &[expired]).await, []);
    let held = desk.attach("A", "T").await;
    let twice = [held.clone(), held.clone()];
    assert_eq!(desk.release("A", &twice).await, std::slice::from_ref(&held), "once");
    assert_eq!(desk.release("A", &[held]).await, []);
    Verdict::Kept
}

async fn s13_a_release_answers_what_was_live(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let one = desk.attach("A", "S").await;
    let other = desk.attach("A", "T").await;
    let stale = SessionRef { epoch: one.epoch, ..other.clone() };
    let unknown = SessionRef { key: SessionKey::shared("U"), epoch: one.epoch };
    let mut released = desk.release("A", &[unknown, one.clone(), stale]).await;
    released.sort();
    assert_eq!(released, [one]);
    assert!(desk.shared("T").await.locked_until_ms > bench.now_ms(), "T is still held");
    assert_eq!(desk.release("A", &[]).await, []);
    Verdict::Kept
}

async fn s13_a_release_leaves_running_activities_alone(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    desk.queue("S", 1).await;
    let running = desk.fetched("A").await;
    desk.release("A", &[attachment(&running)]).await;
    assert!(desk.fetch("B").await.is_none(), "the activity runs under its own lock");
    desk.finish(&running).await;
    Verdict::Kept
}

async fn s13_an_owner_that_released_is_attached_anew(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let held = desk.attach("A", "S").await;
    desk.release("A", std::slice::from_ref(&held)).await;
    desk.queue("S", 2).await;
    assert!(attachment(&desk.fetched("A").await).epoch > held.epoch);
    Verdict::Kept
}

async fn s13_a_session_is_released_by_hand(bench: Bench) -> Verdict {
    let desk = need!(desk(&bench), "Store");
    let node = Owner { id: "node".to_owned(), incarnation: Some(ok(start_node(desk.store, "node").await)) };
    desk.queue("S", 1).await;
    let lease = desk.asked(crate::cases::session::request_as(node)).await;
    desk.finish(&lease).await;
    let shown = desk.shared("S").await;
    let owner = shown.owner.expect("somebody holds it");
    let attachment = SessionRef { key: shown.key, epoch: shown.epoch };
    let released = ok(desk.store.release_sessions(&owner, std::slice::from_ref(&attachment)).await);
    assert_eq!(released, [attachment], "what a listing shows is enough to release");
    desk.queue("S", 2).await;
    assert!(desk.fetch("B").await.is_some());
    Verdict::Kept
}
