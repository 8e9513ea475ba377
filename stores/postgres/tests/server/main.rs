//! Opening a database on a real server: what is accepted, what is refused and how it is said, and what happens when the server
//! is in trouble.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what a test relies on, it panics without"
)]

mod compat_functions;
mod deletion;
mod durability;
mod floors;
mod holes_of_turns;
mod holes_of_work;
mod migrate;
mod open;
mod secure;
mod statements;
mod trouble;
mod turns;
mod waits;
mod work;

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use steadfast_cluster::Server;
use steadfast_core::WorkItem;
use steadfast_postgres::{OpenError, PostgresOptions, PostgresProvider};
use tokio_postgres::{Client, NoTls};

/// Returns a statement of these tests, which has a file of its own.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("sql/", $name, ".sql"))
    };
}
use sql;

/// Joins the server that all tests share.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::join().unwrap())
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Runs a statement with a name in place of `{name}`.
async fn execute(client: &Client, statement: &str, name: &str) {
    client.batch_execute(&statement.replace("{name}", name)).await.unwrap();
}

/// Reads one number with a name in place of `{name}`.
async fn number(client: &Client, statement: &str, name: &str) -> i64 {
    client.query_one(&statement.replace("{name}", name), &[]).await.unwrap().get(0)
}

/// The message that starts an instance.
fn start_of(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Order".to_owned(),
        input: String::new(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn quiet() -> PostgresOptions {
    PostgresOptions { listen: false, max_connections: 2, ..PostgresOptions::default() }
}

async fn open(url: &str, schema: &str) -> Result<PostgresProvider, OpenError> {
    PostgresProvider::new_with_options(url, Some(schema), quiet()).await
}

/// Opens what cannot be opened, and returns what is said about it.
async fn refused(url: &str, schema: &str) -> String {
    match open(url, schema).await {
        Ok(_) => panic!("{schema} was opened"),
        Err(error) => error.to_string(),
    }
}

/// Returns the address with another part after the last `/`.
fn with_query(url: &str, query: &str) -> String {
    format!("{url}?{query}")
}

/// Returns the address with another user, and a password.
fn as_user(url: &str, user: &str, password: &str) -> String {
    let (_, rest) = url.split_once('@').unwrap();
    format!("postgres://{user}:{password}@{rest}")
}

/// Says each of the words, or fails with what it says.
#[track_caller]
fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "does not say {word:?}: {text}");
    }
}

/// Asks again and again until it succeeds. A server of the machine does not know a told clock, so this waits for real.
async fn until_ok<T, E: std::fmt::Display, F: Future<Output = Result<T, E>>>(
    mut ask: impl FnMut() -> F,
) -> T {
    let mut last = None;
    for _ in 0..600 {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => last = Some(error),
        }
        #[expect(clippy::disallowed_methods, reason = "a server of the machine does not know a told clock")]
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never succeeded: {}", last.unwrap());
}
