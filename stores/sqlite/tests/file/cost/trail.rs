//! What the trails of sessions cost: nothing while no session moves, and a bounded step of clean-up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast_clock::VirtualClock;
use steadfast_core::{SessionKey, TagFilter};
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{
    Appetite, MAX_PAGE, MAX_SESSION_TRAIL, MAX_TRAIL, Owner, RenewSessions, SessionRequest, SessionScope,
    Store, WorkLease, WorkRequest,
};

use crate::stage::{LONG, activity, completion, open, place, raw, work_request};

/// Adds ?1 entries of other sessions, and none of the session `s`.
const OTHERS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
     INSERT INTO session_trail (instance, session_id, epoch, is_end, owner, at, change)
     SELECT '', 'other' || (i % 100), i, 0, 'another', ?2, 'claimed' FROM n";

fn fetch_of(owner: &str) -> WorkRequest {
    let session = SessionRequest {
        owner: Owner::unnamed(owner),
        lock_timeout: LONG,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    WorkRequest { session: Some(session), ..work_request(Duration::ZERO, TagFilter::DefaultOnly) }
}

fn renewal_of(owner: &str) -> RenewSessions {
    RenewSessions {
        owner: Owner::unnamed(owner),
        extend_for: LONG,
        idle_timeout: LONG,
        untaken_after: LONG,
        tags: TagFilter::Any,
        appetite: Appetite::Hungry,
        held: Vec::new(),
        worker: None,
    }
}

async fn fetched(store: &SqliteProvider, owner: &str) -> WorkLease {
    store.fetch_work(fetch_of(owner)).await.expect("a fetch").expect("an activity")
}

/// Counts the steps of a fetch, a finish and a renewal by the owner of the session.
async fn goes_on(store: &SqliteProvider, steps: &AtomicU64) -> u64 {
    store.enqueue_work(activity("a", 1, Some("s"), None)).await.expect("it is queued");
    let before = steps.load(Ordering::Relaxed);
    let lease = fetched(store, "me").await;
    store.finish_work(&lease.token, completion("a", 1).into()).await.expect("it is finished");
    let renewed = store.renew_sessions(renewal_of("me")).await.expect("it is renewed").renewed;
    assert_eq!(renewed.len(), 1, "the owner goes on");
    steps.load(Ordering::Relaxed) - before
}

#[tokio::test]
async fn s20_an_owner_that_goes_on_does_not_touch_the_trails() {
    let (_folder, path) = place();
    let steps = Arc::new(AtomicU64::new(0));
    // A request in a later millisecond takes a few steps more, to write the time of the file.
    let clock = Arc::new(VirtualClock::new(1_000_000));
    let count_steps = Some(Arc::clone(&steps));
    let store = open(&path, SqliteOptions { clock, count_steps, ..SqliteOptions::default() }).await;
    for _ in 0..3 {
        goes_on(&store, &steps).await;
    }
    let with_trails = goes_on(&store, &steps).await;
    raw(&path).execute_batch("ALTER TABLE session_trail RENAME TO elsewhere").expect("it is renamed");
    // The first of the two prepares its statements again.
    goes_on(&store, &steps).await;
    let without = goes_on(&store, &steps).await;
    assert!(with_trails.abs_diff(without) <= 2, "{with_trails} steps, {without} without the table");

    store.enqueue_work(activity("a", 2, Some("t"), None)).await.expect("it is queued");
    let claim = store.fetch_work(fetch_of("me")).await;
    assert!(claim.is_err(), "a claim writes into the trail: {claim:?}");
}

#[tokio::test]
async fn s20_a_claim_costs_the_same_however_long_the_trails_are() {
    let cost_behind = async |others: u64| {
        let (_folder, path) = place();
        let steps = Arc::new(AtomicU64::new(0));
        // A look for commits of other processes would be counted with the fetch that it meets.
        let options = SqliteOptions {
            count_steps: Some(Arc::clone(&steps)),
            other_processes: None,
            ..SqliteOptions::default()
        };
        let store = open(&path, options).await;
        let others = i64::try_from(others).expect("a small number");
        raw(&path).execute(OTHERS, [others, 0]).expect("others have trails");
        let mut costs = Vec::new();
        for session in ["s", "t"] {
            store.enqueue_work(activity("a", 1, Some(session), None)).await.expect("it is queued");
            let before = steps.load(Ordering::Relaxed);
            fetched(&store, "me").await;
            costs.push(steps.load(Ordering::Relaxed) - before);
        }
        costs[1]
    };
    let (few, many) = (cost_behind(1).await, cost_behind(100_000).await);
    assert!(many < few + few / 4, "{few} steps beside 1 entry, {many} beside 100,000");
}

#[tokio::test]
async fn trails_of_all_sessions_together_are_bounded_and_cleaned_up_in_bounded_steps() {
    let (_folder, path) = place();
    let store = open(&path, SqliteOptions::default()).await;
    let beyond = MAX_PAGE as u64 + 7;
    let most = i64::try_from(MAX_TRAIL + beyond).expect("a small number");
    // Of a moment that no retention reaches.
    let now = i64::try_from(store_now(&store).await).expect("a time");
    raw(&path).execute(OTHERS, [most, now]).expect("others have trails");
    let mut steps = Vec::new();
    while steps.last() != Some(&0) {
        steps.push(store.cleanup_session_trails(60 * LONG).await.expect("it is cleaned up"));
    }
    assert_eq!(steps, [MAX_PAGE, 7, 0]);
    let left: i64 =
        raw(&path).query_row("SELECT count(*) FROM session_trail", [], |row| row.get(0)).expect("a count");
    assert_eq!(left, i64::try_from(MAX_TRAIL).expect("a small number"));
    let trail = store.session_trail(&SessionKey::shared("other7")).await.expect("a trail");
    assert_eq!(trail.len(), MAX_SESSION_TRAIL, "no more are told");
}

/// Returns the time of the file: that of a claim which is made now.
async fn store_now(store: &SqliteProvider) -> u64 {
    store.enqueue_work(activity("a", 1, Some("s"), None)).await.expect("it is queued");
    fetched(store, "me").await;
    let trail = store.session_trail(&SessionKey::shared("s")).await.expect("a trail");
    let at_ms = trail.first().expect("a claim").at_ms;
    store.cleanup_session_trails(Duration::ZERO).await.expect("it is cleaned up");
    at_ms
}
