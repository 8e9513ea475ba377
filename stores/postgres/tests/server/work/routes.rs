//! Routes on a real server (S21; G5, G40): what they cost, who is woken, and what is tidied up.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_core::{TagFilter, WorkItem};
use steadfast_postgres::{Counts, PostgresOptions, PostgresProvider};
use steadfast_store::{
    Abandon, Attempt, Cold, LeaseToken, ListedHandler, NeededHandler, NewWork, Refusal, Refused, Store,
    TurnLease, TurnRequest, WorkLease, WorkRequest, WorkerId, WorkerProcess, WorkerReport, WorkerSlots,
};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::{LEVELS, blocks};
use crate::{connect, execute, number, open, server, start_of, until_ok};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

/// A worker without a handler.
const LACKS: &str = "
    INSERT INTO {name}.workers
        (worker_id, takes_unlisted, is_stopped, since_ms, last_seen_ms, is_listed, report)
    VALUES ('lacks', false, false, 0, {name}.now_ms(NULL), true, '{}')";

/// Many instances, activities without a session and activities of sessions that are routed to other workers,
/// all older than what is queued later.
const ROUTED: &str = "
    INSERT INTO {name}.pins (pin, version, handler, route) VALUES (-7, -1, repeat('0', 32), 'route');
    INSERT INTO {name}.instance_locks (instance_id, head, since, pin)
    SELECT 'routed' || n, -n, 1, -7 FROM generate_series(1, 30000) AS n;
    INSERT INTO {name}.routes VALUES ('@' || repeat('0', 32), repeat('0', 32), '', 'Rare');
    INSERT INTO {name}.worker_queue (id, work_item, state, visible_ms, created_at, instance_id, execution_id,
        activity_id, tag, since)
    SELECT -n, 'x', 1, 0, now(), 'r' || n, 1, 1, '@' || repeat('0', 32), 0
    FROM generate_series(1, 30000) AS n;
    INSERT INTO {name}.heads SELECT '', 'routed' || n, '@' || repeat('0', 32), -n, '', 0
    FROM generate_series(1, 30000) AS n;
    UPDATE {name}.floors SET turns = -100000, work = -100000, heads = -100000";

/// The blocks that fetches of a turn, of an activity of any tag and of one without a tag read. Rows that were
/// deleted are read until no transaction in the database may see them, and definitions are read again after
/// each change of a definition in the database: so a test that counts has a database of its own, and leaves
/// its tables to no other vacuum.
async fn costs(client: &Client, schema: &str, worker: &str) -> [u64; 3] {
    let explain = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF)";
    let queue = "
        INSERT INTO {name}.instances VALUES ('a', 'A', '1', 1, NULL, 'Running', NULL, 0, now(), now(), 1, 1)
            ON CONFLICT DO NOTHING;
        SELECT {name}.send_messages('{a}', '{poke}', '{NULL}', '{false}', '{NULL}', NULL);
        SELECT {name}.queue_work('{x,x}', '{a,a}', '{1,1}', '{1,2}', '{\"\",\"\"}', '{\"\",\"\"}',
            '{NULL,NULL}', '{NULL,NULL}', 0)";
    let clear = "
        SELECT {name}.withdraw_work('{a,a}', '{1,1}', '{1,2}', 0);
        SELECT {name}.abandon_turns(ARRAY[l.lock_token], '{NULL}', '{true}', NULL)
            FROM {name}.instance_locks AS l WHERE l.instance_id = 'a' AND l.lock_token IS NOT NULL;
        DELETE FROM {name}.orchestrator_queue;
        VACUUM {name}.orchestrator_queue, {name}.worker_queue, {name}.instance_locks, {name}.ended_leases,
            {name}.floors, {name}.beneath";
    let work = "fetch_work_items(p_count => 1, p_worker_ids => '{w}', p_lock_ms => 30000, p_owner => 'node',
        p_claim => true, p_terms => true";
    let statements = [
        format!("{explain} SELECT * FROM {{name}}.fetch_turns(NULL, 30000, 1, p_worker => {worker})"),
        format!("{explain} SELECT * FROM {{name}}.{work}, p_tags => NULL, p_worker => {worker})"),
        format!("{explain} SELECT * FROM {{name}}.{work}, p_tags => '{{\"\"}}', p_worker => {worker})"),
    ];
    let mut least = [u64::MAX; 3];
    for _ in 0..6 {
        execute(client, queue, schema).await;
        for (least, statement) in least.iter_mut().zip(&statements) {
            *least = (*least).min(blocks(client, statement, schema).await);
        }
        for statement in clear.split(';') {
            execute(client, statement, schema).await;
        }
    }
    least
}

/// How many blocks more the look for routes may read where there are none: a root and a leaf of an index.
const ONE_LOOK: u64 = 3;

#[tokio::test]
async fn g5_a_fetch_that_names_its_worker_costs_one_look_more_where_nothing_is_routed() {
    let database = server().database("unrouted").unwrap();
    open(database.url(), "unrouted").await.unwrap();
    let client = connect(database.url()).await;
    execute(&client, LACKS, "unrouted").await;
    let without = costs(&client, "unrouted", "NULL").await;
    let with = costs(&client, "unrouted", "'lacks'").await;
    for (with, without) in with.into_iter().zip(without) {
        assert!(with <= without + ONE_LOOK, "{with} blocks instead of {without}");
    }
}

#[tokio::test]
async fn g5_what_is_routed_to_other_workers_costs_a_fetch_nothing_whatever_its_plan() {
    let database = server().database("routed").unwrap();
    open(database.url(), "routed").await.unwrap();
    let old = connect(database.url()).await;
    execute(&old, LACKS, "routed").await;
    let alone = costs(&old, "routed", "'lacks'").await;
    execute(&old, ROUTED, "routed").await;
    let new = connect(database.url()).await;
    let check = async |client: &Client, planned: &str| {
        let costs = costs(client, "routed", "'lacks'").await;
        for (beside, alone) in costs.into_iter().zip(alone) {
            assert!(beside <= alone * LEVELS, "planned {planned}: {beside} blocks instead of {alone}");
        }
    };
    check(&old, "with empty tables").await;
    check(&new, "without statistics").await;
    let analyze =
        "ANALYZE {name}.worker_queue, {name}.heads, {name}.instance_locks, {name}.pins, {name}.routes";
    execute(&new, analyze, "routed").await;
    check(&connect(database.url()).await, "with statistics").await;
}

/// A process with a store that finds nothing by polling.
struct Fleet {
    store: Arc<PostgresProvider>,
    counts: Arc<Counts>,
}

impl Fleet {
    /// Opens the store of a process, as the one with that number that listens.
    async fn open(schema: &str, nth: i64) -> Self {
        let counts = Arc::new(Counts::default());
        let options = PostgresOptions {
            max_connections: 4,
            poll_interval: LONG,
            counts: Some(Arc::clone(&counts)),
            ..PostgresOptions::default()
        };
        let store = PostgresProvider::new_with_options(server().url(), Some(schema), options).await.unwrap();
        let client = connect(server().url()).await;
        until_ok(|| async {
            let listening = number(&client, "SELECT count(*) FROM {name}.listeners", schema).await;
            if listening == nth { Ok(()) } else { Err(format!("{listening} listen")) }
        })
        .await;
        Self { store: Arc::new(store), counts }
    }

    async fn report(&self, id: &str, has_it: bool) {
        self.store.report_worker(&report(id, has_it)).await.unwrap();
    }

    async fn turn(&self, id: &str) -> Option<TurnLease> {
        turn(&self.store, id, Duration::ZERO).await
    }

    async fn work(&self, id: &str) -> Option<WorkLease> {
        work(&self.store, id, Duration::ZERO).await
    }

    async fn refuse(&self, lease: &LeaseToken, retry_after: Option<Duration>) -> Refused {
        let handler = NeededHandler { name: "Order".to_owned(), version: None };
        let if_unlisted = Abandon { retry_after, attempt: Attempt::Counts };
        self.store.refuse(lease, Refusal { handler, if_unlisted }).await.unwrap()
    }

    /// Begins a call that waits, and returns when it has looked once and found nothing.
    async fn waiting<T: Send + 'static>(
        &self,
        call: impl Future<Output = Option<T>> + Send + 'static,
    ) -> JoinHandle<Option<T>> {
        let before = self.counts.sent.load(Ordering::Acquire);
        let waiting = tokio::spawn(call);
        until_ok(|| async {
            let sent = self.counts.sent.load(Ordering::Acquire);
            if sent > before && self.counts.is_quiet() { Ok(()) } else { Err("it has not looked yet") }
        })
        .await;
        assert!(!waiting.is_finished(), "there is nothing that it may take yet");
        waiting
    }

    async fn waiting_turn(&self, id: &'static str) -> JoinHandle<Option<TurnLease>> {
        let store = Arc::clone(&self.store);
        self.waiting(async move { turn(&store, id, LONG).await }).await
    }

    async fn waiting_work(&self, id: &'static str) -> JoinHandle<Option<WorkLease>> {
        let store = Arc::clone(&self.store);
        self.waiting(async move { work(&store, id, LONG).await }).await
    }
}

fn report(id: &str, has_it: bool) -> WorkerReport {
    let versions = |versions: &[&str]| versions.iter().map(|version| (*version).to_owned()).collect();
    let listed = |known: &[&str]| -> Vec<ListedHandler> {
        let handler = || ListedHandler { name: "Order".to_owned(), versions: versions(known) };
        has_it.then(handler).into_iter().collect()
    };
    WorkerReport {
        id: WorkerId(id.to_owned()),
        process: WorkerProcess::default(),
        orchestrations: listed(&["1.0.0"]),
        activities: listed(&[]),
        tags: TagFilter::DefaultOnly,
        serves_sessions: true,
        engines: None,
        takes_unlisted: true,
        slots: WorkerSlots::default(),
        sessions: 0,
        is_stopped: false,
    }
}

async fn turn(store: &PostgresProvider, id: &str, poll_timeout: Duration) -> Option<TurnLease> {
    let worker = WorkerId(id.to_owned());
    let request =
        TurnRequest { lock_timeout: LONG, poll_timeout, filter: None, warm: &Cold, worker: Some(&worker) };
    store.fetch_turn(request).await.unwrap()
}

async fn work(store: &PostgresProvider, id: &str, poll_timeout: Duration) -> Option<WorkLease> {
    let request = WorkRequest {
        worker_id: id.to_owned(),
        lock_timeout: LONG,
        poll_timeout,
        tags: TagFilter::DefaultOnly,
        session: None,
        worker: Some(WorkerId(id.to_owned())),
    };
    store.fetch_work(request).await.unwrap()
}

fn activity() -> NewWork {
    WorkItem::ActivityExecute {
        instance: "a".to_owned(),
        execution_id: 1,
        id: 2,
        name: "Order".to_owned(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
    .into()
}

#[tokio::test]
async fn g40_a_refusal_wakes_a_capable_worker_that_waits_in_another_process() {
    let schema = server().schema("refusal_wakes");
    let old = Fleet::open(schema.name(), 1).await;
    old.report("old", false).await;
    old.store.start(start_of("a").into(), Vec::new()).await.unwrap();
    old.store.enqueue_work(activity()).await.unwrap();
    let (leased, held) = (old.turn("old").await.unwrap(), old.work("old").await.unwrap());

    let new = Fleet::open(schema.name(), 2).await;
    new.report("new", true).await;
    let (turn, work) = (new.waiting_turn("new").await, new.waiting_work("new").await);
    assert_eq!(old.refuse(&leased.token, Some(LONG)).await, Refused::Routed);
    assert_eq!(old.refuse(&held.token, Some(LONG)).await, Refused::Routed);
    let (turn, work) = (turn.await.unwrap().unwrap(), work.await.unwrap().unwrap());
    assert_eq!((turn.attempt, work.attempt), (1, 1), "the refused deliveries do not count");
}

#[tokio::test]
async fn g40_a_report_wakes_waiting_workers_in_another_process() {
    let schema = server().schema("report_wakes");
    let old = Fleet::open(schema.name(), 1).await;
    old.report("old", false).await;
    old.store.start(start_of("a").into(), Vec::new()).await.unwrap();
    old.store.enqueue_work(activity()).await.unwrap();
    let (leased, held) = (old.turn("old").await.unwrap(), old.work("old").await.unwrap());
    assert_eq!(old.refuse(&leased.token, Some(LONG)).await, Refused::Unlisted);
    assert_eq!(old.refuse(&held.token, Some(LONG)).await, Refused::Unlisted);

    // The row of a worker may be written by another process than the one that waits.
    let new = Fleet::open(schema.name(), 2).await;
    let (turn, work) = (new.waiting_turn("new").await, new.waiting_work("new").await);
    old.report("new", true).await;
    let (turn, work) = (turn.await.unwrap().unwrap(), work.await.unwrap().unwrap());
    assert_eq!((turn.attempt, work.attempt), (2, 2), "nobody listed it, so the refused deliveries count");
}

#[tokio::test]
async fn g40_a_message_to_a_routed_instance_wakes_the_capable_one_of_two_workers_that_share_a_store() {
    let schema = server().schema("shared_store");
    let fleet = Fleet::open(schema.name(), 1).await;
    fleet.report("old", false).await;
    fleet.report("new", true).await;
    fleet.store.start(start_of("a").into(), Vec::new()).await.unwrap();
    let leased = fleet.turn("old").await.unwrap();
    assert_eq!(fleet.refuse(&leased.token, None).await, Refused::Routed);
    let leased = fleet.turn("new").await.unwrap();
    let metadata = steadfast_core::ExecutionMetadata {
        orchestration_name: Some("Order".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..Default::default()
    };
    let commit = steadfast_store::TurnCommit { execution_id: 1, metadata, ..Default::default() };
    fleet.store.commit_turn(&leased.token, commit).await.unwrap();

    let (old, new) = (fleet.waiting_turn("old").await, fleet.waiting_turn("new").await);
    let (instance, name, data) = ("a".to_owned(), "poke".to_owned(), String::new());
    let poke = WorkItem::ExternalRaised { instance, name, data };
    fleet.store.send(vec![poke.into()]).await.unwrap();
    assert_eq!(new.await.unwrap().unwrap().instance, "a");
    assert!(!old.is_finished(), "the other one waits on");
    old.abort();
}

#[tokio::test]
async fn g40_any_number_of_refused_rows_is_released_by_one_report() {
    let schema = server().schema("many_refused");
    let fleet = Fleet::open(schema.name(), 1).await;
    fleet.report("old", false).await;
    for number in 0..600 {
        fleet.store.start(start_of(&number.to_string()).into(), Vec::new()).await.unwrap();
    }
    while let Some(leased) = fleet.turn("old").await {
        assert_eq!(fleet.refuse(&leased.token, Some(LONG)).await, Refused::Unlisted);
    }
    fleet.report("new", true).await;
    let mut leased = 0;
    while fleet.turn("new").await.is_some() {
        leased += 1;
    }
    assert_eq!(leased, 600);
}

/// Locks the workers as a refusal does while it is under way.
const REFUSING: &str = "
    BEGIN; SELECT pg_advisory_xact_lock_shared(hashtextextended('\"{name}\".workers', 0))";

/// Counts the calls that wait for that lock.
const ORDERED: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE wait_event = 'advisory' AND query LIKE '%{name}.{call}%'";

async fn until_ordered(client: &Client, call: &str, schema: &str) {
    let count = ORDERED.replace("{call}", call);
    until_ok(|| async {
        if number(client, &count, schema).await > 0 { Ok(()) } else { Err("it does not wait") }
    })
    .await;
}

#[tokio::test]
async fn g40_a_report_that_changes_nothing_waits_for_no_refusal() {
    let schema = server().schema("unchanged");
    open(server().url(), schema.name()).await.unwrap();
    let (client, refusing) = (connect(server().url()).await, connect(server().url()).await);
    let report = async |row: &str, slots: &str| {
        let call = "SELECT {name}.report_worker(p_report => '{slots}', {row})";
        let call = call.replace("{slots}", slots).replace("{row}", row).replace("{name}", schema.name());
        client.batch_execute(&call).await.map_err(|error| error.code().unwrap().code().to_owned())
    };
    let row = "p_worker => 'w', p_tags => NULL, p_takes_unlisted => true, p_is_stopped => false,
        p_kinds => '{1}', p_handlers => '{key}', p_version_of => '{1}', p_versions => '{1.0.0}'";
    report(row, "free").await.unwrap();
    execute(&refusing, REFUSING, schema.name()).await;
    report(row, "busy").await.expect("it waits for no lock");

    // What changes by which reports work is routed, and when, waits.
    let changes = [
        ("'w'", "'v'"),
        ("NULL", "'{:gpu}'"),
        ("true", "false"),
        ("p_is_stopped => false", "p_is_stopped => true"),
        ("'{1}', p_handlers", "'{0}', p_handlers"),
        ("'{key}'", "'{other}'"),
        ("1.0.0", "2.0.0"),
    ];
    for (before, after) in changes {
        let changed = report(&row.replacen(before, after, 1), "free").await;
        assert_eq!(changed, Err("55P03".to_owned()), "{after} waits for the lock");
    }
    refusing.batch_execute("ROLLBACK").await.unwrap();
    let silent = "UPDATE {name}.workers SET last_seen_ms = last_seen_ms - 59000";
    execute(&refusing, silent, schema.name()).await;
    execute(&refusing, REFUSING, schema.name()).await;
    assert_eq!(report(row, "free").await, Err("55P03".to_owned()), "a refusal may take it for silent");
}

#[tokio::test]
async fn g40_a_refusal_beside_the_first_report_of_a_capable_worker_is_not_delayed() {
    let schema = server().schema("refusal_beside_report");
    let fleet = Fleet::open(schema.name(), 1).await;
    let (refusing, reporting, watch) =
        (connect(server().url()).await, connect(server().url()).await, connect(server().url()).await);
    // A transaction that the test keeps open stands for one that takes long.
    let patient = "ALTER FUNCTION {name}.report_worker RESET lock_timeout;
                   ALTER FUNCTION {name}.refuse_work RESET lock_timeout";
    execute(&watch, patient, schema.name()).await;
    let first_report = |id: &str| {
        "BEGIN; SELECT * FROM {name}.report_worker('{id}', NULL, true, false, '{}', '{1}', '{key}', '{}',
             '{}')"
            .replace("{id}", id)
    };
    let refusal = |lease: &WorkLease| {
        "BEGIN; SELECT * FROM {name}.refuse_work('{token}', 'key', 'Order', 600000, false)"
            .replace("{token}", lease.token.as_str())
    };

    // The refusal is first: the report waits for it, and makes the work visible.
    fleet.report("old", false).await;
    fleet.store.enqueue_work(activity()).await.unwrap();
    let (refuse, report) = (refusal(&fleet.work("old").await.unwrap()), first_report("new"));
    execute(&refusing, &refuse, schema.name()).await;
    tokio::join!(execute(&reporting, &report, schema.name()), async {
        until_ordered(&watch, "report_worker", schema.name()).await;
        execute(&refusing, "COMMIT", schema.name()).await;
    });
    execute(&reporting, "COMMIT", schema.name()).await;
    let held = fleet.work("new").await.expect("the report made it visible");

    // The report is first: the refusal waits for it, and is routed.
    fleet.report("new", false).await;
    let (refuse, report) = (refusal(&held), first_report("newer"));
    execute(&reporting, &report, schema.name()).await;
    tokio::join!(execute(&refusing, &refuse, schema.name()), async {
        until_ordered(&watch, "refuse_work", schema.name()).await;
        execute(&reporting, "COMMIT", schema.name()).await;
    });
    execute(&refusing, "COMMIT", schema.name()).await;
    assert!(fleet.work("newer").await.is_some(), "the refusal saw that it is listed");
}

/// Counts the routes that are stored.
const ROUTES: &str = "
    SELECT (SELECT count(*) FROM {name}.pins WHERE pin < -1) + (SELECT count(*) FROM {name}.routes)";

#[tokio::test]
async fn g5_a_route_that_no_work_has_is_forgotten() {
    let schema = server().schema("forgotten");
    let (fleet, client) = (Fleet::open(schema.name(), 1).await, connect(server().url()).await);
    fleet.report("old", false).await;
    fleet.report("new", true).await;
    fleet.store.start(start_of("a").into(), Vec::new()).await.unwrap();
    fleet.store.enqueue_work(activity()).await.unwrap();
    let (leased, held) = (fleet.turn("old").await.unwrap(), fleet.work("old").await.unwrap());
    assert_eq!(fleet.refuse(&leased.token, None).await, Refused::Routed);
    assert_eq!(fleet.refuse(&held.token, None).await, Refused::Routed);
    fleet.report("old", false).await;
    assert_eq!(
        number(&client, ROUTES, schema.name()).await,
        2,
        "the instance and the activity have one each"
    );

    let (leased, held) = (fleet.turn("new").await.unwrap(), fleet.work("new").await.unwrap());
    fleet.store.finish_work(&held.token, steadfast_store::Outcome::default()).await.unwrap();
    let ended = steadfast_core::ExecutionMetadata {
        status: Some("Completed".to_owned()),
        orchestration_name: Some("Order".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..Default::default()
    };
    let commit = steadfast_store::TurnCommit { execution_id: 1, metadata: ended, ..Default::default() };
    fleet.store.commit_turn(&leased.token, commit).await.unwrap();
    fleet.report("old", false).await;
    assert_eq!(number(&client, ROUTES, schema.name()).await, 0);
}

#[tokio::test]
async fn g38_the_memory_of_expired_leases_goes_with_their_rows() {
    let schema = server().schema("remembered");
    let (fleet, client) = (Fleet::open(schema.name(), 1).await, connect(server().url()).await);
    let expire = "UPDATE {name}.instance_locks SET locked_until = 1 WHERE lock_token IS NOT NULL;
                  UPDATE {name}.worker_queue SET locked_until = 1 WHERE lock_token IS NOT NULL;
                  UPDATE {name}.floors SET leased_turns = 0, leased_work = 0";
    let remembered = "SELECT count(*) FROM {name}.ended_leases";
    fleet.store.start(start_of("a").into(), Vec::new()).await.unwrap();
    fleet.store.enqueue_work(activity()).await.unwrap();
    for _ in 0..3 {
        fleet.turn("w").await.unwrap();
        fleet.work("w").await.unwrap();
        execute(&client, expire, schema.name()).await;
    }
    let (leased, held) = (fleet.turn("w").await.unwrap(), fleet.work("w").await.unwrap());
    assert_eq!((leased.attempt, held.attempt), (4, 4));
    assert_eq!(number(&client, remembered, schema.name()).await, 6);
    fleet.store.finish_work(&held.token, steadfast_store::Outcome::default()).await.unwrap();
    assert_eq!(number(&client, remembered, schema.name()).await, 3);
    let commit = steadfast_store::TurnCommit { execution_id: 1, ..Default::default() };
    fleet.store.commit_turn(&leased.token, commit).await.unwrap();
    assert_eq!(number(&client, remembered, schema.name()).await, 0);
}
