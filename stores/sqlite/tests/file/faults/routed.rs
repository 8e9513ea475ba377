//! G5, G40: work that a worker of another process refused is found by a waiting worker that has its code.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock, VirtualClock};
use steadfast_core::TagFilter;
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{
    Refused, Store, TurnRequest, WORKER_LIVE_FOR, WaitFor, WorkLease, WorkRequest, WorkerId, WorkerReport,
};
use tokio::task::JoinHandle;

use crate::stage::{LONG, activity, open, place, refusal, start, turn_request, until, work_request, worker};

const SOON: Duration = Duration::from_secs(8);

fn work_of(id: &str, poll: Duration) -> WorkRequest {
    WorkRequest { worker: Some(WorkerId(id.into())), ..work_request(poll, TagFilter::DefaultOnly) }
}

fn waits_for_work(store: &Arc<SqliteProvider>, id: &'static str) -> JoinHandle<Option<WorkLease>> {
    let store = Arc::clone(store);
    tokio::spawn(async move { store.fetch_work(work_of(id, 10 * LONG)).await.expect("it fetches") })
}

#[tokio::test]
async fn g40_work_that_another_process_refused_wakes_the_worker_that_has_its_code() {
    let (_folder, path) = place();
    let mine = open(&path, SqliteOptions::default()).await;
    let theirs = open(&path, SqliteOptions::default()).await;
    mine.report_worker(&worker("new", true)).await.expect("it reports");
    theirs.report_worker(&worker("old", false)).await.expect("it reports");
    theirs.enqueue_work(activity("a", 1, None, None)).await.expect("it is queued");
    let lease =
        theirs.fetch_work(work_of("old", Duration::ZERO)).await.expect("it fetches").expect("a lease");
    let waits = waits_for_work(&mine, "new");
    // Until the fetch waits, and the looks at the other process have found nothing.
    SystemClock.sleep(Duration::from_millis(500)).await;
    let refused = theirs.refuse(&lease.token, refusal("Step", None)).await.expect("it is refused");
    assert_eq!(refused, Refused::Routed);
    let found = tokio::time::timeout(SOON, waits).await.expect("it is woken").expect("it returns");
    assert!(found.is_some());
}

#[tokio::test]
async fn g40_a_turn_that_another_process_refused_wakes_the_one_of_two_runtimes_that_has_its_code() {
    let (_folder, path) = place();
    let mine = open(&path, SqliteOptions::default()).await;
    let theirs = open(&path, SqliteOptions::default()).await;
    mine.report_worker(&worker("new", true)).await.expect("it reports");
    mine.report_worker(&worker("old2", false)).await.expect("it reports");
    theirs.report_worker(&worker("old", false)).await.expect("it reports");
    theirs.start(start("a").into(), Vec::new()).await.expect("it is started");
    let fetch = |store: &Arc<SqliteProvider>, id: &str, poll| {
        let (store, id) = (Arc::clone(store), WorkerId(id.into()));
        async move {
            let request = TurnRequest { worker: Some(&id), ..turn_request(LONG, poll) };
            store.fetch_turn(request).await.expect("it fetches")
        }
    };
    let lease = fetch(&theirs, "old", Duration::ZERO).await.expect("a lease");
    let _waits_longer = tokio::spawn(fetch(&mine, "old2", LONG));
    SystemClock.sleep(Duration::from_millis(200)).await;
    let waits = tokio::spawn(fetch(&mine, "new", LONG));
    SystemClock.sleep(Duration::from_millis(500)).await;
    let refused = theirs.refuse(&lease.token, refusal("Chain", None)).await.expect("it is refused");
    assert_eq!(refused, Refused::Routed);
    let found = tokio::time::timeout(SOON, waits).await.expect("it is woken").expect("it returns");
    assert!(found.is_some());
}

/// Two stores on one file and one clock; the work of the second is left to a worker that then falls silent.
struct Silence {
    _folder: tempfile::TempDir,
    clock: VirtualClock,
    mine: Arc<SqliteProvider>,
    theirs: Arc<SqliteProvider>,
    /// The statements and the commits of the first.
    counted: [Arc<AtomicU64>; 2],
}

impl Silence {
    async fn of_a_worker() -> Self {
        let ((folder, path), clock) = (place(), VirtualClock::new(1_700_000_000_000));
        let counted = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
        let options = SqliteOptions { clock: Arc::new(clock.clone()), ..SqliteOptions::default() };
        let counting = SqliteOptions {
            count_statements: Some(Arc::clone(&counted[0])),
            count_commits: Some(Arc::clone(&counted[1])),
            ..options.clone()
        };
        let (mine, theirs) = (open(&path, counting).await, open(&path, options).await);
        let takes_unlisted = WorkerReport { takes_unlisted: true, ..worker("old", false) };
        theirs.report_worker(&takes_unlisted).await.expect("it reports");
        theirs.report_worker(&worker("new", true)).await.expect("it reports");
        theirs.enqueue_work(activity("a", 1, None, None)).await.expect("it is queued");
        let lease = theirs.fetch_work(work_of("old", Duration::ZERO)).await.expect("it fetches");
        let token = lease.expect("a lease").token;
        theirs.refuse(&token, refusal("Step", None)).await.expect("it is left to the other");
        Self { _folder: folder, clock, mine, theirs, counted }
    }

    /// Lets the worker fall silent, and lets the second store commit a row that concerns no waiting call.
    async fn falls(&self) {
        self.clock.advance(WORKER_LIVE_FOR + Duration::from_secs(1));
        self.theirs.enqueue_work(activity("b", 1, None, Some("other"))).await.expect("it is queued");
    }

    /// Moves the time until the first store has looked at the commits of the second.
    async fn is_seen(&self) {
        let before = self.counted[0].load(Ordering::Relaxed);
        until("the look", || {
            self.clock.advance(Duration::from_millis(25));
            self.counted[0].load(Ordering::Relaxed) > before
        })
        .await;
    }
}

#[tokio::test]
async fn g17_a_look_at_the_commits_of_another_process_writes_nothing() {
    let silence = Silence::of_a_worker().await;
    let mine = Arc::clone(&silence.mine);
    let waits = tokio::spawn(async move { mine.wait(WaitFor::End { instance: "c" }, 2 * LONG).await });
    silence.falls().await;
    let before = silence.counted[1].load(Ordering::Relaxed);
    silence.is_seen().await;
    SystemClock.sleep(Duration::from_millis(100)).await;
    assert_eq!(silence.counted[1].load(Ordering::Relaxed) - before, 0, "commits");
    assert!(!waits.is_finished());
}

#[tokio::test]
async fn g5_work_that_was_left_to_a_silent_worker_wakes_a_waiting_one_that_takes_it() {
    let silence = Silence::of_a_worker().await;
    let waits = waits_for_work(&silence.mine, "old");
    silence.is_seen().await;
    assert!(!waits.is_finished(), "it is left to the other");
    silence.falls().await;
    until("it is taken", || {
        silence.clock.advance(Duration::from_millis(1));
        waits.is_finished()
    })
    .await;
    assert!(waits.await.expect("it returns").is_some());
}
