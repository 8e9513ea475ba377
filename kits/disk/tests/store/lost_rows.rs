//! Rows that an index or a head still names and that the table has no more: half of a leaf is zero, or the
//! leaf is an older version of itself. Each test has a watch: a store that does not answer is in a loop.

use std::ops::Range;
use std::sync::mpsc;
use std::time::Duration;

use steadfast_core::WorkItem;
use steadfast_disk::Loss;
use steadfast_store::{
    MAX_UNREADABLE_ATTEMPTS, NewWork, Outcome, ProviderErrorKind, Store, UNREADABLE_RETRY,
};

use crate::chain::{LEASE, start};
use crate::machine::{FILE, Machine, process};
use crate::pages::{PAGE, close, leaves_with, long_input, turn_request, work};

const ROWS: usize = 20;

/// How long a store may take to answer.
const WATCH: Duration = Duration::from_secs(20);

/// Runs a test on a thread of its own, and fails if it takes too long.
fn watched<R: Send + 'static>(what: String, test: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, answer) = mpsc::channel();
    std::thread::spawn(move || drop(done.send(test())));
    answer.recv_timeout(WATCH).unwrap_or_else(|_| panic!("{what}: it fails, or a fetch does not return"))
}

#[derive(Debug, Clone, Copy)]
enum Tear {
    /// The leaf is zero from here on.
    ZeroFrom(usize),
    /// The leaf is as it was before its last row was added.
    Older,
}

fn queue(machine: &Machine, numbers: Range<usize>, session: Option<&str>, name: &str) {
    process(async {
        let store = machine.reopen(name).await;
        for number in numbers {
            let item = WorkItem::ActivityExecute {
                instance: "a".into(),
                execution_id: 1,
                id: number as u64 + 1,
                name: "Step".into(),
                input: long_input(number),
                session_id: session.map(str::to_owned),
                tag: None,
            };
            store.enqueue_work(NewWork::from(item)).await.expect("it is queued");
        }
        close(store).await;
    });
    machine.restart(Loss::Nothing);
}

/// A machine with activities, on a session or not. The leaf in the middle of the queue is torn.
fn torn_work(how: Tear, session: Option<&str>) -> Machine {
    let machine = Machine::ready();
    queue(&machine, 0..10, session, "one");
    let leaf = leaves_with(&machine, &["leaf 009 "])[0];
    let before = machine.disk.bytes(FILE).expect("the file")[leaf..leaf + PAGE].to_vec();
    queue(&machine, 10..ROWS, session, "two");
    match how {
        Tear::Older => {
            assert_eq!(leaves_with(&machine, &["leaf 010 "]), [leaf], "the next row is on the same leaf");
            assert!(machine.disk.overwrite(FILE, leaf, &before));
        }
        Tear::ZeroFrom(from) => {
            assert!(machine.disk.overwrite(FILE, leaf + from, &vec![0; PAGE - from]));
        }
    }
    machine
}

/// Finishes all that can be leased. Returns how many were finished, and how many set aside.
fn finish_all(machine: &Machine) -> (usize, usize) {
    process(async {
        let (store, mut finished) = (machine.reopen("worker").await, 0);
        for _ in 0..=MAX_UNREADABLE_ATTEMPTS {
            for _ in 0..=ROWS {
                let Some(lease) = work(&store).await else { break };
                store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
                finished += 1;
            }
            machine.clock.advance(UNREADABLE_RETRY);
        }
        (finished, store.set_aside(None).await.expect("it lists").len())
    })
}

#[test]
fn g6_an_activity_that_only_an_index_has_is_set_aside_and_keeps_no_fetch_in_a_loop() {
    for session in [None, Some("s")] {
        for how in [Tear::ZeroFrom(512), Tear::ZeroFrom(1024), Tear::ZeroFrom(2048), Tear::Older] {
            let what = format!("{how:?} on session {session:?}");
            let (finished, aside) = watched(what.clone(), move || finish_all(&torn_work(how, session)));
            assert_eq!(finished + aside, ROWS, "{what}: {aside} are set aside");
            assert!((1..=6).contains(&aside), "{what}: {aside} are set aside");
        }
    }
}

/// A machine with ready instances, whose only leaf is zero from some place on.
fn torn_instances(from: usize) -> Machine {
    let machine = Machine::ready();
    process(async {
        let store = machine.reopen("maker").await;
        for number in 0..6 {
            let item = start(&format!("i{number}"));
            store.start(item.into(), Vec::new()).await.expect("it is started");
        }
        close(store).await;
    });
    machine.restart(Loss::Nothing);
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'instances'";
    let root: u32 = machine.raw().query_row(sql, [], |row| row.get(0)).expect("it has a root");
    machine.restart(Loss::Nothing);
    let leaf = (root as usize - 1) * PAGE;
    assert!(machine.disk.overwrite(FILE, leaf + from, &vec![0; PAGE - from]));
    machine
}

#[test]
fn g6_an_instance_that_only_an_index_has_fails_a_fetch_with_the_remedy_and_keeps_none_in_a_loop() {
    for from in [512, 1024, 2048, 3072] {
        let error = watched(format!("zero from {from}"), move || {
            let machine = torn_instances(from);
            process(async {
                let store = machine.reopen("worker").await;
                store.fetch_turn(turn_request(LEASE)).await.expect_err("the instance is not there")
            })
        });
        assert_eq!(error.kind, ProviderErrorKind::Corrupt, "zero from {from}: {error}");
        assert!(error.message.contains(".recover"), "zero from {from}: {error}");
    }
}
