//! A server that restarts or is slow while a store uses it.

use std::time::Duration;

use steadfast_cluster::Server;
use steadfast_store::ProviderErrorKind;

use super::{connect, db, execute, number, plan, server};
use crate::link::db::Db;
use crate::link::lanes::CallLane;
use crate::link::options::PostgresPlan;
use crate::link::statement::{Statement, params};

async fn ask(db: &Db) -> Result<(), steadfast_store::ProviderError> {
    db.rows("ask", Statement::of("SELECT 1", params![])).await.map(drop)
}

/// Fails if something takes more than a minute.
async fn timely(waiting: impl Future<Output = ()>) {
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("in time");
}

/// Asks until it is answered. The server does not know the clock of a test, so this waits in real time.
async fn ask_until_answered(db: &Db) {
    for _ in 0..600 {
        if ask(db).await.is_ok() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "a server of the machine does not know a told clock")]
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_is_unavailable_until_it_is_back_and_nothing_is_lost() {
    let server = Server::durable().unwrap();
    let admin = connect(server.url()).await;
    execute(&admin, "CREATE TABLE {name}.written (number BIGINT PRIMARY KEY)", "public").await;
    let db = db(server.url(), "public", &plan());
    let writer = {
        let db = db.clone();
        // What was acknowledged must be there; what was not may be.
        tokio::spawn(async move {
            let (mut acknowledged, mut unavailable) = (Vec::new(), 0);
            for number in 0_i64.. {
                let insert = "INSERT INTO {schema}.written (number) VALUES ($1)";
                match db.rows("write", Statement::of(insert, params![number])).await {
                    Ok(_) => acknowledged.push(number),
                    Err(error) => {
                        assert_eq!(error.kind, ProviderErrorKind::Unavailable, "{error}");
                        assert!(error.is_retryable());
                        unavailable += 1;
                    }
                }
                if unavailable > 0 && acknowledged.last() == Some(&number) {
                    break;
                }
            }
            (acknowledged, unavailable)
        })
    };
    timely(async { while number(&admin, "SELECT count(*) FROM {name}.written", "public").await < 50 {} })
        .await;
    server.stop_immediately().unwrap();
    assert_eq!(ask(&db).await.unwrap_err().kind, ProviderErrorKind::Unavailable);
    server.start_again().unwrap();
    let (acknowledged, unavailable) = writer.await.unwrap();
    assert!(unavailable > 0);
    let admin = connect(server.url()).await;
    let missing = admin
        .query(
            "SELECT n FROM unnest($1::bigint[]) AS n WHERE n NOT IN (SELECT number FROM public.written)",
            &[&acknowledged],
        )
        .await
        .unwrap();
    let missing: Vec<i64> = missing.iter().map(|row| row.get(0)).collect();
    assert!(missing.is_empty(), "acknowledged and lost: {missing:?}");
    ask_until_answered(&db).await;
}

/// Runs for ten minutes. The comment makes the statement findable in `pg_stat_activity`.
const SLEEP: &str = "
    -- Asked in {schema}.
    SELECT pg_sleep(600) AS sleeper";

#[tokio::test]
async fn a_connection_that_is_ended_is_replaced_by_the_next_call() {
    let db = db(server().url(), "ended", &plan());
    ask(&db).await.unwrap();
    let asking = db.rows("sleep", Statement::of(SLEEP, params![]));
    let ending = async {
        let admin = connect(server().url()).await;
        timely(async {
            while number(
                &admin,
                r#"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE query LIKE '%Asked in "{name}"%' AND application_name = 'steadfast' AND state =
                       'active'"#,
                "ended",
            )
            .await
                == 0
            {}
        })
        .await;
    };
    let (asked, ()) = tokio::join!(asking, ending);
    let error = asked.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Unavailable, "{error}");
    ask(&db).await.unwrap();
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_ended_by_the_server() {
    let plan = PostgresPlan { statement_timeout: Duration::from_millis(100), ..plan() };
    let db = db(server().url(), "slow", &plan);
    let error = db.rows("sleep", Statement::of(SLEEP, params![])).await.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Busy, "{error}");
    assert!(
        error.to_string().contains("57014") && error.to_string().contains("statement_timeout"),
        "{error}"
    );
    ask(&db).await.unwrap();
}

/// Counts the statements of one application that are running.
const RUNNING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}' AND state = 'active'";

#[tokio::test]
async fn a_statement_that_no_server_ends_is_given_up_and_cancelled() {
    // As through a pooler: the server has no statement timeout.
    let url = format!("{}?options=-c%20statement_timeout%3D0&application_name=given_up", server().url());
    let plan = PostgresPlan { statement_timeout: Duration::from_millis(100), max_connections: 1, ..plan() };
    let db = db(&url, "given_up", &plan);
    let error = db.rows("sleep", Statement::of(SLEEP, params![])).await.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("may have happened or not"), "{error}");
    let admin = connect(server().url()).await;
    timely(async { while number(&admin, RUNNING, "given_up").await > 0 {} }).await;
    ask(&db).await.unwrap();
}

#[tokio::test]
async fn a_statement_that_nobody_waits_for_is_cancelled_and_holds_up_nobody() {
    let url = format!("{}?application_name=left", server().url());
    // The server does not end it within this test.
    let plan = PostgresPlan { statement_timeout: Duration::from_secs(600), max_connections: 1, ..plan() };
    let db = db(&url, "left", &plan);
    let left = {
        let db = db.clone();
        tokio::spawn(async move { db.rows("sleep", Statement::of(SLEEP, params![])).await.map(drop) })
    };
    let admin = connect(server().url()).await;
    timely(async { while number(&admin, RUNNING, "left").await == 0 {} }).await;
    left.abort();
    // On the same connection it would wait for the other statement.
    timely(async { ask(&db).await.unwrap() }).await;
    timely(async { while number(&admin, RUNNING, "left").await > 0 {} }).await;
}

#[tokio::test]
async fn a_pool_whose_connections_are_all_in_use_says_so() {
    let plan = PostgresPlan { connect_timeout: Duration::from_millis(500), max_connections: 1, ..plan() };
    let db = db(server().url(), "busy", &plan);
    let held = db.lanes.of(CallLane::Other).get().await.unwrap();
    let error = ask(&db).await.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Busy, "{error}");
    assert!(error.to_string().contains("raise max_connections"), "{error}");
    drop(held);
    ask(&db).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_came_to_only_read_is_not_used_again() {
    let url = format!("{}?options=-c%20default_transaction_read_only%3Don", server().url());
    let plan = PostgresPlan { max_connections: 1, ..plan() };
    let db = db(&url, "public", &plan);
    ask(&db).await.unwrap();
    assert_eq!(db.lanes.of(CallLane::Other).status().size, 1);
    let create = "CREATE TABLE {schema}.never_made (number BIGINT)";
    let error = db.rows("write", Statement::of(create, params![])).await.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("connect to the primary"), "{error}");
    assert_eq!(db.lanes.of(CallLane::Other).status().size, 0);
}
