//! Opening a store: which addresses, roles and databases are accepted, and the texts of refusals.

use std::time::Duration;

use deadpool_postgres::{Manager, Pool};
use steadfast_cluster::Server;
use steadfast_postgres::{PostgresOptions, PostgresProvider};
use tokio_postgres::{Client, NoTls};

use crate::{
    CREATE_ROLE, MIGRATIONS, OWN_SCHEMA, RELATIONS_AND_FUNCTIONS, as_user, connect, execute, migrations,
    number, open, quiet, refused, says, server, with_query,
};

/// A role that one test made, with an administrator's connection that removes it.
struct Role {
    admin: Client,
    name: String,
    url: String,
}

impl Role {
    async fn new(url: &str, name: &str) -> Self {
        let admin = connect(url).await;
        execute(&admin, CREATE_ROLE, name).await;
        Self { admin, name: name.to_owned(), url: as_user(url, name, name) }
    }

    async fn execute(&self, statement: &str) {
        execute(&self.admin, statement, &self.name).await;
    }

    async fn remove(self) {
        execute(&self.admin, "DROP OWNED BY {name} CASCADE; DROP ROLE {name}", &self.name).await;
    }
}

#[tokio::test]
async fn a_wrong_url_is_shown_without_its_password() {
    let said = refused("postgres://me:secret@h:port/d", "x").await;
    says(
        &said,
        &["'postgres://me:***@h:***'", "port", "expected postgres://user:password@host:5432/database"],
    );
}

#[tokio::test]
async fn an_unreachable_server_is_named_with_the_remedy() {
    let said = refused("postgres://me:secret@127.0.0.1:1/orders", "x").await;
    says(&said, &["127.0.0.1:1/orders as user 'me'", "refused", "check host and port"]);
    assert!(!said.contains("secret"), "{said}");
}

#[tokio::test]
async fn a_host_that_does_not_exist_is_named() {
    let said = refused("postgres://me@nowhere.invalid/orders", "x").await;
    says(&said, &["nowhere.invalid:5432", "check host and port"]);
}

#[tokio::test]
async fn a_missing_database_is_named_with_the_remedy() {
    let (address, _) = server().url().rsplit_once('/').unwrap();
    let said = refused(&format!("{address}/never_made"), "x").await;
    says(&said, &["\"never_made\" does not exist", "3D000", "createdb"]);
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_not_shown() {
    let server = Server::durable().unwrap();
    let role = Role::new(server.url(), "walter").await;
    let hba = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    server.start_changed(&[], &[("pg_hba.conf", hba)]).unwrap();

    let said = refused(&as_user(server.url(), "walter", "secret"), "public").await;
    says(&said, &["user 'walter'", "28P01", "check user and password"]);
    assert!(!said.contains("secret"), "{said}");

    let without = role.url.replace(":walter@", "@");
    says(&refused(&without, "public").await, &["password missing", "its password"]);

    says(&refused(&as_user(server.url(), "nobody", "x"), "public").await, &["user 'nobody'", "28P01"]);

    let provider = open(&role.url, "walter").await.unwrap_err().to_string();
    says(&provider, &["may not create schemas"]);
}

/// Lets the role use what is in the schema of its name, and create nothing.
const GRANT_USE: &str = "
    GRANT USAGE ON SCHEMA {name} TO {name};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {name};
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA {name} TO {name}";

#[tokio::test]
async fn a_role_that_may_not_create_schemas_is_told_so_and_uses_one_that_exists() {
    let database = server().database("rights").unwrap();
    let role = Role::new(database.url(), database.name()).await;
    let said = refused(&role.url, &role.name).await;
    let who = format!("role '{}' may not create schemas", role.name);
    says(&said, &[&role.name, "does not exist", &who, "grant it CREATE on the database"]);

    role.execute("CREATE SCHEMA {name}").await;
    says(&refused(&role.url, &role.name).await, &["may not use it", "grant it USAGE"]);

    role.execute(GRANT_USE).await;
    let said = refused(&role.url, &role.name).await;
    says(&said, &["may not create tables and functions in it", "grant it CREATE on the schema"]);
    assert_eq!(number(&role.admin, RELATIONS_AND_FUNCTIONS, &role.name).await, 0);

    role.execute("GRANT USAGE, CREATE ON SCHEMA {name} TO {name}").await;
    open(&role.url, &role.name).await.unwrap();
    role.remove().await;
}

#[tokio::test]
async fn a_role_that_may_create_nothing_opens_a_schema_that_is_up_to_date() {
    let database = server().database("dml").unwrap();
    let role = Role::new(database.url(), database.name()).await;
    open(database.url(), &role.name).await.unwrap();
    role.execute(GRANT_USE).await;
    open(&role.url, &role.name).await.unwrap();
    role.remove().await;
}

#[tokio::test]
async fn a_role_that_owns_a_schema_needs_nothing_else() {
    let database = server().database("owner").unwrap();
    let role = Role::new(database.url(), database.name()).await;
    role.execute(OWN_SCHEMA).await;
    open(&role.url, &role.name).await.unwrap();
    role.remove().await;
}

#[tokio::test]
async fn a_schema_name_that_cannot_be_used_is_refused() {
    let said = refused(server().url(), "pg_mine").await;
    says(&said, &["'pg_mine'", "reserved by Postgres", "do not begin with pg_"]);
}

#[tokio::test]
async fn a_strange_schema_name_is_only_a_name() {
    let database = server().database("strange").unwrap();
    let name = "Größe \"x\"); DROP TABLE instances; -- \\ */";
    open(database.url(), name).await.unwrap();
    open(database.url(), name).await.unwrap();
    assert!(PostgresProvider::pending_migrations(database.url(), Some(name)).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_default_schema_is_public() {
    let database = server().database("public").unwrap();
    PostgresProvider::new(database.url()).await.unwrap();
    let client = connect(database.url()).await;
    assert_eq!(number(&client, MIGRATIONS, "public").await, migrations());
}

#[tokio::test]
async fn a_list_of_keys_and_values_is_as_good_as_a_url() {
    let schema = server().schema("pairs");
    let (_, rest) = server().url().split_once("://").unwrap();
    let Some((user, rest)) = rest.split_once('@') else { return };
    let (address, database) = rest.split_once('/').unwrap();
    let (host, port) = address.split_once(':').unwrap();
    let user = user.split(':').next().unwrap();
    let pairs = format!("host={host} port={port} user='{user}' dbname = {database} sslmode=disable");
    open(&pairs, schema.name()).await.unwrap();
}

#[tokio::test]
async fn a_pool_that_exists_is_accepted() {
    let schema = server().schema("pool");
    let manager = Manager::new(server().url().parse().unwrap(), NoTls);
    let pool = Pool::builder(manager).max_size(2).build().unwrap();
    let provider = PostgresProvider::with_pool(pool.clone(), Some(schema.name()), quiet()).await.unwrap();
    drop(provider);
    assert!(pool.status().size > 0);
}

#[tokio::test]
async fn a_pool_whose_server_is_unreachable_says_so() {
    let manager = Manager::new("postgres://me:secret@127.0.0.1:1/orders".parse().unwrap(), NoTls);
    let pool = Pool::builder(manager).max_size(2).build().unwrap();
    let said = PostgresProvider::with_pool(pool, None, quiet()).await.unwrap_err().to_string();
    says(&said, &["the server of the pool", "check host and port"]);
}

#[tokio::test]
async fn a_value_that_makes_no_sense_is_refused_before_anything_is_connected() {
    let options = PostgresOptions { statement_timeout: Duration::ZERO, ..quiet() };
    let opened = PostgresProvider::new_with_options("postgres://127.0.0.1:1/d", None, options).await;
    says(&opened.unwrap_err().to_string(), &["statement_timeout", "0ns", "set it from 1ms to 86400s"]);
}

#[tokio::test]
async fn a_password_is_not_in_what_a_provider_shows() {
    let schema = server().schema("debug");
    let url = as_user(server().url(), "postgres", "secret");
    let Ok(provider) = open(&url, schema.name()).await else { return };
    let shown = format!("{provider:?}");
    assert!(!shown.contains("secret"), "{shown}");
}

#[tokio::test]
async fn a_connection_string_may_set_what_the_driver_knows() {
    let schema = server().schema("more");
    let more =
        "options=-c%20statement_timeout%3D1h&connect_timeout=3&keepalives_idle=9&application_name=mine";
    let url = with_query(server().url(), more);
    open(&url, schema.name()).await.unwrap();
}

#[tokio::test]
async fn a_socket_of_this_machine_is_as_good_as_a_port() {
    let server = Server::durable().unwrap();
    let row = connect(server.url())
        .await
        .query_one("SELECT current_setting('unix_socket_directories'), current_setting('port')", &[])
        .await
        .unwrap();
    let (folder, port): (String, String) = (row.get(0), row.get(1));
    open(&format!("host={folder} port={port} user=postgres dbname=postgres sslmode=require"), "by_pairs")
        .await
        .unwrap();
    let folder = folder.replace('/', "%2F");
    open(&format!("postgres://postgres@{folder}:{port}/postgres"), "by_url").await.unwrap();
}

/// Removes a database if it exists.
const DROP_DATABASE: &str = "DROP DATABASE IF EXISTS {name}";

#[tokio::test]
async fn a_database_that_cannot_hold_every_text_is_refused() {
    let admin = connect(server().url()).await;
    let name = "steadfast_latin";
    execute(&admin, DROP_DATABASE, name).await;
    execute(
        &admin,
        "CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
        name,
    )
    .await;
    let (address, _) = server().url().rsplit_once('/').unwrap();
    let said = refused(&format!("{address}/{name}"), "x").await;
    execute(&admin, DROP_DATABASE, name).await;
    says(&said, &["'steadfast_latin' is encoded as LATIN1", "ENCODING 'UTF8'"]);
}

#[tokio::test]
async fn the_store_uses_read_committed_whatever_the_default_of_the_database() {
    let database = server().database("isolation").unwrap();
    let admin = connect(database.url()).await;
    execute(
        &admin,
        "ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'",
        database.name(),
    )
    .await;
    // Connections of the store set the isolation level themselves.
    let store = open(database.url(), "mine").await.unwrap();
    drop(store);
    // A pool of the application, or a connection string that sets another level, is refused.
    let serializable =
        with_query(database.url(), "options=-c%20default_transaction_isolation%3Dserializable");
    says(
        &refused(&serializable, "mine").await,
        &["default_transaction_isolation is 'serializable'", "set it to 'read committed'"],
    );
    let pool =
        Pool::builder(Manager::new(database.url().parse().unwrap(), NoTls)).max_size(2).build().unwrap();
    let opened = PostgresProvider::with_pool(pool, Some("mine"), quiet()).await;
    says(&opened.err().unwrap().to_string(), &["default_transaction_isolation is 'repeatable read'"]);
}
