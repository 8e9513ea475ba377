//! A process that holds the file makes the others wait, for as long as their options say and no longer.

use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use steadfast_core::TagFilter;
use steadfast_sqlite::SqliteOptions;
use steadfast_store::{NodeStart, ProviderErrorKind, Store};

use crate::stage::{LONG, activity, open, place, raw, start, turn_request, work_request};

#[tokio::test]
async fn a_file_held_by_another_process_is_busy_after_the_bound_and_works_again_afterwards() {
    let (_folder, path) = place();
    let bound = Duration::from_millis(150);
    let store = open(&path, SqliteOptions { busy_timeout: bound, ..SqliteOptions::default() }).await;
    store.start(start("before").into(), Vec::new()).await.expect("the file is free");

    let other = raw(&path);
    other.execute_batch("BEGIN IMMEDIATE").expect("the other holds the file");
    let begun = SystemClock.monotonic();
    let kinds = [
        store.start(start("a").into(), Vec::new()).await.expect_err("busy").kind,
        store.send(vec![start("b").into()]).await.expect_err("busy").kind,
        store.enqueue_work(activity("a", 2, None, None)).await.expect_err("busy").kind,
        store.fetch_turn(turn_request(LONG, LONG)).await.expect_err("busy").kind,
        store.fetch_work(work_request(LONG, TagFilter::Any)).await.expect_err("busy").kind,
        store.register_node(&NodeStart::new("node", "start")).await.expect_err("busy").kind,
    ];
    let waited = SystemClock.monotonic() - begun;
    assert_eq!(kinds, [ProviderErrorKind::Busy; 6]);
    assert!(waited >= bound * 6 && waited < Duration::from_secs(20), "{waited:?}");
    // Looking needs no lock.
    assert!(store.state("before").await.expect("readers go on").is_none());
    assert!(store.read_history("before", None).await.expect("readers go on").is_empty());

    other.execute_batch("ROLLBACK").expect("it lets go");
    store.start(start("a").into(), Vec::new()).await.expect("works again");
    let lease = store.fetch_turn(turn_request(LONG, LONG)).await.expect("works again").expect("an instance");
    assert_eq!((lease.instance.as_str(), lease.attempt), ("before", 1));
}

#[tokio::test]
async fn all_waiting_calls_are_answered_after_the_same_bound() {
    let (_folder, path) = place();
    let bound = Duration::from_millis(400);
    let store = open(&path, SqliteOptions { busy_timeout: bound, ..SqliteOptions::default() }).await;
    let other = raw(&path);
    other.execute_batch("BEGIN IMMEDIATE").expect("the other holds the file");
    let begun = SystemClock.monotonic();
    let calls: Vec<_> = (0..50).map(|n| crate::group::starting(&store, &format!("i{n}"))).collect();
    for call in calls {
        assert_eq!(call.await.expect("it returns").expect_err("busy").kind, ProviderErrorKind::Busy);
    }
    // Those who come while the first one waits wait for the next one's bound too, but not for one another.
    let waited = SystemClock.monotonic() - begun;
    assert!(waited < bound * 25, "{waited:?}");
}

#[tokio::test]
async fn a_dropped_fetch_leaves_no_lease_although_the_file_is_held() {
    let (_folder, path) = place();
    let bound = Duration::from_millis(50);
    let store = open(&path, SqliteOptions { busy_timeout: bound, ..SqliteOptions::default() }).await;
    store.start(start("a").into(), Vec::new()).await.expect("it is started");
    // Dropped at its first step: the writer undoes the fetch, or does not run it.
    let fetch = store.fetch_turn(turn_request(LONG, LONG));
    drop(tokio::time::timeout(Duration::ZERO, fetch).await);
    let other = raw(&path);
    other.execute_batch("BEGIN IMMEDIATE").expect("the other holds the file");
    // SQLite waits for the file in real time: long enough that the first try to give back has given up.
    SystemClock.sleep(bound * 4).await;
    other.execute_batch("ROLLBACK").expect("it lets go");
    let lease = store.fetch_turn(turn_request(LONG, LONG)).await.expect("it fetches").expect("an instance");
    assert_eq!((lease.instance.as_str(), lease.attempt), ("a", 1));
}

#[tokio::test]
async fn a_short_hold_by_another_process_only_delays() {
    let (_folder, path) = place();
    let store = open(&path, SqliteOptions::default()).await;
    let other = raw(&path);
    other.execute_batch("BEGIN IMMEDIATE").expect("the other holds the file");
    let call = tokio::spawn(async move { store.start(start("a").into(), Vec::new()).await });
    // SQLite waits for the file in real time: long enough that the call has met the lock.
    SystemClock.sleep(Duration::from_millis(60)).await;
    other.execute_batch("ROLLBACK").expect("it lets go");
    call.await.expect("it returns").expect("it was only delayed");
}
