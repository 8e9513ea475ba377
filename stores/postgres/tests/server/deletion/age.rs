//! Deleting what ended long ago in bounded steps (G12), and what a deletion leaves behind (G17).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_core::{Event, EventKind, ExecutionMetadata};
use steadfast_postgres::{Counts, PostgresOptions, PostgresProvider};
use steadfast_store::{Cold, Store, TurnCommit, TurnRequest};

use crate::{connect, execute, number, quiet, server, start_of};

const LEASE: Duration = Duration::from_secs(30);

/// Makes an instance that has ended.
async fn ended(store: &PostgresProvider, instance: &str) {
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
