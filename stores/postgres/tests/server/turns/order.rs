//! The order of a batch (S2) where it depends on the server: its clock, its indexes.

use tokio_postgres::Client;

use crate::{connect, execute, open, server};

/// Starts an instance, and sends it a message for each time of the server: the second one is earlier.
const SEND_AND_SET_BACK: &str = "
    SELECT {name}.start_instances('{a}', '{start}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}',
        1700000600000);
    SELECT {name}.send_messages('{a}', '{first}', '{NULL}', '{false}', '{NULL}', 1700000600000);
    SELECT {name}.send_messages('{a,a}', '{second,third}', '{NULL,0}', '{false,false}', '{NULL,NULL}',
        1700000000000)";

/// Leases a turn at a time of the server, and returns its messages.
async fn leased(client: &Client, schema: &str, at_ms: i64) -> Vec<String> {
    let fetch = format!("SELECT items FROM {schema}.fetch_turns({at_ms}, 30000, 1) WHERE kind = 'turn'");
    client.query_one(&fetch, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn g11_arrivals_keep_their_order_when_the_clock_of_the_server_is_set_back() {
    let schema = server().schema("set_back");
    open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    execute(&client, SEND_AND_SET_BACK, schema.name()).await;
    let items = leased(&client, schema.name(), 1_700_000_000_000).await;
    assert_eq!(items, ["start", "first", "second", "third"]);
}

/// A row of a function that wrote no due moment: the message of an older process.
const OLDER_ROW: &str = "
    SELECT {name}.start_instances('{a}', '{start}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}',
        1000);
    SELECT {name}.send_messages('{a,a}', '{second,first}', '{2000,1000}', '{false,false}', '{NULL,NULL}',
        1000);
    UPDATE {name}.orchestrator_queue SET due_ms = NULL";

#[tokio::test]
async fn g11_a_message_without_a_due_moment_stands_at_its_visible_time() {
    let schema = server().schema("older_row");
    open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    execute(&client, OLDER_ROW, schema.name()).await;
    assert_eq!(leased(&client, schema.name(), 5_000).await, ["start", "first", "second"]);
    // An abandonment with a delay moves its visible time, not its place.
    execute(
        &client,
        "SELECT {name}.abandon_turns(ARRAY(SELECT lock_token FROM {name}.instance_locks), '{9000}',
             '{false}', 5000);
         SELECT {name}.send_messages('{a}', '{third}', '{NULL}', '{false}', '{NULL}', 6000)",
        schema.name(),
    )
    .await;
    assert_eq!(leased(&client, schema.name(), 20_000).await, ["start", "first", "second", "third"]);
}

/// Runs each call once, and leaves no row.
const WARM_UP: &str = "
    SELECT {name}.start_instances('{w}', '{x}', '{NULL}', '{NULL}', '{}', '{}', '{}', '{}', '{}', '{}', 1000);
    SELECT {name}.send_messages('{w}', '{y}', '{NULL}', '{false}', '{NULL}', 1000);
    SELECT * FROM {name}.fetch_turns(2000, 9000, 1);
    SELECT {name}.erase_instances('{w}')";

/// Fills the queue of one instance with messages that are not due yet, and of another with ready ones.
const CROWD: &str = "
    SELECT {name}.start_instances('{a,b}', '{x,x}', '{NULL,NULL}', '{NULL,NULL}', '{}', '{}', '{}', '{}',
        '{}', '{}', 1000);
    INSERT INTO {name}.orchestrator_queue (instance_id, work_item, state, visible_ms, due_ms, starts,
        created_at)
    SELECT 'a', 'x', 0, 9000000000000 + n, 9000000000000 + n, false, now()
        FROM generate_series(1, 20000) AS n;
    INSERT INTO {name}.orchestrator_queue (instance_id, work_item, state, visible_ms, due_ms, starts,
        created_at)
    SELECT 'b', 'x', 1, 2000, 2000, false, now() FROM generate_series(1, 20000) AS n;
    ANALYZE {name}.orchestrator_queue";

#[tokio::test]
async fn g11_a_batch_and_a_sending_read_no_more_of_a_long_queue_than_they_take() {
    let schema = server().schema("long_queue");
    open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    // The first calls of a connection read the catalogue.
    execute(&client, WARM_UP, schema.name()).await;
    execute(&client, CROWD, schema.name()).await;
    // This one may tend the floors, and leases nothing.
    execute(&client, "SELECT * FROM {name}.fetch_turns(3000, 9000, 0)", schema.name()).await;
    for (what, call, most) in [
        (
            "a fetch of an instance with delayed messages",
            "SELECT * FROM {name}.fetch_turns(3000, 9000, 1)",
            6_000,
        ),
        (
            "a fetch of an instance with ready messages",
            "SELECT * FROM {name}.fetch_turns(3000, 9000, 1)",
            6_000,
        ),
        (
            "a sending to an instance with ready messages",
            "SELECT {name}.send_messages('{b}', '{y}', '{NULL}', '{false}', '{NULL}', 3000)",
            6_000,
        ),
    ] {
        let call = format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) {call}");
        let cost = crate::work::blocks(&client, &call, schema.name()).await;
        assert!(cost <= most, "{what} read {cost} blocks");
    }
}
