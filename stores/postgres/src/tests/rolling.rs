//! Upgrades under running workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use semver::Version;
use steadfast_core::{ExecutionMetadata, TagFilter, WorkItem};
use steadfast_store::Provider;

use super::{bring, connect, db, execute, number, plan, server};
use crate::link::db::{Db, column};
use crate::link::open::OpenError;
use crate::link::statement::{Statement, params};
use crate::provider::PostgresProvider;
use crate::schema::build::Build;
use crate::schema::functions::Function;

/// One form of the function `doubled`, which grows from version to version.
const fn form(text: &'static str) -> Function {
    Function { name: "rolling/doubled", text }
}

/// Doubles a number.
static FIRST: Function = form(
    "CREATE OR REPLACE FUNCTION {schema}.doubled(p_number BIGINT)
     RETURNS TABLE (doubled BIGINT)
     LANGUAGE plpgsql AS $function$
     BEGIN
         RETURN QUERY SELECT p_number * 2;
     END
     $function$",
);
/// Doubles a number in another way.
static REWRITTEN: Function = form(
    "CREATE OR REPLACE FUNCTION {schema}.doubled(p_number BIGINT)
     RETURNS TABLE (doubled BIGINT)
     LANGUAGE plpgsql AS $function$
     BEGIN
         RETURN QUERY SELECT p_number + p_number;
     END
     $function$",
);
/// Doubles a number, and adds another one that has a default.
static GROWN: Function = form(
    "CREATE OR REPLACE FUNCTION {schema}.doubled(p_number BIGINT, p_more BIGINT DEFAULT 0)
     RETURNS TABLE (doubled BIGINT)
     LANGUAGE plpgsql AS $function$
     BEGIN
         RETURN QUERY SELECT p_number * 2 + p_more;
     END
     $function$",
);
/// Has one column more than the first form.
static WIDER: Function = form(
    "CREATE OR REPLACE FUNCTION {schema}.doubled(p_number BIGINT, p_more BIGINT DEFAULT 0)
     RETURNS TABLE (doubled BIGINT, tripled BIGINT)
     LANGUAGE plpgsql AS $function$
     BEGIN
         RETURN QUERY SELECT p_number * 2 + p_more, p_number * 3;
     END
     $function$",
);
/// Cannot be created.
static BROKEN: Function = form(
    "CREATE OR REPLACE FUNCTION {schema}.doubled(p_number BIGINT)
     RETURNS TABLE (doubled BIGINT)
     LANGUAGE plpgsql AS $function$
     BEGIN
         RETURN QUERY SELECT FROM WHERE;
     END
     $function$",
);
/// Creates a function that does not have the name of its file.
static MISNAMED: Function = form(
    "CREATE OR REPLACE FUNCTION {schema}.tripled(p_number BIGINT)
     RETURNS BIGINT LANGUAGE sql AS $function$ SELECT p_number * 3 $function$",
);

fn build(version: u64, function: &'static Function) -> Build {
    Build { migrations: Vec::new(), functions: vec![function], version: Version::new(0, version, 0) }
}

/// Looks the function up, and waits for the lock of a table before it calls it.
const CALL_AT_GATE: &str = "SELECT d.doubled FROM {schema}.doubled($1) AS d, {schema}.gate";

/// Calls as the workers of the first version do.
async fn call(db: &Db) -> i64 {
    let call = "SELECT * FROM {schema}.doubled($1)";
    let rows = db.rows("double", Statement::of(call, params![21_i64])).await.unwrap();
    column("double", &rows[0], "doubled").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_go_on_while_functions_are_made_anew() {
    let (server, schema) = (server(), server().schema("rolling"));
    bring(server.url(), schema.name(), &build(1, &FIRST)).await.unwrap();
    let (ended, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let db = db(server.url(), schema.name(), &plan());
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let (db, ended, calls) = (db.clone(), Arc::clone(&ended), Arc::clone(&calls));
            tokio::spawn(async move {
                while !ended.load(Ordering::Relaxed) {
                    assert_eq!(call(&db).await, 42);
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    // Each way in which a function can change, several times, between calls.
    let mut version = 1;
    for _ in 0..8 {
        for form in [&REWRITTEN, &GROWN, &WIDER, &FIRST] {
            version += 1;
            let seen = calls.load(Ordering::Relaxed);
            bring(server.url(), schema.name(), &build(version, form)).await.unwrap();
            while calls.load(Ordering::Relaxed) < seen + 20
                && !workers.iter().any(|worker| worker.is_finished())
            {
                tokio::task::yield_now().await;
            }
        }
    }
    ended.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
}

/// Does what a worker does: starts an instance, commits a turn, finishes an activity, reads.
async fn work(provider: &dyn Provider, instance: String) {
    let (lock, at_once) = (Duration::from_secs(60), Duration::ZERO);
    let start = WorkItem::StartOrchestration {
        instance: instance.clone(),
        orchestration: "order".to_owned(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    provider.enqueue_for_orchestrator(start, None).await.unwrap();
    if let Some((turn, token, _)) = provider.fetch_orchestration_item(lock, at_once, None).await.unwrap() {
        let activity = WorkItem::ActivityExecute {
            instance: turn.instance.clone(),
            execution_id: 1,
            id: 1,
            name: "ship".to_owned(),
            input: String::new(),
            session_id: None,
            tag: None,
        };
        let metadata = ExecutionMetadata::default();
        let committed = provider.ack_orchestration_item(
            &token,
            1,
            Vec::new(),
            vec![activity],
            Vec::new(),
            metadata,
            Vec::new(),
        );
        committed.await.unwrap();
    }
    if let Some((_, token, _)) =
        provider.fetch_work_item(lock, at_once, None, &TagFilter::default()).await.unwrap()
    {
        provider.ack_work_item(&token, None).await.unwrap();
    }
    provider.read(&instance).await.unwrap();
    provider.get_kv_all_values(&instance).await.unwrap();
}

/// This build with a changed text of each function.
fn rewritten(version: u64) -> Build {
    let this = Build::this();
    let rewrite = |function: &&'static Function| -> &'static Function {
        let text = format!("{}\n-- {version}", function.text.trim_end());
        Box::leak(Box::new(Function { name: function.name, text: text.leak() }))
    };
    let functions = this.functions.iter().map(rewrite).collect();
    Build { functions, version: Version::new(this.version.major, this.version.minor, version), ..this }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_works_on_while_all_its_functions_are_made_anew() {
    let (server, schema) = (server(), server().schema("upgraded"));
    let provider: Arc<dyn Provider> =
        Arc::new(PostgresProvider::new_with_schema(server.url(), Some(schema.name())).await.unwrap());
    let (ended, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let (provider, ended, done) = (Arc::clone(&provider), Arc::clone(&ended), Arc::clone(&done));
            tokio::spawn(async move {
                for number in 0.. {
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                    work(&*provider, format!("{worker}-{number}")).await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for version in 1..=4 {
        let seen = done.load(Ordering::Relaxed);
        bring(server.url(), schema.name(), &rewritten(version)).await.unwrap();
        while done.load(Ordering::Relaxed) < seen + 8 && !workers.iter().any(|worker| worker.is_finished()) {
            tokio::task::yield_now().await;
        }
    }
    ended.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    // A process of the version before that starts now leaves the functions alone, and works with them.
    let previous = PostgresProvider::new_with_schema(server.url(), Some(schema.name())).await.unwrap();
    work(&previous, "previous".to_owned()).await;
    let pending = PostgresProvider::pending_migrations(server.url(), schema.name()).await.unwrap();
    assert!(pending.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_had_looked_up_the_older_form_finds_the_new_one() {
    let (server, schema) = (server(), server().schema("looked_up"));
    bring(server.url(), schema.name(), &build(1, &FIRST)).await.unwrap();
    let (gate, watch) = (connect(server.url()).await, connect(server.url()).await);
    execute(&gate, "CREATE TABLE {name}.gate (one INT); INSERT INTO {name}.gate VALUES (1)", schema.name())
        .await;
    execute(&gate, "BEGIN; LOCK TABLE {name}.gate", schema.name()).await;
    let db = db(server.url(), schema.name(), &plan());
    // The function is looked up first; then the call waits at the gate, still without having called it.
    let asked = tokio::spawn(async move {
        let rows = db.rows("double", Statement::of(CALL_AT_GATE, params![21_i64])).await.unwrap();
        column::<i64>("double", &rows[0], "doubled").unwrap()
    });
    while number(
        &watch,
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{name}.gate'::regclass",
        schema.name(),
    )
    .await
        == 0
    {
        assert!(!asked.is_finished());
    }
    bring(server.url(), schema.name(), &build(2, &GROWN)).await.unwrap();
    execute(&gate, "COMMIT", schema.name()).await;
    assert_eq!(asked.await.unwrap(), 42);
}

/// The oid of the function.
const OID: &str = "
    SELECT p.oid::bigint FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = '{name}' AND p.proname = 'doubled'";

#[tokio::test]
async fn a_function_with_the_same_parameters_keeps_its_place() {
    let (server, schema) = (server(), server().schema("place"));
    let client = connect(server.url()).await;
    bring(server.url(), schema.name(), &build(1, &FIRST)).await.unwrap();
    let before = number(&client, OID, schema.name()).await;
    bring(server.url(), schema.name(), &build(2, &REWRITTEN)).await.unwrap();
    assert_eq!(number(&client, OID, schema.name()).await, before);
}

#[tokio::test]
async fn a_function_with_more_parameters_takes_the_place_of_the_older_form() {
    let (server, schema) = (server(), server().schema("grown"));
    let client = connect(server.url()).await;
    bring(server.url(), schema.name(), &build(1, &FIRST)).await.unwrap();
    execute(
        &client,
        "CREATE FUNCTION {name}.doubled(theirs TEXT) RETURNS TEXT LANGUAGE sql AS
             'SELECT theirs || theirs'",
        schema.name(),
    )
    .await;
    bring(server.url(), schema.name(), &build(2, &GROWN)).await.unwrap();
    // Ours, and a function of the same name that was added by hand.
    assert_eq!(
        number(
            &client,
            "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
             WHERE n.nspname = '{name}' AND p.proname = 'doubled'",
            schema.name()
        )
        .await,
        2
    );
    assert_eq!(call(&db(server.url(), schema.name(), &plan())).await, 42);
}

#[tokio::test]
async fn an_older_version_leaves_alone_what_a_newer_one_made() {
    let (server, schema) = (server(), server().schema("older"));
    let client = connect(server.url()).await;
    bring(server.url(), schema.name(), &build(2, &GROWN)).await.unwrap();
    let made = number(&client, OID, schema.name()).await;
    bring(server.url(), schema.name(), &build(1, &FIRST)).await.unwrap();
    assert_eq!(number(&client, OID, schema.name()).await, made);
    bring(server.url(), schema.name(), &build(3, &FIRST)).await.unwrap();
    assert_eq!(call(&db(server.url(), schema.name(), &plan())).await, 42);
}

#[tokio::test]
async fn a_function_that_cannot_be_made_is_named_and_nothing_is_left() {
    let (server, schema) = (server(), server().schema("broken"));
    let client = connect(server.url()).await;
    for broken in [&BROKEN, &MISNAMED] {
        let error = bring(server.url(), schema.name(), &build(1, broken)).await.unwrap_err();
        assert!(matches!(&error, OpenError::Migration { step, .. } if step == "function doubled"), "{error}");
        assert_eq!(
            number(&client, "SELECT count(*) FROM pg_namespace WHERE nspname = '{name}'", schema.name())
                .await,
            0
        );
    }
    bring(server.url(), schema.name(), &build(1, &FIRST)).await.unwrap();
    assert!(bring(server.url(), schema.name(), &build(2, &BROKEN)).await.is_err());
    assert_eq!(call(&db(server.url(), schema.name(), &plan())).await, 42);
}

#[tokio::test]
async fn a_function_that_somebody_dropped_is_made_again() {
    let (server, schema) = (server(), server().schema("dropped"));
    let client = connect(server.url()).await;
    bring(server.url(), schema.name(), &build(1, &FIRST)).await.unwrap();
    execute(&client, "DROP FUNCTION {name}.doubled", schema.name()).await;
    bring(server.url(), schema.name(), &build(1, &FIRST)).await.unwrap();
    assert_eq!(call(&db(server.url(), schema.name(), &plan())).await, 42);
}

#[test]
fn each_function_of_this_build_has_a_name_of_its_own() {
    let mut names = Build::this().functions();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
