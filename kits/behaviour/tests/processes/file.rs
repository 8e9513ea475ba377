//! Real processes on one file: stopped for longer than their leases, stopped while they write, killed at any
//! moment. Every orchestration ends, and each result is recorded once (I1, I3, I6, I7).
//!
//! Leases last a second of real time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use steadfast::providers::sqlite::{SqliteOptions, SqliteProvider};
use steadfast::providers::{Provider, ProviderErrorKind};
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use steadfast::{
    ActivityContext, Client, ClientError, EventKind, OrchestrationContext, OrchestrationStatus,
    RuntimeOptions,
};
use steadfast_clock::{Clock, SystemClock};
use tempfile::TempDir;

const ROLE: &str = "STEADFAST_TEST_ROLE";
const FILE: &str = "STEADFAST_TEST_FILE";

/// Bounds everything that is waited for.
const LONG: Duration = Duration::from_secs(60);

const LEASE: Duration = Duration::from_secs(1);

/// Another process, which ends with its owner: it reads the pipe that the owner holds, and is killed when
/// dropped.
struct Process(Child);

impl Process {
    fn spawn(role: &str, file: &Path) -> Self {
        let child = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["--exact", "file::another_process", "--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.expect("another process"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Sends a signal by name.
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.pid()]).status();
        assert!(sent.expect("kill runs").success(), "{name} is sent");
    }

    /// Ends it as `kill -9` does.
    fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it has ended");
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
    let (Ok(role), Some(file)) = (std::env::var(ROLE), std::env::var_os(FILE)) else { return };
    let file = PathBuf::from(file);
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
        match role.as_str() {
            "worker" => drop(work(&file).await),
            "writer" => write(&file).await,
            other => panic!("there is no role '{other}'"),
        }
        // Dropping a runtime does not stop it.
        std::future::pending::<()>().await;
    });
}

/// Takes the write lock of the file, says so in a file beside it, and commits when the test makes the file
/// `go`.
async fn write(file: &Path) {
    let writer = Connection::open(file).expect("opens");
    writer.busy_timeout(LONG).expect("waits");
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE counter SET value = value + 1").expect("writes");
    std::fs::write(file.with_extension("held"), "").expect("tells");
    until("the test says go", async || file.with_extension("go").exists()).await;
    writer.execute_batch("COMMIT").expect("commits");
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let deadline = SystemClock.monotonic() + LONG;
    while !holds().await {
        assert!(SystemClock.monotonic() < deadline, "'{what}' did not happen within {LONG:?}");
        SystemClock.sleep(Duration::from_millis(5)).await;
    }
}

async fn open(file: &Path, busy_timeout: Duration) -> Arc<dyn Provider> {
    let options = SqliteOptions { busy_timeout, ..SqliteOptions::default() };
    let store = SqliteProvider::new(&format!("sqlite:{}", file.display()), Some(options)).await;
    Arc::new(store.expect("the file opens"))
}

/// Serves what is in the file, with short leases.
async fn work(file: &Path) -> Arc<Runtime> {
    let options = RuntimeOptions {
        orchestrator_lock_timeout: LEASE,
        worker_lock_timeout: LEASE,
        session_lock_timeout: LEASE,
        dispatcher_long_poll_timeout: LEASE,
        orchestration_concurrency: 4,
        worker_concurrency: 4,
        // A process that is killed leaves counted attempts behind.
        max_attempts: 1_000,
        ..RuntimeOptions::default()
    };
    let store = open(file, Duration::from_secs(5)).await;
    Runtime::start_with_options(store, activities(file), orchestrations(), options).await
}

/// Every run of an activity leaves a line in the ledger, synced, before it answers with that line.
fn activities(file: &Path) -> ActivityRegistry {
    let (ledger, go) = (file.with_extension("ledger"), file.with_extension("go"));
    let slow_ledger = ledger.clone();
    ActivityRegistry::builder()
        .register("Step", move |ctx: ActivityContext, _| {
            let line = note(&ledger, &ctx);
            async move { Ok(line) }
        })
        .register("Slow", move |ctx: ActivityContext, _| {
            let (line, go) = (note(&slow_ledger, &ctx), go.clone());
            async move {
                // The process ends with its owner, so this does too.
                while !go.exists() {
                    SystemClock.sleep(Duration::from_millis(10)).await;
                }
                Ok(line)
            }
        })
        .build()
}

fn note(ledger: &Path, ctx: &ActivityContext) -> String {
    let activity = format!("{}/{}/{}", ctx.instance_id(), ctx.execution_id(), ctx.activity_id());
    let line = format!("{activity} {} {}", std::process::id(), ctx.counted_deliveries());
    let mut file = OpenOptions::new().append(true).create(true).open(ledger).expect("the ledger opens");
    file.write_all(format!("{line}\n").as_bytes()).expect("the ledger can be written");
    file.sync_all().expect("the ledger is synced");
    line
}

fn ledger(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file.with_extension("ledger")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Chain", |ctx: OrchestrationContext, _| async move {
            for _ in 0..4 {
                ctx.schedule_activity("Step", "").await?;
            }
            Ok("chain".to_owned())
        })
        .register("Fan", |ctx: OrchestrationContext, _| async move {
            let all = (0..4).map(|_| ctx.schedule_activity("Step", "")).collect();
            ctx.join(all).await.into_iter().collect::<Result<Vec<_>, _>>()?;
            Ok("fan".to_owned())
        })
        .register("Timer", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_timer(Duration::from_millis(300)).await;
            ctx.schedule_activity("Step", "").await?;
            Ok("timer".to_owned())
        })
        .register("Parent", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_sub_orchestration("Chain", "").await?;
            Ok("parent".to_owned())
        })
        .register("Again", |ctx: OrchestrationContext, round: String| async move {
            ctx.schedule_activity("Step", "").await?;
            if round.len() < 3 { ctx.continue_as_new(round + "x").await } else { Ok("again".to_owned()) }
        })
        .register("Session", |ctx: OrchestrationContext, _| async move {
            for _ in 0..2 {
                ctx.schedule_activity_on_session("Step", "", "shared").await?;
            }
            Ok("session".to_owned())
        })
        .register(
            "Slow",
            |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("Slow", "").await },
        )
        .build()
}

/// An empty store in a folder of its own, and a client of it in this process.
async fn place() -> (TempDir, PathBuf, Client) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("store.db");
    let client = Client::new(open(&file, LONG).await);
    (folder, file, client)
}

/// Waits until an instance has ended.
async fn output(client: &Client, instance: &str) -> String {
    match client.wait_for_orchestration(instance, LONG).await {
        Ok(OrchestrationStatus::Completed { output, .. }) => output,
        other => panic!("{instance}: {other:?}"),
    }
}

/// Tells whether the write lock of the file is free right now.
fn can_write(file: &Path) -> bool {
    let probe = Connection::open(file).expect("opens");
    probe.busy_timeout(Duration::ZERO).expect("does not wait");
    probe.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok()
}

/// Stops a process at a moment at which it does not write.
async fn stop_between_writes(process: &Process, file: &Path) {
    for _ in 0..1_000 {
        process.signal("STOP");
        // The signal takes effect when the process is next scheduled.
        SystemClock.sleep(Duration::from_millis(20)).await;
        if can_write(file) {
            return;
        }
        process.signal("CONT");
        SystemClock.sleep(Duration::from_millis(3)).await;
    }
    panic!("the process writes all the time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i3_a_process_stopped_for_longer_than_its_leases_is_replaced_and_does_no_harm_afterwards() {
    let (_folder, file, client) = place().await;
    let first = Process::spawn("worker", &file);
    client.start_orchestration("a", "Slow", "").await.expect("starts");
    until("the first one runs it", async || ledger(&file).len() == 1).await;
    stop_between_writes(&first, &file).await;

    let mut second = Process::spawn("worker", &file);
    until("another one runs it too", async || ledger(&file).len() == 2).await;
    let (id, pids) = ("a/1/2", [first.pid(), second.pid()]);
    assert_eq!(ledger(&file), [format!("{id} {} 1", pids[0]), format!("{id} {} 2", pids[1])]);
    std::fs::write(file.with_extension("go"), "").expect("lets them go");
    assert_eq!(output(&client, "a").await, format!("{id} {} 2", pids[1]), "the second one's result counts");
    let before = client.read_execution_history("a", 1).await.expect("reads");

    first.signal("CONT");
    client.start_orchestration("b", "Chain", "").await.expect("starts");
    assert_eq!(output(&client, "b").await, "chain");
    second.kill();
    // Only the one that was stopped is left, and it serves.
    client.start_orchestration("c", "Chain", "").await.expect("starts");
    assert_eq!(output(&client, "c").await, "chain");
    let served: BTreeSet<String> = ledger(&file)
        .iter()
        .filter(|line| line.starts_with("c/"))
        .filter_map(|line| line.split(' ').nth(1).map(str::to_owned))
        .collect();
    assert_eq!(served, BTreeSet::from([first.pid()]));
    assert_eq!(client.read_execution_history("a", 1).await.expect("reads"), before, "its end stands");
    assert_sound(&file);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i7_a_process_stopped_while_it_writes_makes_others_busy_for_a_bound_and_they_go_on_after() {
    let (_folder, file, client) = place().await;
    let runtime = work(&file).await;
    let hasty = Client::new(open(&file, Duration::from_millis(300)).await);
    client.start_orchestration("before", "Timer", "").await.expect("starts");
    assert_eq!(output(&client, "before").await, "timer");
    client.start_orchestration("during", "Timer", "").await.expect("starts");
    let writer = Process::spawn("writer", &file);
    until("it writes", async || file.with_extension("held").exists()).await;
    writer.signal("STOP");
    let asked = SystemClock.monotonic();
    let busy = hasty.start_orchestration("late", "Chain", "").await.expect_err("the file is held");
    let waited = SystemClock.monotonic() - asked;
    let ClientError::Provider(error) = &busy else { panic!("{busy:?}") };
    assert_eq!((error.kind, error.is_retryable()), (ProviderErrorKind::Busy, true));
    assert!(waited >= Duration::from_millis(300) && waited < LONG, "{waited:?}");
    // Reading needs no lock.
    let status = hasty.get_orchestration_status("before").await.expect("reads");
    assert!(matches!(status, OrchestrationStatus::Completed { .. }), "{status:?}");

    writer.signal("CONT");
    std::fs::write(file.with_extension("go"), "").expect("lets it go");
    assert_eq!(output(&client, "during").await, "timer");
    client.start_orchestration("after", "Chain", "").await.expect("starts");
    assert_eq!(output(&client, "after").await, "chain");
    assert_eq!(runtime.metrics_snapshot().expect("counts").orch_failures, 0);
    runtime.shutdown(None).await;
    assert_sound(&file);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i1_processes_killed_at_any_moment_lose_nothing_and_record_nothing_twice() {
    const KINDS: [(&str, &str); 6] = [
        ("Chain", "chain"),
        ("Fan", "fan"),
        ("Timer", "timer"),
        ("Parent", "parent"),
        ("Again", "again"),
        ("Session", "session"),
    ];
    const KILLS: usize = 8;
    let (_folder, file, client) = place().await;
    let mut workers: Vec<Process> = (0..3).map(|_| Process::spawn("worker", &file)).collect();
    let mut started = Vec::new();
    for round in 0..KILLS {
        for (name, output) in KINDS {
            for copy in 0..4 {
                let instance = format!("{name}-{round}-{copy}");
                client.start_orchestration(instance.clone(), name, "").await.expect("starts");
                started.push((instance, output));
            }
        }
        // In the middle of it, at another moment in each round.
        let before = ledger(&file).len();
        until("activities run", async || ledger(&file).len() > before + 5).await;
        SystemClock.sleep(Duration::from_millis((round as u64 * 7) % 23)).await;
        let victim = round % workers.len();
        workers[victim].kill();
        workers[victim] = Process::spawn("worker", &file);
    }
    for (instance, expected) in &started {
        assert_eq!(output(&client, instance).await, *expected, "{instance}");
    }
    until("everything is settled", async || {
        let depths = client.get_queue_depths().await.expect("counts");
        (depths.orchestrator_queue, depths.worker_queue) == (0, 0)
    })
    .await;
    drop(workers);
    assert_ledger(&client, &file).await;
    assert_sound(&file);
}

/// What is recorded ran, and each schedule is answered once, by one of its runs.
async fn assert_ledger(client: &Client, file: &Path) {
    let ran: BTreeSet<String> = ledger(file).into_iter().collect();
    let mut recorded = 0;
    for instance in client.list_all_instances().await.expect("lists") {
        for execution in client.list_executions(&instance).await.expect("lists") {
            let events = client.read_execution_history(&instance, execution).await.expect("reads");
            let ids: Vec<u64> = events.iter().map(|event| event.event_id).collect();
            assert_eq!(ids, (1..=events.len() as u64).collect::<Vec<_>>(), "{instance}");
            assert_eq!(events.iter().filter(|event| event.is_terminal()).count(), 1, "{instance}");
            let mut answers: BTreeMap<u64, &String> = BTreeMap::new();
            for event in &events {
                if let EventKind::ActivityCompleted { result } = &event.kind {
                    let source = event.source_event_id.expect("an answer has a source");
                    assert!(
                        answers.insert(source, result).is_none(),
                        "{instance}: {source} was answered twice"
                    );
                    assert!(ran.contains(result), "{instance}: {result} is recorded and never ran");
                    assert!(result.starts_with(&format!("{instance}/{execution}/{source} ")), "{result}");
                }
            }
            let scheduled =
                events.iter().filter(|event| matches!(event.kind, EventKind::ActivityScheduled { .. }));
            assert_eq!(scheduled.count(), answers.len(), "{instance}");
            recorded += answers.len();
        }
    }
    assert!(ran.len() >= recorded && recorded > 0, "{} ran, {recorded} are recorded", ran.len());
}

/// The file is whole, and nothing is left in its queues.
fn assert_sound(file: &Path) {
    let file = Connection::open(file).expect("opens");
    let check: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checks");
    assert_eq!(check, "ok");
    for left in ["messages", "work", "heads", "watchers", "set_aside", "instances WHERE turn <> 0"] {
        let count: i64 =
            file.query_row(&format!("SELECT count(*) FROM {left}"), [], |row| row.get(0)).expect("counts");
        assert_eq!(count, 0, "{left}");
    }
}
