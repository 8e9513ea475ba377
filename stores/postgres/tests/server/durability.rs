//! What waits for the disk: everything that is acknowledged, but for leases (S5, S19).

use tokio_postgres::Client;

use crate::{connect, execute, open, server, sql};

/// Runs a statement in a transaction that is undone, and tells what it found and whether it would have waited for the disk.
async fn level_after(client: &mut Client, statement: &str, schema: &str) -> (String, String) {
    let transaction = client.transaction().await.unwrap();
    let found = transaction.query_one(&statement.replace("{name}", schema), &[]).await.unwrap().get(0);
    let level = transaction.query_one(sql!("durability/level"), &[]).await.unwrap().get(0);
    transaction.rollback().await.unwrap();
    (found, level)
}

#[tokio::test]
async fn s19_only_a_lease_does_not_wait_for_the_disk_and_one_of_a_session_does() {
    let schema = server().schema("durability");
    open(server().url(), schema.name()).await.unwrap();
    let mut client = connect(server().url()).await;
    execute(&client, "SET synchronous_commit = on", "").await;
    execute(&client, sql!("durability/start"), schema.name()).await;
    execute(&client, sql!("work/queue"), schema.name()).await;
    let cases = [
        (sql!("durability/turn"), ("turn", "off")),
        (sql!("durability/turn_of_a_user"), ("a", "on")),
        (sql!("durability/plain"), ("one", "off")),
        (sql!("work/take"), ("", "on")),
    ];
    for (statement, (expected, level)) in cases {
        let (found, told) = level_after(&mut client, statement, schema.name()).await;
        assert!(expected.is_empty() || found == expected, "{statement}: {found}");
        assert_eq!(told, level, "{statement}");
    }
    // The oldest is gone, so the next is one of the session.
    execute(&client, sql!("work/take"), schema.name()).await;
    let session = level_after(&mut client, sql!("durability/session"), schema.name()).await;
    assert_eq!(session, ("two".to_owned(), "on".to_owned()));
}
