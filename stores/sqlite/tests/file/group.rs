//! Requests that wait together are committed together, and a request that fails is rolled back alone.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use steadfast_clock::{Clock, SystemClock};
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{ProviderError, ProviderErrorKind, Started, Store, TurnCommit};
use tokio::task::JoinHandle;

use crate::stage::{LONG, event, named, open, place, raw, start, started, turn_request};

/// Keeps the writer waiting, so that requests gather behind it.
pub(crate) struct Hold(Connection);

impl Hold {
    /// Locks the file and gives the writer one request to wait with: requests that are sent before the end of
    /// the hold join it.
    pub(crate) async fn take(path: &Path, store: &Arc<SqliteProvider>) -> (Self, Starting) {
        let other = raw(path);
        other.execute_batch("BEGIN IMMEDIATE").expect("the file is free");
        let first = starting(store, "first");
        Self::gather().await;
        (Self(other), first)
    }

    /// Gives spawned calls the time to reach the writer, which is a thread of its own and cannot be asked.
    pub(crate) async fn gather() {
        SystemClock.sleep(Duration::from_millis(50)).await;
    }

    pub(crate) fn end(self) {
        self.0.execute_batch("ROLLBACK").expect("the file can be let go");
    }
}

pub(crate) type Starting = JoinHandle<Result<Started, ProviderError>>;

pub(crate) fn starting(store: &Arc<SqliteProvider>, instance: &str) -> Starting {
    starting_with(store, instance, String::new())
}

pub(crate) fn starting_with(store: &Arc<SqliteProvider>, instance: &str, input: String) -> Starting {
    let (store, start) = (Arc::clone(store), crate::stage::start_with(instance, input));
    tokio::spawn(async move { store.start(start.into(), Vec::new()).await })
}

fn counted() -> (Arc<AtomicU64>, SqliteOptions) {
    let commits = Arc::new(AtomicU64::new(0));
    (Arc::clone(&commits), SqliteOptions { count_commits: Some(commits), ..SqliteOptions::default() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_share_few_commits() {
    const CALLERS: u64 = 64;
    const CALLS: u64 = 30;
    let (_folder, path) = place();
    let (commits, options) = counted();
    let store = open(&path, options).await;
    let before = commits.load(Ordering::Relaxed);
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let store = Arc::clone(&store);
        callers.spawn(async move {
            for call in 0..CALLS {
                let instance = format!("i{caller}-{call}");
                store.start(start(&instance).into(), Vec::new()).await.expect("it is started");
            }
        });
    }
    callers.join_all().await;
    let commits = commits.load(Ordering::Relaxed) - before;
    eprintln!("{} requests in {commits} commits", CALLERS * CALLS);
    assert!(commits * 4 < CALLERS * CALLS, "{} requests took {commits} commits", CALLERS * CALLS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_fails_rolls_back_alone() {
    let (_folder, path) = place();
    let (commits, options) = counted();
    let store = open(&path, options).await;
    // Two turns; one commit repeats an event id after it has written other rows.
    let mut turns = Vec::new();
    for instance in ["good", "bad"] {
        store.start(start(instance).into(), Vec::new()).await.expect("it is started");
        let fetched = store.fetch_turn(turn_request(LONG, Duration::ZERO)).await.expect("it can be fetched");
        turns.push(fetched.expect("an instance"));
    }
    let before = commits.load(Ordering::Relaxed);
    let (hold, first) = Hold::take(&path, &store).await;
    let mut neighbours: Vec<Starting> = (0..10).map(|n| starting(&store, &format!("before{n}"))).collect();
    Hold::gather().await;
    let committing: Vec<_> = turns
        .into_iter()
        .map(|lease| {
            let (store, instance) = (Arc::clone(&store), lease.instance.clone());
            let mut events = vec![event(&instance, 1, None, started())];
            if instance == "bad" {
                events.push(event(&instance, 1, None, started()));
            }
            let commit =
                TurnCommit { execution_id: 1, events, metadata: named("Running"), ..TurnCommit::default() };
            tokio::spawn(async move { store.commit_turn(&lease.token, commit).await })
        })
        .collect();
    Hold::gather().await;
    neighbours.extend((0..10).map(|n| starting(&store, &format!("after{n}"))));
    Hold::gather().await;
    hold.end();

    let mut outcomes = Vec::new();
    for call in committing {
        outcomes.push(call.await.expect("it returns").map(drop).map_err(|error| error.kind));
    }
    assert_eq!(outcomes, [Ok(()), Err(ProviderErrorKind::Conflict)]);
    for neighbour in neighbours.into_iter().chain([first]) {
        assert_eq!(neighbour.await.expect("it returns").expect("it is not concerned"), Started::New);
    }
    assert_eq!(commits.load(Ordering::Relaxed) - before, 1, "all of them share a commit");
    assert_eq!(store.read_history("good", None).await.expect("a history").len(), 1);
    assert!(store.read_history("bad", None).await.expect("no history").is_empty());
    assert!(store.state("bad").await.expect("no row").is_none());
}
