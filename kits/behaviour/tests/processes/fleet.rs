//! A fleet of ten processes of which one has the code (G5, G40), with the options of the compatible door, on
//! a file and on a server.
//!
//! They go by real time, and what they do is counted: the count of each delivery of a turn, and the refusals
//! after which work waits.

use std::any::Any;
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
use steadfast::{ActivityContext, Client, OrchestrationContext, OrchestrationStatus};
use steadfast_clock::{Clock, SystemClock};
use steadfast_cluster::{Schema, Server};
use steadfast_store::{ProviderError, Refused, StoreCall, TurnLease, forward_store};
use tempfile::TempDir;

const ROLE: &str = "STEADFAST_TEST_ROLE";
const FOLDER: &str = "STEADFAST_TEST_FOLDER";
const URL: &str = "STEADFAST_TEST_URL";
const SCHEMA: &str = "STEADFAST_TEST_SCHEMA";

/// Bounds everything that is waited for.
const LONG: Duration = Duration::from_secs(120);

const OLD_WORKERS: usize = 9;

const INSTANCES: usize = 200;

/// A folder for the ledger, and the store: a file in the folder, or a schema on a server.
struct FleetGround {
    folder: TempDir,
    server: Option<(Server, Schema)>,
}

impl FleetGround {
    fn spawn(&self, role: &str) -> FleetWorker {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command
            .args(["--exact", "fleet::another_process", "--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(FOLDER, self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some((server, schema)) = &self.server {
            command.env(URL, server.url()).env(SCHEMA, schema.name());
        }
        FleetWorker(command.spawn().expect("another process"))
    }

    async fn open(&self) -> Arc<dyn Provider> {
        let at = self.server.as_ref().map(|(server, schema)| (server.url(), schema.name()));
        Arc::new(LedgerStore { inner: open(self.folder.path(), at).await, ledger: None })
    }

    fn ledger(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("ledger")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

async fn open(folder: &Path, server: Option<(&str, &str)>) -> Arc<dyn Store> {
    match server {
        Some((url, schema)) => {
            Arc::new(PostgresProvider::new_with_schema(url, Some(schema)).await.expect("opens"))
        }
        None => {
            let url = format!("sqlite:{}", folder.join("store.db").display());
            Arc::new(SqliteProvider::new(&url, None).await.expect("the file opens"))
        }
    }
}

/// Another process, which ends with its owner: it reads the pipe that the owner holds, and is killed when
/// dropped.
struct FleetWorker(Child);

impl Drop for FleetWorker {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing left of it.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A store that notes in a ledger what its answers say: the count of each leased turn, and refusals of which
/// it says that no live worker has the code.
struct LedgerStore {
    inner: Arc<dyn Store>,
    ledger: Option<PathBuf>,
}

impl LedgerStore {
    async fn note<T: Any>(
        &self,
        _: StoreCall<'_>,
        future: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let answer = future.await;
        let (Some(ledger), Ok(value)) = (&self.ledger, &answer) else { return answer };
        let value: &dyn Any = value;
        if let Some(Some(lease)) = value.downcast_ref::<Option<TurnLease>>() {
            write(ledger, &format!("turn {} {}", lease.instance, lease.attempt));
        }
        if value.downcast_ref::<Refused>() == Some(&Refused::Unlisted) {
            write(ledger, "unlisted");
        }
        answer
    }
}

forward_store!(LedgerStore { inner: inner, around: note });

fn write(ledger: &Path, line: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(ledger).expect("the ledger opens");
    file.write_all(format!("{line}\n").as_bytes()).expect("the ledger can be written");
}

#[test]
#[ignore = "it is what other processes of these tests run"]
fn another_process() {
    let (Ok(role), Some(folder)) = (std::env::var(ROLE), std::env::var_os(FOLDER)) else { return };
    let folder = PathBuf::from(folder);
    std::thread::spawn(|| {
        // The end of the pipe, however it comes, means that the test has ended.
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(0);
    });
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    threads.expect("a runtime").block_on(async {
        let (url, schema) = (std::env::var(URL).ok(), std::env::var(SCHEMA).ok());
        let inner = open(&folder, url.as_deref().zip(schema.as_deref())).await;
        let store = Arc::new(LedgerStore { inner, ledger: Some(folder.join("ledger")) });
        let (activities, orchestrations) = code(&role);
        // Dropping a runtime does not stop it.
        drop(Runtime::start_with_store(store, activities, orchestrations).await);
        std::future::pending::<()>().await;
    });
}

/// The new worker has `Flow`, which calls `Work`, which tells its attempt; the old ones have something else.
fn code(role: &str) -> (ActivityRegistry, OrchestrationRegistry) {
    let (activities, orchestrations) = (ActivityRegistry::builder(), OrchestrationRegistry::builder());
    if role == "old" {
        let other = |_: OrchestrationContext, input: String| async move { Ok(input) };
        return (activities.build(), orchestrations.register("Other", other).build());
    }
    let work = |ctx: ActivityContext, _: String| async move { Ok(ctx.counted_deliveries().to_string()) };
    let flow = |ctx: OrchestrationContext, _: String| async move { ctx.schedule_activity("Work", "").await };
    (activities.register("Work", work).build(), orchestrations.register("Flow", flow).build())
}

/// Runs nine processes without the code and one with it. Each instance completes, its activity at the first
/// attempt, its turns at the first count; and no refusal makes work wait.
async fn no_instance_fails_or_waits(ground: &FleetGround) {
    let client = Client::new(ground.open().await);
    let mut workers: Vec<FleetWorker> = (0..OLD_WORKERS).map(|_| ground.spawn("old")).collect();
    workers.push(ground.spawn("new"));
    let deadline = SystemClock.monotonic() + LONG;
    while client.workers().await.expect("lists").iter().filter(|worker| worker.is_live).count() <= OLD_WORKERS
    {
        assert!(SystemClock.monotonic() < deadline, "not all of the fleet started within {LONG:?}");
        SystemClock.sleep(Duration::from_millis(20)).await;
    }
    for number in 0..INSTANCES {
        client.start_orchestration(format!("i{number}"), "Flow", "").await.expect("starts");
    }
    for number in 0..INSTANCES {
        let status = client.wait_for_orchestration(&format!("i{number}"), LONG).await.expect("ends");
        let OrchestrationStatus::Completed { output, .. } = status else { panic!("i{number}: {status:?}") };
        assert_eq!(output, "1", "i{number}: the activity at its first attempt");
    }
    let ledger = ground.ledger();
    assert!(ledger.len() >= 2 * INSTANCES, "two turns each: {}", ledger.len());
    let wrong: Vec<&String> = ledger.iter().filter(|line| !line.ends_with(" 1")).collect();
    assert!(wrong.is_empty(), "counted, or left to wait: {wrong:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_of_nine_processes_without_the_code_and_one_with_it_no_instance_fails_or_waits_on_a_file() {
    let folder = TempDir::new().expect("a folder");
    no_instance_fails_or_waits(&FleetGround { folder, server: None }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g5_of_nine_processes_without_the_code_and_one_with_it_no_instance_fails_or_waits_on_a_server() {
    let (folder, server) = (TempDir::new().expect("a folder"), Server::join().expect("a server"));
    let schema = server.schema("fleet");
    no_instance_fails_or_waits(&FleetGround { folder, server: Some((server, schema)) }).await;
}
