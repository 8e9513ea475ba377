//! Deleting what ended long ago in bounded steps (G12), and what a deletion leaves behind (G17).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_core::{Event, EventKind, ExecutionMetadata};
use steadfast_postgres::{Counts, PostgresOptions, PostgresProvider};
use steadfast_store::{Cold, Store, TurnCommit, TurnRequest};
use tokio_postgres::Client;

use crate::{connect, execute, number, quiet, server, start_of, until_ok};

const LEASE: Duration = Duration::from_secs(30);

/// Makes an instance that has ended.
async fn ended(store: &PostgresProvider, instance: &str) {
    ended_child(store, instance, None).await;
}

/// Makes an instance that has a parent and has ended.
async fn ended_child(store: &PostgresProvider, instance: &str, parent: Option<&str>) {
    store.start(start_of(instance).into(), Vec::new()).await.unwrap();
    let poll_timeout = Duration::ZERO;
    let request = TurnRequest { lock_timeout: LEASE, poll_timeout, filter: None, warm: &Cold, worker: None };
    let lease = store.fetch_turn(request).await.unwrap().unwrap();
    let completed = EventKind::OrchestrationCompleted { output: String::new() };
    let commit = TurnCommit {
        execution_id: 1,
        events: vec![Event::at(1, 1, lease.instance.clone(), 1, None, completed)],
        metadata: ExecutionMetadata {
            orchestration_name: Some("Order".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            status: Some("Completed".to_owned()),
            parent_instance_id: parent.map(str::to_owned),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    };
    store.commit_turn(&lease.token, commit).await.unwrap();
}

async fn opened(schema: &str, counts: &Arc<Counts>) -> PostgresProvider {
    let options = PostgresOptions {
        statement_timeout: Duration::from_secs(1),
        counts: Some(Arc::clone(counts)),
        ..quiet()
    };
    PostgresProvider::new_with_options(server().url(), Some(schema), options).await.unwrap()
}

/// Makes the deletion of each instance take a fifth of a second.
const SLOW: &str = "
    CREATE FUNCTION {name}.slowly() RETURNS trigger LANGUAGE plpgsql AS
        $do$ BEGIN PERFORM pg_sleep(0.2); RETURN OLD; END $do$;
    CREATE TRIGGER slowly BEFORE DELETE ON {name}.instances FOR EACH ROW EXECUTE FUNCTION {name}.slowly()";

#[tokio::test]
async fn g12_a_batch_that_takes_longer_than_a_statement_may_is_halved() {
    let schema = server().schema("slow_deletion");
    let counts = Arc::new(Counts::default());
    let store = opened(schema.name(), &counts).await;
    for n in 0..8 {
        ended(&store, &format!("i-{n}")).await;
    }
    let client = connect(server().url()).await;
    execute(&client, SLOW, schema.name()).await;
    let before = counts.sent.load(Ordering::Acquire);
    let mut deleted = 0;
    for _ in 0..8 {
        deleted += store.delete_ended(Duration::ZERO, 100).await.unwrap().instances_deleted;
    }
    assert_eq!(deleted, 8);
    let sent = counts.sent.load(Ordering::Acquire) - before;
    assert!(sent <= 40, "{sent} statements for eight instances");
}

/// Makes the deletion of one instance take longer than a statement may.
const STUCK: &str = "
    CREATE FUNCTION {name}.stuck() RETURNS trigger LANGUAGE plpgsql AS
        $do$ BEGIN IF OLD.instance_id = 'i-0' THEN PERFORM pg_sleep(60); END IF; RETURN OLD; END $do$;
    CREATE TRIGGER stuck BEFORE DELETE ON {name}.instances FOR EACH ROW EXECUTE FUNCTION {name}.stuck()";

#[tokio::test]
async fn g12_an_instance_that_cannot_be_deleted_in_time_holds_up_no_other_and_is_named() {
    let schema = server().schema("stuck_deletion");
    let store = opened(schema.name(), &Arc::new(Counts::default())).await;
    for n in 0..3 {
        ended(&store, &format!("i-{n}")).await;
    }
    execute(&connect(server().url()).await, STUCK, schema.name()).await;
    assert_eq!(store.delete_ended(Duration::ZERO, 100).await.unwrap().instances_deleted, 2);
    let said = store.delete_ended(Duration::ZERO, 100).await.unwrap_err().to_string();
    crate::says(&said, &["too large", "statement_timeout"]);
}

/// Fills the store with roots that ended a moment ago, and running ones.
const MANY: &str = "
    INSERT INTO {name}.instances (instance_id, orchestration_name, orchestration_version, created_at,
        updated_at, ord, change, status, ended_ms)
    SELECT 'e' || n, 'o', '1', now(), now(), nextval('{name}.numbers'), 1, 'Completed', 9000000000000
        FROM generate_series(1, 20000) AS n;
    INSERT INTO {name}.instances (instance_id, orchestration_name, orchestration_version, created_at,
        updated_at, ord, change)
    SELECT 'r' || n, 'o', '1', now(), now(), nextval('{name}.numbers'), 1
        FROM generate_series(1, 20000) AS n";

#[tokio::test]
async fn g12_what_is_not_old_enough_costs_a_step_nothing() {
    let schema = server().schema("young");
    let store = opened(schema.name(), &Arc::new(Counts::default())).await;
    for n in 0..10 {
        ended(&store, &format!("i-{n}")).await;
    }
    let client = connect(server().url()).await;
    let step = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF)
                SELECT * FROM {name}.delete_ended(0, 1, 0, 0)";
    let (mut few, mut many) = (u64::MAX, u64::MAX);
    // The first call of a connection reads the catalogue, and the first one of a full table marks its rows.
    for _ in 0..4 {
        few = few.min(crate::work::blocks(&client, step, schema.name()).await);
    }
    execute(&client, MANY, schema.name()).await;
    for _ in 0..4 {
        many = many.min(crate::work::blocks(&client, step, schema.name()).await);
    }
    assert!(many <= few * crate::work::LEVELS, "{many} blocks instead of {few}");
}

/// Fills the store with children that ended long ago and whose parents run, and with children whose parents
/// are gone and that run.
const CHILDREN: &str = "
    INSERT INTO {name}.instances (instance_id, orchestration_name, orchestration_version, created_at,
        updated_at, ord, change, parent_instance_id, status, ended_ms)
    SELECT 'c' || n, 'o', '1', now(), now(), nextval('{name}.numbers'), 1, 'r' || n, 'Completed', 1
        FROM generate_series(1, 20000) AS n;
    INSERT INTO {name}.instances (instance_id, orchestration_name, orchestration_version, created_at,
        updated_at, ord, change, parent_instance_id, is_orphan)
    SELECT 'o' || n, 'o', '1', now(), now(), nextval('{name}.numbers'), 1, 'gone', true
        FROM generate_series(1, 20000) AS n";

#[tokio::test]
async fn g12_children_that_are_not_to_be_deleted_cost_a_step_nothing() {
    let schema = server().schema("children");
    let store = opened(schema.name(), &Arc::new(Counts::default())).await;
    for n in 0..10 {
        ended_child(&store, &format!("i-{n}"), Some("gone")).await;
    }
    let client = connect(server().url()).await;
    let step = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF)
                SELECT * FROM {name}.delete_ended(0, 1, 0, 0)";
    let (mut few, mut many) = (u64::MAX, u64::MAX);
    for _ in 0..4 {
        few = few.min(crate::work::blocks(&client, step, schema.name()).await);
    }
    execute(&client, MANY, schema.name()).await;
    execute(&client, CHILDREN, schema.name()).await;
    for _ in 0..4 {
        many = many.min(crate::work::blocks(&client, step, schema.name()).await);
    }
    assert_eq!(number(&client, "SELECT count(*) FROM {name}.instances", schema.name()).await, 80_002);
    assert!(many <= few * crate::work::LEVELS, "{many} blocks instead of {few}");
}

/// Counts the calls that wait for a commit of another session.
const COMMITTING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND query LIKE '%{name}%' AND query LIKE '%{call}%'";

async fn waits(client: &Client, call: &str, schema: &str) {
    let count = COMMITTING.replace("{call}", call);
    until_ok(|| async { if number(client, &count, schema).await > 0 { Ok(()) } else { Err("no wait") } })
        .await;
}

/// Makes the first commit of a child of `parent` that waits for its start, in a transaction that stays open.
async fn commit_a_child(client: &Client, status: &str, schema: &str) {
    let lease = "SELECT token FROM {name}.fetch_turns(NULL, 30000, 1) WHERE kind = 'turn'";
    let token: String = client.query_one(&lease.replace("{name}", schema), &[]).await.unwrap().get(0);
    let commit = "BEGIN; SELECT {name}.ack_orchestration_item('{token}', {name}.now_ms(NULL), 1, '[]', '[]',
        '[]', '{\"orchestration_name\":\"Order\",\"orchestration_version\":\"1\",
              \"parent_instance_id\":\"parent\",\"status\":\"{status}\"}', '[]')";
    let commit = commit.replace("{token}", &token).replace("{status}", status);
    execute(client, &commit, schema).await;
}

#[tokio::test]
async fn g12_a_child_that_begins_while_its_parent_is_deleted_is_deleted_in_its_time() {
    let schema = server().schema("orphaned");
    let store = opened(schema.name(), &Arc::new(Counts::default())).await;
    let (client, other) = (connect(server().url()).await, connect(server().url()).await);
    // A transaction that the test keeps open stands for one that takes long.
    let patient = "ALTER FUNCTION {name}.commit_turns RESET lock_timeout;
                   ALTER FUNCTION {name}.delete_ended RESET lock_timeout";
    execute(&client, patient, schema.name()).await;
    // The deletion is first.
    ended(&store, "parent").await;
    execute(&client, "BEGIN; SELECT {name}.delete_instance('parent', false)", schema.name()).await;
    let committing = async {
        waits(&other, "commit_turns", schema.name()).await;
        execute(&client, "COMMIT", schema.name()).await;
    };
    tokio::join!(ended_child(&store, "first", Some("parent")), committing);
    assert_eq!(store.delete_ended(Duration::ZERO, 1).await.unwrap().instances_deleted, 1);
    // The commit of the child is first.
    ended(&store, "parent").await;
    store.start(start_of("second").into(), Vec::new()).await.unwrap();
    commit_a_child(&client, "Completed", schema.name()).await;
    let committing = async {
        waits(&other, "delete_ended", schema.name()).await;
        execute(&client, "COMMIT", schema.name()).await;
    };
    let (deleted, ()) = tokio::join!(store.delete_ended(Duration::ZERO, 1), committing);
    assert_eq!(deleted.unwrap().instances_deleted, 1, "the deletion began before the child existed");
    assert_eq!(store.delete_ended(Duration::ZERO, 10).await.unwrap().instances_deleted, 1);
    assert_eq!(number(&client, "SELECT count(*) FROM {name}.instances", schema.name()).await, 0);
}

/// Counts the rows by which instances are locked.
const LOCK_ROWS: &str = "SELECT count(*) FROM {name}.instance_locks";

/// Counts the calls that wait for a row of that table.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND query LIKE '%{name}.finish_work_items%'";

#[tokio::test]
async fn g17_a_finish_that_meets_a_deletion_leaves_no_row_behind() {
    let schema = server().schema("late_finish");
    let store = opened(schema.name(), &Arc::new(Counts::default())).await;
    ended(&store, "a").await;
    let (deleter, finisher, watch) =
        (connect(server().url()).await, connect(server().url()).await, connect(server().url()).await);
    execute(
        &deleter,
        r#"SELECT {name}.queue_work('{x}', '{a}', '{1}', '{1}', '{""}', '{""}', '{NULL}', '{NULL}', 1000)"#,
        schema.name(),
    )
    .await;
    let take = crate::LEASE_ONE.replace("{name}", schema.name());
    let token: String = deleter.query_one(&take, &[]).await.unwrap().get(0);
    execute(&deleter, "BEGIN; SELECT {name}.delete_instance('a', true)", schema.name()).await;
    let finish = "SET lock_timeout TO 0;
                  SELECT code FROM {name}.finish_work_items('{{token}}', '{a}', '{done}', '{NULL}')"
        .replace("{token}", &token);
    let finishing = execute(&finisher, &finish, schema.name());
    let deleting = async {
        while number(&watch, WAITING, schema.name()).await == 0 {}
        deleter.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(finishing, deleting);
    assert_eq!(number(&watch, LOCK_ROWS, schema.name()).await, 0);
}

#[tokio::test]
async fn g12_a_commit_of_a_child_beside_the_deletion_of_its_parent_is_not_lost() {
    let schema = server().schema("beside");
    let store = opened(schema.name(), &Arc::new(Counts::default())).await;
    let (client, deleter, other) =
        (connect(server().url()).await, connect(server().url()).await, connect(server().url()).await);
    let patient = "ALTER FUNCTION {name}.commit_turns RESET lock_timeout;
                   ALTER FUNCTION {name}.delete_ended RESET lock_timeout";
    execute(&client, patient, schema.name()).await;
    ended(&store, "parent").await;
    store.start(start_of("child").into(), Vec::new()).await.unwrap();
    commit_a_child(&client, "Running", schema.name()).await;
    // The parent is deleted, and waits for that commit.
    let committing = async {
        waits(&other, "delete_instance", schema.name()).await;
        execute(&client, "COMMIT", schema.name()).await;
    };
    tokio::join!(
        execute(&deleter, "BEGIN; SELECT {name}.delete_instance('parent', false)", schema.name()),
        committing
    );
    // The second commit of the child ends it, before the deletion commits.
    let poke = steadfast_core::WorkItem::ExternalRaised {
        instance: "child".into(),
        name: "go".into(),
        data: String::new(),
    };
    store.send(vec![poke.into()]).await.unwrap();
    let request = TurnRequest {
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        filter: None,
        warm: &Cold,
        worker: None,
    };
    let lease = store.fetch_turn(request).await.unwrap().unwrap();
    assert_eq!(lease.instance, "child");
    let completed = EventKind::OrchestrationCompleted { output: String::new() };
    let commit = TurnCommit {
        execution_id: 1,
        events: vec![Event::at(1, 1, lease.instance.clone(), 1, None, completed)],
        metadata: ExecutionMetadata { status: Some("Completed".to_owned()), ..ExecutionMetadata::default() },
        ..TurnCommit::default()
    };
    let committing = async {
        waits(&other, "commit_turns", schema.name()).await;
        execute(&deleter, "COMMIT", schema.name()).await;
    };
    let (committed, ()) = tokio::join!(store.commit_turn(&lease.token, commit), committing);
    committed.unwrap();
    let row = "SELECT i.status, e.status, i.ended_ms IS NULL, i.is_orphan FROM {name}.instances AS i
               JOIN {name}.executions AS e USING (instance_id) WHERE instance_id = 'child'";
    let row = other.query_one(&row.replace("{name}", schema.name()), &[]).await.unwrap();
    let found: (String, String, bool, bool) = (row.get(0), row.get(1), row.get(2), row.get(3));
    assert_eq!(found, ("Completed".to_owned(), "Completed".to_owned(), false, true));
}
