//! Opening a store on a server that is a standby, read-only, full, down, silent or locked.

mod aside;
mod clock;
mod damage;

use std::time::Duration;

use steadfast_cluster::Server;
use steadfast_postgres::{PostgresOptions, PostgresProvider};

use crate::{SCHEMAS, connect, execute, number, open, quiet, refused, says, server, until_ok};

#[tokio::test]
async fn a_standby_is_refused_with_the_advice_to_use_the_primary() {
    let server = Server::durable().unwrap();
    open(server.url(), "made_before").await.unwrap();
    server.start_changed(&[], &[("standby.signal", "")]).unwrap();
    for schema in ["made_before", "never_made"] {
        let said = refused(server.url(), schema).await;
        says(&said, &["standby", "'postgres' can only be read", "connect to the primary", "read-write"]);
    }
    // Among several hosts the primary is found, though one is down and one is a standby.
    let address = |server: &Server| server.url().split(['@', '/']).nth(3).unwrap().to_owned();
    let primary = Server::durable().unwrap();
    let hosts = format!("127.0.0.1:1,{},{}", address(&server), address(&primary));
    let url = format!("postgres://postgres@{hosts}/postgres?target_session_attrs=read-write");
    open(&url, "made_here").await.unwrap();
    assert_eq!(number(&connect(primary.url()).await, SCHEMAS, "made_here").await, 1);
}

#[tokio::test]
async fn a_database_that_only_reads_is_refused_with_the_setting_that_makes_it_so() {
    let database = server().database("reads").unwrap();
    execute(
        &connect(database.url()).await,
        "ALTER DATABASE {name} SET default_transaction_read_only = on",
        database.name(),
    )
    .await;
    let said = refused(database.url(), "x").await;
    says(&said, &["default_transaction_read_only", database.name(), "turn it off"]);
}

#[tokio::test]
async fn a_server_without_a_free_connection_says_so_and_is_used_when_it_has_one() {
    let server = Server::durable().unwrap();
    server.start_changed(&[("max_connections", "5"), ("superuser_reserved_connections", "0")], &[]).unwrap();
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(connect(server.url()).await);
    }
    let said = refused(server.url(), "crowded").await;
    says(&said, &["53300", "the server has no connection left", "max_connections"]);
    drop(others);
    until_ok(|| open(server.url(), "crowded")).await;
}

#[tokio::test]
async fn a_server_that_is_down_says_so_and_is_used_when_it_is_back() {
    let server = Server::durable().unwrap();
    server.stop_immediately().unwrap();
    says(&refused(server.url(), "later").await, &["check host and port, and that the server runs"]);
    server.start_again().unwrap();
    open(server.url(), "later").await.unwrap();
}

#[tokio::test]
async fn opening_on_a_host_that_never_answers_times_out() {
    // The socket accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://me@{}/orders", silent.local_addr().unwrap());
    let options = PostgresOptions { connect_timeout: Duration::from_millis(200), ..quiet() };
    let opened = PostgresProvider::new_with_options(&url, None, options).await;
    says(&opened.unwrap_err().to_string(), &["no connection was made in time", "firewall"]);
}

#[tokio::test]
async fn a_migration_that_waits_too_long_times_out_and_says_so() {
    let database = server().database("held").unwrap();
    let holder = connect(database.url()).await;
    execute(&holder, "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('{name}', 7245163))", "waiting")
        .await;
    let options = PostgresOptions { migration_timeout: Duration::from_millis(300), ..quiet() };
    let opened = PostgresProvider::new_with_options(database.url(), Some("waiting"), options).await;
    let said = opened.unwrap_err().to_string();
    says(&said, &["nothing was changed", "migration_timeout"]);
    assert_eq!(number(&holder, SCHEMAS, "waiting").await, 0);
}
