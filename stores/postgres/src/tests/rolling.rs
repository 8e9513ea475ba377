//! Upgrades under running workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use semver::Version;
use steadfast_core::{ExecutionMetadata, TagFilter, WorkItem};
use steadfast_store::Provider;

use super::{bring, connect, db, execute, number, plan, server, test_sql};
use crate::link::db::{Db, column};
use crate::link::open::OpenError;
use crate::link::statement::{Statement, params};
use crate::provider::PostgresProvider;
use crate::schema::build::Build;
use crate::schema::functions::Function;

/// The forms of one function in successive versions.
macro_rules! form {
    ($form:literal) => {
        Function { name: "rolling/doubled", text: test_sql!($form) }
    };
}
static FIRST: Function = form!("rolling/first");
static REWRITTEN: Function = form!("rolling/rewritten");
static GROWN: Function = form!("rolling/grown");
static WIDER: Function = form!("rolling/wider");
static BROKEN: Function = form!("rolling/broken");
static MISNAMED: Function = form!("rolling/misnamed");

fn build(version: u64, function: &'static Function) -> Build {
    Build { migrations: Vec::new(), functions: vec![function], version: Version::new(0, version, 0) }
}

/// Calls as the workers of the first version do.
async fn call(db: &Db) -> i64 {
    let rows = db.rows("double", Statement::of(test_sql!("rolling/call"), params![21_i64])).await.unwrap();
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
    execute(&gate, test_sql!("rolling/gate"), schema.name()).await;
    execute(&gate, test_sql!("rolling/close_gate"), schema.name()).await;
    let db = db(server.url(), schema.name(), &plan());
    // The function is looked up first; then the call waits at the gate, still without having called it.
    let asked = tokio::spawn(async move {
        let rows = db
            .rows("double", Statement::of(test_sql!("rolling/call_at_gate"), params![21_i64]))
            .await
            .unwrap();
        column::<i64>("double", &rows[0], "doubled").unwrap()
    });
    while number(&watch, test_sql!("rolling/waiting"), schema.name()).await == 0 {
        assert!(!asked.is_finished());
    }
    bring(server.url(), schema.name(), &build(2, &GROWN)).await.unwrap();
    execute(&gate, test_sql!("rolling/open_gate"), schema.name()).await;
    assert_eq!(asked.await.unwrap(), 42);
}

#[tokio::test]
async fn a_function_with_the_same_parameters_keeps_its_place() {
    let (server, schema) = (server(), server().schema("place"));
    let client = connect(server.url()).await;
    bring(server.url(), schema.name(), &build(1, &FIRST)).await.unwrap();
    let before = number(&client, test_sql!("rolling/place"), schema.name()).await;
    bring(server.url(), schema.name(), &build(2, &REWRITTEN)).await.unwrap();
    assert_eq!(number(&client, test_sql!("rolling/place"), schema.name()).await, before);
}

#[tokio::test]
async fn a_function_with_more_parameters_takes_the_place_of_the_older_form() {
    let (server, schema) = (server(), server().schema("grown"));
    let client = connect(server.url()).await;
    bring(server.url(), schema.name(), &build(1, &FIRST)).await.unwrap();
    execute(&client, test_sql!("rolling/theirs"), schema.name()).await;
    bring(server.url(), schema.name(), &build(2, &GROWN)).await.unwrap();
    // Ours, and a function of the same name that was added by hand.
    assert_eq!(number(&client, test_sql!("rolling/forms"), schema.name()).await, 2);
    assert_eq!(call(&db(server.url(), schema.name(), &plan())).await, 42);
}

#[tokio::test]
async fn an_older_version_leaves_alone_what_a_newer_one_made() {
    let (server, schema) = (server(), server().schema("older"));
    let client = connect(server.url()).await;
    bring(server.url(), schema.name(), &build(2, &GROWN)).await.unwrap();
    let made = number(&client, test_sql!("rolling/place"), schema.name()).await;
    bring(server.url(), schema.name(), &build(1, &FIRST)).await.unwrap();
    assert_eq!(number(&client, test_sql!("rolling/place"), schema.name()).await, made);
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
        assert_eq!(number(&client, test_sql!("schemas"), schema.name()).await, 0);
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
    execute(&client, test_sql!("rolling/drop"), schema.name()).await;
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
