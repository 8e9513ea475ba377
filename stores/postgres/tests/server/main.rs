//! The store on a real server: opening, migrations, the functions of the database, contention, cost and
//! trouble.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test panics where an expectation does not hold"
)]

mod compat_functions;
mod deletion;
mod durability;
mod floors;
mod migrate;
mod open;
mod secure;
mod statements;
mod trouble;
mod turns;
mod turns_under_contention;
mod waits;
mod work;
mod work_under_contention;

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use steadfast_cluster::Server;
use steadfast_core::WorkItem;
use steadfast_postgres::{OpenError, PostgresOptions, PostgresProvider};
use tokio_postgres::{Client, NoTls};

/// Counts the schemas of a name: 0 or 1.
const SCHEMAS: &str = "SELECT count(*) FROM pg_namespace WHERE nspname = '{name}'";

/// Counts the tables, sequences, views and functions of a schema.
const RELATIONS_AND_FUNCTIONS: &str =
    "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = n.oid AND relkind IN ('r', 'S', 'v'))
          + (SELECT count(*) FROM pg_proc WHERE pronamespace = n.oid)
     FROM (SELECT (SELECT oid FROM pg_namespace WHERE nspname = '{name}') AS oid) AS n";

/// Counts the migrations that a schema has recorded.
const MIGRATIONS: &str = "SELECT count(*) FROM {name}.steadfast_migrations";

/// Makes a role that may log in, with its name as password. Servers before 14 hash passwords with MD5
/// unless `password_encryption` says otherwise.
const CREATE_ROLE: &str =
    "SET password_encryption TO 'scram-sha-256'; CREATE ROLE {name} LOGIN PASSWORD '{name}'";

/// Makes a schema that the role of the same name owns.
const OWN_SCHEMA: &str = "CREATE SCHEMA {name} AUTHORIZATION {name}";

/// Queues an activity without a session and two on a shared session.
const QUEUE_THREE: &str = r#"
    SELECT {name}.lock_lines('{""}', '{S}');
    SELECT {name}.queue_work('{one,two,three}', '{a,a,a}', '{1,1,1}', '{1,2,3}', '{"","",""}',
        '{"","",""}', '{NULL,S,S}',
        '{NULL,NULL,NULL}', {name}.now_ms(NULL))"#;

/// Leases one activity.
const LEASE_ONE: &str =
    r#"SELECT token FROM {name}.fetch_work_items(1, '{""}', '{w}', 30000, 'node', NULL, 30000, true)"#;

/// Joins the server that all tests share.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::join().unwrap())
}

/// Returns how many migrations this build has.
fn migrations() -> i64 {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/migrations")).unwrap();
    i64::try_from(files.count()).unwrap()
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Runs statements with a name in place of `{name}`.
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

/// Opens a schema that must be refused, and returns the text of the error.
async fn refused(url: &str, schema: &str) -> String {
    match open(url, schema).await {
        Ok(_) => panic!("{schema} was opened"),
        Err(error) => error.to_string(),
    }
}

/// Returns the address with a query appended.
fn with_query(url: &str, query: &str) -> String {
    format!("{url}?{query}")
}

/// Returns the address with another user, and a password.
fn as_user(url: &str, user: &str, password: &str) -> String {
    let (_, rest) = url.split_once('@').unwrap();
    format!("postgres://{user}:{password}@{rest}")
}

/// Checks that a text contains each of the words.
#[track_caller]
fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "does not say {word:?}: {text}");
    }
}

/// Asks again and again until it succeeds. A server process knows no virtual clock, so this waits in real
/// time.
async fn until_ok<T, E: std::fmt::Display, F: Future<Output = Result<T, E>>>(
    mut ask: impl FnMut() -> F,
) -> T {
    let mut last = None;
    for _ in 0..600 {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => last = Some(error),
        }
        #[expect(clippy::disallowed_methods, reason = "a server process knows no virtual clock")]
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never succeeded: {}", last.unwrap());
}
