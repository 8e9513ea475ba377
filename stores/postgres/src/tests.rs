//! Tests of the inside of the store on a real server.

mod away;
mod floors;
mod open;
mod readers;
mod released;
mod rolling;
mod statements;

use std::sync::OnceLock;
use std::time::Duration;

use steadfast_cluster::Server;
use tokio_postgres::{Client, NoTls};

use crate::link::connect::Connector;
use crate::link::db::Db;
use crate::link::lanes::Lanes;
use crate::link::open::{OpenError, quoted};
use crate::link::options::{PostgresOptions, PostgresPlan};
use crate::schema::{build::Build, migrate::migrate};

/// Joins the server that all tests share.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::join().unwrap())
}

fn plan() -> PostgresPlan {
    PostgresPlan::try_from(PostgresOptions { max_connections: 4, ..PostgresOptions::default() }).unwrap()
}

/// Connections to a schema that is not migrated.
fn db(url: &str, schema: &str, plan: &PostgresPlan) -> Db {
    let connector = Connector::new(url, plan).unwrap();
    let lanes = Lanes::divided(&connector, plan).unwrap();
    Db::new(lanes, quoted(schema).unwrap(), None, None).bounded(plan.statement_timeout, Some(connector))
}

async fn bring(url: &str, schema: &str, build: &Build) -> Result<(), OpenError> {
    migrate(&mut connect(url).await, schema, build, Duration::from_secs(60)).await
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn execute(client: &Client, statement: &str, name: &str) {
    client.batch_execute(&statement.replace("{name}", name)).await.unwrap();
}

async fn number(client: &Client, statement: &str, name: &str) -> i64 {
    client.query_one(&statement.replace("{name}", name), &[]).await.unwrap().get(0)
}
