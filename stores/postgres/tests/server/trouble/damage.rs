//! Rows that the server itself cannot read: a part of a long value is missing, or reading takes too long
//! (G6).

mod slow;

use std::sync::Arc;
use std::time::Duration;

use steadfast_cluster::{Schema, Server};
use steadfast_core::{CallTerms, Event, EventKind, ExecutionMetadata, TagFilter, WorkItem};
use steadfast_postgres::{PostgresOptions, PostgresProvider};
use steadfast_store::{
    Abandon, Attempt, Cold, EndedTry, History, NewWork, Queue, Store, TurnCommit, TurnLease, TurnRequest,
    WorkRequest,
};

use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use crate::{connect, execute, number, quiet, server, start_of, until_ok};

const LEASE: Duration = Duration::from_secs(30);

/// How many healthy instances or activities stand behind the damaged one.
const OTHERS: usize = 50;

/// Takes the parts of all long values of a table away, as a damaged disk does.
const TEAR: &str = "
    SET allow_system_table_mods TO on;
    DO $do$
    DECLARE
        v_parts OID := (SELECT reltoastrelid FROM pg_class WHERE oid = '{name}.{table}'::regclass);
    BEGIN
        -- Only an ordinary table can be changed.
        UPDATE pg_class SET relkind = 'r' WHERE oid = v_parts;
        -- A deleted part would be read until a vacuum removes it.
        EXECUTE 'TRUNCATE ' || v_parts::regclass;
        UPDATE pg_class SET relkind = 't' WHERE oid = v_parts;
    END
    $do$";

/// Damages every long value of a table.
async fn tear(server: &Server, schema: &Schema, table: &str) {
    execute(&connect(server.url()).await, &TEAR.replace("{table}", table), schema.name()).await;
}

async fn opened(schema: &Schema) -> Arc<PostgresProvider> {
    let options = PostgresOptions { statement_timeout: Duration::from_secs(1), ..quiet() };
    let opened = PostgresProvider::new_with_options(server().url(), Some(schema.name()), options).await;
    Arc::new(opened.unwrap())
}

/// Text that is stored outside of its row: it is long and cannot be compressed.
fn long_text() -> String {
    crate::turns::noise(40_000)
}

async fn fetch(store: &PostgresProvider) -> Option<TurnLease> {
    store.fetch_turn(turn_request()).await.unwrap()
}

fn turn_request() -> TurnRequest<'static> {
    let poll_timeout = Duration::ZERO;
    TurnRequest { lock_timeout: LEASE, poll_timeout, filter: None, warm: &Cold, worker: None }
}

/// Commits the first turn of a leased instance, with a long event.
async fn begin(store: &PostgresProvider, lease: &TurnLease, status: Option<&str>) {
    let long = EventKind::CustomStatusUpdated { status: Some(long_text()) };
    let commit = TurnCommit {
        execution_id: 1,
        events: vec![Event::at(1, lease.last_event_id + 1, lease.instance.clone(), 1, None, long)],
        metadata: ExecutionMetadata {
            orchestration_name: Some("Order".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            status: status.map(str::to_owned),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    };
    store.commit_turn(&lease.token, commit).await.unwrap();
}

fn poke(instance: &str, data: String) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.to_owned(), name: "poke".to_owned(), data }
}

/// Makes an instance with a long event, and healthy ones whose messages are younger than its own.
async fn one_and_others(store: &PostgresProvider) {
    store.start(start_of("damaged").into(), Vec::new()).await.unwrap();
    begin(store, &fetch(store).await.unwrap(), None).await;
    store.send(vec![poke("damaged", String::new()).into()]).await.unwrap();
    for n in 0..OTHERS {
        store.start(start_of(&format!("healthy-{n}")).into(), Vec::new()).await.unwrap();
    }
}

/// Runs all turns as a runtime does, at most `most` of them. Returns how many ended, and what was said of the
/// damaged one.
async fn run(store: &PostgresProvider, most: usize) -> (usize, Vec<String>) {
    let (mut ended, mut said) = (0, Vec::new());
    for _ in 0..most {
        let Some(lease) = fetch(store).await else { break };
        if let History::Damaged(why) = &lease.history {
            assert_eq!((lease.instance.as_str(), lease.name.as_str()), ("damaged", "Order"));
            said.push(why.clone());
            let held_back = Abandon { retry_after: Some(LEASE), attempt: Attempt::Counts };
            store.abandon(&lease.token, held_back).await.unwrap();
            continue;
        }
        begin(store, &lease, Some("Completed")).await;
        ended += 1;
    }
    (ended, said)
}

#[tokio::test]
async fn g6_a_history_that_the_database_cannot_read_is_reported_and_delays_no_other() {
    let schema = server().schema("torn_history");
    let store = opened(&schema).await;
    one_and_others(&store).await;
    tear(server(), &schema, "history").await;
    let (ended, said) = run(&store, OTHERS + 1).await;
    assert_eq!((ended, said.len()), (OTHERS, 1), "{said:?}");
    assert!(said[0].contains("chunk number"), "{said:?}");
}

/// Makes every read of a history take longer than the statement may.
const SLOW: &str = "
    ALTER TABLE {name}.history RENAME TO history_of_all;
    CREATE FUNCTION {name}.slowly(p_text TEXT, p_instance TEXT) RETURNS TEXT LANGUAGE plpgsql STABLE AS
        $do$
    BEGIN
        IF p_instance = 'damaged' THEN PERFORM pg_sleep(60); END IF;
        RETURN p_text;
    END
    $do$;
    CREATE VIEW {name}.history AS SELECT instance_id, execution_id, event_id, event_type,
        {name}.slowly(event_data, instance_id) AS event_data, created_at FROM {name}.history_of_all;
    CREATE RULE appended AS ON INSERT TO {name}.history DO INSTEAD
        INSERT INTO {name}.history_of_all VALUES (NEW.instance_id, NEW.execution_id, NEW.event_id,
            NEW.event_type, NEW.event_data, NEW.created_at)";

#[tokio::test]
async fn g6_a_history_that_takes_too_long_to_read_is_reported_and_delays_no_other() {
    let schema = server().schema("slow_history");
    let store = opened(&schema).await;
    one_and_others(&store).await;
    execute(&connect(server().url()).await, SLOW, schema.name()).await;
    let (ended, said) = run(&store, OTHERS + 1).await;
    assert_eq!((ended, said.len()), (OTHERS, 1), "{said:?}");
    assert!(said[0].contains("statement_timeout"), "{said:?}");
}

#[tokio::test]
async fn g6_a_message_that_the_database_cannot_read_fails_no_merged_fetch() {
    let schema = server().schema("torn_message");
    let store = opened(&schema).await;
    one_and_others(&store).await;
    store.send(vec![poke("damaged", long_text()).into()]).await.unwrap();
    tear(server(), &schema, "orchestrator_queue").await;
    // These ask at the same time, so they become one call.
    let ask = |_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { fetch(&store).await })
    };
    let mut found = Vec::new();
    for asked in (0..=OTHERS).map(ask).collect::<Vec<_>>() {
        found.extend(asked.await.unwrap());
    }
    assert_eq!(found.len(), OTHERS + 1, "every instance has a message that can be read");
    let damaged = found.iter().find(|lease| lease.instance == "damaged").expect("its other message");
    assert_eq!(damaged.messages.len(), 1);
}

fn activity(instance: &str, input: String) -> NewWork {
    let item = WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id: 2,
        name: "Charge".to_owned(),
        input,
        session_id: None,
        tag: None,
    };
    NewWork::from(item)
}

fn work_request() -> WorkRequest {
    WorkRequest {
        worker_id: "w".to_owned(),
        lock_timeout: LEASE,
        poll_timeout: Duration::ZERO,
        tags: TagFilter::DefaultOnly,
        session: None,
        worker: None,
    }
}

#[tokio::test]
async fn g6_an_activity_that_the_database_cannot_read_is_held_back_and_then_set_aside() {
    let schema = server().schema("torn_work");
    let clock = steadfast_clock::VirtualClock::new(1_700_000_000_000);
    let options = PostgresOptions { clock: Some(Arc::new(clock.clone())), ..quiet() };
    let store =
        PostgresProvider::new_with_options(server().url(), Some(schema.name()), options).await.unwrap();
    store.enqueue_work(activity("damaged", long_text())).await.unwrap();
    tear(server(), &schema, "worker_queue").await;
    for n in 0..OTHERS {
        store.enqueue_work(activity(&format!("healthy-{n}"), String::new())).await.unwrap();
    }
    let mut leased = 0;
    for _ in 0..OTHERS {
        leased += usize::from(store.fetch_work(work_request()).await.unwrap().is_some());
    }
    assert_eq!(leased, OTHERS);
    while store.set_aside(None).await.unwrap().is_empty() {
        clock.advance(steadfast_store::UNREADABLE_RETRY);
        store.fetch_work(work_request()).await.unwrap();
    }
    let aside = store.set_aside(None).await.unwrap();
    assert_eq!((aside.len(), aside[0].queue), (1, Queue::Worker));
    assert_eq!(aside[0].instance.as_deref(), Some("damaged"));
    assert!(aside[0].reason.contains("the database cannot read"), "{}", aside[0].reason);
}

#[tokio::test]
async fn g6_work_whose_terms_the_database_cannot_read_is_held_back_and_then_set_aside() {
    let schema = server().schema("torn_terms");
    let clock = steadfast_clock::VirtualClock::new(1_700_000_000_000);
    let options = PostgresOptions { clock: Some(Arc::new(clock.clone())), ..quiet() };
    let store =
        PostgresProvider::new_with_options(server().url(), Some(schema.name()), options).await.unwrap();
    let call = Some(Box::new(CallTerms::of_key(long_text())));
    store.enqueue_work(NewWork { call, ..activity("damaged", String::new()) }).await.unwrap();
    store.enqueue_work(activity("healthy", String::new())).await.unwrap();
    let leases =
        [store.fetch_work(work_request()).await.unwrap(), store.fetch_work(work_request()).await.unwrap()];
    for lease in leases.into_iter().flatten() {
        let ended = EndedTry { error: long_text(), retry_after: Duration::ZERO };
        store.end_try(&lease.token, ended).await.unwrap();
    }
    tear(server(), &schema, "worker_queue").await;
    let lease = store.fetch_work(work_request()).await.unwrap().expect("only its last error is lost");
    assert_eq!((lease.item.instance(), lease.tries.ended, lease.tries.last_error), ("healthy", 1, None));
    while store.set_aside(None).await.unwrap().is_empty() {
        clock.advance(steadfast_store::UNREADABLE_RETRY);
        store.renew(&lease.token, LEASE).await.unwrap();
        assert!(store.fetch_work(work_request()).await.unwrap().is_none());
    }
    let aside = store.set_aside(None).await.unwrap();
    assert_eq!(aside[0].instance.as_deref(), Some("damaged"));
    assert!(aside[0].reason.contains("the database cannot read"), "{}", aside[0].reason);
}

/// Leases instances through the compatible function until none is ready. Returns for each its id, its history
/// and its messages.
async fn fetched_by_name(schema: &Schema) -> Vec<(String, Vec<String>, Vec<String>)> {
    let client = connect(server().url()).await;
    client.batch_execute("SET statement_timeout = 1000").await.unwrap();
    let call = "SELECT * FROM {name}.fetch_orchestration_item(NULL, 30000)".replace("{name}", schema.name());
    let mut found = Vec::new();
    while let Some(row) = client.query_opt(&call, &[]).await.unwrap() {
        found.push((row.get("out_instance_id"), row.get("out_history"), row.get("out_messages")));
    }
    found
}

#[tokio::test]
async fn g6_the_compatible_function_reports_a_history_that_the_database_cannot_read() {
    let schema = server().schema("torn_by_name");
    let store = opened(&schema).await;
    one_and_others(&store).await;
    tear(server(), &schema, "history").await;
    let found = fetched_by_name(&schema).await;
    assert_eq!(found.len(), OTHERS + 1);
    let (_, history, messages) = found.iter().find(|turn| turn.0 == "damaged").expect("it is leased");
    crate::says(&history.concat(), &["the database cannot read"]);
    assert_eq!((history.len(), messages.len()), (1, 1), "what stands for the history is no event");
}

#[tokio::test]
async fn g6_the_compatible_function_reports_a_history_that_takes_too_long_to_read() {
    let schema = server().schema("slow_by_name");
    let store = opened(&schema).await;
    one_and_others(&store).await;
    execute(&connect(server().url()).await, SLOW, schema.name()).await;
    let found = fetched_by_name(&schema).await;
    assert_eq!(found.len(), OTHERS + 1);
    let (_, history, messages) = found.iter().find(|turn| turn.0 == "damaged").expect("it is leased");
    crate::says(&history.concat(), &["the database cannot read", "statement_timeout"]);
    assert_eq!((history.len(), messages.len()), (1, 1), "what stands for the history is no event");
}

/// A person who ends the statement is not taken for a read that takes too long.
#[tokio::test]
async fn a_compatible_fetch_that_is_cancelled_leases_nothing() {
    let schema = server().schema("cancelled_by_name");
    let store = opened(&schema).await;
    one_and_others(&store).await;
    execute(&connect(server().url()).await, SLOW, schema.name()).await;
    let client = connect(server().url()).await;
    let cancel = client.cancel_token();
    let call = "SELECT * FROM {name}.fetch_orchestration_item(NULL, 30000)".replace("{name}", schema.name());
    let asked = tokio::spawn(async move { client.query_opt(&call, &[]).await });
    let watcher = connect(server().url()).await;
    let sleeps = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%{}%'",
        schema.name()
    );
    until_ok(async || match number(&watcher, &sleeps, "").await {
        1 => Ok(()),
        _ => Err("it does not read yet"),
    })
    .await;
    cancel.cancel_query(NoTls).await.unwrap();
    let error = asked.await.unwrap().expect_err("it was cancelled");
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
    let leased = "SELECT count(*) FROM {name}.instance_locks WHERE lock_token IS NOT NULL";
    assert_eq!(number(&watcher, leased, schema.name()).await, 0);
}

/// Makes the lease of the damaged instance and of its activity take longer than the statement may, as a text
/// does that is slow to read.
const SLOW_ROWS: &str = "
    CREATE FUNCTION {name}.slowly_leased() RETURNS TRIGGER LANGUAGE plpgsql AS $do$
    BEGIN
        IF NEW.instance_id = 'damaged' AND NEW.lock_token IS NOT NULL
            AND clock_timestamp() < statement_timestamp() + '1s'
        THEN
            PERFORM pg_sleep(60);
        END IF;
        RETURN NEW;
    END
    $do$;
    CREATE TRIGGER slowly BEFORE UPDATE ON {name}.instance_locks
        FOR EACH ROW EXECUTE FUNCTION {name}.slowly_leased();
    CREATE TRIGGER slowly BEFORE UPDATE ON {name}.worker_queue
        FOR EACH ROW EXECUTE FUNCTION {name}.slowly_leased()";

#[tokio::test]
async fn g6_the_compatible_functions_hold_back_what_takes_too_long_to_read_and_lose_nothing() {
    let schema = server().schema("slow_rows_by_name");
    let store = opened(&schema).await;
    one_and_others(&store).await;
    store.enqueue_work(activity("damaged", String::new())).await.unwrap();
    store.enqueue_work(activity("healthy", String::new())).await.unwrap();
    let client = connect(server().url()).await;
    execute(&client, SLOW_ROWS, schema.name()).await;
    client.batch_execute("SET statement_timeout = 1000").await.unwrap();
    for (call, wanted) in [
        ("SELECT * FROM {name}.fetch_orchestration_item(NULL, 30000)", OTHERS),
        ("SELECT * FROM {name}.fetch_work_item(NULL, 30000)", 1),
    ] {
        let call = call.replace("{name}", schema.name());
        let mut leased = 0;
        for _ in 0..=wanted {
            leased += client.query(&call, &[]).await.unwrap().len();
        }
        assert_eq!(leased, wanted, "{call}");
    }
    let held_back = "SELECT (SELECT count(*) FROM {name}.orchestrator_queue
            WHERE instance_id = 'damaged' AND state = 0 AND attempt_count = 0)
        + (SELECT count(*) FROM {name}.worker_queue
            WHERE instance_id = 'damaged' AND state = 0 AND attempt_count = 0)";
    assert_eq!(number(&client, held_back, schema.name()).await, 2);
}

#[tokio::test]
async fn g6_the_compatible_functions_pass_over_what_the_database_cannot_read() {
    let schema = server().schema("torn_rows_by_name");
    let store = opened(&schema).await;
    one_and_others(&store).await;
    store.send(vec![poke("damaged", long_text()).into()]).await.unwrap();
    store.enqueue_work(activity("damaged", long_text())).await.unwrap();
    tear(server(), &schema, "orchestrator_queue").await;
    tear(server(), &schema, "worker_queue").await;
    store.enqueue_work(activity("healthy", String::new())).await.unwrap();
    let found = fetched_by_name(&schema).await;
    assert_eq!(found.len(), OTHERS + 1);
    let (_, _, messages) = found.iter().find(|turn| turn.0 == "damaged").expect("its other message");
    assert_eq!(messages.len(), 1);

    let client = connect(server().url()).await;
    let call =
        "SELECT out_work_item FROM {name}.fetch_work_item(NULL, 30000)".replace("{name}", schema.name());
    let leased: Vec<String> = client.query(&call, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    crate::says(&leased.concat(), &["healthy"]);
    assert!(client.query(&call, &[]).await.unwrap().is_empty());
    // Both are tried again after their delay, and set aside in the end.
    let due = "UPDATE {name}.orchestrator_queue SET visible_ms = 1 WHERE state = 0;
               UPDATE {name}.worker_queue SET visible_ms = 1 WHERE state = 0;
               UPDATE {name}.instance_locks SET locked_until = 1 WHERE instance_id = 'damaged';
               UPDATE {name}.floors SET due_messages = 0, due_work = 0, leased_turns = 0";
    for _ in 0..steadfast_store::MAX_UNREADABLE_ATTEMPTS {
        execute(&client, due, schema.name()).await;
        fetched_by_name(&schema).await;
        assert!(client.query(&call, &[]).await.unwrap().is_empty());
    }
    assert_eq!(store.set_aside(None).await.unwrap().len(), 2);
}
