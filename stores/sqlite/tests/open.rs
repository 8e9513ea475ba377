//! Opening a store: what works, and which error each mistake gives.

#![allow(clippy::expect_used, reason = "what a test relies on, it panics without")]

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use steadfast_clock::Clock;
use steadfast_conformance::{BoxError, Subject, async_trait};
use steadfast_core::{Event, EventKind, WorkItem};
use steadfast_sqlite::{Durability, OpenError, SqliteOptions, SqliteProvider};
use steadfast_store::{Provider, ProviderErrorKind, Store};
use tempfile::TempDir;

fn folder() -> TempDir {
    TempDir::new().expect("a folder")
}

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

async fn refusal(path: &Path) -> OpenError {
    SqliteProvider::new(&url(path), None).await.expect_err("the store should not open")
}

fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: "O".into(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

#[tokio::test]
async fn a_missing_file_is_created_and_an_empty_one_is_a_new_database() {
    let folder = folder();
    let path = folder.path().join("app.db");
    std::fs::write(&path, []).expect("an empty file");
    for path in [path, folder.path().join("missing.db")] {
        let store = SqliteProvider::new(&url(&path), None).await.expect("opens");
        store.enqueue_for_orchestrator(start("a"), None).await.expect("writes");
        assert_eq!(Provider::name(&store), "sqlite");
    }
}

#[tokio::test]
async fn written_rows_are_there_when_the_file_is_opened_again() {
    let folder = folder();
    let path = folder.path().join("app.db");
    let store = SqliteProvider::new(&url(&path), None).await.expect("opens");
    store.enqueue_for_orchestrator(start("a"), None).await.expect("writes");
    drop(store);
    let store = SqliteProvider::new(&url(&path), None).await.expect("opens again");
    let depths = store.admin().expect("has an admin").get_queue_depths().await.expect("answers");
    assert_eq!(depths.orchestrator_queue, 1);
}

#[tokio::test]
async fn databases_in_memory_are_separate() {
    let (one, other) = (
        SqliteProvider::new("sqlite::memory:", None).await.expect("opens"),
        SqliteProvider::new_in_memory().await.expect("opens"),
    );
    one.enqueue_for_orchestrator(start("a"), None).await.expect("writes");
    let depths = other.admin().expect("has an admin").get_queue_depths().await.expect("answers");
    assert_eq!(depths.orchestrator_queue, 0);
}

#[tokio::test]
async fn one_file_can_be_opened_twice_at_once() {
    let folder = folder();
    let path = folder.path().join("app.db");
    let url = url(&path);
    let (one, other) = tokio::join!(SqliteProvider::new(&url, None), SqliteProvider::new(&url, None));
    let (one, other) = (one.expect("opens"), other.expect("opens"));
    one.enqueue_for_orchestrator(start("a"), None).await.expect("writes");
    let depths = other.admin().expect("has an admin").get_queue_depths().await.expect("answers");
    assert_eq!(depths.orchestrator_queue, 1);
}

#[tokio::test]
async fn a_url_that_names_no_place_says_which_do() {
    for bad in ["", "app.db", "sqlite:", "postgres://x", "sqlite:a\0b"] {
        let error = SqliteProvider::new(bad, None).await.expect_err("no URL");
        assert!(matches!(error, OpenError::Url { .. }), "{bad:?}: {error}");
        assert!(error.to_string().contains("sqlite::memory:"), "{error}");
    }
}

#[tokio::test]
async fn a_missing_folder_is_named() {
    let folder = folder();
    let error = refusal(&folder.path().join("no/such/app.db")).await;
    assert!(
        matches!(&error, OpenError::MissingFolder { folder: missing } if missing.ends_with("no/such")),
        "{error}"
    );
}

#[tokio::test]
async fn a_folder_is_no_file() {
    let folder = folder();
    assert!(matches!(refusal(folder.path()).await, OpenError::IsFolder { .. }));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_was() {
    let folder = folder();
    let path = folder.path().join("notes.txt");
    let notes = "these are notes, and many of them. ".repeat(100);
    std::fs::write(&path, &notes).expect("a file");
    assert!(matches!(refusal(&path).await, OpenError::NotADatabase { .. }));
    assert_eq!(std::fs::read_to_string(&path).expect("still a file"), notes);
}

#[tokio::test]
async fn the_tables_of_another_program_are_refused() {
    let folder = folder();
    let path = folder.path().join("app.db");
    Connection::open(&path)
        .expect("a file")
        .execute_batch("CREATE TABLE users (id INTEGER)")
        .expect("a table");
    let error = refusal(&path).await;
    assert!(matches!(&error, OpenError::Foreign { found, .. } if found == "users"), "{error}");
}

#[tokio::test]
async fn a_database_of_duroxide_is_refused_with_the_way_to_move() {
    let folder = folder();
    let path = folder.path().join("app.db");
    let tables =
        "CREATE TABLE orchestrator_queue (id); CREATE TABLE worker_queue (id); CREATE TABLE history (id);";
    Connection::open(&path).expect("a file").execute_batch(tables).expect("tables");
    let error = refusal(&path).await;
    assert!(matches!(error, OpenError::Duroxide { .. }), "{error}");
    assert!(error.to_string().contains("import_history"), "{error}");
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_both_versions() {
    let folder = folder();
    let path = folder.path().join("app.db");
    drop(SqliteProvider::new(&url(&path), None).await.expect("opens"));
    let newer = "INSERT INTO steadfast_migrations (version, hash) VALUES (99, 'from the future')";
    Connection::open(&path).expect("a file").execute_batch(newer).expect("a row");
    let error = refusal(&path).await;
    assert!(matches!(error, OpenError::TooNew { found: 99, .. }), "{error}");
    let known = Connection::open(&path)
        .expect("a file")
        .query_row("SELECT count(*) - 1 FROM steadfast_migrations", [], |row| row.get::<_, i64>(0))
        .expect("the versions that were applied");
    assert!(
        error.to_string().contains(&format!("99, and this build knows versions up to {known}")),
        "{error}"
    );
}

/// Makes a file one of the first schema version, with the rows that it has.
fn make_older(path: &Path) {
    let newer = path.with_extension("newer");
    std::fs::rename(path, &newer).expect("the file is closed");
    let older = Connection::open(path).expect("a file");
    older.execute_batch(include_str!("../sql/schema/ledger.sql")).expect("the ledger");
    older.execute_batch(include_str!("../sql/migrations/0001_tables.sql")).expect("the first schema");
    older.execute("ATTACH ?1 AS newer", [newer.to_str()]).expect("the newer file");
    let names = |sql: &str| -> Vec<String> {
        let mut statement = older.prepare(sql).expect("a statement");
        let rows = statement.query_map([], |row| row.get(0)).expect("names");
        rows.collect::<Result<_, _>>().expect("names")
    };
    for table in
        names("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    {
        let columns = names(&format!("SELECT name FROM pragma_table_info('{table}', 'main')")).join(", ");
        let only = if table == "steadfast_migrations" { "WHERE version = 1" } else { "" };
        let copy = format!(
            "DELETE FROM main.{table};
             INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table} {only}"
        );
        older.execute_batch(&copy).expect("the rows");
    }
}

#[tokio::test]
async fn what_waits_in_a_file_of_an_older_schema_is_known_after_it_was_opened() {
    let folder = folder();
    let path = folder.path().join("app.db");
    let store = SqliteProvider::new(&url(&path), None).await.expect("opens");
    store.enqueue_for_orchestrator(start("a"), None).await.expect("writes");
    for (id, session_id) in [(1, None), (2, Some("s".to_owned()))] {
        let (instance, name, input) = ("a".to_owned(), "Activity".to_owned(), String::new());
        let work =
            WorkItem::ActivityExecute { instance, execution_id: 1, id, name, input, session_id, tag: None };
        store.enqueue_for_worker(work).await.expect("writes");
    }
    let before = store.oldest_waiting().await.expect("tells");
    assert!(before.message_ms.is_some() && before.work_ms.is_some());
    drop(store);
    make_older(&path);
    let store = SqliteProvider::new(&url(&path), None).await.expect("opens");
    let after = store.oldest_waiting().await.expect("tells");
    assert_eq!((after.message_ms, after.work_ms), (before.message_ms, before.work_ms));
}

#[tokio::test]
async fn a_migration_that_was_changed_is_refused() {
    let folder = folder();
    let path = folder.path().join("app.db");
    drop(SqliteProvider::new(&url(&path), None).await.expect("opens"));
    let changed = "UPDATE steadfast_migrations SET hash = 'other' WHERE version = 1";
    Connection::open(&path).expect("a file").execute_batch(changed).expect("a row");
    assert!(matches!(refusal(&path).await, OpenError::Changed { version: 1, .. }));
}

#[tokio::test]
async fn the_log_is_written_ahead_and_the_file_says_so() {
    let folder = folder();
    let path = folder.path().join("app.db");
    for durability in [Durability::PowerLoss, Durability::ProcessCrash] {
        let options = SqliteOptions { durability, ..SqliteOptions::default() };
        let store = SqliteProvider::new(&url(&path), Some(options)).await.expect("opens");
        store.enqueue_for_orchestrator(start("a"), None).await.expect("writes");
        let mode: String = Connection::open(&path)
            .expect("a file")
            .query_row("PRAGMA journal_mode", [], |row| row.get(0))
            .expect("a mode");
        assert_eq!(mode, "wal");
    }
}

#[tokio::test]
async fn a_checkpoint_empties_the_log() {
    let folder = folder();
    let path = folder.path().join("app.db");
    let store = SqliteProvider::new(&url(&path), None).await.expect("opens");
    for n in 0..50 {
        store.enqueue_for_orchestrator(start(&format!("i{n}")), None).await.expect("writes");
    }
    let log = folder.path().join("app.db-wal");
    assert!(std::fs::metadata(&log).expect("a log").len() > 0);
    store.checkpoint().await.expect("checkpoints");
    assert_eq!(std::fs::metadata(&log).expect("a log").len(), 0);
}

#[tokio::test]
async fn an_imported_history_stands_as_it_says() {
    let folder = folder();
    let store = SqliteProvider::new(&url(&folder.path().join("app.db")), None).await.expect("opens");
    let exported = r#"[
        {"event_id":1,"source_event_id":null,"instance_id":"order-1","execution_id":1,
         "timestamp_ms":1700000000000,"duroxide_version":"0.1.32",
         "type":"OrchestrationStarted","name":"Order","version":"1.0.0","input":"{}",
         "parent_instance":null,"parent_id":null},
        {"event_id":2,"source_event_id":null,"instance_id":"order-1","execution_id":1,
         "timestamp_ms":1700000000001,"duroxide_version":"0.1.32",
         "type":"KeyValueSet","key":"k","value":"v","last_updated_at_ms":5},
        {"event_id":3,"source_event_id":null,"instance_id":"order-1","execution_id":1,
         "timestamp_ms":1700000000002,"duroxide_version":"0.1.32",
         "type":"OrchestrationCompleted","output":"shipped"}
    ]"#;
    store.import_history("order-1", 1, exported).await.expect("imports");
    let info = store.admin().expect("has an admin").get_instance_info("order-1").await.expect("is there");
    assert_eq!((info.status.as_str(), info.output.as_deref()), ("Completed", Some("shipped")));
    assert_eq!(store.kv_value("order-1", "k").await.expect("answers").as_deref(), Some("v"));
    let events: Vec<Event> = Store::read_history(&store, "order-1", None).await.expect("reads");
    assert!(matches!(events.last().map(|event| &event.kind), Some(EventKind::OrchestrationCompleted { .. })));

    let again = store.import_history("order-1", 1, exported).await.expect_err("is here already");
    assert_eq!(again.kind, ProviderErrorKind::Conflict);
    for bad in ["", "{}", "[]", r#"[{"event_id":1}]"#] {
        let error = store.import_history("x", 1, bad).await.expect_err("is no history");
        assert_eq!(error.kind, ProviderErrorKind::Invalid, "{error}");
    }
}

#[tokio::test]
async fn a_dump_names_what_is_there() {
    let store = SqliteProvider::new_in_memory().await.expect("opens");
    store.enqueue_for_orchestrator(start("order-1"), None).await.expect("writes");
    let dump = store.debug_dump().await;
    assert!(dump.contains("messages: 1") && dump.contains("to order-1"), "{dump}");
}

/// A copy made by SQLite's own backup while the store is written to is a sound store.
#[tokio::test]
async fn a_copy_made_while_running_is_a_store() {
    let folder = folder();
    let (path, copy) = (folder.path().join("app.db"), folder.path().join("copy.db"));
    let store = Arc::new(SqliteProvider::new(&url(&path), None).await.expect("opens"));
    let writing = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for n in 0..200 {
                store.enqueue_for_orchestrator(start(&format!("i{n}")), None).await.expect("writes");
            }
        }
    });
    let vacuum = format!("VACUUM INTO '{}'", copy.display());
    Connection::open(&path).expect("a file").execute_batch(&vacuum).expect("a copy");
    writing.await.expect("writes");
    let copied = SqliteProvider::new(&url(&copy), None).await.expect("the copy opens");
    let depths = copied.admin().expect("has an admin").get_queue_depths().await.expect("answers");
    assert!(depths.orchestrator_queue <= 200);
}

/// Databases in memory, where there is no log and no second connection: reads go through the writer.
struct InMemory;

#[async_trait]
impl Subject for InMemory {
    fn name(&self) -> &str {
        "sqlite::memory:"
    }

    async fn open(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>, BoxError> {
        let options = SqliteOptions { clock, ..SqliteOptions::default() };
        Ok(Arc::new(SqliteProvider::new("sqlite::memory:", Some(options)).await?))
    }
}

#[test]
fn a_database_in_memory_keeps_the_contract_too() {
    let subject: Arc<dyn Subject> = Arc::new(InMemory);
    let report = steadfast_conformance::prove(&subject, |_| true);
    assert!(report.is_kept(), "{report}");
}
