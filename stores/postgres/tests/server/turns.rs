//! Turns on a real server: what the calls of a turn read, whatever else is there (S20).

use tokio_postgres::Client;

use crate::work::{LEVELS, blocks};
use crate::{connect, execute, number, open, server, sql};

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
