//! Several processes on one disk, in one thread.

use std::time::Duration;

use steadfast_store::{Cold, Store, TurnRequest, WaitFor, Waited};

use crate::chain::{LEASE, Ledger, start};
use crate::machine::{Machine, process};

fn turn(poll_timeout: Duration) -> TurnRequest<'static> {
    TurnRequest { lock_timeout: LEASE, poll_timeout, filter: None, warm: &Cold, worker: None }
}

#[test]
fn two_processes_share_a_file_and_one_sees_what_the_other_commits() {
    let machine = Machine::new(1);
    process(async {
        let (first, second) = (machine.reopen("first").await, machine.reopen("second").await);
        first.start(start("i").into(), Vec::new()).await.expect("it is started");
        let lease = second.fetch_turn(turn(Duration::ZERO)).await.expect("it can be fetched");
        assert_eq!(lease.expect("a turn").instance, "i");
        assert!(first.fetch_turn(turn(Duration::ZERO)).await.expect("a fetch").is_none(), "it is leased");
    });
}

#[test]
fn a_call_that_waits_is_woken_by_a_commit_of_another_process() {
    let machine = Machine::new(1);
    process(async {
        let (first, second) = (machine.reopen("first").await, machine.reopen("second").await);
        let waiting = tokio::spawn(async move { second.wait(WaitFor::Turn, Duration::from_secs(60)).await });
        tokio::task::yield_now().await;
        first.start(start("i").into(), Vec::new()).await.expect("it is started");
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(!waiting.is_finished(), "no time has passed: the other process has not looked");
        machine.clock.advance(Duration::from_millis(25));
        assert_eq!(waiting.await.expect("it returns").expect("it waits"), Waited::Woken);
    });
}

#[test]
fn a_killed_process_leaves_its_leases_and_its_log_as_they_are() {
    let machine = Machine::new(1);
    let first = machine.disk.mount("first");
    let log = process(async {
        let store = machine.open(&first).await.expect("the store opens");
        store.start(start("i").into(), Vec::new()).await.expect("it is started");
        // The lease is on its way to a caller that is dropped: a live process would undo it.
        let mut fetch = Box::pin(store.fetch_turn(turn(Duration::ZERO)));
        for _ in 0..3 {
            let poll = std::future::poll_fn(|context| std::task::Poll::Ready(fetch.as_mut().poll(context)));
            if poll.await.is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        first.kill();
        drop(fetch);
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        machine.disk.bytes("store.db-wal").expect("a log")
    });
    assert_eq!(machine.disk.bytes("store.db-wal").expect("a log"), log, "the last connection wrote nothing");
    process(async {
        let store = machine.reopen("second").await;
        let early = store.fetch_turn(turn(Duration::ZERO)).await.expect("it can be fetched");
        assert!(early.is_none(), "the lease of the dead process has not expired");
        machine.clock.advance(LEASE);
        let lease = store.fetch_turn(turn(Duration::ZERO)).await.expect("it can be fetched").expect("a turn");
        assert_eq!(lease.attempt, 2, "the delivery to the dead process counts");
    });
}

#[test]
fn a_store_that_is_dropped_undoes_the_lease_that_has_no_holder() {
    let machine = Machine::new(1);
    process(async {
        let store = machine.reopen("first").await;
        store.start(start("i").into(), Vec::new()).await.expect("it is started");
        let mut fetch = Box::pin(store.fetch_turn(turn(Duration::ZERO)));
        let poll = std::future::poll_fn(|context| std::task::Poll::Ready(fetch.as_mut().poll(context)));
        assert!(poll.await.is_pending(), "the request is with the writer");
        drop(fetch);
        drop(store);
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
    });
    process(async {
        let store = machine.reopen("second").await;
        let lease = store.fetch_turn(turn(Duration::ZERO)).await.expect("it can be fetched").expect("a turn");
        assert_eq!(lease.attempt, 1, "no delivery was lost");
        let mut ledger = Ledger::default();
        drop(lease);
        machine.clock.advance(LEASE);
        ledger.settle(&store, &machine.clock).await;
    });
}
