//! Which commits wait for the disk: all that are acknowledged, except leases without a session (S5, S19).

use tokio_postgres::Client;

use crate::{LEASE_ONE, QUEUE_THREE, connect, execute, open, server};

/// Runs a statement in a transaction that is rolled back. Returns its first value, and the
/// `synchronous_commit` that the transaction would have committed with.
async fn level_after(client: &mut Client, statement: &str, schema: &str) -> (String, String) {
    let transaction = client.transaction().await.unwrap();
    let found = transaction.query_one(&statement.replace("{name}", schema), &[]).await.unwrap().get(0);
    let level =
        transaction.query_one("SELECT current_setting('synchronous_commit')", &[]).await.unwrap().get(0);
    transaction.rollback().await.unwrap();
    (found, level)
}

#[tokio::test]
async fn s19_only_a_lease_does_not_wait_for_the_disk_and_a_lease_of_a_session_does() {
    let schema = server().schema("durability");
    open(server().url(), schema.name()).await.unwrap();
    let mut client = connect(server().url()).await;
    execute(&client, "SET synchronous_commit = on", "").await;
    execute(
        &client,
        r#"SELECT {name}.send_messages(
               '{a}',
               ARRAY['{"StartOrchestration":{"instance":"a","orchestration":"Order","input":"",
                   "version":"1.0.0","execution_id":1}}'],
               '{NULL}', '{true}', '{NULL}', NULL
           )"#,
        schema.name(),
    )
    .await;
    execute(&client, QUEUE_THREE, schema.name()).await;
    let cases = [
        ("SELECT kind FROM {name}.fetch_turns(NULL, 30000, 1, NULL, NULL, true)", ("turn", "off")),
        ("SELECT out_instance_id FROM {name}.fetch_orchestration_item(NULL, 30000)", ("a", "on")),
        (
            r#"SELECT item FROM {name}.fetch_work_items(1, '{""}', '{w}', 30000, p_unsynced => true)"#,
            ("one", "off"),
        ),
        (LEASE_ONE, ("", "on")),
    ];
    for (statement, (expected, level)) in cases {
        let (found, told) = level_after(&mut client, statement, schema.name()).await;
        assert!(expected.is_empty() || found == expected, "{statement}: {found}");
        assert_eq!(told, level, "{statement}");
    }
    // The activity without a session is leased, so the next one belongs to the session.
    execute(&client, LEASE_ONE, schema.name()).await;
    let session = level_after(
        &mut client,
        r#"SELECT item FROM {name}.fetch_work_items(1, '{""}', '{w}', 30000, 'node', NULL, 30000,
               true, p_unsynced => true)"#,
        schema.name(),
    )
    .await;
    assert_eq!(session, ("two".to_owned(), "on".to_owned()));
}
