//! Processes that are paused for longer than their leases, that really die, and a table that is locked while
//! results come in (G38, G39), on a file and on a server.
//!
//! They go by real time, with leases of a second.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use steadfast::providers::postgres::PostgresProvider;
use steadfast::providers::sqlite::SqliteProvider;
use steadfast::providers::{Provider, Store};
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use steadfast::{
    ActivityContext, Client, ErrorDetails, OrchestrationContext, OrchestrationStatus, RuntimeOptions,
};
use steadfast_clock::{Clock, SystemClock};
use steadfast_cluster::{Schema, Server};
use tempfile::TempDir;

const FOLDER: &str = "STEADFAST_TEST_FOLDER";
const URL: &str = "STEADFAST_TEST_URL";
const SCHEMA: &str = "STEADFAST_TEST_SCHEMA";

/// Bounds everything that is waited for.
const LONG: Duration = Duration::from_secs(60);

const LEASE: Duration = Duration::from_secs(1);

/// The kinds of activities that are under way when a process is paused.
const KINDS: [&str; 3] = ["plain", "cancellable", "session"];

/// A folder for the ledger, and the store: a file in the folder, or a schema on a server.
struct Ground {
    folder: TempDir,
    server: Option<(Server, Schema)>,
}

impl Ground {
    fn on_a_file() -> Self {
        Self { folder: TempDir::new().expect("a folder"), server: None }
    }

    fn on_a_server(name: &str) -> Self {
        let server = Server::join().expect("a server");
        let schema = server.schema(name);
        Self { folder: TempDir::new().expect("a folder"), server: Some((server, schema)) }
    }

    /// Opens the store in this process.
    async fn store(&self) -> Arc<dyn Store> {
        let at = self.server.as_ref().map(|(server, schema)| (server.url(), schema.name()));
        match at {
            Some((url, schema)) => {
                Arc::new(PostgresProvider::new_with_schema(url, Some(schema)).await.expect("opens"))
            }
            None => Arc::new(open_file(self.folder.path()).await),
        }
    }

    fn spawn(&self) -> OutlivingWorker {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command
            .args(["--exact", "outlived::another_process", "--ignored", "--nocapture"])
            .env(FOLDER, self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some((server, schema)) = &self.server {
            command.env(URL, server.url()).env(SCHEMA, schema.name());
        }
        OutlivingWorker(command.spawn().expect("another process"))
    }

    /// Reads the ledger: the instance and the attempt of each run, in the order in which they began.
    fn runs(&self) -> Vec<(String, u32)> {
        let text = std::fs::read_to_string(self.folder.path().join("ledger")).unwrap_or_default();
        let run = |line: &str| {
            let (instance, attempt) = line.split_once(' ').expect("instance and attempt");
            (instance.to_owned(), attempt.parse().expect("a number"))
        };
        text.lines().map(run).collect()
    }

    fn runs_of(&self, instance: &str) -> usize {
        self.runs().iter().filter(|run| run.0 == instance).count()
    }

    fn let_go(&self) {
        std::fs::write(self.folder.path().join("go"), "").expect("lets them go");
    }
}

async fn open_file(folder: &Path) -> SqliteProvider {
    let url = format!("sqlite:{}", folder.join("store.db").display());
    SqliteProvider::new(&url, None).await.expect("the file opens")
}

/// Another process, which ends with its owner: it reads the pipe that the owner holds, and is killed when
/// dropped.
struct OutlivingWorker(Child);

impl OutlivingWorker {
    /// Sends a signal by name.
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.0.id().to_string()]).status();
        assert!(sent.expect("kill runs").success(), "{name} is sent");
    }

    /// Ends it as `kill -9` does.
    fn kill(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it has ended");
    }
}

impl Drop for OutlivingWorker {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing left of it. Stopped ones die too.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
#[ignore = "it is what other processes of these tests run"]
fn another_process() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    std::thread::spawn(|| {
        // The end of the pipe, however it comes, means that the test has ended.
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(0);
    });
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    threads.expect("a runtime").block_on(async {
        let store: Arc<dyn Provider> = match (std::env::var(URL), std::env::var(SCHEMA)) {
            (Ok(url), Ok(schema)) => {
                Arc::new(PostgresProvider::new_with_schema(&url, Some(&schema)).await.expect("opens"))
            }
            _ => Arc::new(open_file(&folder).await),
        };
        work(store, &folder, with_leases(LEASE)).await;
        // Dropping a runtime does not stop it.
        std::future::pending::<()>().await;
    });
}

fn with_leases(lease: Duration) -> RuntimeOptions {
    RuntimeOptions {
        orchestrator_lock_timeout: lease,
        worker_lock_timeout: lease,
        session_lock_timeout: lease,
        dispatcher_long_poll_timeout: lease,
        activity_cancellation_grace_period: lease / 4,
        worker_concurrency: 6,
        ..RuntimeOptions::default()
    }
}

async fn work(store: Arc<dyn Provider>, folder: &Path, options: RuntimeOptions) -> Arc<Runtime> {
    let (plain, polite) = (folder.to_owned(), folder.to_owned());
    let activities = ActivityRegistry::builder()
        .register("Long", move |ctx: ActivityContext, _: String| {
            let folder = plain.clone();
            async move { long(&folder, &ctx).await }
        })
        .register("Polite", move |ctx: ActivityContext, _: String| {
            let folder = polite.clone();
            async move {
                tokio::select! {
                    ended = long(&folder, &ctx) => ended,
                    () = ctx.cancelled() => Err("stopped".to_owned()),
                }
            }
        });
    let flows = OrchestrationRegistry::builder().register(
        "Call",
        |ctx: OrchestrationContext, kind: String| async move {
            match kind.as_str() {
                "plain" => ctx.schedule_activity("Long", "").await,
                "cancellable" => ctx.schedule_activity("Polite", "").await,
                _ => ctx.schedule_activity_on_session("Long", "", "chat").await,
            }
        },
    );
    Runtime::start_with_options(store, activities.build(), flows.build(), options).await
}

/// Leaves a line in the ledger, and waits until the test lets it go.
async fn long(folder: &Path, ctx: &ActivityContext) -> Result<String, String> {
    let line = format!("{} {}\n", ctx.instance_id(), ctx.counted_deliveries());
    let ledger = OpenOptions::new().append(true).create(true).open(folder.join("ledger"));
    ledger.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|error| error.to_string())?;
    while !folder.join("go").exists() {
        SystemClock.sleep(Duration::from_millis(10)).await;
    }
    Ok(ctx.counted_deliveries().to_string())
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let deadline = SystemClock.monotonic() + LONG;
    while !holds().await {
        assert!(SystemClock.monotonic() < deadline, "'{what}' did not happen within {LONG:?}");
        SystemClock.sleep(Duration::from_millis(5)).await;
    }
}

fn client_of(store: &Arc<dyn Store>) -> Client {
    // Wrapped only for its type: every sized store is a provider, and `dyn Store` is not sized.
    let faults = steadfast_behaviour::Faults::default();
    Client::new(Arc::new(steadfast_behaviour::Faulty::new(Arc::clone(store), faults)))
}

/// Pauses a process twenty times for longer than every lease, around a long activity of each kind; then kills
/// it. Each run is told one attempt more for each process that died, and nothing for the pauses.
async fn pauses_count_nothing(ground: &Ground) {
    let store = ground.store().await;
    let client = client_of(&store);
    for kind in KINDS {
        client.start_orchestration(kind, "Call", kind).await.expect("starts");
    }
    let mut worker = ground.spawn();
    until("all run", async || KINDS.iter().all(|kind| ground.runs_of(kind) > 0)).await;
    for _ in 0..20 {
        let before: Vec<usize> = KINDS.iter().map(|kind| ground.runs_of(kind)).collect();
        worker.signal("STOP");
        SystemClock.sleep(LEASE + LEASE / 4).await;
        worker.signal("CONT");
        until("all run again", async || {
            KINDS.iter().zip(&before).all(|(kind, before)| ground.runs_of(kind) > *before)
        })
        .await;
        for kind in KINDS {
            until("the pause is excused", async || {
                let work = store.work_of(kind, 1).await.expect("answers");
                work.iter().all(|work| work.attempts == 1)
            })
            .await;
        }
    }
    let runs = ground.runs();
    assert!(runs.iter().all(|run| run.1 == 1), "no pause counts, also not for a moment: {runs:?}");
    worker.kill();
    let died = ground.runs().len();
    let _next = ground.spawn();
    until("all run after the death", async || ground.runs().len() >= died + KINDS.len()).await;
    ground.let_go();
    for kind in KINDS {
        let status = client.wait_for_orchestration(kind, LONG).await.expect("ends");
        let OrchestrationStatus::Completed { output, .. } = status else { panic!("{kind}: {status:?}") };
        assert_eq!(output, "2", "{kind}: one process died");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g38_twenty_pauses_of_a_process_count_nothing_on_a_file() {
    pauses_count_nothing(&Ground::on_a_file()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g38_twenty_pauses_of_a_process_count_nothing_on_a_server() {
    pauses_count_nothing(&Ground::on_a_server("pauses")).await;
}

/// Lets a process die of one activity again and again.
async fn deaths_poison_exactly(ground: &Ground) {
    let client = client_of(&ground.store().await);
    client.start_orchestration("a", "Call", "plain").await.expect("starts");
    for death in 1..=10 {
        let mut worker = ground.spawn();
        until("it runs", async || ground.runs().len() == death).await;
        worker.kill();
    }
    let _last = ground.spawn();
    let status = client.wait_for_orchestration("a", LONG).await.expect("ends");
    let OrchestrationStatus::Failed { details, .. } = status else { panic!("{status:?}") };
    let ErrorDetails::Poison { attempt_count, max_attempts, .. } = details else { panic!("{details:?}") };
    assert_eq!((attempt_count, max_attempts), (11, 10));
    let attempts: Vec<u32> = ground.runs().into_iter().map(|run| run.1).collect();
    assert_eq!(attempts, (1..=10).collect::<Vec<_>>(), "the eleventh delivery runs nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g38_an_activity_that_kills_its_process_is_poison_after_ten_deaths_on_a_file() {
    deaths_poison_exactly(&Ground::on_a_file()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g38_an_activity_that_kills_its_process_is_poison_after_ten_deaths_on_a_server() {
    deaths_poison_exactly(&Ground::on_a_server("deaths")).await;
}

/// Says for how many seconds the table is locked while the options are the default ones: 60 is the minute
/// that the rule names. Without it leases are short, and so is the lock.
const LOCK_SECONDS: &str = "STEADFAST_LOCK_SECONDS";

/// The options of the process, and how long the table is locked. Each try to hand a result in waits for half
/// a second, and holds the row of its activity meanwhile, so the leases are longer than that.
fn locked_for() -> (RuntimeOptions, Duration) {
    let seconds = std::env::var(LOCK_SECONDS).ok().and_then(|seconds| seconds.parse().ok());
    match seconds.map(Duration::from_secs) {
        Some(locked) => (RuntimeOptions { worker_concurrency: 6, ..RuntimeOptions::default() }, locked),
        None => (with_leases(3 * LEASE), 12 * LEASE),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g39_while_a_lock_lets_renewals_through_and_results_not_every_activity_runs_once() {
    let ground = Ground::on_a_server("locked");
    let Some((server, schema)) = &ground.server else { panic!("it is on a server") };
    let store = ground.store().await;
    let client = client_of(&store);
    let (mut other, connection) =
        tokio_postgres::connect(server.url(), tokio_postgres::NoTls).await.expect("connects");
    tokio::spawn(connection);
    let instances: Vec<String> = (0..4).map(|n| format!("a{n}")).collect();
    for instance in &instances {
        client.start_orchestration(instance, "Call", "plain").await.expect("starts");
    }
    let provider = PostgresProvider::new_with_schema(server.url(), Some(schema.name())).await.expect("opens");
    let (options, locked) = locked_for();
    let runtime = work(Arc::new(provider), ground.folder.path(), options).await;
    until("all run", async || ground.runs().len() == instances.len()).await;
    let transaction = other.transaction().await.expect("begins");
    let lock = format!("LOCK TABLE \"{}\".orchestrator_queue IN SHARE MODE", schema.name());
    transaction.batch_execute(&lock).await.expect("locks");
    ground.let_go();
    // As long as several leases.
    SystemClock.sleep(locked).await;
    transaction.rollback().await.expect("lets go");
    for instance in &instances {
        let status = client.wait_for_orchestration(instance, LONG).await.expect("ends");
        assert!(
            matches!(&status, OrchestrationStatus::Completed { output, .. } if output == "1"),
            "{status:?}"
        );
    }
    assert_eq!(ground.runs().len(), instances.len(), "each ran once: {:?}", ground.runs());
    runtime.shutdown(None).await;
}
