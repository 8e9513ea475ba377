//! Several processes whose wall clocks disagree.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::{BootId, VirtualClock};
use steadfast_core::{DispatcherCapabilityFilter, EventKind, WorkItem};
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{Store, TurnCommit};

use super::{HOUR, HOUR_MS, LEASE, Machine, NOON_MS, TICK, now_ms, queue_all, renew_all, take_all, turn};
use crate::stage::{event, named, place, start, started};

const DIFFERENCES_MS: [i64; 7] = [0, 5_000, -5_000, 3_600_000, -3_600_000, 86_400_000, -86_400_000];

#[tokio::test]
async fn g2_no_process_takes_the_live_leases_of_another_whatever_their_clocks_say() {
    for ahead_ms in DIFFERENCES_MS {
        for swapped in [false, true] {
            let (machine, (_folder, path)) = (Machine::at_noon(), place());
            let (holder, other) = open_both(&machine, &path, ahead_ms, swapped).await;
            queue_all(&holder, "a").await;
            let leases = take_all(&holder, "holder").await;
            assert_eq!(leases.len(), 3, "{ahead_ms} ms");
            for _ in 0..10 {
                assert_eq!(take_all(&other, "other").await, [], "{ahead_ms} ms");
                machine.pass(LEASE - TICK);
                assert_eq!(take_all(&other, "other").await, [], "{ahead_ms} ms");
                renew_all(&holder, &leases).await;
            }
            machine.pass(LEASE);
            assert_eq!(take_all(&other, "other").await.len(), 3, "they last no longer than they should");
        }
    }
}

/// Opens the file twice, the second time with a wall clock that is ahead. Returns the first one first unless
/// they are to be swapped.
async fn open_both(
    machine: &Machine,
    path: &Path,
    ahead_ms: i64,
    swapped: bool,
) -> (Arc<SqliteProvider>, Arc<SqliteProvider>) {
    let first = machine.open(path, 0).await;
    machine.pass(Duration::from_secs(7));
    let second = machine.open(path, ahead_ms).await;
    if swapped { (second, first) } else { (first, second) }
}

#[tokio::test]
async fn g2_a_newcomer_takes_the_time_of_the_process_that_has_the_file_open() {
    for ahead_ms in DIFFERENCES_MS {
        let (machine, (_folder, path)) = (Machine::at_noon(), place());
        let first = machine.open(&path, ahead_ms).await;
        machine.pass(Duration::from_secs(7));
        let second = machine.open(&path, 0).await;
        let time = NOON_MS.saturating_add_signed(ahead_ms) + 7_000;
        assert_eq!((now_ms(&first).await, now_ms(&second).await), (time, time));
        // It is the time of the file, and not of the process that was first.
        drop(first);
        machine.pass(Duration::from_secs(11));
        let third = machine.open(&path, -ahead_ms).await;
        assert_eq!((now_ms(&second).await, now_ms(&third).await), (time + 11_000, time + 11_000));
    }
}

/// Runs the first turn of an instance, which sets a timer.
async fn set_timer(store: &SqliteProvider, lasts: Duration) -> u64 {
    store.send(vec![start("a").into()]).await.expect("starts");
    let filter = DispatcherCapabilityFilter::default_for_current_build();
    let lease = store.fetch_turn(turn(&filter)).await.expect("answers").expect("it is ready");
    let fire_at_ms = lease.now_ms + lasts.as_millis() as u64;
    let fired = WorkItem::TimerFired { instance: "a".into(), execution_id: 1, id: 2, fire_at_ms };
    let commit = TurnCommit {
        execution_id: 1,
        events: vec![
            event("a", 1, None, started()),
            event("a", 2, None, EventKind::TimerCreated { fire_at_ms }),
        ],
        messages: vec![fired.into()],
        metadata: named("Running"),
        ..TurnCommit::default()
    };
    store.commit_turn(&lease.token, commit).await.expect("it is committed");
    fire_at_ms
}

#[tokio::test]
async fn g2_a_timer_keeps_its_length_whichever_process_sets_it_and_whichever_looks() {
    let lasts = Duration::from_secs(60);
    for ahead_ms in DIFFERENCES_MS {
        for swapped in [false, true] {
            let (machine, (_folder, path)) = (Machine::at_noon(), place());
            let (sets, looks) = open_both(&machine, &path, ahead_ms, swapped).await;
            let fire_at_ms = set_timer(&sets, lasts).await;
            machine.pass(lasts - TICK);
            assert_eq!(take_all(&looks, "looks").await, [], "{ahead_ms} ms: it is early");
            machine.pass(TICK);
            let filter = DispatcherCapabilityFilter::default_for_current_build();
            let fired = looks.fetch_turn(turn(&filter)).await.expect("answers").expect("it is due");
            assert_eq!(fired.now_ms, fire_at_ms, "{ahead_ms} ms");
        }
    }
}

#[tokio::test]
async fn g2_a_wall_clock_that_is_set_while_the_file_is_open_moves_no_time() {
    for ahead_ms in DIFFERENCES_MS {
        let (machine, (_folder, path)) = (Machine::at_noon(), place());
        let clock = machine.clock(0);
        let (first, second) = (clock.open(&path).await, machine.open(&path, 0).await);
        queue_all(&first, "a").await;
        let leases = take_all(&first, "first").await;
        clock.step(ahead_ms);
        machine.pass(Duration::from_secs(10));
        assert_eq!(take_all(&second, "second").await, []);
        renew_all(&first, &leases).await;
        assert_eq!((now_ms(&first).await, now_ms(&second).await), (NOON_MS + 10_000, NOON_MS + 10_000));
    }
}

/// Clocks that name no run of the machine agree too, if they have one monotonic time.
#[tokio::test]
async fn g2_clocks_that_do_not_know_their_machine_agree_by_monotonic_time() {
    for ahead_ms in DIFFERENCES_MS {
        let (machine, (_folder, path)) = (Machine { boot: None, ..Machine::at_noon() }, place());
        let first = machine.open(&path, 0).await;
        queue_all(&first, "a").await;
        assert_eq!(take_all(&first, "first").await.len(), 3);
        machine.pass(Duration::from_secs(20));
        let second = machine.open(&path, ahead_ms).await;
        assert_eq!(take_all(&second, "second").await, []);
        assert_eq!(now_ms(&second).await, NOON_MS + 20_000);
    }
}

/// A container with a time namespace of its own has another origin of the machine's clocks, and so another
/// name of the machine's run.
#[tokio::test]
async fn g2_a_process_of_another_time_namespace_takes_no_live_leases() {
    for (hours_ahead, namespace) in [(1, 7), (1_000, 8)] {
        let (machine, (_folder, path)) = (Machine::at_noon(), place());
        let holder = machine.open(&path, 0).await;
        queue_all(&holder, "a").await;
        let leases = take_all(&holder, "holder").await;
        assert_eq!(leases.len(), 3);
        let time = VirtualClock::new(NOON_MS - hours_ahead * HOUR_MS);
        let inside = Machine { time, boot: Some(BootId(1 ^ namespace)) };
        inside.pass(HOUR * u32::try_from(hours_ahead).expect("a small number"));
        let other = inside.open(&path, 0).await;
        assert_eq!((now_ms(&holder).await, now_ms(&other).await), (NOON_MS, NOON_MS));
        assert_eq!(take_all(&other, "other").await, []);
        renew_all(&holder, &leases).await;
    }
}

/// Two clocks with nothing in common: the wall clock is all that is left, and the time of the file its bound.
#[tokio::test]
async fn clocks_of_different_origin_go_by_the_wall_and_not_behind_the_file() {
    let ((_folder, path), theirs, ours) = (place(), Machine::at_noon(), Machine::at_noon());
    let theirs = Machine { boot: None, ..theirs };
    let first = theirs.open(&path, 0).await;
    theirs.pass(Duration::from_secs(3_600));
    queue_all(&first, "a").await;
    let ours = Machine { boot: Some(steadfast_clock::BootId(7)), ..ours };
    assert_eq!(now_ms(&*ours.open(&path, 0).await).await, NOON_MS + HOUR_MS);
    let ahead = ours.open(&path, 3_605_000).await;
    assert_eq!(now_ms(&ahead).await, NOON_MS + HOUR_MS + 5_000);
    ours.pass(Duration::from_secs(2));
    assert_eq!(now_ms(&ahead).await, NOON_MS + HOUR_MS + 7_000);
    assert_eq!(now_ms(&first).await, NOON_MS + HOUR_MS, "the time of the others stays theirs");
}
