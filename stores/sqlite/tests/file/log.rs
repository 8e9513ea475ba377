//! The write-ahead log stays bounded under load, readers or not; and a copy made meanwhile is a store.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;
use steadfast_sqlite::SqliteOptions;
use steadfast_store::{InstanceQuery, Store};

use crate::stage::{assert_sound, open, place, raw, start_with};

const PAGE: u64 = 4096;

fn log_size(path: &Path) -> u64 {
    std::fs::metadata(path.with_extension("db-wal")).map_or(0, |file| file.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_stays_bounded_while_others_read() {
    const BOUND: u32 = 200;
    let (_folder, path) = place();
    let store = open(&path, SqliteOptions { wal_pages: BOUND, readers: 4, ..SqliteOptions::default() }).await;
    let stop = Arc::new(AtomicBool::new(false));
    // Readers that overlap, so that there is hardly a moment at which the log is not used.
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    store.instances(&Default::default()).await.expect("readers go on");
                    store.read_history("i1", None).await.expect("readers go on");
                }
            })
        })
        .collect();
    let mut longest = 0;
    for number in 0..1_500 {
        let start = start_with(&format!("i{number}"), "x".repeat(4_000));
        store.start(start.into(), Vec::new()).await.expect("it is started");
        longest = longest.max(log_size(&path));
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.expect("readers go on");
    }
    eprintln!("the log was {} pages at most, its bound is {BOUND}", longest / PAGE);
    // A log that is long is emptied at three times its bound; a group may add to that, and so may a reader
    // that is slow.
    assert!(longest <= 6 * u64::from(BOUND) * PAGE, "{} pages", longest / PAGE);
}

#[tokio::test]
async fn a_store_that_is_closed_leaves_its_commits_in_the_file_and_no_log() {
    let (_folder, path) = place();
    for number in 0..3 {
        let store = open(&path, SqliteOptions::default()).await;
        store
            .start(start_with(&format!("i{number}"), String::new()).into(), Vec::new())
            .await
            .expect("starts");
        store.read_history("i0", None).await.expect("a reader has the file open");
        // A read that is under way when the store is closed, and whose caller is gone.
        let query = InstanceQuery::default();
        let reading = store.instances(&query);
        drop(tokio::time::timeout(Duration::ZERO, reading).await);
        drop(store);
        for beside in ["db-wal", "db-shm"] {
            assert!(!path.with_extension(beside).exists(), "{beside}");
        }
    }
    let store = open(&path, SqliteOptions::default()).await;
    assert_eq!(store.gauges().await.expect("it counts").messages, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_online_backup_made_while_running_is_a_store() {
    let (folder, path) = place();
    let copy = folder.path().join("copy.db");
    let store = open(&path, SqliteOptions::default()).await;
    store.start(start_with("first", "x".repeat(50_000)).into(), Vec::new()).await.expect("it is started");
    let writing = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for number in 0..200 {
                let start = start_with(&format!("i{number}"), "x".repeat(1_000));
                store.start(start.into(), Vec::new()).await.expect("writers go on");
            }
        }
    });
    let (from, to) = (path.clone(), copy.clone());
    let backup = tokio::task::spawn_blocking(move || {
        let (from, mut to) = (raw(&from), Connection::open(to).expect("a new file"));
        let backup = Backup::new(&from, &mut to).expect("a backup");
        // All pages in one step: a backup in steps begins anew with every commit.
        backup.run_to_completion(i32::MAX, Duration::from_millis(1), None).expect("a copy");
    });
    backup.await.expect("a copy");
    writing.await.expect("writers go on");
    assert_sound(&copy);
    let copied = open(&copy, SqliteOptions::default()).await;
    let depths = copied.admin().expect("has an admin").get_queue_depths().await.expect("answers");
    assert!((1..=201).contains(&depths.orchestrator_queue), "{depths:?}");
}
