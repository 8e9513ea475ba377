//! Reads of one page that fail for a while: SQLite tells of some as of a torn page. What is readable again is
//! delivered as it was, and a step that mends a queue is done as a whole or not at all.

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast_core::{TagFilter, WorkItem};
use steadfast_disk::{DiskFault, Failure, FileCall, Loss};
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    Cold, MAX_UNREADABLE_ATTEMPTS, ProviderError, ProviderErrorKind, Store, TurnCommit, TurnRequest,
    UNREADABLE_RETRY, WorkRequest,
};

use crate::chain::{LEASE, activity, start};
use crate::machine::{FILE, Machine, process};

const PAGE: usize = 4096;
const ROWS: usize = 20;
const FOR_LONG: u64 = 1_000_000;

fn input(number: usize) -> String {
    format!("leaf {number:03} {}", "x".repeat(PAGE / 4))
}

fn long_start(number: usize) -> WorkItem {
    let mut item = start(&format!("i{number:03}"));
    if let WorkItem::StartOrchestration { input: text, .. } = &mut item {
        *text = input(number);
    }
    item
}

/// A machine with a store that has starts and activities with long texts, closed properly.
fn filled() -> Machine {
    let machine = Machine::ready();
    process(async {
        let store = machine.reopen("maker").await;
        for number in 0..ROWS {
            store.start(long_start(number).into(), Vec::new()).await.expect("it is started");
            let mut work = activity("a", number as u64);
            if let WorkItem::ActivityExecute { input: text, .. } = &mut work.item {
                *text = input(number);
            }
            store.enqueue_work(work).await.expect("it is queued");
        }
        drop(store);
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
    });
    // All of it is durable, and there is no log.
    machine.restart(Loss::Nothing);
    machine
}

/// The leaves of tables with the text of a row: of the messages, and of the activities.
fn leaves_of(machine: &Machine, number: usize) -> Vec<usize> {
    let bytes = machine.disk.bytes(FILE).expect("the file");
    let text = format!("leaf {number:03} ");
    let has = |page: &[u8]| page.windows(text.len()).any(|window| window == text.as_bytes());
    let pages = bytes.chunks_exact(PAGE).enumerate().filter(|(_, page)| page[0] == 0x0d && has(page));
    pages.map(|(page, _)| page * PAGE).collect()
}

fn fail_reads(machine: &Machine, number: usize, times: u64, failure: Failure) {
    let leaves = leaves_of(machine, number);
    assert!(leaves.len() >= 2, "{leaves:?}");
    for leaf in leaves {
        assert!(machine.disk.fail_reads(FILE, leaf, times, failure));
    }
}

fn tear(machine: &Machine, number: usize) {
    let leaves = leaves_of(machine, number);
    assert!(leaves.len() >= 2, "{leaves:?}");
    for leaf in leaves {
        assert!(machine.disk.overwrite(FILE, leaf, &[0xff; PAGE]));
    }
}

fn number(machine: &Machine, sql: &str) -> i64 {
    machine.raw().query_row(sql, [], |row| row.get(0)).expect("it counts")
}

fn tables_left_behind(machine: &Machine) -> i64 {
    number(machine, "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'damaged_*'")
}

/// What was given to the callers, by instance or activity: the text and the number of the delivery.
type Deliveries = BTreeMap<String, (String, u32)>;

async fn deliver(store: &SqliteProvider, given: &mut Deliveries) {
    let turn = || TurnRequest {
        lock_timeout: 1_000 * LEASE,
        poll_timeout: Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    while let Some(lease) = store.fetch_turn(turn()).await.expect("no fetch fails") {
        let WorkItem::StartOrchestration { input, .. } = &lease.messages[0].item else { continue };
        let former = given.insert(lease.instance.clone(), (input.clone(), lease.attempt));
        assert_eq!(former, None, "{} is delivered once", lease.instance);
    }
    let work = || WorkRequest {
        worker_id: "worker".into(),
        lock_timeout: 1_000 * LEASE,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::DefaultOnly,
        session: None,
        worker: None,
    };
    while let Some(lease) = store.fetch_work(work()).await.expect("no fetch fails") {
        let WorkItem::ActivityExecute { instance, input, id, .. } = &lease.item else { continue };
        let former = given.insert(format!("activity {id} of {instance}"), (input.clone(), lease.attempt));
        assert_eq!(former, None, "{id} of {instance} is delivered once");
    }
}

/// Asserts that all of [`filled`] was delivered as it was sent.
fn assert_all_as_sent(given: &Deliveries) {
    for number in 0..ROWS {
        for name in [format!("i{number:03}"), format!("activity {number} of a")] {
            assert_eq!(given.get(&name), Some(&(input(number), 1)), "{name}");
        }
    }
}

/// Sends to both queues, again while the store says that the caller may try again.
async fn send(store: &SqliteProvider, name: &str) -> Result<(), ProviderErrorKind> {
    for _ in 0..100 {
        let sent = match store.start(start(name).into(), Vec::new()).await {
            Ok(_) => store.enqueue_work(activity(name, 900)).await,
            Err(error) => Err(error),
        };
        match sent {
            Err(error) if error.is_retryable() => {}
            sent => return sent.map_err(|error| error.kind),
        }
    }
    panic!("it is answered in the end");
}

#[test]
fn a_few_failed_reads_lose_no_message_and_no_activity() {
    let filled = filled();
    for failure in [Failure::BadSector, Failure::Io] {
        for times in 1..=8 {
            let machine = filled.copy(times);
            let given = process(async {
                let store = machine.reopen("first").await;
                fail_reads(&machine, ROWS - 1, times, failure);
                send(&store, "new").await.expect("it passes");
                machine.disk.heal();
                let mut given = Deliveries::new();
                deliver(&store, &mut given).await;
                assert_eq!(store.set_aside(None).await.expect("it lists"), []);
                given
            });
            assert_all_as_sent(&given);
            if times <= 3 {
                assert_eq!(tables_left_behind(&machine), 0, "{failure:?} {times}: nothing is mended");
            }
        }
    }
}

/// The disk fails for long enough to be taken for torn, and is well again before the rows are delivered.
#[test]
fn what_a_disk_does_not_return_for_a_while_is_delivered_as_it_was() {
    let filled = filled();
    for failure in [Failure::BadSector, Failure::Io] {
        let machine = filled.copy(1);
        process(async {
            let store = machine.reopen("first").await;
            fail_reads(&machine, ROWS - 1, FOR_LONG, failure);
            let sent = send_or_wait(&machine, &store).await;
            machine.disk.heal();
            let mut given = Deliveries::new();
            for _ in 0..2 {
                deliver(&store, &mut given).await;
                machine.clock.advance(UNREADABLE_RETRY);
            }
            assert_all_as_sent(&given);
            assert_eq!(given.contains_key("new"), sent);
        });
    }
}

/// Sends, and says whether it went. A read that fails for good is no torn page to SQLite, so the store cannot
/// tell it from one that passes.
async fn send_or_wait(machine: &Machine, store: &SqliteProvider) -> bool {
    let sent = match store.start(start("new").into(), Vec::new()).await {
        Ok(_) => store.enqueue_work(activity("new", 900)).await,
        Err(error) => Err(error),
    };
    let left = tables_left_behind(machine);
    match sent {
        Ok(()) => assert_eq!(left, 2, "both queues have new tables"),
        Err(error) => assert!(error.is_retryable() && left == 0, "{error:?}, {left}"),
    }
    left == 2
}

#[test]
fn what_was_set_aside_because_the_disk_failed_comes_back_with_its_text() {
    let machine = filled();
    process(async {
        let store = machine.reopen("first").await;
        fail_reads(&machine, ROWS - 1, FOR_LONG, Failure::BadSector);
        send(&store, "new").await.expect("others go on");
        let mut given = Deliveries::new();
        for _ in 0..=MAX_UNREADABLE_ATTEMPTS {
            deliver(&store, &mut given).await;
            machine.clock.advance(UNREADABLE_RETRY);
        }
        let aside = store.set_aside(None).await.expect("it lists");
        assert!(aside.len() >= 2, "{aside:?}");
        assert!(aside.iter().all(|row| row.payload.is_empty() && row.reason.contains("cannot read")));
        assert_eq!(given.len() + aside.len(), 2 * ROWS + 2, "each is delivered or set aside");
        machine.disk.heal();
        for row in aside {
            store.retry_set_aside(row.id).await.expect("it is tried again");
        }
        deliver(&store, &mut given).await;
        assert_all_as_sent(&given);
    });
    machine.assert_sound();
}

/// The same without a new table: a leaf in the middle, whose rows are only listed.
#[test]
fn what_was_listed_because_the_disk_failed_is_delivered_when_the_disk_is_well() {
    let machine = filled();
    process(async {
        let store = machine.reopen("first").await;
        fail_reads(&machine, 5, FOR_LONG, Failure::BadSector);
        let mut given = Deliveries::new();
        deliver(&store, &mut given).await;
        assert!(given.len() < 2 * ROWS && given.len() > ROWS, "{}", given.len());
        machine.disk.heal();
        machine.clock.advance(UNREADABLE_RETRY);
        deliver(&store, &mut given).await;
        assert_all_as_sent(&given);
    });
    machine.assert_sound();
}

/// A table that can be read whole, and that no row names, is dropped after the next step.
#[test]
fn tables_of_a_disk_that_is_well_again_do_not_pile_up() {
    let machine = filled();
    process(async {
        let store = machine.reopen("first").await;
        for round in 0..12 {
            fail_reads(&machine, ROWS - 1, FOR_LONG, Failure::BadSector);
            send(&store, &format!("new{round}")).await.expect("others go on");
            machine.disk.heal();
            let mut given = Deliveries::new();
            deliver(&store, &mut given).await;
            machine.clock.advance(1_001 * LEASE);
            store.checkpoint().await.expect("the log is written back");
        }
    });
    assert!(tables_left_behind(&machine) <= 2, "{}", tables_left_behind(&machine));
    machine.assert_sound();
}

/// A step for which there is no room changes nothing, and is done when there is.
#[test]
fn a_queue_is_mended_as_a_whole_or_not_at_all_on_a_full_disk() {
    let filled = filled();
    let mut refused = 0;
    for room in (0..60).map(|pages| pages * PAGE) {
        let machine = filled.copy(room as u64);
        tear(&machine, ROWS - 1);
        process(async {
            let store = machine.reopen("first").await;
            machine.disk.set_room(Some(machine.disk.used() + room));
            let sent = store.start(start("new").into(), Vec::new()).await;
            let left = "SELECT count(*) FROM sqlite_schema WHERE name = 'damaged_messages_1'";
            if let Err(error) = sent {
                refused += 1;
                assert!(error.is_retryable(), "{error:?}");
                let again = store.start(start("new").into(), Vec::new()).await;
                assert!(again.as_ref().err().is_none_or(ProviderError::is_retryable), "{again:?}");
                machine.disk.heal();
                machine.clock.advance(2 * LEASE);
                send(&store, "new").await.expect("there is room");
            }
            assert_eq!(number(&machine, left), 1);
        });
        assert_nothing_is_lost(&machine);
    }
    assert!(refused > 0, "some found no room");
}

/// Asserts that each row is in its queue, with its text or in the place of one that cannot be read.
fn assert_nothing_is_lost(machine: &Machine) {
    let starts = "SELECT count(*) FROM messages WHERE starts = 1 AND item NOT LIKE '%\"new\"%'";
    assert_eq!(number(machine, starts), ROWS as i64);
    assert_eq!(number(machine, "SELECT count(*) FROM work WHERE activity < 900"), ROWS as i64);
}

/// The power fails at each write of the step in turn.
#[test]
fn a_queue_is_mended_as_a_whole_or_not_at_all_when_the_power_fails() {
    let filled = filled();
    for skip in 0..400 {
        let machine = filled.copy(skip);
        tear(&machine, ROWS - 1);
        let met = process(async {
            let store = machine.reopen("first").await;
            machine.disk.plan(DiskFault::once(FileCall::Write, skip, Failure::PowerLoss));
            drop(store.start(start("new").into(), Vec::new()).await);
            machine.disk.is_off()
        });
        machine.restart(Loss::Some);
        process(async {
            let store = machine.reopen("second").await;
            send(&store, "new").await.expect("the queue is mended, then or now");
            assert_eq!(tables_left_behind(&machine), 2);
            assert_nothing_is_lost(&machine);
            let mut given = Deliveries::new();
            deliver(&store, &mut given).await;
            assert!(given.len() > ROWS, "{}", given.len());
        });
        if !met {
            assert!(skip > 5, "{skip} writes");
            return;
        }
    }
    panic!("a step has more than 400 writes");
}

/// SQLite ends the transaction of a read that fails; the error is that of the disk.
#[test]
fn a_read_that_the_disk_fails_is_told_as_such() {
    let filled = filled();
    for skip in 0..20 {
        let machine = filled.copy(skip);
        process(async {
            let store = machine.reopen("first").await;
            machine.disk.plan(DiskFault::once(FileCall::Read, skip, Failure::Io));
            if let Err(error) = store.gauges().await {
                assert_eq!(error.kind, ProviderErrorKind::Unavailable, "{error:?}");
                assert!(error.message.contains("disk I/O"), "{}", error.message);
            }
        });
    }
}

/// A turn that consumes messages meets one failed read; they are removed, and not only listed as consumed.
#[test]
fn one_failed_read_leaves_no_consumed_message_in_the_file() {
    let filled = filled();
    for skip in 0..60 {
        let machine = filled.copy(skip);
        process(async {
            let store = machine.reopen("first").await;
            let request = TurnRequest {
                lock_timeout: LEASE,
                poll_timeout: Duration::ZERO,
                filter: None,
                warm: &Cold,
                worker: None,
            };
            let lease = store.fetch_turn(request).await.expect("the disk works").expect("one is ready");
            drop(store);
            let store = machine.reopen("second").await;
            machine.disk.plan(DiskFault::once(FileCall::Read, skip, Failure::BadSector));
            let commit = TurnCommit { metadata: crate::chain::named("Running"), ..TurnCommit::empty(1) };
            if store.commit_turn(&lease.token, commit.clone()).await.is_err() {
                store.commit_turn(&lease.token, commit).await.expect("nothing was changed");
            }
            machine.disk.heal();
        });
        let given_up = "SELECT count(*) FROM torn_messages WHERE until IS NULL";
        assert_eq!(number(&machine, given_up), 0, "read {skip}");
        assert_eq!(number(&machine, "SELECT count(*) FROM messages"), ROWS as i64 - 1, "read {skip}");
    }
}

/// A machine that wakes up extends its leases, and meets one failed read. Nothing is taken for torn.
#[test]
fn one_failed_read_when_leases_are_extended_lists_no_activity() {
    let filled = filled();
    for skip in 0..40 {
        let machine = filled.copy(skip);
        process(async {
            let store = machine.reopen("first").await;
            let mut given = Deliveries::new();
            deliver(&store, &mut given).await;
            drop(store);
            let store = machine.reopen("second").await;
            machine.clock.suspend(Duration::from_secs(3_600));
            machine.disk.plan(DiskFault::once(FileCall::Read, skip, Failure::BadSector));
            store.start(start("new").into(), Vec::new()).await.expect("it passes");
            machine.disk.heal();
        });
        assert_eq!(number(&machine, "SELECT count(*) FROM torn_work"), 0, "read {skip}");
    }
}

/// Each look has a connection of its own, so the files that are opened tell how many there were.
#[test]
fn a_queue_that_cannot_be_mended_is_not_looked_at_by_each_call() {
    let machine = Machine::ready();
    process(async {
        let store = machine.reopen("maker").await;
        for number in 0..2 * ROWS {
            store.start(long_start(number).into(), Vec::new()).await.expect("it is started");
        }
        store.checkpoint().await.expect("the log is written back");
    });
    let root = number(&machine, "SELECT rootpage FROM sqlite_schema WHERE name = 'messages'");
    let offset = (usize::try_from(root).expect("a page") - 1) * PAGE;
    assert!(machine.disk.overwrite(FILE, offset, &[0xff; PAGE]));
    process(async {
        let store = machine.reopen("first").await;
        let mut opened = Vec::new();
        for _ in 0..10 {
            let before = machine.disk.count(FileCall::Open);
            let refused = store.start(start("new").into(), Vec::new()).await.expect_err("its root is torn");
            assert_eq!(refused.kind, ProviderErrorKind::Corrupt);
            opened.push(machine.disk.count(FileCall::Open) - before);
        }
        assert!(opened[1..].iter().all(|next| 2 * next < opened[0]), "{opened:?}");
        machine.clock.advance(Duration::from_secs(60));
        let before = machine.disk.count(FileCall::Open);
        drop(store.start(start("new").into(), Vec::new()).await);
        assert_eq!(
            machine.disk.count(FileCall::Open) - before,
            opened[0],
            "it is looked at again after a while"
        );
    });
    assert_eq!(tables_left_behind(&machine), 0);
}
