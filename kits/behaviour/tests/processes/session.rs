//! Sessions between real processes on one file: an owner that is killed, one that is stopped, and two with
//! one name (D14, D24, D31).
//!
//! They go by real time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast::client::SessionInfo;
use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use steadfast::{
    ActivityContext, Client, OrchestrationContext, OrchestrationStatus, RuntimeOptions, SessionKey,
};
use steadfast_clock::{Clock, SystemClock};
use tempfile::TempDir;

const NODE: &str = "STEADFAST_TEST_NODE";
const LEASE: &str = "STEADFAST_TEST_LEASE_MS";
const FILE: &str = "STEADFAST_TEST_FILE";

/// The session that they all want.
const CHAT: &str = "chat";

/// Bounds everything that is waited for.
const LONG: Duration = Duration::from_secs(60);

/// A worker in a process of its own. It stops in good order when the pipe that its owner holds is closed.
struct SessionWorker {
    child: Child,
    log: PathBuf,
}

impl SessionWorker {
    /// Starts a worker and waits until it serves. `copy` tells apart those with one name.
    async fn start(place: &Place, node: &str, copy: u32, lease: Duration) -> Self {
        let log = place.file.with_extension(format!("{node}{copy}.log"));
        let child = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["--exact", "session::another_process", "--ignored", "--nocapture"])
            .env(NODE, node)
            .env(LEASE, lease.as_millis().to_string())
            .env(FILE, &place.file)
            .stdin(Stdio::piped())
            .stdout(File::create(&log).expect("a log"))
            .stderr(Stdio::null())
            .spawn();
        let worker = Self { child: child.expect("another process"), log };
        until("it serves", async || worker.log().contains("this process serves")).await;
        worker
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log can be read")
    }

    /// Asks it to stop in good order.
    fn stop(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Ends it as `kill -9` does.
    fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it has ended");
    }
}

impl Drop for SessionWorker {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing left of it.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
#[ignore = "it is what other processes of these tests run"]
fn another_process() {
    let (Ok(node), Ok(lease), Some(file)) =
        (std::env::var(NODE), std::env::var(LEASE), std::env::var_os(FILE))
    else {
        return;
    };
    tracing_subscriber::fmt().with_ansi(false).with_writer(Mutex::new(std::io::stdout())).init();
    let lease = Duration::from_millis(lease.parse().expect("a number"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let worker = work(Path::new(&file), node, lease).await;
        tracing::info!("this process serves");
        let closed = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        // The end of the pipe, however it comes, means that the test has ended.
        drop(closed.await);
        worker.shutdown(None).await;
    });
}

async fn work(file: &Path, node: String, lease: Duration) -> Arc<Runtime> {
    let options = RuntimeOptions {
        worker_node_id: Some(node),
        session_lock_timeout: lease,
        session_lock_renewal_buffer: lease / 4,
        orchestration_concurrency: 4,
        worker_concurrency: 4,
        ..RuntimeOptions::default()
    };
    let ledger = file.with_extension("ledger");
    let activities = ActivityRegistry::builder().register("Turn", move |ctx, input| {
        let ledger = ledger.clone();
        async move { turn(&ledger, ctx, input).await }
    });
    let orchestrations = OrchestrationRegistry::builder().register(
        "Turn",
        async |ctx: OrchestrationContext, input: String| {
            ctx.schedule_activity_on_session("Turn", input, CHAT).await
        },
    );
    Runtime::start_with_options(open(file).await, activities.build(), orchestrations.build(), options).await
}

/// Takes as many milliseconds as its input says, and leaves a line when it begins and one when it ends.
async fn turn(ledger: &Path, ctx: ActivityContext, input: String) -> Result<String, String> {
    let time: u64 = input.parse().map_err(|_| input.clone())?;
    let epoch = ctx.session().ok_or("it has no session")?.epoch();
    let (key, pid) = (ctx.idempotency_key(), std::process::id());
    note(ledger, &format!("begins {epoch} {pid} {} {key}", SystemClock.now_ms()));
    SystemClock.sleep(Duration::from_millis(time)).await;
    note(ledger, &format!("ends {epoch} {pid} {} {key}", SystemClock.now_ms()));
    Ok(pid.to_string())
}

fn note(ledger: &Path, line: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(ledger).expect("the ledger opens");
    file.write_all(format!("{line}\n").as_bytes()).expect("the ledger can be written");
}

async fn open(file: &Path) -> Arc<SqliteProvider> {
    let store = SqliteProvider::new(&format!("sqlite:{}", file.display()), None).await;
    Arc::new(store.expect("the file opens"))
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let deadline = SystemClock.monotonic() + LONG;
    while !holds().await {
        assert!(SystemClock.monotonic() < deadline, "'{what}' did not happen within {LONG:?}");
        SystemClock.sleep(Duration::from_millis(5)).await;
    }
}

/// One run of an activity.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    key: String,
    epoch: u64,
    pid: u32,
    began_ms: u64,
    /// None while it runs, and when its process was killed.
    ended_ms: Option<u64>,
}

/// An empty store in a folder of its own, and a client of it in this process.
struct Place {
    _folder: TempDir,
    file: PathBuf,
    client: Client,
}

impl Place {
    async fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("store.db");
        let client = Client::new(open(&file).await);
        Self { _folder: folder, file, client }
    }

    /// Starts an instance that takes one turn of so many milliseconds.
    async fn begin(&self, instance: &str, time: u64) {
        self.client.start_orchestration(instance, "Turn", time.to_string()).await.expect("starts");
    }

    /// Waits until an instance has had its turn, and says in which process.
    async fn ran_in(&self, instance: &str) -> u32 {
        match self.client.wait_for_orchestration(instance, LONG).await {
            Ok(OrchestrationStatus::Completed { output, .. }) => output.parse().expect("a process"),
            other => panic!("{instance}: {other:?}"),
        }
    }

    async fn session(&self) -> SessionInfo {
        let session = self.client.get_session(&SessionKey::shared(CHAT)).await.expect("reads");
        session.expect("the session is there")
    }

    /// Reads the ledger: every run, in the order in which they began.
    fn runs(&self) -> Vec<Run> {
        let text = std::fs::read_to_string(self.file.with_extension("ledger")).unwrap_or_default();
        let mut runs: Vec<Run> = Vec::new();
        for line in text.lines() {
            let [what, epoch, pid, at, key] = line.splitn(5, ' ').collect::<Vec<_>>()[..] else {
                panic!("a line of the ledger is '{line}'");
            };
            let at = at.parse().expect("a time");
            let run = Run {
                key: key.to_owned(),
                epoch: epoch.parse().expect("an epoch"),
                pid: pid.parse().expect("a process"),
                began_ms: at,
                ended_ms: None,
            };
            if what == "begins" {
                runs.push(run);
                continue;
            }
            let open = runs.iter_mut().rfind(|open| {
                (&open.key, open.epoch, open.pid, open.ended_ms) == (&run.key, run.epoch, run.pid, None)
            });
            open.expect("what ends has begun").ended_ms = Some(at);
        }
        runs
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d31_a_session_of_a_killed_process_moves_within_one_lease_after_its_lease_ends() {
    let lease = Duration::from_secs(2);
    let place = Place::new().await;
    let mut owner = SessionWorker::start(&place, "A", 1, lease).await;
    place.begin("first", 0).await;
    assert_eq!(place.ran_in("first").await, owner.pid());
    let other = SessionWorker::start(&place, "B", 1, lease).await;
    owner.kill();
    let killed_ms = SystemClock.now_ms();
    let left = place.session().await;
    assert!(left.locked_until_ms > killed_ms, "it died with a lease");
    place.begin("next", 0).await;
    assert_eq!(place.ran_in("next").await, other.pid());
    let runs = place.runs();
    assert_eq!(runs.len(), 2, "{runs:?}");
    let next = &runs[1];
    assert!(next.epoch > left.epoch, "a new attachment: {runs:?}");
    assert!(next.began_ms >= left.locked_until_ms, "the lease had ended: {left:?}, {runs:?}");
    let took = Duration::from_millis(next.began_ms - killed_ms);
    assert!(took < 2 * lease, "it took {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d24_a_process_that_stops_in_good_order_releases_its_session_before_the_lease_ends() {
    let lease = Duration::from_secs(8);
    let place = Place::new().await;
    let mut owner = SessionWorker::start(&place, "A", 1, lease).await;
    place.begin("first", 0).await;
    assert_eq!(place.ran_in("first").await, owner.pid());
    let other = SessionWorker::start(&place, "B", 1, lease).await;
    let held = place.session().await;
    let asked_ms = SystemClock.now_ms();
    assert!(held.locked_until_ms > asked_ms + 2_000, "the lease outlives what is measured");
    owner.stop();
    // Until it has released the session, the owner itself would serve the next turn.
    until("it lets go", async || place.session().await.locked_until_ms <= SystemClock.now_ms()).await;
    place.begin("next", 0).await;
    assert_eq!(place.ran_in("next").await, other.pid());
    let runs = place.runs();
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(runs[1].epoch > held.epoch, "a new attachment: {runs:?}");
    let took = Duration::from_millis(runs[1].began_ms - asked_ms);
    assert!(took < lease / 4, "it took {took:?}");
    until("it says so", async || owner.log().contains("session released")).await;
    assert!(!other.log().contains("session lost"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a13_of_two_processes_with_one_name_the_older_is_fenced_and_nothing_runs_twice() {
    const FENCED: &str = "another process has started with the worker_node_id of this one";
    let lease = Duration::from_secs(2);
    let place = Place::new().await;
    let older = SessionWorker::start(&place, "A", 1, lease).await;
    // It runs on while the newer one takes the session: its own lock keeps it.
    place.begin("long", 3_000).await;
    until("it runs", async || place.runs().len() == 1).await;
    let newer = SessionWorker::start(&place, "A", 2, lease).await;
    let mut asked = 0;
    // As many as it takes until the older one has heard, and some at once.
    while asked < 1_000 && !older.log().contains(FENCED) {
        let some: Vec<String> = (asked..asked + 4).map(|n| format!("contested-{n}")).collect();
        for instance in &some {
            place.begin(instance, 20).await;
        }
        for instance in &some {
            place.ran_in(instance).await;
        }
        asked += some.len();
    }
    assert!(older.log().contains(FENCED), "it says so: {}", older.log());
    assert_eq!(place.ran_in("long").await, older.pid(), "what it ran counts");
    for n in 0..20 {
        let instance = format!("after-{n}");
        place.begin(&instance, 5).await;
        assert_eq!(place.ran_in(&instance).await, newer.pid(), "the older takes no more session work");
    }
    assert!(!newer.log().contains(FENCED), "{}", newer.log());

    let runs = place.runs();
    assert!(runs.iter().all(|run| run.ended_ms.is_some()), "{runs:?}");
    let keys: BTreeSet<&str> = runs.iter().map(|run| run.key.as_str()).collect();
    assert_eq!((keys.len(), runs.len()), (asked + 21, asked + 21), "each ran once: {runs:?}");
    let mut processes: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    for run in &runs {
        processes.entry(run.epoch).or_default().insert(run.pid);
    }
    assert!(processes.values().all(|pids| pids.len() == 1), "an epoch is one process: {processes:?}");
    assert!(processes.len() >= 2, "{processes:?}");
}
