//! A wait for the end of an instance reads its row when it begins and when the instance has ended, not at
//! every commit.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use steadfast_core::{EventKind, ExecutionMetadata, WorkItem};
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{ExecutionState, Store, TurnCommit, WaitFor, Waited};
use tokio::task::JoinHandle;

use crate::stage::{LONG, event, named, open, place, start, started, turn_request, until};

struct Counted {
    _folder: Option<tempfile::TempDir>,
    store: Arc<SqliteProvider>,
    statements: Arc<AtomicU64>,
}

impl Counted {
    async fn open() -> Self {
        let (folder, path) = place();
        Self { _folder: Some(folder), ..Self::at(&path).await }
    }

    async fn at(path: &Path) -> Self {
        let statements = Arc::new(AtomicU64::new(0));
        let count_statements = Some(Arc::clone(&statements));
        let store = open(path, SqliteOptions { count_statements, ..SqliteOptions::default() }).await;
        Self { _folder: None, store, statements }
    }

    fn count(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    async fn turn(&self, commit: TurnCommit) {
        let lease = self.store.fetch_turn(turn_request(LONG, LONG)).await.expect("it fetches");
        let token = lease.expect("an instance is ready").token;
        let commit = TurnCommit { execution_id: 1, ..commit };
        self.store.commit_turn(&token, commit).await.expect("it is committed");
    }

    async fn poke(&self) {
        let (instance, name, data) = ("a".to_owned(), "poke".to_owned(), String::new());
        let poke = WorkItem::ExternalRaised { instance, name, data };
        self.store.send(vec![poke.into()]).await.expect("it is sent");
    }

    /// Begins a wait for the end, and returns when it waits.
    async fn park(&self) -> JoinHandle<Waited> {
        let (store, before) = (Arc::clone(&self.store), self.count());
        let wait = async move { store.wait(WaitFor::End { instance: "a" }, LONG).await.expect("it waits") };
        let wait = tokio::spawn(wait);
        until("the wait looks", || self.count() > before).await;
        wait
    }

    /// Counts the statements of an instance with so many turns between its first and its last, while so many
    /// calls wait for its end.
    async fn statements(&self, turns: u64, waits: usize) -> u64 {
        let before = self.count();
        self.store.start(start("a").into(), Vec::new()).await.expect("it is started");
        let begun = TurnCommit {
            events: vec![event("a", 1, None, started())],
            metadata: named("Running"),
            ..TurnCommit::default()
        };
        self.turn(begun).await;
        let mut waiting = Vec::new();
        for _ in 0..waits {
            waiting.push(self.park().await);
        }
        for turn in 0..turns {
            self.poke().await;
            let note = EventKind::CustomStatusUpdated { status: Some(turn.to_string()) };
            let events = vec![event("a", 2 + turn, None, note)];
            self.turn(TurnCommit { events, ..TurnCommit::default() }).await;
        }
        assert!(waiting.iter().all(|wait| !wait.is_finished()), "it has not ended");
        self.poke().await;
        let output = EventKind::OrchestrationCompleted { output: "done".to_owned() };
        let metadata = ExecutionMetadata { output: Some("done".to_owned()), ..named("Completed") };
        let events = vec![event("a", 2 + turns, None, output)];
        self.turn(TurnCommit { events, metadata, ..TurnCommit::default() }).await;
        for wait in waiting {
            has_ended(wait).await;
        }
        self.count() - before
    }
}

/// Returns how many looks at the instance so many waits cost, beside the statements of the instance itself.
async fn looks(turns: u64, waits: usize) -> u64 {
    let alone = Counted::open().await;
    let usual = alone.statements(turns, 0).await;
    let before = alone.count();
    alone.store.state("a").await.expect("it answers");
    let look = alone.count() - before;
    (Counted::open().await.statements(turns, waits).await - usual) / look
}

#[tokio::test]
async fn the_turns_of_an_instance_cost_those_nothing_who_wait_for_its_end() {
    // A look when it sits down and one at the end.
    assert_eq!(looks(3, 4).await, 2 * 4);
    assert_eq!(looks(30, 4).await, 2 * 4);
}

#[tokio::test]
async fn an_imported_history_that_has_ended_ends_the_wait() {
    let counted = Counted::open().await;
    let wait = counted.park().await;
    let output = EventKind::OrchestrationCompleted { output: "done".to_owned() };
    let events = [event("a", 1, None, started()), event("a", 2, None, output)];
    let text = serde_json::to_string(&events).expect("events have a text");
    counted.store.import_history("a", 1, &text).await.expect("it is imported");
    has_ended(wait).await;
}

#[tokio::test]
async fn the_end_of_an_instance_in_another_process_ends_the_wait() {
    let (_folder, path) = place();
    let [mine, theirs] = [Counted::at(&path).await, Counted::at(&path).await];
    let wait = mine.park().await;
    theirs.statements(3, 0).await;
    has_ended(wait).await;
}

async fn has_ended(wait: JoinHandle<Waited>) {
    let waited = tokio::time::timeout(LONG / 2, wait).await.expect("it is woken").expect("it returns");
    let Waited::Seen(Some(end)) = waited else { panic!("it says what it saw: {waited:?}") };
    assert_eq!(end.status, ExecutionState::Completed("done".to_owned()));
}
