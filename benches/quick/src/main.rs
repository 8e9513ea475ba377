//! A quick look at the speed of the whole: workloads W1, W3, W4, W6, W7 and W8 on a SQLite file with
//! `synchronous = FULL`, or on a PostgreSQL server with `synchronous_commit = on`. Moves of a session are
//! measured when they are asked for by name.
//!
//! The machine's own speed is measured in the same run: one bare durable commit. Ratios to it mean something
//! on any machine; the figures themselves do not.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock of the machine")]

mod conversations;
mod place;
mod sessions;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use steadfast::{Client, OrchestrationContext, OrchestrationStatus, RuntimeOptions};

use crate::place::{Asked, Backing, Place};

/// How often each measurement is taken; the median counts.
const ROUNDS: usize = 3;

const PATIENCE: Duration = Duration::from_secs(120);

const WORKLOADS: [&str; 7] = ["W1", "W3", "W4", "W6", "W7", "W8", SESSIONS];

/// Has a bar of its own, so it runs only by name.
const SESSIONS: &str = "sessions";

#[tokio::main]
async fn main() -> Result<()> {
    let mut asked: Vec<String> = std::env::args().skip(1).collect();
    let named = asked.iter().position(|argument| argument == "--store");
    let store = match named {
        Some(at) if at + 1 < asked.len() => asked.drain(at..at + 2).nth(1).unwrap_or_default(),
        Some(_) => anyhow::bail!("--store needs a name: sqlite or postgres"),
        None => "sqlite".to_owned(),
    };
    if let Some(unknown) = asked.iter().find(|name| !WORKLOADS.contains(&name.as_str())) {
        anyhow::bail!("there is no workload {unknown:?}; there are {}", WORKLOADS.join(", "));
    }
    let runs = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    println!("load average: {}", load());
    let backing = Backing::named(&store)?;
    let commit = backing.bare_commit().await?;
    println!("{store}, one bare durable commit: p50 {commit:?}");
    if runs("W1") {
        throughput(&backing).await?;
    }
    if runs("W3") {
        latency(&backing, commit).await?;
    }
    if runs("W4") {
        long_chain(&backing).await?;
    }
    if runs("W6") {
        conversations::run(&backing).await?;
    }
    if runs("W7") {
        idle(&backing).await?;
    }
    if runs("W8") {
        parked(&backing).await?;
    }
    if asked.iter().any(|asked| asked == SESSIONS) {
        sessions::run(&backing, commit).await?;
    }
    Ok(())
}

/// W1: 200 orchestrations of 5 sequential activities.
async fn throughput(backing: &Backing) -> Result<()> {
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let world = World::open(backing, backing.many_slots()).await?;
        let began = Instant::now();
        let mut clients = tokio::task::JoinSet::new();
        for n in 0..200 {
            let client = world.client.clone();
            clients.spawn(async move {
                let instance = format!("w{n}");
                client.start_orchestration(&instance, "Chain", "5").await?;
                completed(&client, &instance).await
            });
        }
        while let Some(ended) = clients.join_next().await {
            ended??;
        }
        rates.push(1_000.0 / began.elapsed().as_secs_f64());
        world.close().await;
    }
    rates.sort_by(f64::total_cmp);
    println!("W1  200 x 5 activities: {:.0} activities/s (of {rates:.0?})", rates[ROUNDS / 2]);
    Ok(())
}

/// W3: one at a time, start to result, and the steps of a chain of 100.
async fn latency(backing: &Backing, commit: Duration) -> Result<()> {
    let world = World::open(backing, 2).await?;
    let mut times = Vec::new();
    for n in 0..200 {
        let began = Instant::now();
        world.client.start_orchestration(format!("one{n}"), "Chain", "1").await?;
        world.wait(&format!("one{n}")).await?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("W3  start to result: p50 {p50:?} ({:.1} commits), p99 {p99:?}", ratio(p50, commit));
    let mut steps = Vec::new();
    for n in 0..ROUNDS {
        let began = Instant::now();
        world.client.start_orchestration(format!("chain{n}"), "Chain", "100").await?;
        world.wait(&format!("chain{n}")).await?;
        steps.push(began.elapsed() / 100);
    }
    steps.sort_unstable();
    let step = steps[ROUNDS / 2];
    println!("W3  a step of a chain of 100: {step:?} ({:.1} commits)", ratio(step, commit));
    world.close().await;
    Ok(())
}

/// W4: one chain of 3,000 activities: does a step cost more when much has happened before it?
async fn long_chain(backing: &Backing) -> Result<()> {
    const STEPS: usize = 3_000;
    let world = World::open(backing, 2).await?;
    let began = Instant::now();
    world.client.start_orchestration("long", "Chain", STEPS.to_string()).await?;
    world.wait("long").await?;
    let total = began.elapsed();
    let moments = std::mem::take(&mut *world.steps.lock().unwrap_or_else(PoisonError::into_inner));
    let hundred = |from: usize| moments[from + 100].duration_since(moments[from]);
    let (first, last) = (hundred(0), hundred(STEPS - 101));
    println!(
        "W4  a chain of {STEPS}: {total:?}; the first 100 steps {first:?}, the last 100 {last:?}, \
         {:.2}x (bar 1.2)",
        ratio(last, first)
    );
    world.close().await;
    Ok(())
}

/// W7: an idle runtime.
async fn idle(backing: &Backing) -> Result<()> {
    let world = World::open(backing, 2).await?;
    // What the start wrote has been written, and the store has calmed down.
    tokio::time::sleep(Duration::from_secs(11)).await;
    let (before, cpu) = (world.asked.statements(), cpu_times()?);
    let time = Duration::from_secs(20);
    tokio::time::sleep(time).await;
    let used = cpu_since(&cpu)?;
    let spent = world.asked.statements() - before;
    println!(
        "W7  idle for {time:?}: {spent} statements (looks at data_version apart), \
         {:.3} % of a core (bar 0.2)",
        100.0 * used.as_secs_f64() / time.as_secs_f64()
    );
    world.close().await;
    Ok(())
}

/// W8: orchestrations that are started and wait for an event: how fast, and how much memory each takes.
async fn parked(backing: &Backing) -> Result<()> {
    let world = World::open(backing, 16).await?;
    let mut memory = Vec::new();
    let mut started = 0;
    for target in [10_000, 50_000] {
        let began = Instant::now();
        let more = target - started;
        park(&world.client, started, target).await?;
        started = target;
        while world.client.get_queue_depths().await?.orchestrator_queue > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let last = format!("p{}", target - 1);
        world.client.wait_for_status_change(&last, 0, Duration::from_millis(5), PATIENCE).await?;
        println!("W8  {more} started and parked in {:?}", began.elapsed());
        memory.push(resident()?);
    }
    let slope = (memory[1] as f64 - memory[0] as f64) / 40_000.0;
    println!(
        "W8  resident: {} MiB with 10,000, {} MiB with 50,000: {slope:.0} bytes for each more \
         (bar 2,048); {} of them warm",
        memory[0] >> 20,
        memory[1] >> 20,
        world.runtime.warm_orchestrations()
    );
    world.close().await;
    Ok(())
}

/// Starts many at a time, because one client that waits for each commit measures the disk.
async fn park(client: &Client, from: usize, to: usize) -> Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for lane in 0..64 {
        let client = client.clone();
        tasks.spawn(async move {
            for n in (from + lane..to).step_by(64) {
                client.start_orchestration(format!("p{n}"), "Park", "").await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

struct World {
    client: Client,
    runtime: Arc<Runtime>,
    /// When each activity ran.
    steps: Arc<Mutex<Vec<Instant>>>,
    asked: Asked,
    _place: Place,
}

impl World {
    async fn open(backing: &Backing, slots: usize) -> Result<Self> {
        let place = backing.place()?;
        let (store, asked) = place.counted_store().await?;
        let steps = Arc::<Mutex<Vec<Instant>>>::default();
        let moments = Arc::clone(&steps);
        let activities = ActivityRegistry::builder()
            .register("Step", move |_, input| {
                moments.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
                async move { Ok(input) }
            })
            .build();
        let orchestrations =
            OrchestrationRegistry::builder().register("Chain", chain).register("Park", park_here).build();
        let options = RuntimeOptions {
            orchestration_concurrency: slots,
            worker_concurrency: slots,
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
        Ok(Self { client: Client::new(store), runtime, steps, asked, _place: place })
    }

    async fn wait(&self, instance: &str) -> Result<()> {
        completed(&self.client, instance).await
    }

    async fn close(self) {
        self.runtime.shutdown(None).await;
    }
}

async fn completed(client: &Client, instance: &str) -> Result<()> {
    match client.wait_for_orchestration(instance, PATIENCE).await? {
        OrchestrationStatus::Completed { .. } => Ok(()),
        other => anyhow::bail!("{instance} ended with {other:?}"),
    }
}

async fn chain(ctx: OrchestrationContext, length: String) -> Result<String, String> {
    let length: u32 = length.parse().map_err(|_| length.clone())?;
    for step in 0..length {
        ctx.schedule_activity("Step", step.to_string()).await?;
    }
    Ok(length.to_string())
}

async fn park_here(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.set_custom_status("parked");
    Ok(ctx.schedule_wait("never").await)
}

fn ratio(time: Duration, unit: Duration) -> f64 {
    time.as_secs_f64() / unit.as_secs_f64()
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned()).trim().to_owned()
}

/// The processor time of each thread of this process so far, where the system tells it.
fn cpu_times() -> Result<BTreeMap<PathBuf, Duration>> {
    let mut times = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").context("this system does not tell processor time")? {
        let task = task?.path();
        // A thread may end while we look.
        let told = std::fs::read_to_string(task.join("schedstat")).unwrap_or_default();
        let nanos = told.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0);
        times.insert(task, Duration::from_nanos(nanos));
    }
    Ok(times)
}

/// What the threads that are there now have used since then; those that ended meanwhile belong to what ran
/// before.
fn cpu_since(before: &BTreeMap<PathBuf, Duration>) -> Result<Duration> {
    let used = |(task, time): (PathBuf, Duration)| {
        time.saturating_sub(before.get(&task).copied().unwrap_or_default())
    };
    Ok(cpu_times()?.into_iter().map(used).sum())
}

/// The memory of this process that is really there, in bytes.
fn resident() -> Result<u64> {
    let told = std::fs::read_to_string("/proc/self/statm").context("this system does not tell memory")?;
    let pages: u64 = told.split_whitespace().nth(1).context("no resident pages are told")?.parse()?;
    Ok(pages * 4_096)
}
