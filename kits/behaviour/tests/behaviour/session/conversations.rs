//! Conversations: each is an orchestration whose turns run on a session of its own (D14, D15, D23,
//! D24, D25, D40).
//!
//! The second claim goes by real time, because workers come and go in it while turns take theirs.
//! `STEADFAST_CONVERSATIONS` says how many; 200 is the size that counts, and takes a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::workbench::{SECOND, pass_calmly};
use steadfast::providers::Provider;
use steadfast::providers::postgres::PostgresProvider;
use steadfast::providers::sqlite::SqliteProvider;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast::runtime::{Runtime, RuntimeOptions};
use steadfast::{ActivityContext, Client, OrchestrationContext, OrchestrationStatus};
use steadfast_behaviour::{
    Faults, Faulty, Line, Lines, SOON, Stage, activities, on_every_full_store, on_every_store, orchestrations,
};
use steadfast_clock::{Clock, SystemClock};
use steadfast_cluster::{Schema, Server};
use steadfast_store::store_of;
use tempfile::TempDir;
use tokio::sync::Barrier;

/// What a worker keeps of a conversation: what was said.
#[derive(Debug, Default)]
struct Transcript(Mutex<Vec<String>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What lies outside of all workers: first turns of all conversations wait for each other, so that no worker
/// can take all of them, and what was said is saved.
#[derive(Debug)]
struct Table {
    all: Barrier,
    saved: Mutex<BTreeMap<String, Vec<String>>>,
    /// Who has read what was saved, in order.
    hydrated: Mutex<Vec<String>>,
}

impl Table {
    fn new(conversations: usize) -> Arc<Self> {
        let all = Barrier::new(conversations);
        Arc::new(Self { all, saved: Mutex::default(), hydrated: Mutex::default() })
    }

    /// Names the workers that read conversations, sorted.
    fn readers(&self) -> Vec<String> {
        let mut readers = lock(&self.hydrated).clone();
        readers.sort_unstable();
        readers
    }
}

/// Answers with its worker and all that was said.
async fn say(table: &Table, ctx: ActivityContext, text: String) -> Result<String, String> {
    let session = ctx.session().ok_or("it has no session")?;
    let node = ctx.worker_id().split('-').nth(2).unwrap_or_default();
    let saved = lock(&table.saved).get(session.id()).cloned();
    if saved.is_none() {
        table.all.wait().await;
    }
    let hydrate = async {
        lock(&table.hydrated).push(format!("{} {node}", session.id()));
        Ok(Transcript(Mutex::new(saved.unwrap_or_default())))
    };
    let said = session.state_or_init(hydrate).await?;
    let mut said = lock(&said.0);
    said.push(text);
    lock(&table.saved).insert(session.id().to_owned(), said.clone());
    Ok(format!("{node}: {}", said.join(" ")))
}

fn saying(table: &Arc<Table>) -> ActivityRegistryBuilder {
    let table = Arc::clone(table);
    activities().register("Say", move |ctx: ActivityContext, text: String| {
        let table = Arc::clone(&table);
        async move { say(&table, ctx, text).await }
    })
}

fn flows() -> OrchestrationRegistryBuilder {
    orchestrations().register("Simple", simple).register("Long", long)
}

fn options(stage: &Stage, node: &str) -> RuntimeOptions {
    RuntimeOptions {
        worker_node_id: Some(node.to_owned()),
        worker_concurrency: 2,
        dispatcher_long_poll_timeout: SECOND,
        ..stage.options()
    }
}

/// Three turns, one after the other.
async fn simple(ctx: OrchestrationContext, session: String) -> Result<String, String> {
    ctx.schedule_activity_on_session("Say", "hello", session.as_str()).await?;
    ctx.schedule_activity_on_session("Say", "how", session.as_str()).await?;
    ctx.schedule_activity_on_session("Say", "bye", session.as_str()).await
}

/// Two executions, each with a turn, an answer of the user, some time to think, and another turn.
async fn long(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (session, round) = input.split_once('/').ok_or("session/round")?;
    ctx.schedule_activity_on_session("Say", format!("ask{round}"), session).await?;
    let answer = ctx.schedule_wait("answer").await;
    ctx.schedule_timer(40 * SECOND).await;
    let said = ctx.schedule_activity_on_session("Say", answer, session).await?;
    if round == "1" { ctx.continue_as_new(format!("{session}/2")).await } else { Ok(said) }
}

/// Starts two long conversations, and returns when both wait for an answer.
async fn begin_long(stage: &Stage) -> [&'static str; 2] {
    for n in [1, 2] {
        stage.start(&format!("long{n}"), "Long", &format!("l{n}/1")).await;
    }
    for instance in ["long1", "long2"] {
        stage.has(instance, "ExternalSubscribed", 1).await;
    }
    ["long1", "long2"]
}

/// Answers each conversation in one of its executions, and lets the time pass that it takes to think: longer
/// than a lease.
async fn answer(stage: &Stage, instances: &[&str], round: usize) {
    for instance in instances {
        let begun = async || {
            stage.observer().list_executions(instance).await.is_ok_and(|executions| executions.len() == round)
        };
        stage.until("the execution begins", begun).await;
        stage.has(instance, "ExternalSubscribed", 1).await;
        stage.client.raise_event(*instance, "answer", format!("answer{round}")).await.expect("raises");
        stage.has(instance, "TimerCreated", 1).await;
    }
    pass_calmly(stage, 41 * SECOND, SECOND).await;
}

/// Both conversations began on `A`, end on `B`, and know everything.
async fn went_on(stage: &Stage, table: &Table, instances: &[&str]) {
    answer(stage, instances, 1).await;
    answer(stage, instances, 2).await;
    for instance in instances {
        let said = stage.output(instance).await;
        assert_eq!(said, Ok("B: ask1 answer1 ask2 answer2".to_owned()), "{instance}");
    }
    assert_eq!(table.readers(), ["l1 A", "l1 B", "l2 A", "l2 B"], "read once by each");
}

on_every_store! {
    async fn d14_four_conversations_keep_worker_and_state_over_waits_timers_and_executions(stage) {
        let table = Table::new(4);
        for node in ["A", "B"] {
            stage.run_with(saying(&table), flows(), options(&stage, node)).await;
        }
        for n in [1, 2] {
            stage.start(&format!("simple{n}"), "Simple", &format!("s{n}")).await;
            stage.start(&format!("long{n}"), "Long", &format!("l{n}/1")).await;
        }
        let mut nodes = Vec::new();
        for n in [1, 2] {
            let said = stage.output(&format!("simple{n}")).await.expect("completes");
            let (node, said) = said.split_once(": ").expect("names its worker");
            assert_eq!(said, "hello how bye");
            nodes.push(node.to_owned());
        }
        let both = ["long1", "long2"];
        answer(&stage, &both, 1).await;
        answer(&stage, &both, 2).await;
        for instance in both {
            let said = stage.output(instance).await.expect("completes");
            let (node, said) = said.split_once(": ").expect("names its worker");
            assert_eq!(said, "ask1 answer1 ask2 answer2", "one state saw every turn");
            nodes.push(node.to_owned());
        }
        nodes.sort_unstable();
        assert_eq!(nodes, ["A", "A", "B", "B"]);
        assert_eq!(lock(&table.hydrated).len(), 4, "each is read once");
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

on_every_full_store! {
    async fn d25_conversations_of_a_drained_worker_go_on_elsewhere_from_what_was_saved(stage) {
        let table = Table::new(2);
        let first = stage.run_with(saying(&table), flows(), options(&stage, "A")).await;
        let both = begin_long(&stage).await;
        stage.run_with(saying(&table), flows(), options(&stage, "B")).await;
        first.drain().await;
        went_on(&stage, &table, &both).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }

    async fn d31_conversations_of_a_dead_worker_go_on_elsewhere_from_what_was_saved(stage) {
        let (table, faults) = (Table::new(2), Faults::default());
        let store = store_of(stage.inner(), Arc::new(stage.clock.clone()));
        let store = Arc::new(Faulty::new(store, faults.clone()));
        let dead =
            Runtime::try_start(store, saying(&table).build(), flows().build(), options(&stage, "A")).await;
        let dead = dead.expect("sound options");
        let both = begin_long(&stage).await;
        faults.outage();
        // What it had asked before is answered, with nothing.
        pass_calmly(&stage, 2 * SECOND, SECOND / 4).await;
        stage.run_with(saying(&table), flows(), options(&stage, "B")).await;
        went_on(&stage, &table, &both).await;
        dead.shutdown(Some(0)).await;
        stage.stop().await;
        stage.nothing_waits().await;
    }
}

const NODES: [&str; 3] = ["A", "B", "C"];

/// Ends the test where no session ever moves.
const MAX_RESTARTS: usize = 100;

/// How long the conversations go on, and how often a worker is restarted meanwhile.
#[derive(Debug, Clone, Copy)]
struct Scale {
    conversations: usize,
    lasts: Duration,
    restart_every: Duration,
}

impl Scale {
    fn asked() -> Self {
        let asked = std::env::var("STEADFAST_CONVERSATIONS").ok();
        match asked.map(|asked| asked.parse().expect("STEADFAST_CONVERSATIONS is a number")) {
            None => Self { conversations: 20, lasts: 3 * SECOND, restart_every: SECOND / 2 },
            Some(conversations) => Self { conversations, lasts: 60 * SECOND, restart_every: 5 * SECOND },
        }
    }
}

/// What every turn is compared with, outside of all workers.
#[derive(Debug, Default)]
struct Ledger {
    is_over: AtomicBool,
    /// The last turn of each conversation that has ended.
    last: Mutex<BTreeMap<String, u64>>,
    wrong: Mutex<Vec<String>>,
}

/// What a worker keeps of a conversation: of which attachment it is, and the last turn that it saw.
#[derive(Debug)]
struct LastTurn {
    process: String,
    epoch: u64,
    last: Mutex<u64>,
}

/// Takes turn `number` of the conversation that its session is.
async fn turn(
    ledger: &Ledger,
    process: &str,
    ctx: ActivityContext,
    number: String,
) -> Result<String, String> {
    let number: u64 = number.parse().map_err(|_| number.clone())?;
    let session = ctx.session().ok_or("it has no session")?;
    let known = lock(&ledger.last).get(session.id()).copied().unwrap_or_default();
    let new = async {
        Ok(LastTurn { process: process.to_owned(), epoch: session.epoch(), last: Mutex::new(known) })
    };
    let kept = session.state_or_init(new).await?;
    let last = *lock(&kept.last);
    // A turn whose outcome was not recorded is taken again.
    let follows = last + 1 == number || (last == number && ctx.delivery() > 1);
    if !follows || kept.epoch != session.epoch() || kept.process != process {
        let epoch = session.epoch();
        lock(&ledger.wrong).push(format!("{} {number} in {process}, epoch {epoch}: {kept:?}", session.id()));
    }
    let time = 20 + (number * 61 + session.id().len() as u64 * 17) % 181;
    SystemClock.sleep(Duration::from_millis(time)).await;
    *lock(&kept.last) = number;
    lock(&ledger.last).insert(session.id().to_owned(), number);
    let end = if ledger.is_over.load(Ordering::Relaxed) { "end" } else { "on" };
    Ok(end.to_owned())
}

/// Takes turns until one says that it is over, ten to an execution. Returns how many there were.
async fn talk(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let first: u64 = input.parse().map_err(|_| input.clone())?;
    let session = ctx.instance_id();
    for number in first..first + 10 {
        let next = ctx.schedule_activity_on_session("Turn", number.to_string(), session.as_str()).await?;
        if next == "end" {
            return Ok(number.to_string());
        }
    }
    ctx.continue_as_new((first + 10).to_string()).await
}

/// Starts a worker with a store of its own, as another process would. Every second start of a node keeps its
/// sessions for the next one.
async fn worker(place: &Place, ledger: &Arc<Ledger>, node: &str, start: usize) -> Arc<Runtime> {
    let (ledger, process) = (Arc::clone(ledger), format!("{node}{start}"));
    let turns = activities().register("Turn", move |ctx: ActivityContext, number: String| {
        let (ledger, process) = (Arc::clone(&ledger), process.clone());
        async move { turn(&ledger, &process, ctx, number).await }
    });
    let options = RuntimeOptions {
        worker_node_id: Some(node.to_owned()),
        session_lock_timeout: 4 * SECOND,
        session_lock_renewal_buffer: SECOND,
        release_sessions_on_shutdown: start.is_multiple_of(2),
        orchestration_concurrency: 4,
        worker_concurrency: 8,
        ..RuntimeOptions::default()
    };
    Runtime::start_with_options(
        place.open().await,
        turns.build(),
        orchestrations().register("Talk", talk).build(),
        options,
    )
    .await
}

/// Where the store is that every worker opens for itself.
enum Place {
    File(TempDir),
    Server(Server, Schema),
}

impl Place {
    fn file() -> Self {
        Self::File(tempfile::tempdir().expect("a folder"))
    }

    fn server() -> Self {
        let server = Server::join().expect("a server");
        let schema = server.schema("conversations");
        Self::Server(server, schema)
    }

    async fn open(&self) -> Arc<dyn Provider> {
        match self {
            Self::File(folder) => {
                let url = format!("sqlite:{}", folder.path().join("store.db").display());
                Arc::new(SqliteProvider::new(&url, None).await.expect("the file opens"))
            }
            Self::Server(server, schema) => {
                let store = PostgresProvider::new_with_schema(server.url(), Some(schema.name())).await;
                Arc::new(store.expect("the schema opens"))
            }
        }
    }
}

#[tokio::test]
async fn d40_restarts_of_workers_lose_no_conversation_turn_and_every_move_has_a_cause() {
    every_move_has_a_cause(&Place::file()).await;
}

#[tokio::test]
async fn d40_restarts_of_workers_on_a_server_lose_no_turn_and_every_move_has_a_cause() {
    every_move_has_a_cause(&Place::server()).await;
}

#[allow(clippy::print_stderr, reason = "figures are for people")]
async fn every_move_has_a_cause(place: &Place) {
    let (lines, _guard) = Lines::collect();
    let (size, ledger) = (Scale::asked(), Arc::<Ledger>::default());
    let client = Client::new(place.open().await);
    let mut workers = Vec::new();
    for node in NODES {
        workers.push(worker(place, &ledger, node, 0).await);
    }
    for n in 0..size.conversations {
        client.start_orchestration(format!("talk-{n}"), "Talk", "1").await.expect("starts");
    }
    let end = SystemClock.monotonic() + size.lasts;
    let has_moved = || lines.of("steadfast::runtime").iter().any(|line| line.says("session migrated"));
    let mut restarts = 0;
    // On a slow machine a worker may be back before another one has claimed any of its sessions.
    while SystemClock.monotonic() < end || (!has_moved() && restarts < MAX_RESTARTS) {
        SystemClock.sleep(size.restart_every).await;
        let (victim, start) = (restarts % NODES.len(), 1 + restarts / NODES.len());
        Arc::clone(&workers[victim]).shutdown(None).await;
        workers[victim] = worker(place, &ledger, NODES[victim], start).await;
        restarts += 1;
    }
    ledger.is_over.store(true, Ordering::Relaxed);
    let mut turns = 0;
    for n in 0..size.conversations {
        let instance = format!("talk-{n}");
        let ended = client.wait_for_orchestration(&instance, SOON).await;
        let Ok(OrchestrationStatus::Completed { output, .. }) = ended else {
            panic!("{instance}: {ended:?}")
        };
        let count: u64 = output.parse().expect("a number");
        assert_eq!(lock(&ledger.last).get(&instance), Some(&count), "{instance}: all that was recorded ran");
        turns += count;
    }
    for worker in workers {
        worker.shutdown(None).await;
    }
    assert_eq!(*lock(&ledger.wrong), Vec::<String>::new(), "turns on what another attachment left");
    assert!(turns > 2 * size.conversations as u64, "{turns} turns");
    let moves = assert_causes(&lines.of("steadfast::runtime"));
    eprintln!("{} conversations, {turns} turns, {restarts} restarts, {moves} moves", size.conversations);
    assert!(moves > 0, "no session moved in {restarts} restarts");
    let depths = client.get_queue_depths().await.expect("counts");
    assert_eq!((depths.orchestrator_queue, depths.worker_queue), (0, 0));
}

/// Every claim of a session that was attached before is explained by a line that ends that very attachment.
/// Returns how many went from one node to another.
fn assert_causes(lines: &[Line]) -> usize {
    const CAUSES: [&str; 3] =
        ["session released", "session kept for the next start of this node", "session lost"];
    let epoch = |line: &Line| line.field("epoch").parse::<u64>().expect("an epoch");
    let ended: BTreeSet<(&str, u64)> = lines
        .iter()
        .filter(|line| CAUSES.iter().any(|cause| line.says(cause)))
        .map(|line| (line.field("session_id"), epoch(line)))
        .collect();
    let mut claims: BTreeMap<(&str, u64), &Line> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.says("session claimed")) {
        let twice = claims.insert((line.field("session_id"), epoch(line)), line);
        assert_eq!(twice, None, "an epoch is claimed once");
    }
    let all: Vec<_> = claims.iter().collect();
    let mut moves = 0;
    for pair in all.windows(2) {
        let [((session, before), owner), ((next, _), claim)] = pair else { continue };
        if session != next {
            continue;
        }
        assert_eq!(claim.field("from"), owner.field("owner"), "{claim:?}");
        assert!(ended.contains(&(session, *before)), "nothing says why: {owner:?}, then {claim:?}");
        moves += usize::from(claim.field("from") != claim.field("owner"));
    }
    let told = lines.iter().filter(|line| line.says("session migrated")).count();
    assert_eq!(moves, told, "each is told");
    moves
}
