//! A process that opens the file while no other has it open.

use std::time::Duration;

use steadfast_clock::{BootId, Clock, VirtualClock};
use steadfast_store::{Store, WORKER_LIVE_FOR};

use super::{
    HOUR, HOUR_MS, LEASE, Machine, NOON_MS, TICK, assert_lost, later, now_ms, queue_all, renew_all, take_all,
};
use crate::stage::{place, raw, start, worker};

#[tokio::test]
async fn g2_a_process_alone_moves_the_time_to_its_wall_clock_and_live_leases_with_it() {
    let (machine, (_folder, path)) = (Machine::at_noon(), place());
    let first = machine.open(&path, 0).await;
    queue_all(&first, "ended").await;
    let ended = take_all(&first, "first").await;
    machine.pass(LEASE - Duration::from_secs(10));
    queue_all(&first, "live").await;
    let live = take_all(&first, "first").await;
    machine.pass(Duration::from_secs(10));
    drop(first);
    let second = machine.open(&path, 3_600_000).await;
    assert_eq!(now_ms(&second).await, NOON_MS + HOUR_MS + 30_000);
    assert_lost(&second, &ended).await;
    let again = take_all(&second, "second").await;
    assert_eq!(again.len(), 3, "those that had ended, and no others");
    // Twenty seconds were left of the live ones.
    machine.pass(Duration::from_secs(20) - TICK);
    renew_all(&second, &live[..1]).await;
    machine.pass(TICK);
    assert_lost(&second, &live[1..]).await;
}

#[tokio::test]
async fn g2_delays_end_by_the_time_to_which_the_file_is_moved() {
    let (machine, (_folder, path)) = (Machine::at_noon(), place());
    let first = machine.open(&path, 0).await;
    first.start(start("a").into(), Vec::new()).await.expect("starts");
    let taken = take_all(&first, "first").await;
    first.abandon(&taken[0], later(HOUR)).await.expect("it waits");
    assert_eq!(take_all(&first, "first").await, []);
    drop(first);
    let second = machine.open(&path, 3_600_000).await;
    assert_eq!(take_all(&second, "second").await.len(), 1);
}

#[tokio::test]
async fn g2_time_does_not_go_back_for_a_process_alone_whose_clock_is_behind() {
    let (machine, (_folder, path)) = (Machine::at_noon(), place());
    let first = machine.open(&path, 0).await;
    queue_all(&first, "a").await;
    let leases = take_all(&first, "first").await;
    drop(first);
    machine.pass(Duration::from_secs(10));
    let second = machine.open(&path, -3_600_000).await;
    assert_eq!(now_ms(&second).await, NOON_MS + 10_000, "it went on while the file was closed");
    assert_eq!(take_all(&second, "second").await, []);
    machine.pass(Duration::from_secs(20) - TICK);
    assert_eq!(take_all(&second, "second").await, []);
    machine.pass(TICK);
    assert_lost(&second, &leases).await;
    assert_eq!(take_all(&second, "second").await.len(), 3, "a lease lasts no longer for it");
}

#[tokio::test]
async fn g2_a_file_that_a_later_run_of_the_machine_opens_has_its_wall_time() {
    let (before, (_folder, path)) = (Machine::at_noon(), place());
    before.pass(Duration::from_secs(5_000));
    let first = before.open(&path, 0).await;
    queue_all(&first, "a").await;
    assert_eq!(take_all(&first, "first").await.len(), 3);
    drop(first);
    // More time awake than the other run had: it must not be taken for that of the anchor.
    let time = VirtualClock::new(NOON_MS);
    time.advance(Duration::from_secs(6_000));
    let after = Machine { time, boot: Some(BootId(2)) };
    let second = after.open(&path, 0).await;
    assert_eq!(now_ms(&second).await, NOON_MS + 6_000_000);
    assert_eq!(take_all(&second, "second").await.len(), 3, "their holders ended with the machine");
}

#[tokio::test]
async fn g2_a_later_run_of_the_machine_whose_clock_is_behind_goes_on_from_the_time_of_the_file() {
    let (before, (_folder, path)) = (Machine::at_noon(), place());
    let first = before.open(&path, 0).await;
    before.pass(HOUR);
    queue_all(&first, "a").await;
    assert_eq!(take_all(&first, "first").await.len(), 3);
    let reached = now_ms(&first).await;
    drop(first);
    let after = Machine { boot: Some(BootId(2)), ..Machine::at_noon() };
    let second = after.open(&path, 0).await;
    assert_eq!(now_ms(&second).await, reached);
    after.pass(LEASE);
    assert_eq!((now_ms(&second).await, take_all(&second, "second").await.len()), (reached + 30_000, 3));
}

#[tokio::test]
async fn g2_a_copy_on_another_machine_has_the_wall_time_there() {
    let (here, (_folder, path)) = (Machine::at_noon(), place());
    drop(here.open(&path, 0).await);
    let time = VirtualClock::new(NOON_MS + HOUR_MS);
    let there = Machine { time, boot: Some(BootId(2)) };
    // It has been up for a year.
    there.pass(Duration::from_secs(365 * 86_400));
    there.time.set_wall_ms(NOON_MS + HOUR_MS);
    assert_eq!(now_ms(&*there.open(&path, 0).await).await, NOON_MS + HOUR_MS);
}

/// A file that an older build used has no time of its own: its leases are what that build left.
#[tokio::test]
async fn a_file_without_a_time_takes_the_wall_clock_and_ends_the_leases_of_one_that_was_set_back() {
    let (machine, (_folder, path)) = (Machine::at_noon(), place());
    let first = machine.open(&path, 0).await;
    queue_all(&first, "a").await;
    assert_eq!(take_all(&first, "first").await.len(), 3);
    drop(first);
    raw(&path).execute_batch("DELETE FROM clock").expect("as the older build left it");
    let second = machine.open(&path, -3_600_000).await;
    assert_eq!(now_ms(&second).await, NOON_MS - HOUR_MS);
    assert_eq!(take_all(&second, "second").await.len(), 3);
    assert_eq!(take_all(&second, "third").await, [], "what it holds now is held");
}

/// The remedy for a wall clock that was far ahead when a file was opened.
#[tokio::test]
async fn g2_a_file_whose_time_is_removed_is_set_to_the_wall_clock_and_its_workers_are_gone() {
    let (machine, (_folder, path)) = (Machine::at_noon(), place());
    drop(machine.open(&path, 0).await);
    let first = machine.open(&path, 100 * 365 * 86_400_000).await;
    first.report_worker(&worker("new", true)).await.expect("it reports");
    drop(first);
    let second = machine.open(&path, 0).await;
    assert!(now_ms(&second).await > NOON_MS + HOUR_MS, "it does not go back by itself");
    drop(second);
    raw(&path).execute_batch("DELETE FROM clock").expect("the remedy");
    let third = machine.open(&path, 0).await;
    assert_eq!(now_ms(&third).await, NOON_MS);
    machine.pass(WORKER_LIVE_FOR);
    let workers = third.workers(None).await.expect("it lists");
    assert_eq!(workers.iter().filter(|worker| worker.is_live).count(), 0, "{workers:?}");
}

#[tokio::test]
async fn opening_a_file_again_and_again_writes_nothing_while_the_clock_is_right() {
    let (machine, (_folder, path)) = (Machine::at_noon(), place());
    drop(machine.open(&path, 0).await);
    let anchor = || -> String {
        let all = "SELECT store_ms || ' ' || awake_ns || ' ' || noted_ms FROM clock";
        raw(&path).query_row(all, [], |row| row.get(0)).expect("an anchor")
    };
    let before = anchor();
    for _ in 0..5 {
        machine.pass(HOUR);
        let store = machine.open(&path, 1).await;
        assert_eq!(now_ms(&store).await, machine.time.now_ms());
        raw(&path).execute_batch("UPDATE clock SET noted_ms = store_ms").expect("without the note");
    }
    assert_eq!(anchor(), before);
}
