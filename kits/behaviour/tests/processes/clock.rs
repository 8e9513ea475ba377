//! Real processes on one file whose wall clocks disagree by seconds, an hour, a day, either way, and one of
//! which is stopped meanwhile. They agree on one time: no activity runs twice, no session is taken from a
//! live owner, timers keep their length (G2).
//!
//! Leases last a second of real time.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use rusqlite::Connection;
use steadfast::providers::sqlite::{SqliteOptions, SqliteProvider};
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use steadfast::{
    ActivityContext, Client, EventKind, OrchestrationContext, OrchestrationStatus, RuntimeOptions,
};
use steadfast_clock::{Clock, MachineTime, Sleep, SystemClock};
use steadfast_store::Store;
use tempfile::TempDir;

const FILE: &str = "STEADFAST_TEST_FILE";
const AHEAD: &str = "STEADFAST_TEST_CLOCK_AHEAD_MS";

/// Bounds everything that is waited for.
const LONG: Duration = Duration::from_secs(60);

const LEASE: Duration = Duration::from_secs(2);

/// Longer than a lease, so that it must be renewed.
const STEP: Duration = Duration::from_millis(2_500);

const TIMER: Duration = Duration::from_millis(700);

const DIFFERENCES_MS: [i64; 6] = [5_000, -5_000, 3_600_000, -3_600_000, 86_400_000, -86_400_000];

/// The clock of the machine, with another wall time.
#[derive(Debug)]
struct Skewed {
    ahead_ms: i64,
}

impl Clock for Skewed {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms().saturating_add_signed(self.ahead_ms)
    }

    fn monotonic(&self) -> Duration {
        SystemClock.monotonic()
    }

    fn machine(&self) -> MachineTime {
        SystemClock.machine()
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        SystemClock.sleep_until(deadline)
    }
}

/// Another process, which ends with its owner: it reads the pipe that the owner holds, and is killed when
/// dropped.
struct Process(Child);

impl Process {
    /// Starts a worker whose wall clock is ahead, and waits until it has the file open.
    async fn spawn(file: &Path, ahead_ms: i64) -> Self {
        let child = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["--exact", "clock::another_process", "--ignored", "--nocapture"])
            .env(FILE, file)
            .env(AHEAD, ahead_ms.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = Self(child.expect("another process"));
        let ready = ready(file, process.0.id());
        until("it has the file open", async || ready.exists()).await;
        process
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.0.id().to_string()]).status();
        assert!(sent.expect("kill runs").success(), "{name} is sent");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing left of it. Stopped ones die too.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
#[ignore = "it is what other processes of these tests run"]
fn another_process() {
    let (Some(file), Ok(ahead)) = (std::env::var_os(FILE), std::env::var(AHEAD)) else { return };
    let (file, ahead_ms) = (PathBuf::from(file), ahead.parse().expect("milliseconds"));
    std::thread::spawn(|| {
        // The end of the pipe, however it comes, means that the test has ended.
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        drop(work(&file, ahead_ms).await);
        std::fs::write(ready(&file, std::process::id()), "").expect("tells");
        // Dropping a runtime does not stop it.
        std::future::pending::<()>().await;
    });
}

/// The file by which a process tells that it serves.
fn ready(file: &Path, pid: u32) -> PathBuf {
    file.with_extension(format!("ready-{pid}"))
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let deadline = SystemClock.monotonic() + LONG;
    while !holds().await {
        assert!(SystemClock.monotonic() < deadline, "'{what}' did not happen within {LONG:?}");
        SystemClock.sleep(Duration::from_millis(5)).await;
    }
}

async fn open(file: &Path, ahead_ms: i64) -> Arc<SqliteProvider> {
    let options = SqliteOptions { clock: Arc::new(Skewed { ahead_ms }), ..SqliteOptions::default() };
    let store = SqliteProvider::new(&format!("sqlite:{}", file.display()), Some(options)).await;
    Arc::new(store.expect("the file opens"))
}

async fn work(file: &Path, ahead_ms: i64) -> Arc<Runtime> {
    let options = RuntimeOptions {
        orchestrator_lock_timeout: LEASE,
        worker_lock_timeout: LEASE,
        session_lock_timeout: LEASE,
        orchestration_concurrency: 4,
        worker_concurrency: 4,
        clock: Arc::new(Skewed { ahead_ms }),
        ..RuntimeOptions::default()
    };
    let ledger = file.with_extension("ledger");
    let step = move |ctx: ActivityContext, _| {
        let line = format!("{} {}\n", ctx.idempotency_key(), std::process::id());
        let mut file = OpenOptions::new().append(true).create(true).open(&ledger).expect("the ledger opens");
        file.write_all(line.as_bytes()).expect("the ledger can be written");
        async move {
            SystemClock.sleep(STEP).await;
            Ok("done".to_owned())
        }
    };
    let activities = ActivityRegistry::builder().register("Step", step).build();
    Runtime::start_with_options(open(file, ahead_ms).await, activities, orchestrations(), options).await
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Plain", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity("Step", "").await?;
            ctx.schedule_timer(TIMER).await;
            Ok("plain".to_owned())
        })
        .register("Session", |ctx: OrchestrationContext, id: String| async move {
            for _ in 0..2 {
                ctx.schedule_activity_on_session("Step", "", id.clone()).await?;
            }
            Ok("session".to_owned())
        })
        .build()
}

fn ledger(file: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(file.with_extension("ledger")).unwrap_or_default();
    let entry = |line: &str| line.split_once(' ').map(|(key, pid)| (key.to_owned(), pid.to_owned()));
    text.lines().filter_map(entry).collect()
}

/// Stops a process at a moment at which it does not write.
async fn stop_between_writes(process: &Process, file: &Path) {
    let probe = Connection::open(file).expect("opens");
    probe.busy_timeout(Duration::ZERO).expect("does not wait");
    for _ in 0..1_000 {
        process.signal("STOP");
        // The signal takes effect when the process is next scheduled.
        SystemClock.sleep(Duration::from_millis(20)).await;
        if probe.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok() {
            return;
        }
        process.signal("CONT");
        SystemClock.sleep(Duration::from_millis(3)).await;
    }
    panic!("the process writes all the time");
}

/// Starts instances of both kinds and waits until they have ended.
async fn run_some(client: &Client, round: &str) {
    let mut started = Vec::new();
    for name in ["Plain", "Session"] {
        for copy in 0..2 {
            let instance = format!("{name}-{round}-{copy}");
            client.start_orchestration(instance.clone(), name, instance.clone()).await.expect("starts");
            started.push(instance);
        }
    }
    for instance in started {
        let ended = client.wait_for_orchestration(&instance, LONG).await;
        assert!(matches!(ended, Ok(OrchestrationStatus::Completed { .. })), "{instance}: {ended:?}");
    }
}

/// Runs instances on two processes, the one that opens the file first given first, while the second one is
/// stopped, while the first one is stopped, and while both run.
async fn share(first_ms: i64, second_ms: i64) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("store.db");
    let first = Process::spawn(&file, first_ms).await;
    let second = Process::spawn(&file, second_ms).await;
    let client = Client::new(open(&file, 0).await);
    run_some(&client, "both").await;
    for (stopped, round) in [(&first, "second"), (&second, "first")] {
        stop_between_writes(stopped, &file).await;
        run_some(&client, round).await;
        stopped.signal("CONT");
        run_some(&client, &format!("after-{round}")).await;
    }
    assert_once(&client, &file).await;
}

/// Every activity ran once, every session stayed with its owner, and every history tells of one time.
async fn assert_once(client: &Client, file: &Path) {
    let ran = ledger(file);
    let mut keys: Vec<&String> = ran.iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    let all = keys.len();
    keys.dedup();
    assert_eq!(all, keys.len(), "no activity runs twice: {ran:?}");
    for instance in client.list_all_instances().await.expect("lists") {
        let of_instance = format!("{instance}/");
        let mut pids: Vec<&String> =
            ran.iter().filter(|(key, _)| key.starts_with(&of_instance)).map(|(_, pid)| pid).collect();
        pids.dedup();
        assert_eq!(pids.len(), 1, "{instance} stays in one process: {ran:?}");
        let events = client.read_execution_history(&instance, 1).await.expect("reads");
        assert!(
            events.is_sorted_by_key(|event| event.timestamp_ms),
            "{instance} goes back in time: {events:?}"
        );
        for event in &events {
            if let EventKind::TimerFired { fire_at_ms } = event.kind {
                let created = event.source_event_id.expect("a timer was created");
                let created = events.iter().find(|event| event.event_id == created).expect("before");
                assert!(event.timestamp_ms >= fire_at_ms, "{instance}: its timer is early");
                let waited = event.timestamp_ms - created.timestamp_ms;
                assert!(waited >= TIMER.as_millis() as u64 && waited < 20_000, "{instance}: {waited} ms");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_a_newcomer_whose_clock_differs_steals_nothing() {
    join_all(DIFFERENCES_MS.map(|ahead_ms| share(0, ahead_ms))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_the_time_of_the_process_that_was_first_is_the_time_of_all() {
    join_all(DIFFERENCES_MS.map(|ahead_ms| share(ahead_ms, 0))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g2_a_process_that_was_killed_does_not_keep_its_time() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("store.db");
    let before = SystemClock.now_ms();
    drop(Process::spawn(&file, -86_400_000).await);
    let store = open(&file, 0).await;
    let now = store.oldest_waiting().await.expect("tells").now_ms;
    assert!(now >= before && now <= SystemClock.now_ms(), "{now} is its wall time");
}
