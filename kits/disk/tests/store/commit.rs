//! Each read of one commit fails in turn, once.

use std::time::Duration;

use steadfast_core::{Event, EventKind, WorkItem};
use steadfast_disk::{DiskFault, Failure, FileCall};
use steadfast_sqlite::SqliteProvider;
use steadfast_store::{Cold, LeaseToken, NewWork, Store, TurnCommit, TurnLease, TurnRequest};

use crate::chain::{LEASE, activity, named, start, started};
use crate::machine::{Machine, process};

const MOST_READS: u64 = 400;

fn event(id: u64, kind: EventKind) -> Event {
    Event::at(1_700_000_000_000, id, "a", 1, None, kind)
}

async fn fetched(store: &SqliteProvider) -> TurnLease {
    let request = TurnRequest {
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    store.fetch_turn(request).await.expect("the disk works").expect("the instance is ready")
}

fn in_session(id: u64) -> NewWork {
    let mut work = activity("a", id);
    if let WorkItem::ActivityExecute { session_id, .. } = &mut work.item {
        *session_id = Some("s".to_owned());
    }
    work
}

/// Makes a store with a turn that is leased; the activity of its session waits.
fn ready() -> (Machine, LeaseToken) {
    let machine = Machine::ready();
    let token = process(async {
        let store = machine.reopen("maker").await;
        store.start(start("a").into(), Vec::new()).await.expect("it is started");
        let first = TurnCommit {
            events: vec![event(1, started())],
            metadata: named("Running"),
            ..TurnCommit::empty(1)
        };
        store.commit_turn(&fetched(&store).await.token, first).await.expect("it is committed");
        store.enqueue_work(in_session(2)).await.expect("it is queued");
        machine.raw().execute("UPDATE sessions SET instance = 'a', is_row = 1", []).expect("it is owned");
        let (instance, name, data) = ("a".to_owned(), "poke".to_owned(), String::new());
        store.send(vec![WorkItem::ExternalRaised { instance, name, data }.into()]).await.expect("it is sent");
        let token = fetched(&store).await.token;
        store.checkpoint().await.expect("the log is written back");
        token
    });
    (machine, token)
}

/// The commit that closes the session, and schedules another activity.
fn closing() -> TurnCommit {
    TurnCommit {
        events: vec![event(2, EventKind::SessionClosed { session_id: "s".into() })],
        work: vec![activity("a", 3)],
        ..TurnCommit::empty(1)
    }
}

/// How much of the commit is there: its event, its activity, the end of the other one, the consumed message.
fn effects(machine: &Machine) -> [i64; 4] {
    let file = machine.raw();
    [
        "SELECT count(*) FROM history WHERE event_id = 2",
        "SELECT count(*) FROM work WHERE activity = 3",
        "SELECT count(*) = 0 FROM work
         WHERE activity = 2 AND seq NOT IN (SELECT row FROM torn_work WHERE until IS NULL)",
        "SELECT count(*) = 0 FROM messages
         WHERE seq NOT IN (SELECT row FROM torn_messages WHERE until IS NULL)",
    ]
    .map(|sql| file.query_row(sql, [], |row| row.get(0)).expect("it counts"))
}

/// Fails each read of the commit in turn. Returns how many commits were refused.
fn fail_each_read(failure: Failure) -> u32 {
    let (ready, token) = ready();
    let mut refused = 0;
    for skip in 0..MOST_READS {
        let machine = ready.copy(skip);
        let met = process(async {
            let store = machine.reopen("first").await;
            let before = machine.disk.count(FileCall::Read);
            machine.disk.plan(DiskFault::once(FileCall::Read, skip, failure));
            let first = store.commit_turn(&token, closing()).await;
            let met = machine.disk.count(FileCall::Read) - before > skip;
            machine.disk.heal();
            let there = effects(&machine);
            assert_eq!(there, [i64::from(first.is_ok()); 4], "{failure:?} of read {skip}: {first:?}");
            if first.is_err() {
                refused += 1;
                store.commit_turn(&token, closing()).await.expect("nothing was changed");
                assert_eq!(effects(&machine), [1; 4], "{failure:?} of read {skip}: it is committed once");
            }
            met
        });
        let lowest = machine.raw().query_row("SELECT min(seq) FROM history", [], |row| row.get::<_, i64>(0));
        assert_eq!(lowest.expect("it reads"), 1, "{failure:?} of read {skip}: events stand in their order");
        let given_up = "SELECT (SELECT count(*) FROM torn_messages) + (SELECT count(*) FROM torn_work)";
        let count = machine.raw().query_row(given_up, [], |row| row.get::<_, i64>(0));
        assert_eq!(count.expect("it counts"), 0, "{failure:?} of read {skip}: no row is left in the file");
        machine.assert_sound();
        if !met {
            assert!(skip > 10, "{skip} reads");
            return refused;
        }
    }
    panic!("a commit has more than {MOST_READS} reads");
}

#[test]
fn s3_a_commit_that_meets_a_failed_read_is_all_or_nothing() {
    assert!(fail_each_read(Failure::Io) > 0, "some were refused");
}

/// SQLite tells of such a read as of a torn page.
#[test]
fn s3_a_commit_that_meets_a_read_error_that_passes_is_all_or_nothing_and_takes_no_page_for_torn() {
    assert_eq!(fail_each_read(Failure::BadSector), 0, "each was run again");
}
