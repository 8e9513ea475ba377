//! G17: a commit of another process costs the waiting calls one look together, and wakes those that it
//! concerns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use steadfast_core::TagFilter;
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{Store, WaitFor, Waited};

use crate::stage::{LONG, activity, open, place, start, turn_request, until, work_request};

/// Waits until no statement has run for a while. Idleness shows only in real time.
async fn comes_to_rest(statements: &AtomicU64) -> u64 {
    loop {
        let before = statements.load(Ordering::Relaxed);
        SystemClock.sleep(Duration::from_millis(400)).await;
        if statements.load(Ordering::Relaxed) == before {
            return before;
        }
    }
}

fn park(store: &Arc<SqliteProvider>, count: usize) -> Vec<tokio::task::JoinHandle<()>> {
    let mut parked = Vec::new();
    for number in 0..count {
        let mine = Arc::clone(store);
        parked.push(tokio::spawn(async move {
            mine.fetch_turn(turn_request(LONG, LONG)).await.expect("it fetches");
        }));
        let mine = Arc::clone(store);
        parked.push(tokio::spawn(async move {
            mine.fetch_work(work_request(LONG, TagFilter::DefaultOnly)).await.expect("it fetches");
        }));
        let mine = Arc::clone(store);
        parked.push(tokio::spawn(async move {
            let instance = format!("waited{}", number % 2);
            mine.wait(WaitFor::End { instance: &instance }, LONG).await.expect("it waits");
        }));
    }
    parked
}

/// Counts the statements that a commit of another process costs this one, while so many calls of each kind
/// wait.
async fn cost_of_a_foreign_commit(count: usize) -> u64 {
    let (_folder, path) = place();
    let statements = Arc::new(AtomicU64::new(0));
    let count_statements = Some(Arc::clone(&statements));
    let mine = open(&path, SqliteOptions { count_statements, ..SqliteOptions::default() }).await;
    let theirs = open(&path, SqliteOptions::default()).await;
    let parked = park(&mine, count);
    comes_to_rest(&statements).await;
    // The first look learns how the instances stand that calls wait for.
    for id in [1, 2] {
        theirs.enqueue_work(activity("a", id, None, Some("other"))).await.expect("it is queued");
        let before = comes_to_rest(&statements).await;
        if id == 1 {
            continue;
        }
        assert!(parked.iter().all(|call| !call.is_finished()), "it concerns none of them");
        theirs.enqueue_work(activity("a", 3, None, Some("other"))).await.expect("it is queued");
        until("the look", || statements.load(Ordering::Relaxed) > before).await;
        return comes_to_rest(&statements).await - before;
    }
    0
}

#[tokio::test]
async fn a_foreign_commit_costs_as_much_however_many_calls_wait() {
    let (few, many) = (cost_of_a_foreign_commit(2).await, cost_of_a_foreign_commit(40).await);
    assert_eq!(few, many, "statements for 2 and for 40 waiting calls of each kind");
}

#[tokio::test]
async fn a_foreign_commit_wakes_the_calls_that_it_concerns() {
    let (_folder, path) = place();
    let mine = open(&path, SqliteOptions::default()).await;
    let theirs = open(&path, SqliteOptions::default()).await;
    let turn = tokio::spawn({
        let mine = Arc::clone(&mine);
        async move { mine.fetch_turn(turn_request(LONG, LONG)).await.expect("it fetches") }
    });
    let work = tokio::spawn({
        let mine = Arc::clone(&mine);
        async move { mine.fetch_work(work_request(LONG, TagFilter::DefaultOnly)).await.expect("it fetches") }
    });
    let change = tokio::spawn({
        let mine = Arc::clone(&mine);
        async move { mine.wait(WaitFor::Instance { instance: "i", seen: 0 }, LONG).await.expect("it waits") }
    });
    SystemClock.sleep(Duration::from_millis(100)).await;
    theirs.start(start("a").into(), Vec::new()).await.expect("it is started");
    theirs.enqueue_work(activity("a", 2, None, None)).await.expect("it is queued");
    let events = [crate::stage::event("i", 1, None, crate::stage::started())];
    let history = serde_json::to_string(&events).expect("events have a text");
    theirs.import_history("i", 1, &history).await.expect("it is imported");
    let soon = LONG / 2;
    assert!(tokio::time::timeout(soon, turn).await.expect("it is woken").expect("it returns").is_some());
    assert!(tokio::time::timeout(soon, work).await.expect("it is woken").expect("it returns").is_some());
    let seen = tokio::time::timeout(soon, change).await.expect("it is woken").expect("it returns");
    assert!(matches!(seen, Waited::Seen(Some(_))), "{seen:?}");
}
