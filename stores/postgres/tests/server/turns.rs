//! Turns on a real server: what the calls of a turn read, whatever else is there (S20).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_clock::VirtualClock;
use steadfast_core::{Event, EventKind, ExecutionMetadata, WorkItem};
use steadfast_postgres::{Counts, PostgresOptions, PostgresProvider};
use steadfast_store::{Cold, ProviderErrorKind, Store, TurnCommit, TurnLease, TurnRequest};
use tokio_postgres::Client;

use crate::work::{LEVELS, blocks};
use crate::{connect, execute, number, open, quiet, server, sql, start_of};

/// The calls of a turn, each with the token of a lease.
const CALLS: [(&str, &str); 4] = [
    ("fetch", sql!("turns/fetch")),
    ("renewal", sql!("turns/renew")),
    ("commit", sql!("turns/commit")),
    ("abandonment", sql!("turns/abandon")),
];

/// What each call costs when nothing is done for the first time and no row is in the way that was removed before. The least of
/// several counts.
async fn costs(client: &Client, schema: &str) -> [u64; CALLS.len()] {
    let mut least = [u64::MAX; CALLS.len()];
    for _ in 0..4 {
        for (at, (what, call)) in CALLS.into_iter().enumerate() {
            execute(client, sql!("turns/queue"), schema).await;
            execute(client, sql!("turns/vacuum"), schema).await;
            let take = sql!("turns/take").replace("{name}", schema);
            let token: String = client.query_one(&take, &[]).await.unwrap().get(0);
            let call = call.replace("{token}", &token);
            client.batch_execute("BEGIN").await.unwrap();
            let scanned = number(client, sql!("turns/scanned"), schema).await;
            let cost = blocks(client, &explained(&call), schema).await;
            let scanned = number(client, sql!("turns/scanned"), schema).await - scanned;
            client.batch_execute("COMMIT").await.unwrap();
            assert_eq!(scanned, 0, "the {what} has read a queue from end to end");
            least[at] = least[at].min(cost);
            execute(client, sql!("turns/clear"), schema).await;
        }
    }
    least
}

/// Says what a statement costs, when it is run.
fn explained(statement: &str) -> String {
    sql!("turns/explain").replace("{statement}", statement)
}

#[tokio::test]
async fn what_others_have_costs_a_turn_nothing() {
    // A server of its own: rows that were removed stay in the way while any transaction of others may still see them.
    let server = steadfast_cluster::Server::durable().unwrap();
    let schema = server.schema("turns");
    open(server.url(), schema.name()).await.unwrap();
    let old = connect(server.url()).await;
    // A plan that was made for empty tables must be good for full ones.
    execute(&old, sql!("turns/analyze"), schema.name()).await;
    let empty = costs(&old, schema.name()).await;
    execute(&old, sql!("turns/noise"), schema.name()).await;
    let new = connect(server.url()).await;
    let full = [costs(&old, schema.name()).await, costs(&new, schema.name()).await];
    execute(&new, sql!("turns/analyze"), schema.name()).await;
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

/// What a fetch returns after a while: the kind of each row, and its messages.
async fn fetched(client: &Client, schema: &str, after_ms: u64) -> Vec<(String, Option<Vec<String>>)> {
    let look = sql!("turns/look").replace("{name}", schema).replace("{while}", &after_ms.to_string());
    client.query(&look, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test]
async fn s2_a_start_that_is_put_off_while_a_fetch_looks_is_waited_for() {
    let schema = server().schema("put_off");
    open(server().url(), schema.name()).await.unwrap();
    let (fetcher, other, watch) =
        (connect(server().url()).await, connect(server().url()).await, connect(server().url()).await);
    // The first fetch also looks at other things, where it would be kept too.
    assert_eq!(fetched(&fetcher, schema.name(), 0).await, [("none".to_owned(), None)]);
    execute(&other, sql!("turns/start"), schema.name()).await;
    execute(&other, sql!("turns/hold"), schema.name()).await;
    let put_off = async {
        while number(&watch, sql!("turns/held"), schema.name()).await == 0 {}
        execute(&other, sql!("turns/put_off"), schema.name()).await;
    };
    // It has seen the start ready, and finds another message ready when it takes the instance.
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
    let request = TurnRequest { lock_timeout: LEASE, poll_timeout, filter: None, warm: &Cold };
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
        // No index of the database can hold this key, and no text of ordinary length.
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
    // They are asked for at the same time, and so in one call.
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
    execute(&other, sql!("turns/hold"), schema.name()).await;
    let dropped = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { fetch(&store, Duration::ZERO).await })
    };
    while number(&watch, sql!("turns/held"), schema.name()).await == 0 {}
    dropped.abort();
    clock.advance(2 * LEASE);
    other.batch_execute("COMMIT").await.unwrap();
    let lease = fetch(&store, Duration::ZERO).await.expect("it was given back");
    assert_eq!(lease.attempt, 1);
}

#[tokio::test]
async fn what_a_transaction_holds_is_looked_for_with_pauses() {
    let schema = server().schema("paused");
    let counts = Arc::new(Counts::default());
    let store = store(schema.name(), PostgresOptions { counts: Some(Arc::clone(&counts)), ..quiet() }).await;
    start(&store, "a").await;
    let other = connect(server().url()).await;
    execute(&other, sql!("turns/hold_instance"), schema.name()).await;
    let before = counts.sent.load(Ordering::Acquire);
    assert!(fetch(&store, Duration::from_secs(2)).await.is_none(), "another has it");
    let sent = counts.sent.load(Ordering::Acquire) - before;
    assert!(sent < 60, "{sent} statements in two seconds");
    other.batch_execute("COMMIT").await.unwrap();
    assert!(fetch(&store, Duration::from_secs(60)).await.is_some());
}

#[tokio::test]
async fn what_a_transaction_holds_holds_up_nobody_else() {
    let schema = server().schema("held");
    let store = store(schema.name(), quiet()).await;
    let other = connect(server().url()).await;
    for instance in ["a", "b", "c"] {
        start(&store, instance).await;
    }
    execute(&other, sql!("turns/hold_instance"), schema.name()).await;
    // They are sent at the same time, and so in one call.
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
