//! Real processes on a real PostgreSQL server: workers that are killed, a server that crashes, clocks that
//! are wrong.
//!
//! They go by real time. `STEADFAST_CRASHES=full` runs the
//! large size.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast::providers::Provider;
use steadfast::providers::postgres::{PostgresOptions, PostgresProvider};
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use steadfast::{
    ActivityContext, Client, Event, EventKind, OrchestrationContext, OrchestrationStatus, RuntimeOptions,
};
use steadfast_clock::{Clock, Sleep, SystemClock};
use steadfast_cluster::{Bouncer, INSTALL_BOUNCER, Server, Startup};
use tempfile::TempDir;

const URL: &str = "STEADFAST_TEST_URL";
const SCHEMA: &str = "STEADFAST_TEST_SCHEMA";
const NODE: &str = "STEADFAST_TEST_NODE";
const LEDGER: &str = "STEADFAST_TEST_LEDGER";

/// Bounds everything that is waited for.
const LONG: Duration = Duration::from_secs(120);

/// How much is done to them.
struct Size {
    orchestrations: usize,
    workers: usize,
    kills: usize,
    crashes: usize,
}

fn size() -> Size {
    match std::env::var("STEADFAST_CRASHES").as_deref() {
        Ok("full") => Size { orchestrations: 2_000, workers: 4, kills: 30, crashes: 2 },
        _ => Size { orchestrations: 120, workers: 3, kills: 4, crashes: 1 },
    }
}

/// A worker in a process of its own.
struct ServerWorker {
    child: Child,
}

impl ServerWorker {
    fn start(url: &str, schema: &str, node: &str, ledger: &Path) -> Self {
        let child = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["--exact", "server::another_process", "--ignored", "--nocapture"])
            .env(URL, url)
            .env(SCHEMA, schema)
            .env(NODE, node)
            .env(LEDGER, ledger)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self { child: child.expect("another process") }
    }
}

impl Drop for ServerWorker {
    fn drop(&mut self) {
        // `kill -9`. It may have ended by itself; either way there is nothing left of it.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
#[ignore = "it is what other processes of these tests run"]
fn another_process() {
    let (Ok(url), Ok(schema), Ok(node), Some(ledger)) =
        (std::env::var(URL), std::env::var(SCHEMA), std::env::var(NODE), std::env::var_os(LEDGER))
    else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        // The server may be away at this moment.
        let store = loop {
            match PostgresProvider::new_with_schema(&url, Some(&schema)).await {
                Ok(store) => break store,
                Err(_) => SystemClock.sleep(Duration::from_millis(100)).await,
            }
        };
        let worker = work(Arc::new(store), node, PathBuf::from(ledger)).await;
        let closed = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        // The end of the pipe, however it comes, means that the test has ended.
        drop(closed.await);
        worker.shutdown(None).await;
    });
}

async fn work(store: Arc<dyn Provider>, node: String, ledger: PathBuf) -> Arc<Runtime> {
    let options = RuntimeOptions {
        worker_node_id: Some(node),
        orchestration_concurrency: 8,
        worker_concurrency: 8,
        // Killed and crashed so often, an item may be fetched many times before it is done once.
        max_attempts: 50,
        orchestrator_lock_timeout: Duration::from_secs(2),
        worker_lock_timeout: Duration::from_secs(3),
        worker_lock_renewal_buffer: Duration::from_secs(1),
        session_lock_timeout: Duration::from_secs(3),
        session_lock_renewal_buffer: Duration::from_secs(1),
        ..RuntimeOptions::default()
    };
    let activities = ActivityRegistry::builder().register("Step", move |ctx, input| {
        let ledger = ledger.clone();
        async move { step(&ledger, &ctx, input).await }
    });
    let orchestrations = OrchestrationRegistry::builder()
        .register("Chain", chain)
        .register("Talk", talk)
        .register("Pause", pause)
        .register("Parent", parent);
    Runtime::start_with_options(store, activities.build(), orchestrations.build(), options).await
}

/// Takes a little time, and leaves a line: session, epoch, process.
async fn step(ledger: &Path, ctx: &ActivityContext, input: String) -> Result<String, String> {
    if let Some(session) = ctx.session() {
        let line = format!("{} {} {}\n", session.id(), session.epoch(), std::process::id());
        let file = OpenOptions::new().append(true).create(true).open(ledger);
        file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|error| error.to_string())?;
    }
    SystemClock.sleep(Duration::from_millis(20)).await;
    Ok(input)
}

async fn chain(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    for n in 0..3 {
        ctx.schedule_activity("Step", n.to_string()).await?;
    }
    Ok(input)
}

async fn talk(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    for n in 0..3 {
        ctx.schedule_activity_on_session("Step", n.to_string(), input.as_str()).await?;
    }
    Ok(input)
}

async fn pause(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_timer(Duration::from_millis(700)).await;
    ctx.schedule_activity("Step", "0").await?;
    Ok(input)
}

async fn parent(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_sub_orchestration("Chain", input).await
}

const KINDS: [&str; 4] = ["Chain", "Talk", "Pause", "Parent"];

/// Asks until the server answers.
async fn answered<T, E: std::fmt::Display>(ask: impl AsyncFn() -> Result<T, E>) -> T {
    let deadline = SystemClock.monotonic() + LONG;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(SystemClock.monotonic() < deadline, "{error}"),
        }
        SystemClock.sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i1_workers_that_are_killed_and_a_server_that_crashes_lose_nothing() {
    let Size { orchestrations, workers, kills, crashes } = size();
    let server = Server::durable().expect("a server");
    let schema = server.schema("crashes");
    let folder = TempDir::new().expect("a folder");
    let ledger = folder.path().join("ledger");
    let store = PostgresProvider::new_with_schema(server.url(), Some(schema.name())).await.expect("opens");
    let client = Client::new(Arc::new(store));
    for n in 0..orchestrations {
        let kind = KINDS[n % KINDS.len()];
        // Some conversations share a session.
        let input = if kind == "Talk" { format!("session-{}", n % 20) } else { n.to_string() };
        client.start_orchestration(format!("o{n}"), kind, input).await.expect("starts");
    }
    let name = AtomicU64::new(0);
    let start = || {
        let node = format!("w{}", name.fetch_add(1, Ordering::Relaxed));
        ServerWorker::start(server.url(), schema.name(), &node, &ledger)
    };
    let mut crew: Vec<ServerWorker> = (0..workers).map(|_| start()).collect();
    for kill in 0..kills {
        SystemClock.sleep(Duration::from_secs(1)).await;
        crew[kill % workers] = start();
        if crashes > 0 && kill % (kills / crashes) == kills / crashes / 2 {
            server.stop_immediately().expect("stops");
            SystemClock.sleep(Duration::from_millis(500)).await;
            server.start_again().expect("starts");
        }
    }
    for n in 0..orchestrations {
        let instance = format!("o{n}");
        let status = answered(async || client.wait_for_orchestration(&instance, LONG).await).await;
        assert!(matches!(&status, OrchestrationStatus::Completed { .. }), "{instance}: {status:?}");
    }
    drop(crew);
    for n in 0..orchestrations {
        recorded_once(&client, &format!("o{n}")).await;
    }
    assert!(client.list_set_aside(None).await.expect("lists").is_empty());
    each_epoch_belongs_to_one(&ledger);
}

/// Every event has its number, and everything that was asked for was answered once.
async fn recorded_once(client: &Client, instance: &str) {
    let events = client.read_execution_history(instance, 1).await.expect("reads");
    let ids: Vec<u64> = events.iter().map(|event| event.event_id).collect();
    assert_eq!(ids, (1..=events.len() as u64).collect::<Vec<_>>(), "{instance}");
    let answers: Vec<u64> =
        events.iter().filter(|event| is_answer(event)).filter_map(|event| event.source_event_id).collect();
    let once: BTreeSet<u64> = answers.iter().copied().collect();
    assert_eq!(once.len(), answers.len(), "{instance}: answered twice");
    let asked = events.iter().filter(|event| is_question(event)).count();
    assert_eq!(asked, answers.len(), "{instance}: not answered");
}

fn is_answer(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::ActivityCompleted { .. }
            | EventKind::TimerFired { .. }
            | EventKind::SubOrchestrationCompleted { .. }
    )
}

fn is_question(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::ActivityScheduled { .. }
            | EventKind::TimerCreated { .. }
            | EventKind::SubOrchestrationScheduled { .. }
    )
}

/// No two processes ran turns of a session under one epoch.
fn each_epoch_belongs_to_one(ledger: &Path) {
    let text = std::fs::read_to_string(ledger).expect("sessions had turns");
    let mut holders: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines() {
        let [session, epoch, process] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line:?}") };
        holders.entry((session, epoch)).or_default().insert(process);
    }
    for (attachment, processes) in holders {
        assert_eq!(processes.len(), 1, "{attachment:?} was held by {processes:?}");
    }
}

/// A clock of a machine that is wrong.
#[derive(Debug)]
struct Wrong {
    by_ms: i64,
}

impl Clock for Wrong {
    fn now_ms(&self) -> u64 {
        SystemClock.now_ms().saturating_add_signed(self.by_ms)
    }

    fn monotonic(&self) -> Duration {
        SystemClock.monotonic()
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        SystemClock.sleep_until(deadline)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a12_clocks_that_are_ten_minutes_wrong_steal_nothing_and_lose_nothing() {
    let server = Server::join().expect("a server");
    let schema = server.schema("clocks");
    let began = Arc::new(AtomicU64::new(0));
    let mut runtimes = Vec::new();
    for by_ms in [600_000, -600_000] {
        let store =
            PostgresProvider::new_with_schema(server.url(), Some(schema.name())).await.expect("opens");
        let count = Arc::clone(&began);
        let activities = ActivityRegistry::builder().register("Long", move |ctx: ActivityContext, _| {
            count.fetch_add(1, Ordering::Relaxed);
            async move {
                SystemClock.sleep(Duration::from_secs(6)).await;
                Ok(ctx.counted_deliveries().to_string())
            }
        });
        let orchestrations = OrchestrationRegistry::builder()
            .register("Long", |ctx: OrchestrationContext, _: String| async move {
                ctx.schedule_activity("Long", "").await
            })
            .register("Pause", |ctx: OrchestrationContext, _: String| async move {
                ctx.schedule_timer(Duration::from_secs(2)).await;
                Ok(String::new())
            });
        let options = RuntimeOptions {
            clock: Arc::new(Wrong { by_ms }),
            // It is extended after a second, and a machine that stops for a moment loses nothing.
            worker_lock_timeout: Duration::from_secs(5),
            worker_lock_renewal_buffer: Duration::from_secs(4),
            // All activities run at once: one after the other would take as many times their six seconds.
            worker_concurrency: 8,
            ..RuntimeOptions::default()
        };
        runtimes.push(
            Runtime::start_with_options(Arc::new(store), activities.build(), orchestrations.build(), options)
                .await,
        );
    }
    let store = PostgresProvider::new_with_schema(server.url(), Some(schema.name())).await.expect("opens");
    let client = Client::new(Arc::new(store));
    let asked = SystemClock.monotonic();
    for n in 0..8 {
        client.start_orchestration(format!("long{n}"), "Long", "").await.expect("starts");
        client.start_orchestration(format!("pause{n}"), "Pause", "").await.expect("starts");
    }
    for n in 0..8 {
        let pause = client.wait_for_orchestration(&format!("pause{n}"), LONG).await.expect("ends");
        assert!(matches!(pause, OrchestrationStatus::Completed { .. }), "{pause:?}");
    }
    let waited = SystemClock.monotonic() - asked;
    assert!(waited >= Duration::from_secs(2), "a timer fired after {waited:?}");
    assert!(waited < Duration::from_secs(60), "a timer fired after {waited:?}");
    for n in 0..8 {
        let long = client.wait_for_orchestration(&format!("long{n}"), LONG).await.expect("ends");
        let OrchestrationStatus::Completed { output, .. } = long else { panic!("{long:?}") };
        assert_eq!(output, "1", "nobody took it from who had it");
    }
    assert_eq!(began.load(Ordering::Relaxed), 8);
    for runtime in runtimes {
        runtime.shutdown(None).await;
    }
}

/// Two workers and a client, and a pooler that has fewer connections than they.
#[expect(clippy::print_stderr, reason = "the output of a test is where its reader looks")]
async fn everything_ends_through_a_pooler(startup: Startup) {
    if !Bouncer::is_installed() {
        eprintln!("not tried, because PgBouncer is not installed: {INSTALL_BOUNCER}");
        return;
    }
    let server = Server::join().expect("a server");
    let schema = server.schema("pooler");
    let bouncer = Bouncer::before(&server, 4, startup).expect("a pooler");
    let open = async || {
        let poll_interval = Duration::from_millis(200);
        let options = PostgresOptions { poll_interval, ..PostgresOptions::default() };
        let store = PostgresProvider::new_with_options(bouncer.url(), Some(schema.name()), options).await;
        Arc::new(store.expect("opens"))
    };
    let folder = TempDir::new().expect("a folder");
    let ledger = folder.path().join("ledger");
    let client = Client::new(open().await);
    let mut workers = Vec::new();
    for node in ["one", "two"] {
        workers.push(work(open().await, node.to_owned(), ledger.clone()).await);
    }
    let instances: Vec<String> = (0..24).map(|n| format!("o{n}")).collect();
    for (n, instance) in instances.iter().enumerate() {
        let session = format!("session-{}", n % 5);
        client.start_orchestration(instance, KINDS[n % KINDS.len()], session).await.expect("starts");
    }
    for instance in &instances {
        let status = client.wait_for_orchestration(instance, LONG).await.expect("ends");
        assert!(matches!(&status, OrchestrationStatus::Completed { .. }), "{instance}: {status:?}");
        recorded_once(&client, instance).await;
    }
    for worker in workers {
        worker.shutdown(None).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_ends_through_a_pooler_that_refuses_startup_parameters() {
    everything_ends_through_a_pooler(Startup::Refuses).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_ends_through_a_pooler_that_drops_startup_parameters() {
    everything_ends_through_a_pooler(Startup::Drops).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_in_a_transaction_of_the_application_happens_with_it_or_not_at_all() {
    let server = Server::join().expect("a server");
    let schema = server.schema("within");
    let store =
        Arc::new(PostgresProvider::new_with_schema(server.url(), Some(schema.name())).await.expect("opens"));
    let client = Client::new(store.clone());
    let orchestrations = OrchestrationRegistry::builder()
        .register("Order", |ctx: OrchestrationContext, _: String| async move {
            Ok(ctx.schedule_wait("paid").await)
        });
    let runtime =
        Runtime::start_with_store(store.clone(), ActivityRegistry::builder().build(), orchestrations.build())
            .await;
    let (mut application, connection) =
        tokio_postgres::connect(server.url(), tokio_postgres::NoTls).await.expect("connects");
    tokio::spawn(connection);
    let orders = format!("\"{}\".orders", schema.name());
    application.batch_execute(&format!("CREATE TABLE {orders} (id TEXT)")).await.expect("makes a table");
    let insert = format!("INSERT INTO {orders} VALUES ($1)");

    let transaction = application.transaction().await.expect("begins");
    transaction.execute(&insert, &[&"lost"]).await.expect("inserts");
    let within = store.within(&transaction);
    client.through(&within).start_orchestration("lost", "Order", "").await.expect("starts");
    drop(within);
    transaction.rollback().await.expect("rolls back");

    let transaction = application.transaction().await.expect("begins");
    transaction.execute(&insert, &[&"kept"]).await.expect("inserts");
    let within = store.within(&transaction);
    client.through(&within).start_orchestration("kept", "Order", "").await.expect("starts");
    let status = client.get_orchestration_status("kept").await.expect("answers");
    assert_eq!(status, OrchestrationStatus::NotFound, "before the commit there is nothing");
    drop(within);
    transaction.commit().await.expect("commits");

    let explained = async || client.explain("kept").await;
    answered(async || match explained().await {
        Ok(explained) if !explained.waiting.is_empty() => Ok(()),
        _ => Err("it does not wait yet"),
    })
    .await;
    let transaction = application.transaction().await.expect("begins");
    let within = store.within(&transaction);
    client.through(&within).raise_event("kept", "paid", "42").await.expect("raises");
    let bad = client.through(&within).start_orchestration("", "Order", "").await;
    assert!(bad.expect_err("an id is needed").to_string().contains("instance id is empty"));
    drop(within);
    transaction.commit().await.expect("commits");
    let status = client.wait_for_orchestration("kept", LONG).await.expect("ends");
    assert!(matches!(&status, OrchestrationStatus::Completed { output, .. } if output == "42"), "{status:?}");
    let lost = client.get_orchestration_status("lost").await.expect("answers");
    assert_eq!(lost, OrchestrationStatus::NotFound);
    let count = application.query_one(&format!("SELECT count(*) FROM {orders}"), &[]).await.expect("counts");
    assert_eq!(count.get::<_, i64>(0), 1);
    runtime.shutdown(None).await;
}
