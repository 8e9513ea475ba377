//! What a test sees of its server: schemas and databases are dropped, commits survive a crash.

#![allow(clippy::unwrap_used, reason = "a test panics where an expectation does not hold")]

use std::{
    io::ErrorKind,
    net::{Ipv6Addr, TcpListener, TcpStream},
};

use steadfast_cluster::{Server, ServerError};
use tokio_postgres::{Client, NoTls};

/// Makes a schema with a table in it.
const MAKE: &str = r#"CREATE SCHEMA "{name}" CREATE TABLE kept (value integer)"#;

/// Counts the schemas of a name: 0 or 1.
const COUNT_SCHEMAS: &str = "SELECT count(*) FROM pg_namespace WHERE nspname = '{name}'";

/// Counts the databases of a name: 0 or 1.
const COUNT_DATABASES: &str = "SELECT count(*) FROM pg_database WHERE datname = '{name}'";

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn execute(client: &Client, statement: &str, name: &str) {
    client.batch_execute(&statement.replace("{name}", name)).await.unwrap();
}

async fn count(client: &Client, statement: &str, name: &str) -> i64 {
    client.query_one(&statement.replace("{name}", name), &[]).await.unwrap().get(0)
}

async fn settings(server: &Server) -> String {
    connect(server.url())
        .await
        .query_one(
            "SELECT concat_ws(' ', current_setting('fsync'), current_setting('full_page_writes'),
             current_setting('synchronous_commit'))",
            &[],
        )
        .await
        .unwrap()
        .get(0)
}

fn port(server: &Server) -> u16 {
    let (address, _) = server.url().rsplit_once('/').unwrap();
    address.rsplit_once(':').unwrap().1.parse().unwrap()
}

#[tokio::test]
async fn a_schema_is_dropped_with_its_value_though_a_transaction_locks_it() {
    let server = Server::join().unwrap();
    let schema = server.schema("dropped");
    let name = schema.name().to_owned();
    let client = connect(server.url()).await;
    execute(&client, MAKE, &name).await;
    assert_eq!(count(&client, COUNT_SCHEMAS, &name).await, 1);
    let forgotten = connect(server.url()).await;
    execute(&forgotten, r#"BEGIN; LOCK TABLE "{name}".kept IN ACCESS EXCLUSIVE MODE"#, &name).await;
    drop(schema);
    assert_eq!(count(&client, COUNT_SCHEMAS, &name).await, 0);
}

#[tokio::test]
async fn a_schema_that_was_never_made_is_dropped_quietly() {
    let server = Server::join().unwrap();
    assert_ne!(server.schema("same").name(), server.schema("same").name());
}

#[tokio::test]
async fn a_database_is_dropped_with_its_value_though_a_connection_is_open() {
    let server = Server::join().unwrap();
    let client = connect(server.url()).await;
    let database = server.database("dropped").unwrap();
    let name = database.name().to_owned();
    let _open = connect(database.url()).await;
    assert_eq!(count(&client, COUNT_DATABASES, &name).await, 1);
    drop(database);
    assert_eq!(count(&client, COUNT_DATABASES, &name).await, 0);
}

#[tokio::test]
async fn a_durable_server_keeps_what_was_committed_over_a_crash() {
    let server = Server::durable().unwrap();
    let schema = server.schema("kept");
    let url = server.url().to_owned();
    let before = connect(&url).await;
    execute(&before, MAKE, schema.name()).await;
    execute(&before, r#"INSERT INTO "{name}".kept VALUES (7)"#, schema.name()).await;
    server.stop_immediately().unwrap();
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err(), "it is stopped");
    server.start_again().unwrap();
    assert_eq!(server.url(), url);
    assert_eq!(count(&connect(&url).await, r#"SELECT count(*) FROM "{name}".kept"#, schema.name()).await, 1);
}

#[tokio::test]
async fn a_durable_server_waits_for_the_disk_and_is_deleted_with_its_value() {
    let server = Server::durable().unwrap();
    assert_eq!(settings(&server).await, "on on on");
    let port = port(&server);
    drop(server);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_stopped_server_is_deleted_as_well() {
    let server = Server::durable().unwrap();
    server.stop_immediately().unwrap();
    drop(server);
}

#[test]
fn a_shared_server_is_not_stopped() {
    let server = Server::join().unwrap();
    assert!(matches!(server.stop_immediately(), Err(ServerError::Shared { .. })));
    assert!(matches!(server.start_again(), Err(ServerError::Shared { .. })));
}

#[test]
fn a_server_listens_on_the_loopback_address_only() {
    let server = Server::durable().unwrap();
    let port = port(&server);
    // If the server listened on all addresses, binding its port on another address would fail.
    TcpListener::bind(("127.0.0.2", port)).unwrap();
    let six = TcpListener::bind((Ipv6Addr::LOCALHOST, port));
    assert!(six.err().is_none_or(|error| error.kind() != ErrorKind::AddrInUse));
}

#[tokio::test]
async fn a_server_starts_again_with_more_settings_and_files() {
    let server = Server::durable().unwrap();
    server.start_changed(&[("work_mem", "7MB")], &[("standby.signal", "")]).unwrap();
    let client = connect(server.url()).await;
    let setting = "SELECT current_setting('work_mem') \
                   || CASE WHEN pg_is_in_recovery() THEN ' on a standby' ELSE '' END";
    let row = client.query_one(setting, &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "7MB on a standby");
}
