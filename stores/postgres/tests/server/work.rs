//! Work on a real server: how many blocks a fetch reads, and that it waits for no lock.

mod routes;
mod terms;
mod trail;

use std::time::Duration;

use tokio_postgres::Client;

use crate::{LEASE_ONE, QUEUE_THREE, connect, execute, open, server};

/// The factor by which a call may read more blocks when the tables are full: indexes have more levels then,
/// and each look reads one block per level.
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

/// The blocks that leasing an activity of a session, leasing it for an older build, and finishing one read
/// when caches are warm and deleted rows are vacuumed. The least of several counts, because now and then a
/// fetch also tends the floors.
async fn costs(client: &Client, schema: &str) -> [u64; 3] {
    let mut least = [u64::MAX; 3];
    for _ in 0..8 {
        execute(client, QUEUE_THREE, schema).await;
        execute(client, "VACUUM {name}.worker_queue, {name}.heads, {name}.sessions", schema).await;
        let take = LEASE_ONE.replace("{name}", schema);
        let token: String = client.query_one(&take, &[]).await.unwrap().get(0);
        let finish = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF)
                      SELECT * FROM {name}.finish_work_items('{{token}}', '{a}', '{done}', '{NULL}')"
            .replace("{token}", &token);
        let fetch = |terms: &str| {
            r#"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF)
               SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 30000, 'node',
                   NULL, 30000, true, p_terms => {terms})"#
                .replace("{terms}", terms)
        };
        let costs = [
            blocks(client, &fetch("true"), schema).await,
            blocks(client, &fetch("false"), schema).await,
            blocks(client, &finish, schema).await,
        ];
        least = std::array::from_fn(|at| least[at].min(costs[at]));
        execute(client, "SELECT {name}.withdraw_work('{a,a,a}', '{1,1,1}', '{1,2,3}', 0)", schema).await;
    }
    least
}

/// Updates the statistics of the planner.
const ANALYZE: &str = "ANALYZE {name}.worker_queue, {name}.sessions, {name}.lines, {name}.heads";

/// Inserts rows that must not matter to a worker: 100,000 activities on sessions of other workers, as many
/// idle sessions of its own, and as many activities each that have another tag, are delayed, or are leased.
const NOISE: &str = "
    INSERT INTO {name}.lines SELECT '', 's' || n FROM generate_series(1, 1000) AS n;
    INSERT INTO {name}.sessions (session_id, worker_id, held, locked_until, last_activity_at, epoch)
    SELECT 's' || n, 'other' || n % 20, true, 9000000000000, 0, n FROM generate_series(1, 1000) AS n;
    INSERT INTO {name}.worker_queue (work_item, state, visible_ms, created_at, instance_id,
        execution_id, activity_id, session_id, since)
    SELECT 'x', 1, 0, now(), 'o' || n, 1, 1, 's' || n % 1000 + 1, 0 FROM generate_series(1, 100000)
        AS n;
    INSERT INTO {name}.heads
    SELECT w.session_scope, w.session_id, w.tag, min(w.id), ':' || min(s.worker_id), 0, min(w.id)
    FROM {name}.worker_queue AS w JOIN {name}.sessions AS s ON s.session_id = w.session_id
    GROUP BY w.session_scope, w.session_id, w.tag;
    INSERT INTO {name}.lines SELECT '', 'idle' || n FROM generate_series(1, 100000) AS n;
    INSERT INTO {name}.sessions (session_id, worker_id, held, locked_until, last_activity_at, epoch)
    SELECT 'idle' || n, 'node', true, 9000000000000, 0, n FROM generate_series(1, 100000) AS n;
    INSERT INTO {name}.worker_queue (work_item, state, visible_ms, created_at, instance_id,
        execution_id, activity_id, tag, since)
    SELECT 'x', 1, 0, now(), 'g' || n, 1, 1, ':gpu', 0 FROM generate_series(1, 100000) AS n;
    INSERT INTO {name}.worker_queue (work_item, state, visible_ms, created_at, instance_id,
        execution_id, activity_id, since)
    SELECT 'x', 0, 9000000000000 + n, now(), 'd' || n, 1, 1, 0 FROM generate_series(1, 100000) AS n;
    INSERT INTO {name}.worker_queue
        (work_item, state, visible_ms, created_at, instance_id, execution_id, activity_id, since,
            lock_token, locked_until)
    SELECT 'x', 2, 0, now(), 'l' || n, 1, 1, 0, 'token' || n, 9000000000000 + n
        FROM generate_series(1, 100000) AS n";

#[tokio::test]
async fn work_that_is_queued_for_other_workers_costs_a_fetch_nothing() {
    // A server of its own: deleted rows stay in the indexes while any open transaction on the server may see
    // them.
    let server = steadfast_cluster::Server::durable().unwrap();
    let schema = server.schema("noise");
    open(server.url(), schema.name()).await.unwrap();
    let old = connect(server.url()).await;
    // A plan that was made for empty tables must be good for full ones.
    execute(&old, ANALYZE, schema.name()).await;
    let alone = costs(&old, schema.name()).await;
    execute(&old, NOISE, schema.name()).await;
    let new = connect(server.url()).await;
    for (client, planned) in [(&old, "with empty tables"), (&new, "without statistics")] {
        check(costs(client, schema.name()).await, alone, planned);
    }
    execute(&new, ANALYZE, schema.name()).await;
    let analysed = connect(server.url()).await;
    check(costs(&analysed, schema.name()).await, alone, "with statistics");
}

/// Checks that calls read no more blocks than full tables explain.
#[track_caller]
fn check<const N: usize>(costs: [u64; N], alone: [u64; N], planned: &str) {
    for (cost, alone) in costs.into_iter().zip(alone) {
        assert!(cost <= alone * LEVELS, "planned {planned}: {cost} blocks instead of {alone}");
    }
}

/// How many blocks more a fetch may read when a few indexes have got another level.
const MORE_LEVELS: u64 = 10;

/// Queues activities of another tag, until there are so many.
const OTHER_TAG: &str = "
    INSERT INTO {name}.worker_queue (work_item, state, visible_ms, created_at, instance_id, execution_id,
        activity_id, tag, since)
    SELECT repeat('x', 150), 1, 0, now(), 'g', 1, n, ':gpu', 0
    FROM generate_series((SELECT count(*) FROM {name}.worker_queue WHERE tag = ':gpu') + 1, {many}) AS n";

/// The blocks that a fetch of one activity without a tag reads on a new connection, whose plans are made now.
async fn cost_of_a_new_plan(url: &str, schema: &str) -> u64 {
    let client = connect(url).await;
    let mut least = u64::MAX;
    for _ in 0..4 {
        let queue = "
            INSERT INTO {name}.worker_queue (work_item, state, visible_ms, created_at, instance_id,
                execution_id, activity_id, since)
            SELECT 'x', 1, 0, now(), 'a', 1, 1, 0";
        execute(&client, queue, schema).await;
        let fetch = r#"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF)
                       SELECT * FROM {name}.fetch_work_items(1, '{""}', '{w}', 30000, p_terms => true)"#;
        least = least.min(blocks(&client, fetch, schema).await);
        execute(&client, "SELECT {name}.withdraw_work('{a}', '{1}', '{1}', 0)", schema).await;
    }
    least
}

#[tokio::test]
async fn a_plan_made_beside_any_number_of_activities_of_another_tag_reads_as_little() {
    // A server of its own, as above: the withdrawn rows of each round are read as long as they stay.
    let server = steadfast_cluster::Server::durable().unwrap();
    let schema = server.schema("new_plans");
    open(server.url(), schema.name()).await.unwrap();
    let client = connect(server.url()).await;
    let unanalysed = "ALTER TABLE {name}.worker_queue SET (autovacuum_enabled = false)";
    execute(&client, unanalysed, schema.name()).await;
    let alone = cost_of_a_new_plan(server.url(), schema.name()).await;
    for many in ["100", "300", "600", "1000", "1500", "2500"] {
        execute(&client, &OTHER_TAG.replace("{many}", many), schema.name()).await;
        let beside = cost_of_a_new_plan(server.url(), schema.name()).await;
        assert!(beside <= alone + MORE_LEVELS, "beside {many}: {beside} blocks instead of {alone}");
    }
}

#[tokio::test]
async fn a_fetch_of_work_waits_for_no_lock() {
    let schema = server().schema("locked");
    open(server().url(), schema.name()).await.unwrap();
    let (holder, fetcher) = (connect(server().url()).await, connect(server().url()).await);
    execute(&holder, QUEUE_THREE, schema.name()).await;
    execute(&holder, r#"BEGIN; SELECT {name}.lock_lines('{""}', '{S}')"#, schema.name()).await;
    let fetch = r#"SELECT kind, item, again FROM {name}.fetch_work_items(4, '{""}', '{w,w,w,w}', 30000,
                       'node', NULL, 30000, true)"#
        .replace("{name}", schema.name());
    let fetched = async |expected: &[(&str, Option<&str>)], again: bool| {
        let asked = tokio::time::timeout(Duration::from_secs(30), fetcher.query(&fetch, &[]));
        let rows = asked.await.expect("the fetch waits for no lock").unwrap();
        let found: Vec<(String, Option<String>)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let found: Vec<_> = found.iter().map(|(kind, item)| (kind.as_str(), item.as_deref())).collect();
        assert_eq!(found, expected);
        assert_eq!(rows.last().map(|row| row.get(2)), Some(Some(again)));
    };
    fetched(&[("lease", Some("one")), ("none", None)], true).await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    fetched(&[("lease", Some("two")), ("lease", Some("three")), ("none", None)], false).await;
}
