//! Short words for common steps.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use steadfast_clock::{Clock, SystemClock};
use steadfast_core::{Event, EventKind, ExecutionMetadata, TagFilter, WorkItem};
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{
    Abandon, Attempt, Cold, ListedHandler, NeededHandler, NewWork, Refusal, TurnRequest, WorkRequest,
    WorkerId, WorkerProcess, WorkerReport, WorkerSlots,
};
use tempfile::TempDir;

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A folder that is removed at the end, and the path of a store in it.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store.db");
    (folder, path)
}

pub(crate) async fn open(path: &Path, options: SqliteOptions) -> Arc<SqliteProvider> {
    let url = format!("sqlite:{}", path.display());
    Arc::new(SqliteProvider::new(&url, Some(options)).await.expect("the store opens"))
}

/// A connection beside the store.
pub(crate) fn raw(path: &Path) -> Connection {
    Connection::open(path).expect("the file opens")
}

pub(crate) fn assert_sound(path: &Path) {
    let found: String =
        raw(path).query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("the file can be checked");
    assert_eq!(found, "ok");
}

pub(crate) fn start(instance: &str) -> WorkItem {
    start_with(instance, String::new())
}

pub(crate) fn start_with(instance: &str, input: String) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: "Chain".into(),
        input,
        version: Some("1.0.0".into()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

pub(crate) fn activity(instance: &str, id: u64, session: Option<&str>, tag: Option<&str>) -> NewWork {
    NewWork::from(WorkItem::ActivityExecute {
        instance: instance.into(),
        execution_id: 1,
        id,
        name: "Step".into(),
        input: String::new(),
        session_id: session.map(str::to_owned),
        tag: tag.map(str::to_owned),
    })
}

pub(crate) fn completion(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted { instance: instance.into(), execution_id: 1, id, result: "done".into() }
}

pub(crate) fn event(instance: &str, id: u64, source: Option<u64>, kind: EventKind) -> Event {
    Event::at(1_700_000_000_000, id, instance, 1, source, kind)
}

pub(crate) fn started() -> EventKind {
    EventKind::OrchestrationStarted {
        name: "Chain".into(),
        version: "1.0.0".into(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

pub(crate) fn scheduled() -> EventKind {
    EventKind::ActivityScheduled { name: "Step".into(), input: String::new(), session_id: None, tag: None }
}

pub(crate) fn named(status: &str) -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Chain".into()),
        orchestration_version: Some("1.0.0".into()),
        status: Some(status.into()),
        ..ExecutionMetadata::default()
    }
}

pub(crate) fn turn_request(lock_timeout: Duration, poll_timeout: Duration) -> TurnRequest<'static> {
    TurnRequest { lock_timeout, poll_timeout, filter: None, warm: &Cold, worker: None }
}

pub(crate) fn work_request(poll_timeout: Duration, tags: TagFilter) -> WorkRequest {
    WorkRequest {
        worker_id: "worker".into(),
        lock_timeout: LONG,
        poll_timeout,
        tags,
        session: None,
        worker: None,
    }
}

/// A report of a worker that has the orchestration and the activity of these tests, or none.
pub(crate) fn worker(id: &str, is_capable: bool) -> WorkerReport {
    let listed = |name: &str, versions: Vec<String>| -> Vec<ListedHandler> {
        is_capable.then(|| ListedHandler { name: name.into(), versions }).into_iter().collect()
    };
    WorkerReport {
        id: WorkerId(id.into()),
        process: WorkerProcess::default(),
        orchestrations: listed("Chain", vec!["1.0.0".into()]),
        activities: listed("Step", Vec::new()),
        tags: TagFilter::Any,
        serves_sessions: true,
        engines: None,
        takes_unlisted: false,
        slots: WorkerSlots::default(),
        sessions: 0,
        is_stopped: false,
    }
}

/// A refusal of a worker that lacks the handler.
pub(crate) fn refusal(name: &str, retry_after: Option<Duration>) -> Refusal {
    Refusal {
        handler: NeededHandler { name: name.into(), version: None },
        if_unlisted: Abandon { retry_after, attempt: Attempt::Uncounted },
    }
}

/// Waits in real time until a condition holds: threads and processes do not follow a virtual clock.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = SystemClock.monotonic() + LONG;
    while !holds() {
        assert!(SystemClock.monotonic() < deadline, "{what}: waited too long");
        SystemClock.sleep(Duration::from_millis(2)).await;
    }
}

/// Reads a number from the environment, for longer runs by hand.
pub(crate) fn asked(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
