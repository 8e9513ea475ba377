//! The requests as the store answers them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::ensure;
use steadfast_clock::{Clock, SystemClock};
use steadfast_sqlite::{SqliteOptions, SqliteProvider};
use steadfast_store::{LeaseToken, NewWork, Outcome, Store, TurnCommit};

use crate::{bare, rows};

/// Opens the store of a file, which counts its commits.
pub(crate) async fn open(file: &Path, commits: &Arc<AtomicU64>) -> anyhow::Result<Arc<SqliteProvider>> {
    let options = SqliteOptions { count_commits: Some(Arc::clone(commits)), ..SqliteOptions::default() };
    Ok(Arc::new(SqliteProvider::new(&format!("sqlite:{}", file.display()), Some(options)).await?))
}

/// Many callers, each with its own pairs.
pub(crate) async fn by_callers(
    store: &Arc<SqliteProvider>,
    callers: usize,
    pairs: usize,
) -> anyhow::Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..callers {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            for pair in (0..pairs).map(|pair| pair * callers + caller) {
                finish(&store, pair).await?;
                commit(&store, pair).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

/// One caller, on a task of its own as a runtime's are, and how long each call took.
pub(crate) async fn one_by_one(store: &Arc<SqliteProvider>, pairs: usize) -> anyhow::Result<Vec<Duration>> {
    let store = Arc::clone(store);
    let calls = async move {
        let mut times = Vec::with_capacity(2 * pairs);
        for pair in 0..pairs {
            let begun = SystemClock.monotonic();
            finish(&store, pair).await?;
            let between = SystemClock.monotonic();
            commit(&store, pair).await?;
            times.push(between - begun);
            times.push(SystemClock.monotonic() - between);
        }
        anyhow::Ok(times)
    };
    tokio::spawn(calls).await?
}

async fn finish(store: &SqliteProvider, pair: usize) -> anyhow::Result<()> {
    let outcome = Outcome::from(rows::completion(&rows::working(pair)));
    store.finish_work(&LeaseToken::Work(rows::work_token(pair)), outcome).await?;
    Ok(())
}

async fn commit(store: &SqliteProvider, pair: usize) -> anyhow::Result<()> {
    let instance = rows::turning(pair);
    let commit = TurnCommit {
        execution_id: 1,
        events: rows::step(&instance),
        work: vec![NewWork::from(rows::activity(&instance, 4))],
        ..TurnCommit::default()
    };
    store.commit_turn(&LeaseToken::Turn(rows::turn_token(pair)), commit).await?;
    Ok(())
}

/// The comparison is fair only while both sides run the same number of statements.
pub(crate) async fn runs_the_same_statements(file: &Path) -> anyhow::Result<()> {
    let copy = file.to_owned();
    tokio::task::spawn_blocking(move || rows::prepare(&copy, 2)).await??;
    let statements = Arc::new(AtomicU64::new(0));
    let options = SqliteOptions {
        count_statements: Some(Arc::clone(&statements)),
        other_processes: None,
        ..SqliteOptions::default()
    };
    let store = SqliteProvider::new(&format!("sqlite:{}", file.display()), Some(options)).await?;
    let before = statements.load(Ordering::Relaxed);
    finish(&store, 0).await?;
    commit(&store, 0).await?;
    let ours = statements.load(Ordering::Relaxed) - before;
    drop(store);
    let bare = bare::statements_of_a_pair(file, 1)?;
    ensure!(ours == bare, "the store runs {ours} statements for a pair of requests, the bare side {bare}");
    Ok(())
}
