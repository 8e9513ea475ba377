//! G6: a page of the trails of sessions is torn. A trail is a record and no guard: sessions go on without it.

use std::sync::Arc;
use std::time::Duration;

use steadfast_core::{EventKind, SessionKey};
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    Claim, ClaimedSession, Outcome, Owner, ProviderErrorKind, ReleaseReason, SessionRef, Store, TurnCommit,
};

use super::row::{Torn, try_work};
use super::{begin, close, event, fetched, poke, tear_leaf};
use crate::stage::activity;

/// Makes the worker claim a session, and finishes the work.
async fn attach(store: &SqliteProvider, session: &str) -> ClaimedSession {
    store.enqueue_work(activity("a", 1, Some(session), None)).await.expect("it is queued");
    let lease = try_work(store).await.expect("its work is leased");
    store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
    lease.session.expect("it is on a session")
}

/// A file with a session `s` of the store and `x` of the instance `torn`, both claimed, and torn trails.
async fn torn_trails(file: &Torn) -> (Arc<SqliteProvider>, ClaimedSession) {
    let store = file.open().await;
    begin(&store, "torn", String::new()).await;
    poke(&store, "torn").await;
    let lease = fetched(&store).await;
    let opened =
        EventKind::SessionOpened { session_id: "x".to_owned(), idle_timeout_ms: None, concurrency: None };
    let mut commit = TurnCommit { events: vec![event("torn", 2, None, opened)], ..TurnCommit::empty(1) };
    let mut work = activity("torn", 3, Some("x"), None);
    work.session = Some(SessionKey::owned("torn", "x"));
    commit.work.push(work);
    store.commit_turn(&lease.token, commit).await.expect("it is committed");
    let lease = try_work(&store).await.expect("its work is leased");
    store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
    let claim = attach(&store, "s").await;
    close(store).await;
    tear_leaf(&file.path, "claimed");
    (file.open().await, claim)
}

#[tokio::test]
async fn g6_sessions_are_claimed_and_released_although_a_page_of_their_trails_is_torn() {
    let file = Torn::new();
    let (store, claim) = torn_trails(&file).await;
    let error = store.session_trail(&claim.key).await.expect_err("it cannot be read");
    assert_eq!(error.kind, ProviderErrorKind::Corrupt, "{error}");

    assert_eq!(attach(&store, "t").await.claim, Claim::New);
    let claims = [SessionRef { key: claim.key.clone(), epoch: claim.epoch }];
    let owner = Owner::unnamed("worker");
    let released = store.release_sessions_because(&owner, &claims, ReleaseReason::Drained).await;
    assert_eq!(released.expect("it is released"), claims);
    let again = attach(&store, "s").await;
    assert!(again.epoch > claim.epoch, "another claim");
    // After a while the trails are tried again.
    file.clock.advance(Duration::from_secs(3_600));
    assert_eq!(attach(&store, "s").await.claim, Claim::Taken { from: "worker".to_owned() });
    file.clock.advance(Duration::from_secs(3_600));
    assert_eq!(store.cleanup_sessions().await.expect("they are cleaned up"), 2, "s and t");
}

#[tokio::test]
async fn g6_an_instance_ends_and_is_deleted_although_a_page_of_its_trails_is_torn() {
    let file = Torn::new();
    let (store, _) = torn_trails(&file).await;
    poke(&store, "torn").await;
    let lease = fetched(&store).await;
    let closed = EventKind::SessionClosed { session_id: "x".to_owned() };
    let commit = TurnCommit { events: vec![event("torn", 4, None, closed)], ..TurnCommit::empty(1) };
    store.commit_turn(&lease.token, commit).await.expect("it is closed");
    let key = SessionKey::owned("torn", "x");
    assert_eq!(store.session(&key).await.expect("it reads"), None);
    let admin = store.admin().expect("it manages");
    admin.delete_instance("torn", true).await.expect("it is deleted");
    assert_eq!(store.state("torn").await.expect("it reads"), None);
}
