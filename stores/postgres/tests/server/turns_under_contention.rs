//! Turns on a real server where calls meet at unlucky moments, or where there is too much of something.

use steadfast_cluster::Schema;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Row};

use crate::{connect, execute, number, open, server};

/// Opens a store in a schema of its own. The schema is dropped with the value.
async fn schema_of(hint: &str) -> Schema {
    let schema = server().schema(hint);
    open(server().url(), schema.name()).await.unwrap();
    schema
}

async fn client() -> Client {
    connect(server().url()).await
}

async fn rows(client: &Client, statement: &str, schema: &str) -> Vec<Row> {
    client.query(&statement.replace("{name}", schema), &[]).await.unwrap()
}

/// Waits until the connection with this process id waits for a lock, then runs the statement that ends its
/// wait.
async fn once_waiting(pid: i64, holder: &Client, statement: &str, schema: &str) {
    let watch = client().await;
    let waits =
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = {pid}".replace("{pid}", &pid.to_string());
    while number(&watch, &waits, schema).await == 0 {}
    execute(holder, statement, schema).await;
}

/// Raises the floors with a call that reads them twice, while a transaction that started an instance is open.
/// The instance must be found once the transaction is committed.
async fn is_found_after(schema: &str, call: &str) {
    let (one, other) = (client().await, client().await);
    execute(
        &other,
        "BEGIN;
         SELECT {name}.start_instances('{old}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}',
             '{}', '{}', 1000000)",
        schema,
    )
    .await;
    execute(
        &one,
        "SELECT count(nextval('{name}.orchestrator_queue_id_seq')) FROM generate_series(1, 3000);
         SELECT {name}.send_messages('{stray}', '{x}', '{2}', '{false}', '{NULL}', 1000000);
         SELECT {name}.read_floors(1000000)",
        schema,
    )
    .await;
    execute(&one, call, schema).await;
    execute(&other, "COMMIT", schema).await;
    assert_eq!(
        number(
            &one,
            "SELECT count(*) FROM {name}.fetch_turns(1000010, 30000, 1) AS f WHERE f.kind = 'turn'
                 AND f.instance_id = 'old'",
            schema
        )
        .await,
        1
    );
}

#[tokio::test]
async fn s18_a_look_raises_no_floor_past_an_open_transaction() {
    let schema = schema_of("floor_of_a_look").await;
    let schema = schema.name();
    is_found_after(schema, "SELECT * FROM {name}.look_for_turns(1000002)").await;
}

#[tokio::test]
async fn s18_a_fetch_raises_no_floor_past_an_open_transaction() {
    let schema = schema_of("floor_of_a_fetch").await;
    let schema = schema.name();
    is_found_after(schema, "SELECT * FROM {name}.fetch_turns(1000002, 30000, 1)").await;
}

/// Leases an instance with a limit of bytes, abandons the lease, and returns the messages that it carried.
async fn carried(client: &Client, schema: &str, instance: &str, bytes: u32) -> Vec<String> {
    let lease = "SELECT items FROM {name}.lease_turns('{{instance}}', 9000000000000, 1000000, {bytes})"
        .replace("{instance}", instance);
    let leases = rows(client, &lease.replace("{bytes}", &bytes.to_string()), schema).await;
    let carried: Vec<String> = leases[0].get(0);
    let listed = rows(
        client,
        "SELECT q.work_item FROM {name}.orchestrator_queue AS q, {name}.instance_locks AS l
         WHERE l.instance_id = q.instance_id AND q.id = ANY (l.leased) ORDER BY q.id",
        schema,
    )
    .await;
    assert_eq!(carried, listed.iter().map(|row| row.get(0)).collect::<Vec<String>>());
    execute(
        client,
        "SELECT {name}.abandon_turns(ARRAY(SELECT lock_token FROM {name}.instance_locks
             WHERE lock_token IS NOT NULL), '{NULL}', '{t}', 1000000)",
        schema,
    )
    .await;
    carried
}

/// Sends messages of ten bytes to `a`, which is started afterwards, and to `b`, which has a history.
const TEN_BYTES_EACH: &str =
    "SELECT {name}.send_messages('{a,a,a}', '{first_____,second____,third_____}', '{NULL,NULL,NULL}',
         '{f,f,f}', '{NULL,NULL,NULL}', NULL);
     SELECT {name}.start_instances('{a}', '{start_____}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}',
         '{}', '{}', NULL);
     SELECT {name}.send_messages('{b,b}', '{first_____,second____}', '{NULL,NULL}', '{f,f}',
         '{NULL,NULL}', NULL);
     INSERT INTO {name}.history (instance_id, execution_id, event_id, event_type, event_data,
         created_at)
     VALUES ('b', 1, 1, 'x', 'x', now())";

#[tokio::test]
async fn s2_a_lease_carries_its_start_and_as_many_messages_as_can_be_returned() {
    let schema = schema_of("bytes").await;
    let schema = schema.name();
    let client = client().await;
    execute(&client, TEN_BYTES_EACH, schema).await;
    let all = ["first_____", "second____", "third_____", "start_____"];
    assert_eq!(carried(&client, schema, "a", 1_000_000).await, all);
    assert_eq!(carried(&client, schema, "a", 40).await, all);
    assert_eq!(carried(&client, schema, "a", 39).await, ["first_____", "second____", "start_____"]);
    assert_eq!(carried(&client, schema, "a", 10).await, ["start_____"]);
    assert_eq!(carried(&client, schema, "a", 1).await, ["start_____"]);
    assert_eq!(carried(&client, schema, "b", 20).await, ["first_____", "second____"]);
    assert_eq!(carried(&client, schema, "b", 19).await, ["first_____"]);
    assert_eq!(carried(&client, schema, "b", 1).await, ["first_____"]);
}

/// Fetches up to three turns. Returns of each row: its kind, whether to look again, and the next moment.
async fn fetched(client: &Client, schema: &str, now: u64) -> Vec<(String, bool, Option<i64>)> {
    let fetch = "SELECT kind, again, next_ms FROM {name}.fetch_turns({now}, 30000, 3)"
        .replace("{now}", &now.to_string());
    rows(client, &fetch, schema).await.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

#[tokio::test]
async fn a_fetch_that_finds_less_than_was_asked_for_says_when_to_look_again() {
    let schema = schema_of("fewer").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(
        &one,
        "SELECT {name}.start_instances('{a,b}', '{x,x}', '{NULL,5000}', '{NULL,NULL}', '{}', '{}',
             '{}', '{}', '{}', '{}', 1000000)",
        schema,
    )
    .await;
    let found = fetched(&one, schema, 1_000_000).await;
    assert_eq!(found, [("turn".to_owned(), false, None), ("none".to_owned(), false, Some(1_005_000))]);
    // Now the second is ready, and another transaction has locked it.
    execute(
        &one,
        "SELECT {name}.start_instances('{c}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}',
             '{}', '{}', 1000000)",
        schema,
    )
    .await;
    execute(
        &other,
        "BEGIN; SELECT {name}.send_messages('{b}', '{x}', '{NULL}', '{false}', '{NULL}', 1000000)",
        schema,
    )
    .await;
    let found = fetched(&one, schema, 1_005_000).await;
    assert_eq!(found, [("turn".to_owned(), false, None), ("none".to_owned(), true, Some(1_030_000))]);
}

/// Deletes instances that ended before second 10, and returns their ids.
async fn deleted_early(client: &Client, schema: &str) -> Vec<String> {
    rows(client, "SELECT deleted FROM {name}.delete_instance_bulk(NULL, 10000, 10)", schema).await[0].get(0)
}

/// Makes three instances that ended at second 1.
const ENDED_INSTANCES: &str = "
    INSERT INTO {name}.instances
        (instance_id, orchestration_name, orchestration_version, status, created_at, updated_at, ord,
            change, ended_ms)
    SELECT 'i' || n, 'o', '1', 'Completed', to_timestamp(0), to_timestamp(0), n, n, 1000
        FROM generate_series(1, 3) AS n;
    INSERT INTO {name}.executions (instance_id, execution_id, run_id, status, started_at,
        completed_at)
    SELECT 'i' || n, 1, n, 'Completed', to_timestamp(0), to_timestamp(1) FROM generate_series(1, 3)
        AS n;
    INSERT INTO {name}.instance_locks (instance_id) SELECT 'i' || n FROM generate_series(1, 3) AS n";

/// The process id of this connection on the server.
const PID: &str = "SELECT pg_backend_pid()::bigint";

#[tokio::test]
async fn an_instance_that_stops_matching_before_it_is_locked_is_not_deleted() {
    let schema = schema_of("filter").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(&one, ENDED_INSTANCES, schema).await;
    let pid = number(&one, PID, schema).await;
    execute(&other, "BEGIN; LOCK TABLE {name}.orchestrator_queue", schema).await;
    let end_later = once_waiting(
        pid,
        &other,
        "INSERT INTO {name}.executions (instance_id, execution_id, run_id, status, started_at,
             completed_at)
         VALUES ('i2', 2, 4, 'Completed', to_timestamp(1000), to_timestamp(1000));
         UPDATE {name}.instances SET current_execution_id = 2 WHERE instance_id = 'i2';
         COMMIT",
        schema,
    );
    let (deleted, ()) = tokio::join!(deleted_early(&one, schema), end_later);
    assert_eq!(deleted, ["i1", "i3"]);
}

#[tokio::test]
async fn two_deletions_of_the_same_instances_leave_nothing_behind() {
    let schema = schema_of("twice").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(&one, ENDED_INSTANCES, schema).await;
    let pid = number(&one, PID, schema).await;
    execute(&other, "BEGIN; SELECT {name}.delete_instance_bulk(NULL, NULL, 10)", schema).await;
    let commit = once_waiting(pid, &other, "COMMIT", schema);
    let (deleted, ()) = tokio::join!(deleted_early(&one, schema), commit);
    assert!(deleted.is_empty(), "{deleted:?}");
    assert_eq!(number(&one, "SELECT count(*) FROM {name}.instance_locks", schema).await, 0);
}

/// Starts an instance.
const START: &str =
    "SELECT {name}.start_instances('{a}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}',
         '{}', NULL)";

#[tokio::test]
async fn s4_a_lease_that_ends_while_its_renewal_waits_is_not_renewed() {
    let schema = schema_of("renewal").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(&one, START, schema).await;
    let token: String =
        rows(&one, "SELECT token FROM {name}.fetch_turns(NULL, 600000, 1)", schema).await[0].get(0);
    let pid = number(&one, PID, schema).await;
    execute(
        &other,
        "BEGIN; SELECT {name}.send_messages('{a}', '{y}', '{NULL}', '{false}', '{NULL}', NULL)",
        schema,
    )
    .await;
    let renew =
        "SELECT code FROM {name}.renew_turns('{{token}}', '{600000}', NULL)".replace("{token}", &token);
    let end = once_waiting(
        pid,
        &other,
        "UPDATE {name}.instance_locks SET locked_until = {name}.now_ms(NULL); COMMIT",
        schema,
    );
    let (renewed, ()) = tokio::join!(rows(&one, &renew, schema), end);
    assert_eq!(renewed[0].get::<_, &str>(0), "ended");
}

/// Locks all instances but `other`, in a transaction that stays open.
const HOLD_CROWD: &str = "BEGIN; SELECT 1 FROM {name}.instance_locks WHERE instance_id <> 'other' FOR UPDATE";

/// Fetches one turn, and counts whether it is the turn of the instance `other`.
const FETCH_OTHER: &str =
    "SELECT count(*) FROM {name}.fetch_turns(1000100, 30000, 1) AS f WHERE f.kind = 'turn'
         AND f.instance_id = 'other'";

#[tokio::test]
async fn s18_due_messages_that_are_locked_do_not_keep_others_waiting() {
    let schema = schema_of("locked_messages").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(
        &one,
        "SELECT {name}.send_messages(
             array_fill('crowd'::text, '{300}'), array_fill('x'::text, '{300}'),
                 array_fill(10::bigint, '{300}'), array_fill(false, '{300}'),
             array_fill(NULL::text, '{300}'), 1000000
         );
         SELECT {name}.start_instances('{other}', '{x}', '{20}', '{NULL}', '{}', '{}', '{}', '{}',
             '{}', '{}', 1000000)",
        schema,
    )
    .await;
    execute(&other, HOLD_CROWD, schema).await;
    assert_eq!(number(&one, FETCH_OTHER, schema).await, 1);
}

#[tokio::test]
async fn s18_ready_instances_that_are_locked_do_not_keep_others_waiting() {
    let schema = schema_of("locked_instances").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(
        &one,
        "SELECT {name}.start_instances(array_agg('i' || n), array_agg('x'::text),
             array_agg(NULL::bigint), array_agg(NULL::text),
             '{}', '{}', '{}', '{}', '{}', '{}', 1000000)
         FROM generate_series(1, 700) AS n;
         SELECT {name}.start_instances('{other}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}',
             '{}', '{}', '{}', 1000000)",
        schema,
    )
    .await;
    execute(&other, HOLD_CROWD, schema).await;
    assert_eq!(number(&one, FETCH_OTHER, schema).await, 1);
}

#[tokio::test]
async fn s17_a_transaction_that_cannot_see_a_delayed_start_does_not_start_the_instance_again() {
    let schema = schema_of("old_snapshot").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(
        &one,
        "SELECT {name}.send_messages('{a}', '{x}', '{100000}', '{false}', '{NULL}', 1000000)",
        schema,
    )
    .await;
    execute(&other, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM {name}.instances", schema).await;
    execute(
        &one,
        "SELECT {name}.start_instances('{a}', '{x}', '{50}', '{NULL}', '{}', '{}', '{}', '{}',
             '{}', '{}', 1000000)",
        schema,
    )
    .await;
    let start = START.replace("{name}", schema);
    let refused = other.batch_execute(&start).await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE), "{refused}");
}
