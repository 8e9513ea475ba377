//! Upgrades under running workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use semver::Version;

use super::{bring, connect, db, execute, number, plan, server, test_sql};
use crate::db::{Db, Function, column};
use crate::migrate::Build;
use crate::open::OpenError;
use crate::param::params;

/// The forms of one function, as it grew from version to version.
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
    let rows = db.rows("double", test_sql!("rolling/call"), params![21_i64]).await.unwrap();
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
        let rows = db.rows("double", test_sql!("rolling/call_at_gate"), params![21_i64]).await.unwrap();
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
    // Ours, and a form of the same name that somebody else has added.
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
