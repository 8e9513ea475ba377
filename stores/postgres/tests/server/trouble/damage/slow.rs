//! Messages and activities whose text is not read in time, and the person who cancels a fetch.

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::VirtualClock;
use steadfast_cluster::Schema;
use steadfast_core::{SessionKey, WorkItem};
use steadfast_postgres::{PostgresOptions, PostgresProvider};
use steadfast_store::{
    NewWork, Outcome, Owner, ProviderErrorKind, SessionRequest, SessionScope, Store, WorkLease, WorkRequest,
};
use tokio_postgres::Client;

use super::{OTHERS, activity, fetch, long_text, one_and_others, poke, work_request};
use crate::{connect, execute, number, quiet, server, start_of, until_ok};

/// Makes every read of a long text of a table wait, as a disk does that does not answer: the parts of long
/// texts are locked.
const HOLD: &str = "
    SET allow_system_table_mods TO on;
    BEGIN;
    DO $do$
    DECLARE
        v_parts OID := (SELECT reltoastrelid FROM pg_class WHERE oid = '{name}.{table}'::regclass);
    BEGIN
        -- Only an ordinary table can be locked.
        UPDATE pg_class SET relkind = 'r' WHERE oid = v_parts;
        EXECUTE 'LOCK TABLE ' || v_parts::regclass;
        UPDATE pg_class SET relkind = 't' WHERE oid = v_parts;
    END
    $do$";

/// Lets the fetches wait for as long as their statement may take.
const WAIT: &str = "ALTER FUNCTION {name}.fetch_turns SET lock_timeout TO '1h';
    ALTER FUNCTION {name}.fetch_work_items SET lock_timeout TO '1h'";

/// Makes reads of the long texts of a table wait until the connection rolls back.
async fn hold(schema: &Schema, table: &str) -> Client {
    let holder = connect(server().url()).await;
    execute(&holder, WAIT, schema.name()).await;
    execute(&holder, &HOLD.replace("{table}", table), schema.name()).await;
    holder
}

/// Opens a store whose clock stands still.
async fn opened(schema: &Schema, statement_timeout: Duration) -> (Arc<PostgresProvider>, VirtualClock) {
    let clock = VirtualClock::new(1_700_000_000_000);
    let options = PostgresOptions { statement_timeout, clock: Some(Arc::new(clock.clone())), ..quiet() };
    let opened = PostgresProvider::new_with_options(server().url(), Some(schema.name()), options).await;
    (Arc::new(opened.unwrap()), clock)
}

/// Asks as many times at once, so that the requests become few calls, and returns what was leased.
async fn together<L, F>(count: usize, mut ask: impl FnMut() -> F) -> Vec<L>
where
    L: Send + 'static,
    F: Future<Output = Option<L>> + Send + 'static,
{
    let asked: Vec<_> = (0..count).map(|_| tokio::spawn(ask())).collect();
    let mut found = Vec::new();
    for asked in asked {
        found.extend(asked.await.unwrap());
    }
    found
}

#[tokio::test]
async fn g6_a_message_that_takes_too_long_to_read_fails_no_fetch_and_delays_no_other() {
    let schema = server().schema("slow_message");
    let (store, clock) = opened(&schema, Duration::from_secs(1)).await;
    one_and_others(&store).await;
    for instance in ["damaged", "healthy-25"] {
        store.send(vec![poke(instance, long_text()).into()]).await.unwrap();
    }
    let holder = hold(&schema, "orchestrator_queue").await;
    let mut found = Vec::new();
    // Each of the two that are slow may end one call early.
    for _ in 0..4 {
        let left = OTHERS + 1 - found.len();
        let store = Arc::clone(&store);
        found.extend(
            together(left, move || {
                let store = Arc::clone(&store);
                async move { fetch(&store).await }
            })
            .await,
        );
    }
    assert_eq!(found.len(), OTHERS + 1, "every instance has a message that is read at once");
    for instance in ["damaged", "healthy-25"] {
        let lease = found.iter().find(|lease| lease.instance == instance).expect("its other message");
        assert_eq!((lease.messages.len(), lease.attempt), (1, 1), "{instance}");
    }

    // The slow messages are kept, and delivered when they can be read: no delivery was counted for them.
    execute(&holder, "ROLLBACK", schema.name()).await;
    for lease in &found {
        super::begin(&store, lease, None).await;
    }
    clock.advance(Duration::from_secs(60));
    for _ in 0..2 {
        let lease = fetch(&store).await.expect("a slow message");
        assert!(["damaged", "healthy-25"].contains(&lease.instance.as_str()), "{}", lease.instance);
        assert_eq!((lease.messages.len(), lease.attempt), (1, 1), "{}", lease.instance);
    }
    assert!(store.set_aside(None).await.unwrap().is_empty());
}

#[tokio::test]
async fn g6_an_activity_that_takes_too_long_to_read_is_held_back_and_kept() {
    let schema = server().schema("slow_work");
    // The text is read behind the function, where the connection waits half a second for a lock.
    let (store, clock) = opened(&schema, Duration::from_millis(400)).await;
    store.enqueue_work(activity("damaged", long_text())).await.unwrap();
    for n in 0..OTHERS {
        store.enqueue_work(activity(&format!("healthy-{n}"), String::new())).await.unwrap();
    }
    let holder = hold(&schema, "worker_queue").await;
    // However often it was delivered, it is not set aside: its text may be whole.
    let often = "UPDATE {name}.worker_queue SET attempt_count = 50 WHERE instance_id = 'damaged'";
    execute(&connect(server().url()).await, often, schema.name()).await;
    let mut found: Vec<WorkLease> = Vec::new();
    for _ in 0..3 {
        let left = OTHERS - found.len();
        let store = Arc::clone(&store);
        found.extend(
            together(left, move || {
                let store = Arc::clone(&store);
                async move { store.fetch_work(work_request()).await.unwrap() }
            })
            .await,
        );
    }
    assert_eq!(found.len(), OTHERS);
    assert!(found.iter().all(|lease| lease.attempt == 1), "no healthy activity was counted twice");

    execute(&holder, "ROLLBACK", schema.name()).await;
    assert!(store.fetch_work(work_request()).await.unwrap().is_none(), "it is held back for a while");
    clock.advance(Duration::from_secs(20));
    let lease = store.fetch_work(work_request()).await.unwrap().expect("the slow activity");
    assert_eq!(lease.attempt, 51, "no delivery was counted while it was not read");
    assert!(store.set_aside(None).await.unwrap().is_empty());
}

/// Opens a session of instance `i` whose activities run one after the other.
const OPEN_SERIAL: &str = "SELECT {name}.open_session('i', 'S', NULL, true, 1700000000000)";

/// Asks for work of any session.
fn session_request() -> WorkRequest {
    let session = SessionRequest {
        owner: Owner::unnamed("node"),
        lock_timeout: Duration::from_secs(300),
        scope: SessionScope::Claim,
        leave_out: Vec::new(),
    };
    WorkRequest { session: Some(session), ..work_request() }
}

#[tokio::test]
async fn d29_an_activity_that_takes_too_long_to_read_is_not_overtaken_in_its_serial_session() {
    let schema = server().schema("slow_serial");
    let (store, clock) = opened(&schema, Duration::from_millis(400)).await;
    execute(&connect(server().url()).await, OPEN_SERIAL, schema.name()).await;
    for input in [long_text(), "second".to_owned()] {
        let session = Some(SessionKey::owned("i", "S"));
        store.enqueue_work(NewWork { session, ..activity("i", input) }).await.unwrap();
    }
    let holder = hold(&schema, "worker_queue").await;
    for _ in 0..3 {
        assert!(store.fetch_work(session_request()).await.unwrap().is_none(), "the first is held back");
    }
    execute(&holder, "ROLLBACK", schema.name()).await;
    clock.advance(Duration::from_secs(20));
    for length in [long_text().len(), "second".len()] {
        let lease = store.fetch_work(session_request()).await.unwrap().expect("the next in line");
        let WorkItem::ActivityExecute { input, .. } = &lease.item else { panic!("{:?}", lease.item) };
        assert_eq!((input.len(), lease.attempt), (length, 1));
        assert!(store.fetch_work(session_request()).await.unwrap().is_none(), "one at a time");
        store.finish_work(&lease.token, Outcome::default()).await.unwrap();
    }
}

/// Cancels the statement that waits for the parts of a long text, as a person does.
async fn cancel(schema: &Schema, function: &str) {
    let watcher = connect(server().url()).await;
    let cancel = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE '%{name}%{function}%' AND pid <> pg_backend_pid()";
    let cancel = cancel.replace("{function}", function);
    until_ok(async || match number(&watcher, &cancel, schema.name()).await {
        1 => Ok(()),
        _ => Err("it does not read yet"),
    })
    .await;
}

#[tokio::test]
async fn a_fetch_that_a_person_cancels_fails_and_leases_nothing() {
    let schema = server().schema("cancelled_fetch");
    let opened = PostgresProvider::new_with_options(server().url(), Some(schema.name()), quiet()).await;
    let store = Arc::new(opened.unwrap());
    store.start(start_of("damaged").into(), vec![poke("damaged", long_text()).into()]).await.unwrap();
    store.enqueue_work(activity("damaged", long_text())).await.unwrap();
    let holders = [hold(&schema, "orchestrator_queue").await, hold(&schema, "worker_queue").await];

    let asked = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.fetch_work(work_request()).await }
    });
    cancel(&schema, "fetch_work_items").await;
    let error = asked.await.unwrap().expect_err("it was cancelled");
    assert_eq!(error.kind, ProviderErrorKind::Busy, "{error}");

    let asked = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.fetch_turn(super::turn_request()).await.map(drop) }
    });
    cancel(&schema, "fetch_turns").await;
    let error = asked.await.unwrap().expect_err("it was cancelled");
    assert_eq!(error.kind, ProviderErrorKind::Busy, "{error}");

    let leased = "SELECT (SELECT count(*) FROM {name}.instance_locks WHERE lock_token IS NOT NULL)
        + (SELECT count(*) FROM {name}.worker_queue WHERE lock_token IS NOT NULL)";
    assert_eq!(number(&holders[0], leased, schema.name()).await, 0);
    for holder in &holders {
        execute(holder, "ROLLBACK", schema.name()).await;
    }
}
