//! Several processes on one file: leases and sessions hold, and a commit of one wakes the fetches of the
//! others.

mod older;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use steadfast_sqlite::SqliteOptions;
use steadfast_store::Store;

use crate::chain::{Crew, Ledger, LedgerEntry, STEPS, assert_whole};
use crate::process::Process;
use crate::stage::{LONG, assert_sound, open, place, raw, start, turn_request, until};

async fn crew(file: &Path, name: &str) -> Crew {
    let store = open(file, SqliteOptions::default()).await;
    Crew { store, ledger: Arc::new(Ledger::beside(file)), owner: name.into(), lease: LONG, sessions: 5 }
}

/// The other process: it serves chains, their activities on sessions.
pub(crate) async fn work(file: &Path, name: &str) {
    let crew = crew(file, name).await;
    for _ in 0..4 {
        let (turns, works) = (crew.clone(), crew.clone());
        drop(tokio::spawn(async move {
            loop {
                turns.turn().await;
            }
        }));
        drop(tokio::spawn(async move {
            loop {
                works.work().await;
            }
        }));
    }
    std::future::pending().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_processes_on_one_file_complete_every_instance_once() {
    const INSTANCES: usize = 120;
    let (_folder, path) = place();
    let crew = crew(&path, "parent").await;
    let processes: Vec<Process> =
        ["one", "two", "three"].iter().map(|name| Process::spawn("worker", name, &path)).collect();
    let instances: Vec<String> = (0..INSTANCES).map(|number| format!("i{number}")).collect();
    for instance in &instances {
        crew.start(instance).await;
    }
    let file = raw(&path);
    let done = "SELECT count(*) FROM executions WHERE status = 'Completed'";
    until("all instances complete", || {
        file.query_row(done, [], |row| row.get::<_, i64>(0)).expect("the file can be read")
            == INSTANCES as i64
    })
    .await;
    drop(processes);

    for instance in &instances {
        assert_whole(&crew.store, instance).await;
    }
    let ledger = Ledger::read(&path);
    let finished: Vec<&LedgerEntry> =
        ledger.iter().filter(|entry| matches!(entry, LedgerEntry::Completed { .. })).collect();
    let once: BTreeSet<&&LedgerEntry> = finished.iter().collect();
    assert_eq!((finished.len(), once.len()), (INSTANCES * STEPS as usize, INSTANCES * STEPS as usize));
    // Nobody lets a session go, so each has one owner and one epoch, and all its activities ran there.
    let mut owners: BTreeMap<&String, BTreeSet<(&u64, &String)>> = BTreeMap::new();
    for entry in &ledger {
        if let LedgerEntry::OnSession { session, epoch, owner } = entry {
            owners.entry(session).or_default().insert((epoch, owner));
        }
    }
    assert_eq!(owners.len(), 5);
    assert!(owners.values().all(|of_session| of_session.len() == 1), "{owners:?}");
    assert_sound(&path);
}

/// The other process: it starts an instance for every line that it reads.
pub(crate) async fn send_on_demand(file: &Path) {
    let store = open(file, SqliteOptions::default()).await;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        store.start(start(&line).into(), Vec::new()).await.expect("it is started");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_of_another_process_wakes_a_waiting_fetch() {
    let (_folder, path) = place();
    let store = open(&path, SqliteOptions::default()).await;
    let mut sender = Process::spawn("sender", "sender", &path);
    let mut pipe = sender.0.stdin.take().expect("a pipe");
    for round in 0..9 {
        let parked = tokio::spawn({
            let store = Arc::clone(&store);
            async move { store.fetch_turn(turn_request(LONG, LONG)).await }
        });
        // Long enough for the fetch to have looked in vain. Nothing but the other process's commit wakes it
        // then.
        SystemClock.sleep(Duration::from_millis(30)).await;
        writeln!(pipe, "i{round}").expect("it listens");
        let lease = parked.await.expect("it returns").expect("it fetches").expect("an instance");
        assert_eq!(lease.instance, format!("i{round}"));
    }
}
