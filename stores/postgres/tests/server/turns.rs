//! Turns on a real server: what the calls of a turn read, whatever else is there (S20).

use tokio_postgres::Client;

use crate::work::{LEVELS, blocks};
use crate::{connect, execute, number, open, sql};

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
