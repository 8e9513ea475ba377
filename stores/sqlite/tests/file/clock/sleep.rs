//! A machine that sleeps: its processes wake up with the leases that they had, and timers are not late.

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::VirtualClock;
use steadfast_core::TagFilter;
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{LeaseToken, Store};

use super::{
    HOUR, HOUR_MS, LEASE, Machine, NOON_MS, TICK, assert_lost, later, now_ms, queue_all, renew_all, take_all,
};
use crate::stage::{LONG, place, start, turn_request, until, work_request};

const LEFT: Duration = Duration::from_secs(20);

/// Takes leases, of which [`LEFT`] is left when the machine goes to sleep for an hour, and three that ended
/// before.
async fn sleep_with_leases(machine: &Machine, store: &SqliteProvider) -> (Vec<LeaseToken>, Vec<LeaseToken>) {
    queue_all(store, "ended").await;
    let ended = take_all(store, "holder").await;
    machine.pass(LEFT);
    queue_all(store, "live").await;
    let live = take_all(store, "holder").await;
    machine.pass(LEASE - LEFT);
    machine.time.suspend(HOUR);
    (live, ended)
}

#[tokio::test]
async fn g2_a_process_that_wakes_up_alone_holds_its_leases_for_as_long_as_was_left() {
    let (machine, (_folder, path)) = (Machine::at_noon(), place());
    let store = machine.open(&path, 0).await;
    let (live, ended) = sleep_with_leases(&machine, &store).await;
    assert_lost(&store, &ended).await;
    assert_eq!(now_ms(&store).await, NOON_MS + 30_000 + HOUR_MS);
    machine.pass(LEFT - TICK);
    renew_all(&store, &live[..1]).await;
    machine.pass(TICK);
    assert_lost(&store, &live[1..]).await;
}

/// The first call after the sleep may fail: the leases are extended all the same, and once.
#[tokio::test]
async fn g2_a_sleep_is_counted_once_whichever_process_notices_it_first() {
    for first in [0, 1] {
        let (machine, (_folder, path)) = (Machine::at_noon(), place());
        let both = [machine.open(&path, 0).await, machine.open(&path, -86_400_000).await];
        let (live, ended) = sleep_with_leases(&machine, &both[0]).await;
        for notices in [first, 1 - first, first] {
            assert_lost(&both[notices], &ended).await;
            assert_eq!(now_ms(&both[notices]).await, NOON_MS + 30_000 + HOUR_MS);
        }
        assert_eq!(take_all(&both[1], "other").await.len(), 3, "those that had ended, and no others");
        machine.pass(LEFT - TICK);
        assert_eq!(take_all(&both[1], "other").await, []);
        renew_all(&both[0], &live[..1]).await;
        machine.pass(TICK);
        assert_lost(&both[0], &live[1..]).await;
    }
}

#[tokio::test]
async fn g2_sleeps_add_up_and_every_one_extends_the_leases() {
    let (machine, (_folder, path)) = (Machine::at_noon(), place());
    let both = [machine.open(&path, 0).await, machine.open(&path, 3_600_000).await];
    queue_all(&both[0], "a").await;
    let leases = take_all(&both[0], "holder").await;
    for round in 1..=30 {
        machine.time.suspend(HOUR);
        machine.pass(Duration::from_secs(10));
        assert_eq!(take_all(&both[round % 2], "other").await, []);
        renew_all(&both[0], &leases).await;
    }
    assert_eq!(now_ms(&both[1]).await, NOON_MS + 30 * (HOUR_MS + 10_000));
}

#[tokio::test]
async fn g2_a_timer_that_fell_due_in_the_sleep_wakes_a_waiting_fetch() {
    let (machine, (_folder, path)) = (Machine::at_noon(), place());
    let store = machine.open(&path, 0).await;
    store.start(start("a").into(), Vec::new()).await.expect("starts");
    let first = store.fetch_turn(turn_request(LEASE, Duration::ZERO)).await.expect("answers");
    store.abandon(&first.expect("it is ready").token, later(HOUR / 2)).await.expect("it waits");
    let parked = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.fetch_turn(turn_request(LEASE, 10 * HOUR)).await }
    });
    // The writing thread and the fetch wait for the virtual clock.
    until("the fetch waits", || machine.time.sleepers() == 2).await;
    machine.time.suspend(HOUR);
    assert!(!parked.is_finished());
    // Time enough for a look at the file; by monotonic time the timer has half an hour to go.
    machine.pass(Duration::from_millis(200));
    let lease = tokio::time::timeout(LONG, parked).await.expect("it wakes up").expect("it returns");
    let lease = lease.expect("answers").expect("the timer is due");
    assert_eq!(lease.now_ms, NOON_MS + HOUR_MS + 200);
}

#[tokio::test]
async fn g2_a_machine_that_slept_while_the_file_was_closed_extends_leases_when_it_is_opened() {
    let (machine, (_folder, path)) = (Machine::at_noon(), place());
    let first = machine.open(&path, 0).await;
    let (live, ended) = sleep_with_leases(&machine, &first).await;
    drop(first);
    let second = machine.open(&path, 0).await;
    assert_eq!(now_ms(&second).await, NOON_MS + 30_000 + HOUR_MS);
    assert_lost(&second, &ended).await;
    renew_all(&second, &live).await;
}

#[tokio::test]
async fn g2_a_database_in_memory_wakes_up_with_its_leases_and_its_timers() {
    let clock = VirtualClock::new(NOON_MS);
    let options = SqliteOptions { clock: Arc::new(clock.clone()), ..SqliteOptions::default() };
    let store = SqliteProvider::new_in_memory_with_options(Some(options)).await.expect("opens");
    queue_all(&store, "a").await;
    let leases = take_all(&store, "holder").await;
    store.start(start("b").into(), Vec::new()).await.expect("starts");
    let taken = store.fetch_turn(turn_request(LEASE, Duration::ZERO)).await.expect("answers");
    store.abandon(&taken.expect("it is ready").token, later(HOUR)).await.expect("it waits");
    clock.suspend(HOUR);
    renew_all(&store, &leases).await;
    let due = store.fetch_turn(turn_request(LEASE, Duration::ZERO)).await.expect("answers");
    assert_eq!(due.expect("it is due").instance, "b");
    assert!(store.fetch_work(work_request(Duration::ZERO, TagFilter::Any)).await.expect("answers").is_none());
}

#[tokio::test]
async fn g2_a_session_is_not_idle_for_the_time_that_the_machine_slept() {
    let (machine, (_folder, path)) = (Machine::at_noon(), place());
    let store = machine.open(&path, 0).await;
    queue_all(&store, "a").await;
    let leases = take_all(&store, "holder").await;
    let before = store.sessions(None).await.expect("lists").remove(0);
    machine.time.suspend(HOUR);
    renew_all(&store, &leases[..1]).await;
    let after = store.sessions(None).await.expect("lists").remove(0);
    assert_eq!(after.epoch, before.epoch);
    assert_eq!(after.locked_until_ms, before.locked_until_ms + HOUR_MS);
    assert_eq!(after.last_activity_at_ms, before.last_activity_at_ms + HOUR_MS);
}
