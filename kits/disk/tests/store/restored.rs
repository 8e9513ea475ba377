//! Rows that come back from a table that was left behind: they are as they were, for whom they were, and are
//! leased once.

use std::collections::BTreeMap;
use std::time::Duration;

use steadfast_core::{TagFilter, WorkItem};
use steadfast_disk::{Failure, Loss};
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{
    Abandon, Attempt, LeaseToken, MAX_UNREADABLE_ATTEMPTS, NeededHandler, NewWork, Outcome, ProviderError,
    Refusal, Store, UNREADABLE_RETRY, WorkRequest, WorkerId, WorkerProcess, WorkerReport, WorkerSlots,
};

use crate::chain::{LEASE, activity, start, start_with};
use crate::machine::{FILE, Machine, process};
use crate::pages::{close, leaves_with, long_input, turn_request, work, work_request};

const ROWS: usize = 20;
const FOR_LONG: u64 = 1_000_000;

/// Lets the disk fail the reads of the leaves that have one of some texts, until it is well.
fn fail_leaves(machine: &Machine, texts: &[&str]) {
    let leaves = leaves_with(machine, texts);
    assert!(!leaves.is_empty(), "{texts:?}");
    for leaf in leaves {
        assert!(machine.disk.fail_reads(FILE, leaf, FOR_LONG, Failure::BadSector));
    }
}

fn tables_left_behind(machine: &Machine) -> Vec<String> {
    let raw = machine.raw();
    let sql = "SELECT name FROM sqlite_schema WHERE name GLOB 'damaged_*' ORDER BY name";
    let mut statement = raw.prepare(sql).expect("a statement");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<rusqlite::Result<_>>().expect("rows")
}

fn report() -> WorkerReport {
    WorkerReport {
        id: WorkerId("old".into()),
        process: WorkerProcess::default(),
        orchestrations: Vec::new(),
        activities: Vec::new(),
        tags: TagFilter::Any,
        serves_sessions: true,
        engines: None,
        takes_unlisted: false,
        slots: WorkerSlots::default(),
        sessions: 0,
        is_stopped: false,
    }
}

async fn refuse(store: &SqliteProvider, token: &LeaseToken) {
    let refusal = Refusal {
        handler: NeededHandler { name: "Step".into(), version: None },
        if_unlisted: Abandon { retry_after: None, attempt: Attempt::Uncounted },
    };
    store.refuse(token, refusal).await.expect("it is refused");
}

/// Queues an activity, and leases it.
async fn leased(machine: &Machine, session: Option<&str>, its_tag: Option<&str>) -> LeaseToken {
    let store = machine.reopen("maker").await;
    store.report_worker(&report()).await.expect("it reports");
    let mut new = activity("a", 1);
    if let WorkItem::ActivityExecute { input, session_id, tag, .. } = &mut new.item {
        (*input, *session_id) = ("the mark".to_owned(), session.map(str::to_owned));
        *tag = its_tag.map(str::to_owned);
    }
    store.enqueue_work(NewWork::from(new.item)).await.expect("it is queued");
    let lease = work(&store).await.expect("it is ready");
    close(store).await;
    lease.token
}

/// Mends the queue while the page of the activity is not returned.
async fn mend(machine: &Machine, store: &SqliteProvider) {
    fail_leaves(machine, &["the mark"]);
    store.enqueue_work(activity("b", 900)).await.expect("others go on");
    assert_eq!(tables_left_behind(machine), ["damaged_work_1"]);
}

/// An activity of a session that was refused, could not be read, was set aside, and is tried again.
async fn refused_and_tried_again(machine: &Machine) -> SqliteProvider {
    let token = leased(machine, Some("s"), None).await;
    let store = machine.reopen("refuser").await;
    refuse(&store, &token).await;
    close(store).await;
    machine.restart(Loss::Nothing);
    let store = machine.reopen("worker").await;
    mend(machine, &store).await;
    let other = work(&store).await.expect("the other is ready");
    store.finish_work(&other.token, Outcome { completion: None }).await.expect("it ends");
    for _ in 0..=MAX_UNREADABLE_ATTEMPTS {
        assert!(work(&store).await.is_none());
        machine.clock.advance(UNREADABLE_RETRY);
    }
    machine.disk.heal();
    let aside = store.set_aside(None).await.expect("it lists");
    assert_eq!(aside.len(), 1, "{aside:?}");
    store.retry_set_aside(aside[0].id).await.expect("it is tried again");
    store
}

#[test]
fn g6_a_refused_activity_that_comes_back_to_its_session_is_leased_once_and_finished() {
    let machine = Machine::ready();
    process(async {
        let store = refused_and_tried_again(&machine).await;
        let lease = work(&store).await.expect("it comes back");
        let again = work(&store).await.map(|lease| lease.item);
        assert_eq!(again, None, "it is leased");
        store.finish_work(&lease.token, Outcome { completion: None }).await.expect("it ends");
        let again = work(&store).await.map(|lease| lease.item);
        assert_eq!(again, None, "it is finished");
    });
}

#[test]
fn g6_an_activity_of_a_session_that_is_refused_after_its_queue_was_mended_is_leased_once() {
    let machine = Machine::ready();
    let token = process(leased(&machine, Some("s"), None));
    machine.restart(Loss::Nothing);
    process(async {
        let store = machine.reopen("worker").await;
        mend(&machine, &store).await;
        machine.disk.heal();
        refuse(&store, &token).await;
        let mut given = Vec::new();
        for _ in 0..5 {
            given.extend(work(&store).await.map(|lease| lease.item.instance().to_owned()));
        }
        given.sort_unstable();
        assert_eq!(given, ["a", "b"], "within one lease");
    });
}

#[test]
fn g6_an_activity_whose_tag_was_not_known_when_it_was_refused_is_given_to_those_of_its_tag() {
    let machine = Machine::ready();
    let token = process(leased(&machine, None, Some("gpu")));
    machine.restart(Loss::Nothing);
    process(async {
        let store = machine.reopen("worker").await;
        mend(&machine, &store).await;
        machine.disk.heal();
        refuse(&store, &token).await;
        let plain = WorkRequest { tags: TagFilter::DefaultOnly, ..work_request(1_000 * LEASE) };
        let mut given = Vec::new();
        for _ in 0..3 {
            let lease = store.fetch_work(plain.clone()).await.expect("no fetch fails");
            given.extend(lease.map(|lease| lease.item.instance().to_owned()));
        }
        assert_eq!(given, ["b"], "without the tag");
        let lease = work(&store).await.expect("a worker of all tags is given it");
        assert_eq!(lease.item.instance(), "a");
        assert!(work(&store).await.is_none(), "it is leased");
    });
}

/// A machine with a store that has starts and activities with long texts, closed properly.
fn filled() -> Machine {
    let machine = Machine::ready();
    process(async {
        let store = machine.reopen("maker").await;
        for number in 0..ROWS {
            let item = start_with(&format!("i{number:03}"), long_input(number));
            store.start(item.into(), Vec::new()).await.expect("it is started");
            let mut work = activity("a", number as u64);
            if let WorkItem::ActivityExecute { input, .. } = &mut work.item {
                *input = long_input(number);
            }
            store.enqueue_work(work).await.expect("it is queued");
        }
        close(store).await;
    });
    machine.restart(Loss::Nothing);
    machine
}

/// Adds a row to both queues, as a caller does that tries again when it may.
async fn add(store: &SqliteProvider, name: &str) {
    let add = || async {
        store.start(start(name).into(), Vec::new()).await?;
        store.enqueue_work(activity(name, 900)).await
    };
    let mut told: Result<(), ProviderError> = add().await;
    for _ in 0..100 {
        match &told {
            Err(error) if error.is_retryable() => told = add().await,
            _ => break,
        }
    }
    told.expect("others go on");
}

async fn deliver(store: &SqliteProvider, given: &mut BTreeMap<String, String>) {
    for _ in 0..3 * ROWS {
        let lease = store.fetch_turn(turn_request(Duration::from_secs(100_000))).await;
        let Some(lease) = lease.expect("no fetch fails") else { break };
        let WorkItem::StartOrchestration { input, .. } = &lease.messages[0].item else { continue };
        assert_eq!(given.insert(lease.instance.clone(), input.clone()), None, "{}", lease.instance);
    }
    for _ in 0..3 * ROWS {
        let Some(lease) = work(store).await else { break };
        let WorkItem::ActivityExecute { instance, input, id, .. } = &lease.item else { continue };
        assert_eq!(given.insert(format!("{id} of {instance}"), input.clone()), None, "{id} of {instance}");
    }
}

/// Delivers all that can be, and tries again what was set aside.
async fn deliver_all(machine: &Machine, store: &SqliteProvider) -> BTreeMap<String, String> {
    let mut given = BTreeMap::new();
    for _ in 0..=MAX_UNREADABLE_ATTEMPTS {
        deliver(store, &mut given).await;
        machine.clock.advance(UNREADABLE_RETRY);
    }
    for row in store.set_aside(None).await.expect("it lists") {
        store.retry_set_aside(row.id).await.expect("it is tried again");
    }
    deliver(store, &mut given).await;
    given
}

#[test]
fn g6_what_two_steps_could_not_read_is_delivered_when_the_disk_is_well() {
    let machine = filled();
    process(async {
        let store = machine.reopen("first").await;
        fail_leaves(&machine, &[&format!("leaf {:03} ", ROWS - 1)]);
        add(&store, "new").await;
        machine.disk.heal();
        close(store).await;
    });
    machine.restart(Loss::Nothing);
    assert_eq!(tables_left_behind(&machine), ["damaged_messages_1", "damaged_work_1"]);
    process(async {
        let store = machine.reopen("second").await;
        fail_leaves(&machine, &["a page of the file is torn (row ", "\"new\""]);
        add(&store, "newer").await;
        machine.disk.heal();
        assert_eq!(tables_left_behind(&machine).len(), 4, "the older ones are the sources of rows");
        let given = deliver_all(&machine, &store).await;
        for number in 0..ROWS {
            for name in [format!("i{number:03}"), format!("{number} of a")] {
                assert_eq!(given.get(&name), Some(&long_input(number)), "{name}");
            }
        }
    });
}
