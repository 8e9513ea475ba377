//! Work on a real server: what a fetch reads, and for whom it waits.

use std::time::Duration;

use tokio_postgres::Client;

use crate::{connect, execute, open, server, sql};

/// How many times as many blocks a call may read with much around it: indexes have more levels then, and a look reads each.
pub(crate) const LEVELS: u64 = 3;

/// Counts the blocks that a statement reads.
pub(crate) async fn blocks(client: &Client, statement: &str, schema: &str) -> u64 {
    let rows = client.query(&statement.replace("{name}", schema), &[]).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let buffers = plan.iter().find(|line| line.contains("Buffers: shared")).unwrap();
    let words = buffers.split([' ', '=', ',']).collect::<Vec<_>>();
    let after = |name: &str| {
        let place = words.iter().position(|word| *word == name);
        place.map_or(0, |place| words[place + 1].parse::<u64>().unwrap())
    };
    after("hit") + after("read")
}

/// What leasing and finishing an activity of a session costs, when nothing is done for the first time and no row is in the way that
/// was removed before. The least of several counts, because now and then a fetch tends the floors for all.
async fn costs(client: &Client, schema: &str) -> [u64; 2] {
    let mut least = [u64::MAX; 2];
    for _ in 0..8 {
        execute(client, sql!("work/queue"), schema).await;
        execute(client, sql!("work/vacuum"), schema).await;
        let take = sql!("work/take").replace("{name}", schema);
        let token: String = client.query_one(&take, &[]).await.unwrap().get(0);
        let finish = sql!("work/finish_cost").replace("{token}", &token);
        let costs =
            [blocks(client, sql!("work/fetch_cost"), schema).await, blocks(client, &finish, schema).await];
        least = [least[0].min(costs[0]), least[1].min(costs[1])];
        execute(client, sql!("work/clear"), schema).await;
    }
    least
}

#[tokio::test]
async fn what_is_queued_for_others_costs_a_fetch_nothing() {
    // A server of its own: rows that were removed stay in the way while any transaction of others may still see them.
    let server = steadfast_cluster::Server::durable().unwrap();
    let schema = server.schema("noise");
    open(server.url(), schema.name()).await.unwrap();
    let old = connect(server.url()).await;
    // A plan that was made for empty tables must be good for full ones.
    execute(&old, sql!("work/analyze"), schema.name()).await;
    let [fetch, finish] = costs(&old, schema.name()).await;
    execute(&old, sql!("work/noise"), schema.name()).await;
    let new = connect(server.url()).await;
    for (client, planned) in [(&old, "with empty tables"), (&new, "without statistics")] {
        let costs = costs(client, schema.name()).await;
        assert!(costs[0] <= fetch * LEVELS, "planned {planned}: {} blocks instead of {fetch}", costs[0]);
        assert!(costs[1] <= finish * LEVELS, "planned {planned}: {} blocks instead of {finish}", costs[1]);
    }
    execute(&new, sql!("work/analyze"), schema.name()).await;
    let analysed = connect(server.url()).await;
    let costs = costs(&analysed, schema.name()).await;
    assert!(costs[0] <= fetch * LEVELS, "planned with statistics: {} blocks instead of {fetch}", costs[0]);
    assert!(costs[1] <= finish * LEVELS, "planned with statistics: {} blocks instead of {finish}", costs[1]);
}

#[tokio::test]
async fn a_fetch_waits_for_nobody() {
    let schema = server().schema("locked");
    open(server().url(), schema.name()).await.unwrap();
    let (holder, fetcher) = (connect(server().url()).await, connect(server().url()).await);
    execute(&holder, sql!("work/queue"), schema.name()).await;
    execute(&holder, sql!("work/hold"), schema.name()).await;
    let fetch = sql!("work/fetch").replace("{name}", schema.name());
    let fetched = async |expected: &[(&str, Option<&str>)], again: bool| {
        let asked = tokio::time::timeout(Duration::from_secs(30), fetcher.query(&fetch, &[]));
        let rows = asked.await.expect("nobody is waited for").unwrap();
        let found: Vec<(String, Option<String>)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let found: Vec<_> = found.iter().map(|(kind, item)| (kind.as_str(), item.as_deref())).collect();
        assert_eq!(found, expected);
        assert_eq!(rows.last().map(|row| row.get(2)), Some(Some(again)));
    };
    fetched(&[("lease", Some("one")), ("none", None)], true).await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    fetched(&[("lease", Some("two")), ("lease", Some("three")), ("none", None)], false).await;
}
