//! A store whose fetches wait runs no statement but the look at the data version; a commit wakes only the
//! fetches that it concerns.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use steadfast_core::TagFilter;
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{Envelope, NewWork, Store, TurnLease, WorkLease};
use tokio::task::JoinHandle;

use crate::stage::{LONG, activity, open, place, start, turn_request, work_request};

struct Counted {
    _folder: tempfile::TempDir,
    store: Arc<SqliteProvider>,
    statements: Arc<AtomicU64>,
}

impl Counted {
    async fn open() -> Self {
        let (folder, path) = place();
        let statements = Arc::new(AtomicU64::new(0));
        let count_statements = Some(Arc::clone(&statements));
        let store = open(&path, SqliteOptions { count_statements, ..SqliteOptions::default() }).await;
        Self { _folder: folder, store, statements }
    }

    fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Waits until no statement has run for a while. Idleness shows only in real time.
    async fn comes_to_rest(&self) {
        let deadline = SystemClock.monotonic() + LONG;
        loop {
            let before = self.statements();
            SystemClock.sleep(Duration::from_millis(400)).await;
            if self.statements() == before {
                return;
            }
            assert!(SystemClock.monotonic() < deadline, "{before} statements, and it goes on");
        }
    }

    /// Counts the statements of queueing an activity and of the fetches that it wakes.
    async fn queueing(&self, work: NewWork) -> u64 {
        let before = self.statements();
        self.store.enqueue_work(work).await.expect("it is queued");
        self.comes_to_rest().await;
        self.statements() - before
    }

    fn park_turn(&self) -> JoinHandle<Option<TurnLease>> {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move { store.fetch_turn(turn_request(LONG, LONG)).await.expect("it fetches") })
    }

    fn park_work(&self, tags: TagFilter) -> JoinHandle<Option<WorkLease>> {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move { store.fetch_work(work_request(LONG, tags)).await.expect("it fetches") })
    }
}

fn only(tag: &str) -> TagFilter {
    TagFilter::Tags(HashSet::from([tag.to_owned()]))
}

#[tokio::test]
async fn waiting_fetches_run_no_statement() {
    let counted = Counted::open().await;
    let _turns: Vec<_> = (0..4).map(|_| counted.park_turn()).collect();
    let _works: Vec<_> = (0..4).map(|_| counted.park_work(TagFilter::DefaultOnly)).collect();
    counted.comes_to_rest().await;
}

#[tokio::test]
async fn work_of_another_tag_wakes_no_fetch() {
    let alone = Counted::open().await;
    let usual = alone.queueing(activity("a", 2, None, Some("other"))).await;

    let counted = Counted::open().await;
    let _turns: Vec<_> = (0..4).map(|_| counted.park_turn()).collect();
    let mine: Vec<_> = (0..4).map(|_| counted.park_work(only("mine"))).collect();
    counted.comes_to_rest().await;
    assert_eq!(counted.queueing(activity("a", 2, None, Some("other"))).await, usual);
    assert!(mine.iter().all(|parked| !parked.is_finished()));

    // One activity of its tag wakes one fetch, and only that one.
    counted.queueing(activity("a", 3, None, Some("mine"))).await;
    assert_eq!(mine.iter().filter(|parked| parked.is_finished()).count(), 1);
    counted.comes_to_rest().await;
}

#[tokio::test]
async fn the_earliest_timer_wakes_a_waiting_fetch_and_nothing_runs_before() {
    let counted = Counted::open().await;
    let parked = counted.park_turn();
    let sent = SystemClock.monotonic();
    for (instance, delay) in [("late", LONG), ("soon", Duration::from_millis(900))] {
        let later = Envelope { delay: Some(delay), ..Envelope::from(start(instance)) };
        counted.store.send(vec![later]).await.expect("it is sent");
    }
    counted.comes_to_rest().await;
    // Without being woken it would find nothing until its time is over.
    let lease = parked.await.expect("it returns").expect("an instance");
    let waited = SystemClock.monotonic() - sent;
    assert_eq!(lease.instance, "soon");
    assert!(waited >= Duration::from_millis(899), "{waited:?}");
}

#[tokio::test]
async fn a_commit_of_this_process_wakes_at_once() {
    // Without a look at the file there is nothing else that could wake it.
    let (_folder, path) = place();
    let store = open(&path, SqliteOptions { other_processes: None, ..SqliteOptions::default() }).await;
    let parked = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.fetch_turn(turn_request(LONG, LONG)).await }
    });
    // The fetch parks in a store with a thread of its own, which cannot be asked whether it has.
    SystemClock.sleep(Duration::from_millis(50)).await;
    store.start(start("a").into(), Vec::new()).await.expect("it is started");
    parked.await.expect("it returns").expect("it fetches").expect("an instance");
}
