//! Migrations: what opening a schema creates, refuses and leaves alone.

use std::process::{Command, Stdio};
use std::sync::Arc;

use steadfast_postgres::{FunctionChange, PostgresProvider};

use crate::{
    MIGRATIONS, RELATIONS_AND_FUNCTIONS, SCHEMAS, connect, execute, migrations, number, open, refused, says,
    server,
};

/// The environment variable with the schema that a child process of these tests opens.
const CHILD_SCHEMA: &str = "STEADFAST_TEST_SCHEMA";

#[tokio::test]
async fn pending_migrations_are_listed_and_not_applied() {
    let schema = server().schema("dry");
    let pending = PostgresProvider::pending_migrations(server().url(), Some(schema.name())).await.unwrap();
    assert_eq!(pending.setup.len(), 2);
    let all: Vec<i64> = (1..=migrations()).collect();
    assert_eq!(pending.migrations.iter().map(|migration| migration.version).collect::<Vec<_>>(), all);
    assert!(pending.functions.iter().all(|function| function.change == FunctionChange::New));
    assert!(pending.functions.iter().any(|function| function.name == "notify"));
    let script = pending.to_string();
    says(&script, &["CREATE SCHEMA", "-- migration 1", "-- function notify (new)", schema.name()]);
    assert!(!script.contains("{schema}") && !script.contains("{channel}"));

    let client = connect(server().url()).await;
    assert_eq!(number(&client, SCHEMAS, schema.name()).await, 0);

    open(server().url(), schema.name()).await.unwrap();
    let pending = PostgresProvider::pending_migrations(server().url(), Some(schema.name())).await.unwrap();
    assert!(pending.is_empty());
    says(&pending.to_string(), &["nothing to do"]);
}

#[tokio::test]
async fn pending_migrations_can_be_applied_by_hand() {
    let schema = server().schema("by_hand");
    let pending = PostgresProvider::pending_migrations(server().url(), Some(schema.name())).await.unwrap();
    let client = connect(server().url()).await;
    client.batch_execute(&pending.to_string()).await.unwrap();
    assert!(number(&client, RELATIONS_AND_FUNCTIONS, schema.name()).await > 10);
}

#[tokio::test]
async fn many_opens_at_once_make_one_schema() {
    let schema = Arc::new(server().schema("at_once"));
    let opening: Vec<_> = (0..16)
        .map(|_| {
            let schema = Arc::clone(&schema);
            tokio::spawn(async move { open(server().url(), schema.name()).await })
        })
        .collect();
    for opened in opening {
        opened.await.unwrap().unwrap();
    }
    let client = connect(server().url()).await;
    assert_eq!(number(&client, MIGRATIONS, schema.name()).await, migrations());
}

#[tokio::test]
async fn processes_that_start_at_once_make_one_schema() {
    let schema = server().schema("processes");
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "migrate::opens_the_schema_that_it_is_told", "--ignored"])
            .env(CHILD_SCHEMA, schema.name())
            .env("TEST_DATABASE_URL", server().url())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..4).map(|_| start()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let client = connect(server().url()).await;
    assert_eq!(number(&client, MIGRATIONS, schema.name()).await, migrations());
}

#[tokio::test]
#[ignore = "is a process of another test"]
async fn opens_the_schema_that_it_is_told() {
    let Ok(schema) = std::env::var(CHILD_SCHEMA) else { return };
    open(server().url(), &schema).await.unwrap();
}

#[tokio::test]
async fn a_schema_of_another_application_is_refused_and_left_alone() {
    let client = connect(server().url()).await;
    let schema = server().schema("foreign");
    execute(&client, "CREATE SCHEMA {name}; CREATE TABLE {name}.history (mine INT)", schema.name()).await;
    let said = refused(server().url(), schema.name()).await;
    says(&said, &[schema.name(), "table 'history'", "choose another schema"]);
    assert_eq!(number(&client, RELATIONS_AND_FUNCTIONS, schema.name()).await, 1);
    let pending = PostgresProvider::pending_migrations(server().url(), Some(schema.name())).await;
    says(&pending.unwrap_err().to_string(), &["table 'history'"]);
}

/// Counts the functions `notify` that another application made: they are written in SQL, ours is not.
const FOREIGN_NOTIFY: &str = "
    SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = '{name}' AND p.proname = 'notify' AND p.prolang = (SELECT oid FROM pg_language
        WHERE lanname = 'sql')";

#[tokio::test]
async fn a_function_of_another_application_is_not_replaced() {
    let client = connect(server().url()).await;
    for statement in [
        "CREATE SCHEMA {name};
         CREATE FUNCTION {name}.notify(p_notify TEXT, p_me TEXT) RETURNS void LANGUAGE sql AS ''",
        "CREATE SCHEMA {name};
         CREATE FUNCTION {name}.notify(p_notify TEXT, p_me TEXT) RETURNS INT LANGUAGE sql
             AS 'SELECT 1'",
    ] {
        let schema = server().schema("foreign");
        execute(&client, statement, schema.name()).await;
        let said = refused(server().url(), schema.name()).await;
        says(&said, &[schema.name(), "function 'notify'", "choose another schema"]);
        assert_eq!(number(&client, RELATIONS_AND_FUNCTIONS, schema.name()).await, 1);
        assert_eq!(number(&client, FOREIGN_NOTIFY, schema.name()).await, 1);
    }
}

#[tokio::test]
async fn objects_of_another_application_stay_beside_ours() {
    let schema = server().schema("beside");
    let client = connect(server().url()).await;
    execute(
        &client,
        "CREATE SCHEMA {name};
         CREATE TABLE {name}.orders (mine INT);
         CREATE FUNCTION {name}.total(mine INT) RETURNS INT LANGUAGE sql AS 'SELECT mine';
         CREATE FUNCTION {name}.notify(mine INT) RETURNS INT LANGUAGE sql AS 'SELECT mine'",
        schema.name(),
    )
    .await;
    open(server().url(), schema.name()).await.unwrap();
    open(server().url(), schema.name()).await.unwrap();
    assert_eq!(number(&client, FOREIGN_NOTIFY, schema.name()).await, 1);
}

#[tokio::test]
async fn a_migration_that_fails_leaves_nothing() {
    let schema = server().schema("fails");
    let client = connect(server().url()).await;
    execute(
        &client,
        "CREATE SCHEMA {name};
         CREATE TABLE {name}.theirs (mine INT);
         CREATE INDEX worker_queue_token ON {name}.theirs (mine)",
        schema.name(),
    )
    .await;
    let said = refused(server().url(), schema.name()).await;
    says(&said, &["migration 1", "nothing was changed", "worker_queue_token", "42P07"]);
    assert_eq!(number(&client, RELATIONS_AND_FUNCTIONS, schema.name()).await, 1);
}

#[tokio::test]
async fn a_schema_of_a_newer_build_is_refused() {
    let schema = server().schema("newer");
    open(server().url(), schema.name()).await.unwrap();
    execute(
        &connect(server().url()).await,
        "INSERT INTO {name}.steadfast_migrations (version, hash, made_by) VALUES (999, '?', '9.9.9')",
        schema.name(),
    )
    .await;
    let said = refused(server().url(), schema.name()).await;
    let known = format!("this build knows {}", migrations());
    says(&said, &[schema.name(), "version 999", &known, "update the program"]);
}

#[tokio::test]
async fn a_migration_whose_text_was_different_is_refused() {
    let schema = server().schema("changed");
    open(server().url(), schema.name()).await.unwrap();
    execute(
        &connect(server().url()).await,
        "UPDATE {name}.steadfast_migrations SET hash = '?' WHERE version = 1",
        schema.name(),
    )
    .await;
    let said = refused(server().url(), schema.name()).await;
    says(&said, &["migration 1", "another form", "choose another schema"]);
}

#[tokio::test]
async fn schemas_of_one_database_are_independent() {
    let (one, other) = (server().schema("one"), server().schema("other"));
    open(server().url(), one.name()).await.unwrap();
    open(server().url(), other.name()).await.unwrap();
    let client = connect(server().url()).await;
    execute(&client, "DROP SCHEMA {name} CASCADE", one.name()).await;
    assert_eq!(number(&client, MIGRATIONS, other.name()).await, migrations());
    open(server().url(), other.name()).await.unwrap();
    open(server().url(), one.name()).await.unwrap();
}
