//! A machine that sleeps: a call that waits by monotonic time learns that the time of the store has jumped.

#![allow(clippy::expect_used, reason = "a test panics with what it relies on")]

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::{Clock, VirtualClock};
use steadfast_core::WorkItem;
use steadfast_memory::MemoryStore;
use steadfast_store::{Cold, Envelope, Store, TurnLease, TurnRequest};

const NOON_MS: u64 = 1_700_000_000_000;
const HOUR: Duration = Duration::from_secs(3_600);

fn opened() -> (VirtualClock, Arc<MemoryStore>) {
    let clock = VirtualClock::new(NOON_MS);
    (clock.clone(), Arc::new(MemoryStore::with_clock(Arc::new(clock))))
}

/// Sends the start of an instance, which becomes visible after a delay.
async fn start_later(store: &MemoryStore, delay: Duration) {
    let item = WorkItem::StartOrchestration {
        instance: "a".to_owned(),
        orchestration: "Orchestration".to_owned(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    let start = Envelope { delay: Some(delay), ..Envelope::from(item) };
    store.start(start, Vec::new()).await.expect("starts");
}

async fn fetch(store: &MemoryStore) -> Option<TurnLease> {
    let request = TurnRequest {
        lock_timeout: Duration::from_secs(30),
        poll_timeout: 10 * HOUR,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    store.fetch_turn(request).await.expect("answers")
}

/// Lets a task run until it waits.
async fn run_until_it_waits() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn g2_a_timer_that_fell_due_in_a_sleep_of_the_machine_wakes_a_waiting_fetch() {
    let (clock, store) = opened();
    start_later(&store, HOUR).await;
    let waiting = tokio::spawn({
        let store = Arc::clone(&store);
        async move { fetch(&store).await }
    });
    run_until_it_waits().await;
    assert_eq!(clock.sleepers(), 1, "it waits");
    clock.suspend(HOUR);
    // A second is enough to notice it; by monotonic time nearly an hour is left.
    clock.advance(Duration::from_secs(1));
    run_until_it_waits().await;
    assert!(waiting.is_finished(), "it is woken");
    let lease = waiting.await.expect("returns").expect("the start is due");
    assert_eq!(lease.now_ms, NOON_MS + 3_601_000);
}

#[tokio::test]
async fn g2_the_time_of_the_store_goes_on_while_the_machine_sleeps() {
    let (clock, store) = opened();
    clock.suspend(HOUR);
    assert_eq!(store.now_ms(), NOON_MS + 3_600_000);
    clock.set_wall_ms(NOON_MS);
    clock.advance(Duration::from_millis(1));
    assert_eq!(store.now_ms(), NOON_MS + 3_600_001, "and a wall clock that is set changes nothing");
}

/// Two clocks are never read at exactly one moment, so their difference is not a sleep.
#[tokio::test]
async fn a_difference_of_a_few_milliseconds_is_no_sleep_until_it_adds_up() {
    let (clock, store) = opened();
    clock.suspend(Duration::from_millis(99));
    assert_eq!(store.now_ms(), NOON_MS);
    clock.suspend(Duration::from_millis(1));
    assert_eq!((store.now_ms(), clock.now_ms()), (NOON_MS + 100, NOON_MS + 100));
}

#[tokio::test]
async fn a_fetch_that_waits_for_no_moment_is_not_woken_to_look() {
    let (clock, store) = opened();
    let waiting = tokio::spawn({
        let store = Arc::clone(&store);
        async move { fetch(&store).await }
    });
    run_until_it_waits().await;
    assert_eq!(clock.next_deadline(), Some(10 * HOUR), "the end of its poll");
    waiting.abort();
}
