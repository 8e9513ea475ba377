//! A wall clock that is set back between two processes: the leases of the first must not last that much
//! longer.

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::VirtualClock;
use steadfast_core::{DispatcherCapabilityFilter, TagFilter};
use steadfast_sqlite::SqliteOptions;
use steadfast_store::{Cold, Owner, SessionRequest, SessionScope, Store, TurnRequest, WorkRequest};

use crate::stage::{activity, open, place, start};

const LEASE: Duration = Duration::from_secs(30);
const NOON_MS: u64 = 1_700_000_000_000;
const HOUR_MS: u64 = 3_600_000;

fn at(wall_ms: u64) -> SqliteOptions {
    SqliteOptions { clock: Arc::new(VirtualClock::new(wall_ms)), ..SqliteOptions::default() }
}

fn turn(filter: &DispatcherCapabilityFilter) -> TurnRequest<'_> {
    TurnRequest {
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        filter: Some(filter),
        warm: &Cold,
        worker: None,
    }
}

fn work(owner: &str) -> WorkRequest {
    WorkRequest {
        worker_id: owner.to_owned(),
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::DefaultOnly,
        session: Some(SessionRequest {
            owner: Owner::unnamed(owner),
            lock_timeout: LEASE,
            scope: SessionScope::Claim,
            leave_out: Vec::new(),
        }),
        worker: None,
    }
}

/// Leases a turn, an activity and an activity of a session; returns whether it got the turn, and how many
/// activities.
async fn take_all(store: &dyn Store, owner: &str) -> (bool, usize) {
    let filter = DispatcherCapabilityFilter::default_for_current_build();
    let turn = store.fetch_turn(turn(&filter)).await.expect("answers").is_some();
    let mut activities = 0;
    while store.fetch_work(work(owner)).await.expect("answers").is_some() {
        activities += 1;
    }
    (turn, activities)
}

#[tokio::test]
async fn a_lease_of_a_clock_that_was_set_back_counts_as_ended() {
    let (_folder, path) = place();
    let first = open(&path, at(NOON_MS)).await;
    first.send(vec![start("a").into()]).await.expect("starts");
    for (id, session) in [(1, None), (2, Some("s"))] {
        first.enqueue_work(activity("a", id, session, None)).await.expect("queues");
    }
    assert_eq!(take_all(&*first, "first").await, (true, 2));
    drop(first);
    let second = open(&path, at(NOON_MS - HOUR_MS)).await;
    assert_eq!(take_all(&*second, "second").await, (true, 2));
    assert_eq!(take_all(&*second, "third").await, (false, 0), "what it holds now is held");
}

#[tokio::test]
async fn clocks_that_differ_a_little_respect_each_other() {
    let (_folder, path) = place();
    let first = open(&path, at(NOON_MS)).await;
    first.send(vec![start("a").into()]).await.expect("starts");
    first.enqueue_work(activity("a", 1, Some("s"), None)).await.expect("queues");
    assert_eq!(take_all(&*first, "first").await, (true, 1));
    let second = open(&path, at(NOON_MS - 5_000)).await;
    assert_eq!(take_all(&*second, "second").await, (false, 0));
}
