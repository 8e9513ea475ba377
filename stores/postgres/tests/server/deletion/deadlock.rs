//! Merged commits that lose against another transaction, while one of their instances is deleted.

use std::time::Duration;

use steadfast_core::{Event, EventKind, ExecutionMetadata, WorkItem};
use steadfast_postgres::{PostgresOptions, PostgresProvider};
use steadfast_store::{
    Cold, Committed, ProviderError, ProviderErrorKind, Store, TurnCommit, TurnLease, TurnRequest,
};
use tokio_postgres::Client;

use crate::{connect, execute, number, quiet, server, start_of, until_ok};

const LEASE: Duration = Duration::from_secs(60);

/// Leases three instances whose first turn was committed.
async fn three(store: &PostgresProvider) -> [TurnLease; 3] {
    let mut leased = Vec::new();
    for instance in ["a", "b", "c"] {
        store.start(start_of(instance).into(), Vec::new()).await.unwrap();
        commit(store, &fetch(store).await).await.unwrap();
        let (instance, name, data) = (instance.to_owned(), "poke".to_owned(), String::new());
        let poke = WorkItem::ExternalRaised { instance, name, data };
        store.send(vec![poke.into()]).await.unwrap();
        leased.push(fetch(store).await);
    }
    leased.try_into().unwrap()
}

async fn fetch(store: &PostgresProvider) -> TurnLease {
    let poll_timeout = Duration::ZERO;
    let request = TurnRequest { lock_timeout: LEASE, poll_timeout, filter: None, warm: &Cold, worker: None };
    store.fetch_turn(request).await.unwrap().unwrap()
}

async fn commit(store: &PostgresProvider, lease: &TurnLease) -> Result<Committed, ProviderError> {
    let status = EventKind::CustomStatusUpdated { status: Some("paid".to_owned()) };
    let event = Event::at(1, lease.last_event_id + 1, lease.instance.clone(), 1, None, status);
    let metadata = ExecutionMetadata {
        orchestration_name: Some("Order".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    };
    let commit = TurnCommit { execution_id: 1, events: vec![event], metadata, ..TurnCommit::default() };
    store.commit_turn(&lease.token, commit).await
}

/// Commits the three at the same time: no call is under way, so they become one.
async fn commit_all(
    store: &PostgresProvider,
    [a, b, c]: &[TurnLease; 3],
) -> [Result<Committed, ProviderError>; 3] {
    tokio::join!(commit(store, a), commit(store, b), commit(store, c)).into()
}

async fn opened(url: &str, schema: &str, statement_timeout: Duration) -> PostgresProvider {
    let options = PostgresOptions { statement_timeout, ..quiet() };
    PostgresProvider::new_with_options(url, Some(schema), options).await.unwrap()
}

/// The events of an instance.
async fn events_of(client: &Client, schema: &str, instance: &str) -> i64 {
    let events = "SELECT count(*) FROM {name}.history WHERE instance_id = '{instance}'";
    number(client, &events.replace("{instance}", instance), schema).await
}

/// Lets a commit wait for locks until a deadlock is found, which it finds long before the other side does.
const FIND_DEADLOCKS: &str = "ALTER FUNCTION {name}.commit_turns SET lock_timeout TO '1h';
    ALTER FUNCTION {name}.commit_turns SET deadlock_timeout TO '2s'";

/// Counts the calls that wait for a lock.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND query LIKE '%{name}%commit_turns%' AND pid <> pg_backend_pid()";

#[tokio::test]
async fn g8_merged_commits_that_lose_a_deadlock_against_a_deletion_happen_once_or_find_it_deleted() {
    const SCHEMA: &str = "deadlocked";
    // The server counts the deadlocks of each database.
    let database = server().database("deadlocked_commits").unwrap();
    let store = opened(database.url(), SCHEMA, Duration::from_secs(30)).await;
    let leases = three(&store).await;
    let (deleting, watch) = (connect(database.url()).await, connect(database.url()).await);
    execute(&watch, FIND_DEADLOCKS, SCHEMA).await;
    // The other side holds `b`, and wants `a` when the commits have locked it and wait for `b`.
    let deletes = "SET deadlock_timeout TO '20s'; BEGIN; SELECT {name}.delete_instance('b', true)";
    execute(&deleting, deletes, SCHEMA).await;
    let other_side = async {
        until_ok(async || match number(&watch, WAITING, SCHEMA).await {
            1 => Ok(()),
            _ => Err("no commit waits"),
        })
        .await;
        let sends = "SELECT {name}.send_messages('{a}', '{x}', '{NULL}', '{f}', '{NULL}', NULL)";
        execute(&deleting, sends, SCHEMA).await;
        execute(&deleting, "COMMIT", SCHEMA).await;
    };
    let ([a, b, c], ()) = tokio::join!(commit_all(&store, &leases), other_side);
    assert!(a.is_ok() && c.is_ok(), "{a:?} {c:?}");
    let error = b.expect_err("it was deleted");
    assert!(error.is_lease_lost(), "{error}");
    for (instance, events) in [("a", 2), ("b", 0), ("c", 2)] {
        assert_eq!(events_of(&watch, SCHEMA, instance).await, events, "{instance}");
    }
    let waits = "SELECT count(*) FROM {name}.orchestrator_queue WHERE instance_id = 'a'";
    assert_eq!(number(&watch, waits, SCHEMA).await, 1, "what the other side sent is there");
    drop(store);
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    until_ok(async || match number(&watch, deadlocks, SCHEMA).await {
        1 => Ok(()),
        count => Err(format!("{count} deadlocks instead of one")),
    })
    .await;
}

/// Makes every commit of an instance lose, as it does while others take its locks in another order.
const LOSE: &str = "
    CREATE FUNCTION {name}.lose() RETURNS TRIGGER LANGUAGE plpgsql AS $do$
    BEGIN
        RAISE EXCEPTION 'lost' USING ERRCODE = '{code}';
    END
    $do$;
    CREATE TRIGGER lose BEFORE INSERT ON {name}.history FOR EACH ROW WHEN (NEW.instance_id = 'b')
        EXECUTE FUNCTION {name}.lose()";

#[tokio::test]
async fn g8_a_commit_that_loses_again_and_again_fails_no_commit_that_was_merged_with_it() {
    for code in ["40P01", "40001"] {
        let schema = server().schema("losing_commit");
        let store = opened(server().url(), schema.name(), Duration::from_secs(1)).await;
        let leases = three(&store).await;
        let client = connect(server().url()).await;
        execute(&client, &LOSE.replace("{code}", code), schema.name()).await;
        let [a, b, c] = commit_all(&store, &leases).await;
        assert!(a.is_ok() && c.is_ok(), "{code}: {a:?} {c:?}");
        let error = b.expect_err("it lost");
        assert_eq!(error.kind, ProviderErrorKind::Busy, "{code}: {error}");
        for (instance, events) in [("a", 2), ("b", 1), ("c", 2)] {
            assert_eq!(events_of(&client, schema.name(), instance).await, events, "{code}: {instance}");
        }
        // Nothing is lost: the caller repeats it when the others are through.
        execute(&client, "DROP TRIGGER lose ON {name}.history", schema.name()).await;
        commit(&store, &leases[1]).await.unwrap();
        assert_eq!(events_of(&client, schema.name(), "b").await, 2, "{code}");
    }
}
