//! A quick look at the speed of the whole: workloads W1, W3 and W7 on a SQLite file with `synchronous = FULL`.
//!
//! The machine's own speed is measured in the same run: one bare durable commit. Ratios to it mean something on any
//! machine; the figures themselves do not.

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock of the machine")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use steadfast::providers::sqlite::{SqliteOptions, SqliteProvider};
use steadfast::runtime::Runtime;
use steadfast::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use steadfast::{Client, OrchestrationContext, OrchestrationStatus, RuntimeOptions};

/// How often each measurement is taken; the median counts.
const ROUNDS: usize = 3;

const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::main]
async fn main() -> Result<()> {
    println!("load average: {}", load());
    let commit = bare_commit()?;
    println!("one bare durable commit: p50 {commit:?}");
    throughput().await?;
    latency(commit).await?;
    idle().await
}

/// W1: 200 orchestrations of 5 sequential activities.
async fn throughput() -> Result<()> {
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let world = World::open(16, None).await?;
        let began = Instant::now();
        for n in 0..200 {
            world.client.start_orchestration(format!("w{n}"), "Chain", "5").await?;
        }
        for n in 0..200 {
            world.wait(&format!("w{n}")).await?;
        }
        rates.push(1_000.0 / began.elapsed().as_secs_f64());
        world.close().await;
    }
    rates.sort_by(f64::total_cmp);
    println!("W1  200 x 5 activities: {:.0} activities/s (of {rates:.0?})", rates[ROUNDS / 2]);
    Ok(())
}

/// W3: one at a time, start to result, and the steps of a chain of 100.
async fn latency(commit: Duration) -> Result<()> {
    let world = World::open(2, None).await?;
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

/// W7: an idle runtime.
async fn idle() -> Result<()> {
    let steps = Arc::new(AtomicU64::new(0));
    let world = World::open(2, Some(Arc::clone(&steps))).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (before, cpu) = (steps.load(Ordering::Relaxed), cpu_time()?);
    let time = Duration::from_secs(10);
    tokio::time::sleep(time).await;
    let used = cpu_time()?.saturating_sub(cpu);
    let spent = steps.load(Ordering::Relaxed) - before;
    println!(
        "W7  idle for {time:?}: {spent} steps of SQLite's machine (the check of data_version included), {:.2} % of a core",
        100.0 * used.as_secs_f64() / time.as_secs_f64()
    );
    world.close().await;
    Ok(())
}

struct World {
    client: Client,
    runtime: Arc<Runtime>,
    _folder: tempfile::TempDir,
}

impl World {
    async fn open(slots: usize, count_steps: Option<Arc<AtomicU64>>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let url = format!("sqlite:{}", folder.path().join("bench.db").display());
        let options = SqliteOptions { count_steps, ..SqliteOptions::default() };
        let store = Arc::new(SqliteProvider::new(&url, Some(options)).await?);
        let activities =
            ActivityRegistry::builder().register("Step", |_, input| async move { Ok(input) }).build();
        let orchestrations = OrchestrationRegistry::builder().register("Chain", chain).build();
        let options = RuntimeOptions {
            orchestration_concurrency: slots,
            worker_concurrency: slots,
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
        Ok(Self { client: Client::new(store), runtime, _folder: folder })
    }

    async fn wait(&self, instance: &str) -> Result<()> {
        match self.client.wait_for_orchestration(instance, PATIENCE).await? {
            OrchestrationStatus::Completed { .. } => Ok(()),
            other => anyhow::bail!("{instance} ended with {other:?}"),
        }
    }

    async fn close(self) {
        self.runtime.shutdown(None).await;
    }
}

async fn chain(ctx: OrchestrationContext, length: String) -> Result<String, String> {
    let length: u32 = length.parse().map_err(|_| length.clone())?;
    for step in 0..length {
        ctx.schedule_activity("Step", step.to_string()).await?;
    }
    Ok(length.to_string())
}

/// The median of durable commits of one small row, on the same kind of file.
fn bare_commit() -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let file = rusqlite::Connection::open(folder.path().join("bare.db"))?;
    file.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (x TEXT)")?;
    let mut times = Vec::new();
    for _ in 0..500 {
        let began = Instant::now();
        file.execute("INSERT INTO t VALUES ('a row of about the size of a step')", [])?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

fn ratio(time: Duration, unit: Duration) -> f64 {
    time.as_secs_f64() / unit.as_secs_f64()
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned()).trim().to_owned()
}

/// The processor time of this process, where the system tells it.
fn cpu_time() -> Result<Duration> {
    let stat = std::fs::read_to_string(Path::new("/proc/self/stat"))
        .context("this system does not tell processor time")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Ok(Duration::from_millis((ticks(11) + ticks(12)) * 10))
}
