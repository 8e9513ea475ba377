//! Turns on a real server, where two calls meet at the wrong moment, or where there is too much of something.

use steadfast_cluster::Schema;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Row};

use crate::{connect, execute, number, open, server, sql};

/// Makes a schema, which is there as long as this is held.
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

/// Waits until the one with this number waits for a lock, and then lets it go on.
async fn release(pid: i64, holder: &Client, statement: &str, schema: &str) {
    let watch = client().await;
    let waits = sql!("holes_of_turns/waits").replace("{pid}", &pid.to_string());
    while number(&watch, &waits, schema).await == 0 {}
    execute(holder, statement, schema).await;
}

/// Raises the floors with a call that reads them twice, while a transaction is open that has started an instance.
async fn is_found_after(schema: &str, call: &str) {
    let (one, other) = (client().await, client().await);
    execute(&other, sql!("holes_of_turns/begin"), schema).await;
    execute(&one, sql!("holes_of_turns/propose"), schema).await;
    execute(&one, call, schema).await;
    execute(&other, "COMMIT", schema).await;
    assert_eq!(number(&one, sql!("holes_of_turns/find"), schema).await, 1);
}

#[tokio::test]
async fn s18_no_floor_is_raised_past_an_open_transaction_by_a_look() {
    let schema = schema_of("floor_of_a_look").await;
    let schema = schema.name();
    is_found_after(schema, sql!("holes_of_turns/look")).await;
}

#[tokio::test]
async fn s18_no_floor_is_raised_past_an_open_transaction_by_a_fetch() {
    let schema = schema_of("floor_of_a_fetch").await;
    let schema = schema.name();
    is_found_after(schema, sql!("holes_of_turns/fetch_due")).await;
}

/// Leases an instance with so many bytes, gives it back, and returns what the lease carried.
async fn carried(client: &Client, schema: &str, instance: &str, bytes: u32) -> Vec<String> {
    let lease = sql!("holes_of_turns/lease").replace("{instance}", instance);
    let leases = rows(client, &lease.replace("{bytes}", &bytes.to_string()), schema).await;
    let carried: Vec<String> = leases[0].get(0);
    let listed = rows(client, sql!("holes_of_turns/leased"), schema).await;
    assert_eq!(carried, listed.iter().map(|row| row.get(0)).collect::<Vec<String>>());
    execute(client, sql!("holes_of_turns/give_back"), schema).await;
    carried
}

#[tokio::test]
async fn s2_a_lease_carries_its_start_and_as_many_messages_as_can_be_returned() {
    let schema = schema_of("bytes").await;
    let schema = schema.name();
    let client = client().await;
    execute(&client, sql!("holes_of_turns/long"), schema).await;
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

/// What a fetch of more than there is returns: the kind of each row, whether to look again, and the next moment.
async fn fetched(client: &Client, schema: &str, now: u64) -> Vec<(String, bool, Option<i64>)> {
    let fetch = sql!("holes_of_turns/fetch_many").replace("{now}", &now.to_string());
    rows(client, &fetch, schema).await.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

#[tokio::test]
async fn a_fetch_that_finds_less_than_was_asked_for_says_when_to_look_again() {
    let schema = schema_of("fewer").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(&one, sql!("holes_of_turns/start_two"), schema).await;
    let found = fetched(&one, schema, 1_000_000).await;
    assert_eq!(found, [("turn".to_owned(), false, None), ("none".to_owned(), false, Some(1_005_000))]);
    // Now the second is ready, and another has locked it.
    execute(&one, sql!("holes_of_turns/start_third"), schema).await;
    execute(&other, sql!("holes_of_turns/hold_second"), schema).await;
    let found = fetched(&one, schema, 1_005_000).await;
    assert_eq!(found, [("turn".to_owned(), false, None), ("none".to_owned(), true, Some(1_030_000))]);
}

/// What is deleted of that which ended early.
async fn deleted_early(client: &Client, schema: &str) -> Vec<String> {
    rows(client, sql!("holes_of_turns/delete_early"), schema).await[0].get(0)
}

#[tokio::test]
async fn f12_what_does_not_match_any_more_when_it_is_locked_is_not_deleted() {
    let schema = schema_of("filter").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(&one, sql!("holes_of_turns/ended"), schema).await;
    let pid = number(&one, sql!("holes_of_turns/pid"), schema).await;
    execute(&other, sql!("holes_of_turns/hold_messages"), schema).await;
    let end_later = release(pid, &other, sql!("holes_of_turns/end_later"), schema);
    let (deleted, ()) = tokio::join!(deleted_early(&one, schema), end_later);
    assert_eq!(deleted, ["i1", "i3"]);
}

#[tokio::test]
async fn f12_two_deletions_of_the_same_leave_nothing_behind() {
    let schema = schema_of("twice").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(&one, sql!("holes_of_turns/ended"), schema).await;
    let pid = number(&one, sql!("holes_of_turns/pid"), schema).await;
    execute(&other, sql!("holes_of_turns/delete_held"), schema).await;
    let commit = release(pid, &other, "COMMIT", schema);
    let (deleted, ()) = tokio::join!(deleted_early(&one, schema), commit);
    assert!(deleted.is_empty(), "{deleted:?}");
    assert_eq!(number(&one, sql!("holes_of_turns/locks"), schema).await, 0);
}

#[tokio::test]
async fn s4_a_lease_that_ends_while_its_renewal_waits_is_not_renewed() {
    let schema = schema_of("renewal").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(&one, sql!("holes_of_turns/start"), schema).await;
    let token: String = rows(&one, sql!("holes_of_turns/take"), schema).await[0].get(0);
    let pid = number(&one, sql!("holes_of_turns/pid"), schema).await;
    execute(&other, sql!("holes_of_turns/hold"), schema).await;
    let renew = sql!("holes_of_turns/renew").replace("{token}", &token);
    let end = release(pid, &other, sql!("holes_of_turns/end"), schema);
    let (renewed, ()) = tokio::join!(rows(&one, &renew, schema), end);
    assert_eq!(renewed[0].get::<_, &str>(0), "ended");
}

#[tokio::test]
async fn s18_due_messages_that_are_locked_do_not_keep_others_waiting() {
    let schema = schema_of("locked_messages").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(&one, sql!("holes_of_turns/crowd_of_messages"), schema).await;
    execute(&other, sql!("holes_of_turns/hold_crowd"), schema).await;
    assert_eq!(number(&one, sql!("holes_of_turns/fetch_other"), schema).await, 1);
}

#[tokio::test]
async fn s18_ready_instances_that_are_locked_do_not_keep_others_waiting() {
    let schema = schema_of("locked_instances").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(&one, sql!("holes_of_turns/crowd_of_instances"), schema).await;
    execute(&other, sql!("holes_of_turns/hold_crowd"), schema).await;
    assert_eq!(number(&one, sql!("holes_of_turns/fetch_other"), schema).await, 1);
}

#[tokio::test]
async fn s17_what_is_started_later_is_not_started_again_by_one_who_cannot_see_it() {
    let schema = schema_of("old_snapshot").await;
    let schema = schema.name();
    let (one, other) = (client().await, client().await);
    execute(&one, sql!("holes_of_turns/early"), schema).await;
    execute(&other, sql!("holes_of_turns/old_snapshot"), schema).await;
    execute(&one, sql!("holes_of_turns/start_later"), schema).await;
    let start = sql!("holes_of_turns/start").replace("{name}", schema);
    let refused = other.batch_execute(&start).await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE), "{refused}");
}
