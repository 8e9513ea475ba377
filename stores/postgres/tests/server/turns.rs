//! Turns on a real server: how many blocks the calls of a turn read, however full the tables are (S20).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_clock::VirtualClock;
use steadfast_core::{Event, EventKind, ExecutionMetadata, WorkItem};
use steadfast_postgres::{Counts, PostgresOptions, PostgresProvider};
use steadfast_store::{Cold, ProviderErrorKind, Store, TurnCommit, TurnLease, TurnRequest};
use tokio_postgres::Client;

use crate::work::{LEVELS, blocks};
use crate::{connect, execute, number, open, quiet, server, start_of};

/// Commits a turn that appends an event, queues an activity and sends a message.
const COMMIT: &str = r#"
    SELECT * FROM {name}.commit_turns(NULL, '{{token}}', '{1}', '{o}', '{1}', '{NULL}', '{Running}',
        '{NULL}', '{NULL}', '{NULL}', '{NULL}',
        '{NULL}', '{f}', '{NULL}', '{f}', '{1}', '{1}', '{x}', '{x}', '{}', '{}', '{}', '{}', '{}',
            '{}', '{}', '{}', '{}', '{}', '{}', '{}',
        '{1}', '{x}', '{a}', '{1}', '{1}', '{""}', '{""}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}',
            '{1}', '{z}', '{x}', '{NULL}', '{t}',
        '{NULL}', p_rising => '{1}')"#;

/// The calls of a turn, each with the token of a lease.
const CALLS: [(&str, &str); 4] = [
    ("fetch", "SELECT * FROM {name}.fetch_turns(NULL, 30000, 1, '{5}', '{6}')"),
    ("renewal", "SELECT * FROM {name}.renew_turns('{{token}}', '{30000}', NULL)"),
    ("commit", COMMIT),
    ("abandonment", "SELECT * FROM {name}.abandon_turns('{{token}}', '{60000}', '{false}', NULL)"),
];

/// Counts the sequential scans of the queues in this transaction.
const SCANNED: &str = "
    SELECT coalesce(sum(seq_scan), 0)::bigint FROM pg_stat_xact_user_tables
    WHERE schemaname = '{name}' AND relname IN (
        'orchestrator_queue', 'instance_locks', 'worker_queue', 'instances', 'executions', 'history',
            'sessions', 'lines', 'heads')";

/// The blocks that each call reads when caches are warm and deleted rows are vacuumed. The least of several
/// counts.
async fn costs(client: &Client, schema: &str) -> [u64; CALLS.len()] {
    let mut least = [u64::MAX; CALLS.len()];
    for _ in 0..4 {
        for (at, (what, call)) in CALLS.into_iter().enumerate() {
            execute(
                client,
                "SELECT {name}.start_instances('{a,b,c}', '{x,x,x}', '{NULL,NULL,NULL}',
                     '{NULL,NULL,NULL}', '{}', '{}', '{}', '{}', '{}', '{}', NULL)",
                schema,
            )
            .await;
            execute(
                client,
                "VACUUM {name}.orchestrator_queue, {name}.instance_locks, {name}.instances,
                     {name}.executions, {name}.history",
                schema,
            )
            .await;
            let take = "SELECT token FROM {name}.fetch_turns(NULL, 30000, 1, '{5}', '{6}')"
                .replace("{name}", schema);
            let token: String = client.query_one(&take, &[]).await.unwrap().get(0);
            let call = call.replace("{token}", &token);
            client.batch_execute("BEGIN").await.unwrap();
            let scanned = number(client, SCANNED, schema).await;
            let cost = blocks(client, &explained(&call), schema).await;
            let scanned = number(client, SCANNED, schema).await - scanned;
            client.batch_execute("COMMIT").await.unwrap();
            assert_eq!(scanned, 0, "the {what} has read a queue from end to end");
            least[at] = least[at].min(cost);
            execute(client, "SELECT {name}.erase_instances('{a,b,c,z}')", schema).await;
        }
    }
    least
}

/// Makes a statement report its cost when it is run.
fn explained(statement: &str) -> String {
    "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) {statement}".replace("{statement}", statement)
}

/// Updates the statistics of the planner.
const ANALYZE: &str =
    "ANALYZE {name}.orchestrator_queue, {name}.instance_locks, {name}.instances, {name}.executions,
         {name}.history, {name}.pins";

/// Inserts rows that must not matter to a fetch of unpinned turns: 25,000 instances that are leased, as many
/// that are ready and pinned to a version, as many that wait for a time, and as many without messages, all
/// with histories.
const NOISE: &str = "
    INSERT INTO {name}.pins VALUES (1);
    INSERT INTO {name}.orchestrator_queue (instance_id, work_item, state, visible_ms, starts,
        created_at)
    SELECT 'l' || n, 'x', 1, 0, true, now() FROM generate_series(1, 25000) AS n;
    INSERT INTO {name}.instance_locks (instance_id, lock_token, locked_until, leased)
    SELECT q.instance_id, 'token' || q.id, 9000000000000 + q.id, ARRAY[q.id]
        FROM {name}.orchestrator_queue AS q;
    INSERT INTO {name}.orchestrator_queue (instance_id, work_item, state, visible_ms, starts,
        created_at)
    SELECT 'p' || n, 'x', 1, 0, true, now() FROM generate_series(1, 25000) AS n;
    INSERT INTO {name}.instance_locks (instance_id, head, since, pin)
    SELECT q.instance_id, q.id, 1, 1 FROM {name}.orchestrator_queue AS q WHERE q.instance_id LIKE
        'p%';
    INSERT INTO {name}.instance_locks (instance_id) SELECT 'd' || n FROM generate_series(1, 25000)
        AS n;
    INSERT INTO {name}.orchestrator_queue (instance_id, work_item, state, visible_ms, starts,
        created_at)
    SELECT 'd' || n, 'x', 0, 9000000000000 + n, false, now() FROM generate_series(1, 25000) AS n;
    INSERT INTO {name}.instance_locks (instance_id) SELECT 'i' || n FROM generate_series(1, 25000)
        AS n;
    INSERT INTO {name}.instances
        (instance_id, orchestration_name, orchestration_version, created_at, updated_at, ord, change)
    SELECT l.instance_id, 'o', '1', now(), now(), nextval('{name}.numbers'), nextval('{name}.numbers')
    FROM {name}.instance_locks AS l WHERE l.instance_id NOT IN ('a', 'b', 'c');
    INSERT INTO {name}.executions (instance_id, execution_id, run_id, started_at)
    SELECT i.instance_id, 1, i.ord, now() FROM {name}.instances AS i;
    INSERT INTO {name}.history (instance_id, execution_id, event_id, event_type, event_data,
        created_at)
    SELECT i.instance_id, 1, 1, 'x', 'x', now() FROM {name}.instances AS i";

#[tokio::test]
async fn rows_of_other_instances_cost_a_turn_nothing() {
    // A server of its own: deleted rows stay in the indexes while any open transaction on the server may see
    // them.
    let server = steadfast_cluster::Server::durable().unwrap();
    let schema = server.schema("turns");
    open(server.url(), schema.name()).await.unwrap();
    let old = connect(server.url()).await;
    // A plan that was made for empty tables must be good for full ones.
    execute(&old, ANALYZE, schema.name()).await;
    let empty = costs(&old, schema.name()).await;
    execute(&old, NOISE, schema.name()).await;
    let new = connect(server.url()).await;
    let full = [costs(&old, schema.name()).await, costs(&new, schema.name()).await];
    execute(&new, ANALYZE, schema.name()).await;
    let analysed = connect(server.url()).await;
    let full = [full[0], full[1], costs(&analysed, schema.name()).await];
    for (costs, planned) in
        full.into_iter().zip(["with empty tables", "without statistics", "with statistics"])
    {
        for (at, (what, _)) in CALLS.into_iter().enumerate() {
            let (empty, full) = (empty[at], costs[at]);
            assert!(full <= empty * LEVELS, "{what}, planned {planned}: {full} blocks instead of {empty}");
        }
    }
}

/// Fetches at a time after now. Returns the kind of each row, and its messages.
async fn fetched(client: &Client, schema: &str, after_ms: u64) -> Vec<(String, Option<Vec<String>>)> {
    let look = "SELECT kind, items FROM {name}.fetch_turns({name}.now_ms(NULL) + {while}, 30000, 1)"
        .replace("{name}", schema)
        .replace("{while}", &after_ms.to_string());
    client.query(&look, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Stops every fetch shortly after it has begun.
const HOLD: &str = "BEGIN; LOCK TABLE {name}.pins";

/// Counts the calls that wait for the lock of [`HOLD`].
const HELD: &str = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{name}.pins'::regclass";

#[tokio::test]
async fn s2_a_start_that_is_delayed_while_a_fetch_looks_is_waited_for() {
    let schema = server().schema("put_off");
    open(server().url(), schema.name()).await.unwrap();
    let (fetcher, other, watch) =
        (connect(server().url()).await, connect(server().url()).await, connect(server().url()).await);
    // The first fetch also tends the floors, where the lock would stop it too.
    assert_eq!(fetched(&fetcher, schema.name(), 0).await, [("none".to_owned(), None)]);
    execute(
        &other,
        "SELECT {name}.start_instances('{a}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}',
             '{}', '{}', NULL)",
        schema.name(),
    )
    .await;
    execute(&other, HOLD, schema.name()).await;
    let put_off = async {
        while number(&watch, HELD, schema.name()).await == 0 {}
        execute(
            &other,
            "SELECT {name}.abandon_turns(ARRAY(SELECT token FROM {name}.fetch_turns(NULL, 30000, 1)),
                 '{3600000}', '{true}', NULL);
             SELECT {name}.send_messages('{a}', '{y}', '{NULL}', '{false}', '{NULL}', NULL);
             COMMIT",
            schema.name(),
        )
        .await;
    };
    // The fetch has seen the start ready, and finds only another message ready when it locks the instance.
    let (found, ()) = tokio::join!(fetched(&fetcher, schema.name(), 0), put_off);
    assert_eq!(found, [("none".to_owned(), None)]);
    let later = fetched(&fetcher, schema.name(), 3_600_000).await;
    assert_eq!(later, [("turn".to_owned(), Some(vec!["x".to_owned(), "y".to_owned()]))]);
}

const LEASE: Duration = Duration::from_secs(30);

async fn store(schema: &str, options: PostgresOptions) -> Arc<PostgresProvider> {
    Arc::new(PostgresProvider::new_with_options(server().url(), Some(schema), options).await.unwrap())
}

async fn start(store: &PostgresProvider, instance: &str) {
    store.start(start_of(instance).into(), Vec::new()).await.unwrap();
}

async fn fetch(store: &PostgresProvider, poll_timeout: Duration) -> Option<TurnLease> {
    let request = TurnRequest { lock_timeout: LEASE, poll_timeout, filter: None, warm: &Cold, worker: None };
    store.fetch_turn(request).await.unwrap()
}

#[tokio::test]
async fn s3_a_commit_that_can_never_succeed_fails_alone() {
    let schema = server().schema("alone");
    let store = store(schema.name(), quiet()).await;
    let mut commits = Vec::new();
    for n in 0..8 {
        start(&store, &format!("i{n}")).await;
        let lease = fetch(&store, Duration::ZERO).await.expect("an instance is ready");
        // This key is too long for an index row.
        let key = if n == 4 { noise(8_000) } else { "key".to_owned() };
        let set = EventKind::KeyValueSet { key, value: String::new(), last_updated_at_ms: 1 };
        let events = vec![Event::at(1_700_000_000_000, 1, lease.instance.clone(), 1, None, set)];
        let metadata = ExecutionMetadata {
            orchestration_name: Some("Order".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            ..ExecutionMetadata::default()
        };
        let commit = TurnCommit { execution_id: 1, events, metadata, ..TurnCommit::default() };
        commits.push((lease.token, commit));
    }
    // The requests wait at the same time, so they become one call.
    let asked: Vec<_> = commits
        .into_iter()
        .map(|(token, commit)| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.commit_turn(&token, commit).await.map(drop) })
        })
        .collect();
    let mut kinds = Vec::new();
    for commit in asked {
        kinds.push(commit.await.unwrap().map_err(|error| error.kind));
    }
    let expected = |n| if n == 4 { Err(ProviderErrorKind::Invalid) } else { Ok(()) };
    assert_eq!(kinds, (0..8).map(expected).collect::<Vec<_>>());
}

/// Text that cannot be compressed.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let letters = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
    });
    letters.take(length).collect()
}

#[tokio::test]
async fn s5_a_fetch_that_was_dropped_counts_no_attempt_although_its_lease_has_ended() {
    let schema = server().schema("dropped");
    let clock = VirtualClock::new(1_700_000_000_000);
    let options = PostgresOptions { clock: Some(Arc::new(clock.clone())), ..quiet() };
    let store = store(schema.name(), options).await;
    assert!(fetch(&store, Duration::ZERO).await.is_none());
    start(&store, "a").await;
    let (other, watch) = (connect(server().url()).await, connect(server().url()).await);
    execute(&other, HOLD, schema.name()).await;
    let dropped = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { fetch(&store, Duration::ZERO).await })
    };
    while number(&watch, HELD, schema.name()).await == 0 {}
    dropped.abort();
    clock.advance(2 * LEASE);
    other.batch_execute("COMMIT").await.unwrap();
    let lease = fetch(&store, Duration::ZERO).await.expect("the dropped fetch abandoned its lease");
    assert_eq!(lease.attempt, 1);
}

/// Locks an instance, as an application does that has sent to it and leaves its transaction open.
const HOLD_INSTANCE: &str =
    "BEGIN; SELECT {name}.send_messages('{a}', '{y}', '{NULL}', '{false}', '{NULL}', NULL)";

#[tokio::test]
async fn a_fetch_looks_with_pauses_for_an_instance_that_a_transaction_locks() {
    let schema = server().schema("paused");
    let counts = Arc::new(Counts::default());
    let store = store(schema.name(), PostgresOptions { counts: Some(Arc::clone(&counts)), ..quiet() }).await;
    start(&store, "a").await;
    let other = connect(server().url()).await;
    execute(&other, HOLD_INSTANCE, schema.name()).await;
    let before = counts.sent.load(Ordering::Acquire);
    assert!(fetch(&store, Duration::from_secs(2)).await.is_none(), "another has it");
    let sent = counts.sent.load(Ordering::Acquire) - before;
    assert!(sent < 60, "{sent} statements in two seconds");
    other.batch_execute("COMMIT").await.unwrap();
    assert!(fetch(&store, Duration::from_secs(60)).await.is_some());
}

#[tokio::test]
async fn a_message_that_waits_for_a_transaction_does_not_delay_other_messages() {
    let schema = server().schema("held");
    let store = store(schema.name(), quiet()).await;
    let other = connect(server().url()).await;
    for instance in ["a", "b", "c"] {
        start(&store, instance).await;
    }
    execute(&other, HOLD_INSTANCE, schema.name()).await;
    // The three are sent at the same time, so they become one call.
    let [held, one, two] = ["a", "b", "c"].map(|instance| {
        let (store, instance) = (Arc::clone(&store), instance.to_owned());
        let event = WorkItem::ExternalRaised { instance, name: "poke".to_owned(), data: String::new() };
        tokio::spawn(async move { store.send(vec![event.into()]).await })
    });
    one.await.unwrap().unwrap();
    two.await.unwrap().unwrap();
    assert!(!held.is_finished(), "it waits for the transaction");
    other.batch_execute("COMMIT").await.unwrap();
    held.await.unwrap().unwrap();
}
