//! A process that is killed in the middle of heavy commits loses nothing that it acknowledged (S19).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, params};
use steadfast_clock::{Clock, SystemClock};
use steadfast_sqlite::SqliteOptions;

use crate::chain::{Crew, Ledger, LedgerEntry, assert_whole};
use crate::process::Process;
use crate::stage::{LONG, asked, assert_sound, open, place, raw, until};

/// Short, so that the leases of a killed process expire soon.
const LEASE: Duration = Duration::from_millis(400);

/// How many instances run at a time, and how many tasks serve them.
const WIDTH: usize = 16;

/// The other process: it starts chains and serves them, until it is killed.
pub(crate) async fn run_chains(file: &Path, round: &str) {
    let crew = crew(file).await;
    let number = Arc::new(AtomicU64::new(0));
    for _ in 0..WIDTH {
        let (turns, works, round, number) = (crew.clone(), crew.clone(), round.to_owned(), number.clone());
        let next = move || format!("{round}-{}", number.fetch_add(1, Ordering::Relaxed));
        drop(tokio::spawn(async move {
            loop {
                turns.start(&next()).await;
                while !turns.turn().await {}
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

async fn crew(file: &Path) -> Crew {
    let store = open(file, SqliteOptions::default()).await;
    let ledger = Arc::new(Ledger::beside(file));
    Crew { store, ledger, owner: "crew".into(), lease: LEASE, sessions: 0 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let (_folder, path) = place();
    let rounds = asked("STEADFAST_ROUNDS", 6);
    let mut checked = 0;
    for round in 0..rounds {
        let before = Ledger::size(&path);
        let mut process = Process::spawn("chains", &format!("r{round}"), &path);
        // Some commits, so that it is in the middle of them; then a little longer, another time in each
        // round.
        until("commits", || Ledger::size(&path) > before + 4096).await;
        SystemClock.sleep(Duration::from_micros(round * 7_919 % 40_000)).await;
        process.kill();
        assert_sound(&path);
        let ledger = Ledger::read(&path);
        assert_recorded(&raw(&path), &ledger[checked..]);
        checked = ledger.len();
    }
    eprintln!("{rounds} kills, {checked} acknowledged effects, none missing");

    let ledger = Ledger::read(&path);
    assert_recorded(&raw(&path), &ledger);
    let started: BTreeSet<&String> = ledger
        .iter()
        .filter_map(|entry| match entry {
            LedgerEntry::Started { instance } => Some(instance),
            _ => None,
        })
        .collect();
    drain(&path).await;
    let store = open(&path, SqliteOptions::default()).await;
    for instance in started {
        assert_whole(&store, instance).await;
    }
    let finished: Vec<LedgerEntry> = Ledger::read(&path)
        .into_iter()
        .filter(|entry| matches!(entry, LedgerEntry::Completed { .. }))
        .collect();
    let once: BTreeSet<&LedgerEntry> = finished.iter().collect();
    assert_eq!(once.len(), finished.len(), "an activity was finished twice");
    assert_sound(&path);
}

/// Checks that every acknowledged call is in the file.
fn assert_recorded(file: &Connection, ledger: &[LedgerEntry]) {
    let count = |sql: &str, instance: &str, number: u64| -> i64 {
        let number = i64::try_from(number).expect("a small number");
        file.query_row(sql, params![instance, number], |row| row.get(0)).expect("the file can be read")
    };
    for entry in ledger {
        let found = match entry {
            LedgerEntry::Started { instance } => {
                count("SELECT count(*) FROM instances WHERE instance = ?1 AND ?2 = 0", instance, 0)
            }
            LedgerEntry::Turned { instance, last_event } => count(
                "SELECT count(*) FROM history JOIN instances USING (key)
                 WHERE instance = ?1 AND event_id = ?2",
                instance,
                *last_event,
            ),
            // Its answer is in the history, or still in the queue.
            LedgerEntry::Completed { instance, id } => count(
                "SELECT (SELECT count(*) FROM history WHERE key = i.key AND kind = 'ActivityCompleted'
                            AND event ->> 'source_event_id' = ?2)
                      + (SELECT count(*) FROM messages WHERE key = i.key
                            AND item ->> '$.ActivityCompleted.id' = ?2)
                      - (SELECT count(*) FROM work WHERE key = i.key AND activity = ?2)
                 FROM instances i WHERE instance = ?1",
                instance,
                *id,
            ),
            LedgerEntry::OnSession { .. } => 1,
        };
        assert_eq!(found, 1, "{entry:?} was acknowledged and is missing");
    }
}

/// Serves until every instance has ended: the leases of killed processes expire, and their work is served
/// again.
async fn drain(path: &Path) {
    let crew = crew(path).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..WIDTH {
        let (turns, works) = (crew.clone(), crew.clone());
        tasks.spawn(async move {
            loop {
                turns.turn().await;
            }
        });
        tasks.spawn(async move {
            loop {
                works.work().await;
            }
        });
    }
    let file = raw(path);
    let open = "SELECT count(*) FROM instances LEFT JOIN executions USING (key)
                WHERE coalesce(status, 'Running') = 'Running'";
    let deadline = SystemClock.monotonic() + LONG;
    while file.query_row(open, [], |row| row.get::<_, i64>(0)).expect("the file can be read") > 0 {
        assert!(SystemClock.monotonic() < deadline, "what was left is not served");
        SystemClock.sleep(Duration::from_millis(20)).await;
    }
    tasks.shutdown().await;
}
