//! Earlier builds: a file of an older schema keeps what waits in it, and the statements of 0.2, which a
//! process may still run on a file that was migrated, take nothing that is routed (S21) and no work with
//! terms (S22).

mod terms;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};
use steadfast_clock::VirtualClock;
use steadfast_core::{TagFilter, WorkItem};
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{
    LeaseToken, NodeRegistration, NodeStart, Owner, Refused, SessionRef, SessionRequest, SessionScope, Store,
    TurnRequest, WorkLease, WorkRequest, WorkerId, WorkerReport,
};

use crate::stage::{LONG, activity, open, place, raw, refusal, start, turn_request, work_request, worker};

/// The migrations of 0.2.
const RELEASED: [&str; 2] = [
    include_str!("../../../sql/migrations/0001_tables.sql"),
    include_str!("../../../sql/migrations/0002_waiting.sql"),
];

const NOON_MS: u64 = 1_700_000_000_000;

/// Makes a file with the schema of an older build.
fn older_file(path: &Path, migrations: &[&str]) -> Connection {
    let file = raw(path);
    file.execute_batch(include_str!("../../../sql/schema/ledger.sql")).expect("a ledger");
    for (version, migration) in (1_i64..).zip(migrations) {
        file.execute_batch(migration).expect("a migration");
        let hash: String =
            Sha256::digest(migration.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let row = "INSERT INTO steadfast_migrations (version, hash) VALUES (?1, ?2)";
        file.execute(row, params![version, hash]).expect("a row");
    }
    file
}

/// Adds a start, an activity, and an activity on a session, all ready since noon, as each older build does.
fn add_waiting(file: &Connection) {
    let start = serde_json::to_string(&start("a")).expect("a start is JSON");
    let step = |id| serde_json::to_string(&activity("a", id, None, None).item).expect("work is JSON");
    let noon = i64::try_from(NOON_MS).expect("a time");
    file.execute("INSERT INTO instances (key, instance, turn, head) VALUES (1, 'a', 1, 1)", [])
        .expect("an instance");
    let message = "INSERT INTO messages (key, state, visible_at, starts, item) VALUES (1, 1, ?1, 1, ?2)";
    file.execute(message, params![noon, start]).expect("a start");
    file.execute("INSERT INTO sessions (id, instance, session_id) VALUES (1, '', 's')", [])
        .expect("a session");
    let work = "INSERT INTO work (key, execution, activity, state, tag, session, visible_at, since, item) \
                VALUES (1, 1, ?1, 1, '', ?2, ?3, ?3, ?4)";
    file.execute(work, params![2, None::<i64>, noon, step(2)]).expect("an activity");
    file.execute(work, params![3, 1, noon, step(3)]).expect("an activity");
    file.execute("INSERT INTO heads (session, tag, head, owner) VALUES (1, '', 2, '')", []).expect("a head");
}

#[tokio::test]
async fn what_waits_in_a_file_of_the_released_schema_can_be_refused_and_excused() {
    let (_folder, path) = place();
    let file = older_file(&path, &RELEASED);
    add_waiting(&file);
    drop(file);
    let clock = Arc::new(VirtualClock::new(NOON_MS));
    let store = open(&path, SqliteOptions { clock: clock.clone(), ..SqliteOptions::default() }).await;
    store.report_worker(&worker("new", true)).await.expect("it reports");
    store.report_worker(&worker("old", false)).await.expect("it reports");
    let turn = turn_of(&store, "old").await.expect("a turn");
    assert_eq!(store.refuse(&turn, refusal("Chain", None)).await.expect("refused"), Refused::Routed);
    for lease in all_work(&store, "old").await {
        let refused = store.refuse(&lease.token, refusal("Step", None)).await;
        assert_eq!(refused.expect("refused"), Refused::Routed);
    }
    assert!(turn_of(&store, "old").await.is_none() && all_work(&store, "old").await.is_empty());
    release_all(&store, "old").await;
    let turn = turn_of(&store, "new").await.expect("a turn");
    let work = all_work(&store, "new").await;
    assert_eq!(work.iter().map(|lease| lease.attempt).collect::<Vec<_>>(), [1, 1]);
    clock.advance(2 * LONG);
    for token in work.iter().map(|lease| &lease.token).chain([&turn]) {
        assert!(store.excuse(token).await.expect("it answers"), "the lease has expired");
    }
    assert_eq!(all_work(&store, "new").await.iter().map(|lease| lease.attempt).max(), Some(1));
}

async fn turn_of(store: &SqliteProvider, id: &str) -> Option<LeaseToken> {
    let id = WorkerId(id.to_owned());
    let request = TurnRequest { worker: Some(&id), ..turn_request(LONG, Duration::ZERO) };
    store.fetch_turn(request).await.expect("it fetches").map(|lease| lease.token)
}

/// Leases all work that a worker is given, with and without sessions.
async fn all_work(store: &SqliteProvider, id: &str) -> Vec<WorkLease> {
    let session = SessionRequest {
        owner: Owner::unnamed(id),
        lock_timeout: LONG,
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    let request = WorkRequest {
        session: Some(session),
        worker: Some(WorkerId(id.to_owned())),
        ..work_request(Duration::ZERO, TagFilter::Any)
    };
    let mut leases = Vec::new();
    while let Some(lease) = store.fetch_work(request.clone()).await.expect("it fetches") {
        leases.push(lease);
    }
    leases
}

/// Releases the sessions of a worker.
async fn release_all(store: &SqliteProvider, id: &str) {
    let sessions = store.sessions(None).await.expect("it lists").into_iter();
    let claims: Vec<_> =
        sessions.map(|session| SessionRef { key: session.key, epoch: session.epoch }).collect();
    let released = store.release_sessions(&Owner::unnamed(id), &claims).await.expect("they are released");
    assert_eq!(released, claims);
}

/// The statements by which a process of 0.2 moves what became runnable by time, in the order in which it runs
/// them, without those that only write what a later statement reads: its rows are updated together here.
const SWEEPS: [&str; 7] = [
    "UPDATE messages SET state = 1 WHERE state = 0 AND visible_at <= ?1",
    "UPDATE instances
     SET turn = 1, head = (SELECT min(seq) FROM messages WHERE messages.key = instances.key AND state = 1),
         token = NULL, locked_until = NULL
     WHERE (turn <> 2 OR locked_until <= ?1)
       AND EXISTS (SELECT 1 FROM messages WHERE messages.key = instances.key AND state = 1)",
    "UPDATE work
     SET state = 1, since = max(visible_at, coalesce(locked_until, 0)), unreadable = 0, token = NULL,
         locked_until = NULL, epoch = NULL
     WHERE state = 0 AND visible_at <= ?1",
    "UPDATE work
     SET state = 1, since = max(visible_at, coalesce(locked_until, 0)), unreadable = 0, token = NULL,
         locked_until = NULL, epoch = NULL
     WHERE state = 2 AND locked_until <= ?1",
    "UPDATE sessions SET held = 0, locked_until = min(locked_until, ?1)
     WHERE held = 1 AND locked_until <= ?1",
    "INSERT INTO heads (session, tag, head, owner, since)
     SELECT work.session, work.tag, min(work.seq), '', ?1
     FROM work JOIN sessions ON sessions.id = work.session
     WHERE state = 1 GROUP BY session, tag
     ON CONFLICT (session, tag) DO UPDATE
     SET head = excluded.head, owner = excluded.owner, since = excluded.since",
    "UPDATE heads SET owner = '' WHERE ?1 > 0",
];

/// The statements by which a process of 0.2 finds turns and work, with the values that it gives them.
const LOOKS: [(&str, &[&str]); 6] = [
    ("SELECT min(pin) FROM instances WHERE turn = 1 AND pin > ?1", &["-1"]),
    ("SELECT min(seq) FROM work WHERE state = 1 AND session IS NULL AND tag = ?1", &[""]),
    ("SELECT min(seq) FROM work WHERE state = 1 AND session IS NULL AND tag = ?1", &[":gpu"]),
    ("SELECT min(seq) FROM work WHERE state = 1 AND session IS NULL", &[]),
    ("SELECT head FROM heads WHERE owner = ?1 AND tag = ?2 ORDER BY head LIMIT 1", &["", ":gpu"]),
    ("SELECT head FROM heads WHERE owner = ?1 AND head > 0 ORDER BY head LIMIT 1", &[""]),
];

/// Returns what the statements of 0.2 find.
fn found_by_older(file: &Connection) -> Vec<(&'static str, i64)> {
    let look = |(statement, values): (&'static str, &[&str])| {
        let values = rusqlite::params_from_iter(values.iter().map(|value| match value.parse::<i64>() {
            Ok(number) => rusqlite::types::Value::Integer(number),
            Err(_) => rusqlite::types::Value::Text((*value).to_owned()),
        }));
        let found = file.query_row(statement, values, |row| row.get::<_, Option<i64>>(0)).optional();
        found.expect("the statement runs").flatten().map(|found| (statement, found))
    };
    LOOKS.into_iter().filter_map(look).collect()
}

/// Starts instances and queues activities, and makes a worker refuse them all: one of each is then left
/// alone, one is leased by another worker, and one is delayed.
async fn routed_rows(store: &SqliteProvider) {
    let reports = |is_stopped| WorkerReport { is_stopped, ..worker("new", true) };
    store.report_worker(&worker("old", false)).await.expect("it reports");
    for (id, delay) in [(1, None), (2, None), (3, Some(LONG))] {
        store.report_worker(&reports(delay.is_some())).await.expect("it reports");
        store.start(start(&format!("i{id}")).into(), Vec::new()).await.expect("it is started");
        let token = turn_of(store, "old").await.expect("a turn");
        store.refuse(&token, refusal("Chain", delay)).await.expect("it is refused");
        for (work, session, tag) in
            [(10, None, None), (20, None, Some("gpu")), (30, Some("s"), None), (40, Some("s"), Some("gpu"))]
        {
            let work = activity("a", work + id, session, tag);
            store.enqueue_work(work).await.expect("it is queued");
            let leases = all_work(store, "old").await;
            assert_eq!(leases.len(), 1, "the others are routed");
            store.refuse(&leases[0].token, refusal("Step", delay)).await.expect("it is refused");
        }
        if id == 1 {
            release_all(store, "old").await;
            assert!(turn_of(store, "new").await.is_some());
            assert_eq!(all_work(store, "new").await.len(), 4);
            release_all(store, "new").await;
        }
    }
}

#[tokio::test]
async fn g5_the_statements_of_an_older_build_take_nothing_that_is_routed() {
    let (_folder, path) = place();
    let clock = Arc::new(VirtualClock::new(NOON_MS));
    let store = open(&path, SqliteOptions { clock: clock.clone(), ..SqliteOptions::default() }).await;
    routed_rows(&store).await;
    let file = raw(&path);
    assert_eq!(found_by_older(&file), [], "what is routed");
    // Leases and delays have ended, and the older process is the first to notice.
    clock.advance(10 * LONG);
    let now = i64::try_from(NOON_MS + 10 * 60_000).expect("a time");
    for sweep in SWEEPS {
        file.execute(sweep, [now]).unwrap_or_else(|error| panic!("{sweep}: {error}"));
    }
    assert_eq!(found_by_older(&file), [], "what is routed and was swept");
    let ready: i64 =
        file.query_row("SELECT count(*) FROM work WHERE state = 1", [], |row| row.get(0)).expect("a number");
    assert_eq!(ready, 12, "all of it is ready");
    store.report_worker(&worker("new", true)).await.expect("it reports");
    assert_eq!(all_work(&store, "new").await.len(), 12, "a worker with the handler is given all");
    for _ in 0..3 {
        assert!(turn_of(&store, "new").await.is_some(), "a worker with the handler is given all");
    }
}

#[tokio::test]
async fn g5_a_termination_that_an_older_build_writes_ends_the_route_of_its_instance() {
    let (_folder, path) = place();
    let store = open(&path, SqliteOptions::default()).await;
    for (id, delay) in [("routed", None), ("delayed", Some(LONG))] {
        let is_stopped = delay.is_some();
        store.report_worker(&WorkerReport { is_stopped, ..worker("new", true) }).await.expect("it reports");
        store.report_worker(&worker("old", false)).await.expect("it reports");
        store.start(start(id).into(), Vec::new()).await.expect("it is started");
        let token = turn_of(&store, "old").await.expect("a turn");
        store.refuse(&token, refusal("Chain", delay)).await.expect("it is refused");
        assert!(turn_of(&store, "old").await.is_none(), "it is left to another");
        let end = WorkItem::TerminateInstance { instance: id.to_owned(), reason: "it is over".to_owned() };
        let end = serde_json::to_string(&end).expect("a message is JSON");
        let file = raw(&path);
        let insert = "INSERT INTO messages (key, state, visible_at, starts, item, traceparent)
            SELECT key, 1, 1, 0, ?1, NULL FROM instances WHERE instance = ?2";
        file.execute(insert, params![end, id]).expect("a message");
        // The older build makes the instance ready, unless it is.
        let ready = "UPDATE instances
            SET turn = 1, head = (SELECT min(seq) FROM messages WHERE key = instances.key AND state = 1)
            WHERE instance = ?1 AND turn = 0";
        file.execute(ready, [id]).expect("it is ready");
        let old = WorkerId("old".to_owned());
        let request = TurnRequest { worker: Some(&old), ..turn_request(LONG, Duration::ZERO) };
        let lease = store.fetch_turn(request).await.expect("it fetches").expect("any worker can end it");
        assert_eq!((lease.instance.as_str(), lease.messages.len()), (id, 2), "the start is not overtaken");
    }
}

#[tokio::test]
async fn g44_a_start_that_an_older_build_has_replaced_is_not_given_its_number() {
    let (_folder, path) = place();
    let store = open(&path, SqliteOptions::default()).await;
    let start = NodeStart::new("n", "start");
    let first = store.register_node(&start).await.expect("it is registered");
    assert!(matches!(first, NodeRegistration::Registered(_)), "{first:?}");
    let register = "INSERT INTO nodes (node, incarnation) VALUES ('n', 1000)
        ON CONFLICT (node) DO UPDATE SET incarnation = excluded.incarnation";
    raw(&path).execute(register, []).expect("the older process is registered");
    let again = store.register_node(&start).await.expect("it answers");
    assert_eq!(again, NodeRegistration::Taken { incarnation: 1000, is_younger: false });
}
