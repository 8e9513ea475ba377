//! What the SQLite store costs on top of its own statements: `steadfast-bench-store [FOLDER]`.
//!
//! A request is one `finish_work`, or one `commit_turn` of one completion and one schedule. The store answers
//! them to 64 callers at once, and to one; beside it the same prepared statements run on a bare connection,
//! 64 requests to a transaction, and one. Both sides are durable (`synchronous = FULL`), take turns in the
//! same run, and begin each round with a file of the same rows.

#![allow(clippy::print_stdout, reason = "figures are what it makes")]

mod bare;
mod ours;
mod rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use steadfast_clock::{Clock, SystemClock};
use steadfast_sqlite::SqliteOptions;
use tempfile::TempDir;

/// How many callers there are, and requests in a bare transaction.
const CALLERS: usize = 64;

/// How often each caller finishes an activity and commits a turn in a round.
const PAIRS: usize = 60;

/// How often the one caller does.
const ALONE: usize = 400;

/// Rounds of each side; the median counts.
const ROUNDS: usize = 5;

/// The share of the bare rate that the store must reach.
const SHARE: f64 = 0.60;

/// What one call may take, as a multiple of a bare commit or in time beside it, whichever is more.
const MULTIPLE: f64 = 1.5;
const BESIDE: Duration = Duration::from_micros(60);

fn main() -> anyhow::Result<()> {
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => TempDir::new_in(folder),
        None => TempDir::new(),
    }
    .context("a folder for the files")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("load average {}", load_average());
    runtime.block_on(ours::runs_the_same_statements(&folder.path().join("same.db")))?;
    let many = many(folder.path(), &runtime)?;
    let one = one(folder.path(), &runtime)?;
    idle(folder.path())?;
    println!("load average {}", load_average());
    ensure!(many, "bar missed: {CALLERS} callers");
    ensure!(one, "bar missed: one caller");
    Ok(())
}

/// The rate with many callers, in requests a second.
fn many(folder: &Path, runtime: &tokio::runtime::Runtime) -> anyhow::Result<bool> {
    let requests = 2 * CALLERS * PAIRS;
    let (mut bare, mut store) = (Vec::new(), Vec::new());
    let commits = Arc::new(AtomicU64::new(0));
    for round in 0..ROUNDS {
        let file = prepared(folder, "bare", round, CALLERS * PAIRS)?;
        bare.push(timed(|| bare::in_groups(&file, CALLERS * PAIRS, CALLERS))?);
        let file = prepared(folder, "store", round, CALLERS * PAIRS)?;
        let opened = runtime.block_on(ours::open(&file, &commits))?;
        store.push(timed(|| runtime.block_on(ours::by_callers(&opened, CALLERS, PAIRS)))?);
    }
    let rate = |time: Duration| requests as f64 / time.as_secs_f64();
    let (bare, store) = (rate(median(&mut bare)), rate(median(&mut store)));
    let share = store / bare;
    println!(
        "{CALLERS} callers: {store:.0} requests/s in groups of {:.0}, {bare:.0} bare in transactions \
         of {CALLERS}: \
         {:.0} % (bar {:.0} %)  {}",
        (requests * ROUNDS) as f64 / commits.load(Ordering::Relaxed).max(1) as f64,
        share * 100.0,
        SHARE * 100.0,
        verdict(share >= SHARE)
    );
    Ok(share >= SHARE)
}

/// The median time of a call by one caller.
fn one(folder: &Path, runtime: &tokio::runtime::Runtime) -> anyhow::Result<bool> {
    let (mut bare, mut store) = (Vec::new(), Vec::new());
    for round in ROUNDS..2 * ROUNDS {
        let file = prepared(folder, "bare", round, ALONE)?;
        bare.push(median(&mut bare::one_by_one(&file, ALONE)?));
        let file = prepared(folder, "store", round, ALONE)?;
        let opened = runtime.block_on(ours::open(&file, &Arc::default()))?;
        store.push(median(&mut runtime.block_on(ours::one_by_one(&opened, ALONE))?));
    }
    let (bare, store) = (median(&mut bare), median(&mut store));
    let bar = bare.mul_f64(MULTIPLE).max(bare + BESIDE);
    println!(
        "one caller: a call takes {} µs (p50), a bare commit {} µs: {:.2}× (bar {} µs)  {}",
        store.as_micros(),
        bare.as_micros(),
        store.as_secs_f64() / bare.as_secs_f64(),
        bar.as_micros(),
        verdict(store <= bar)
    );
    Ok(store <= bar)
}

/// What it costs to look for commits of other processes while nothing happens.
fn idle(folder: &Path) -> anyhow::Result<()> {
    let file = prepared(folder, "idle", 0, 1)?;
    let look = median(&mut bare::looks(&file, 1_000)?);
    if let Some(interval) = SqliteOptions::default().other_processes {
        let share = look.as_secs_f64() / interval.as_secs_f64();
        println!(
            "idle: a look at the data version takes {:.1} µs, every {} ms: {:.3} % of a core",
            look.as_secs_f64() * 1e6,
            interval.as_millis(),
            share * 100.0
        );
    }
    Ok(())
}

fn prepared(folder: &Path, side: &str, round: usize, pairs: usize) -> anyhow::Result<PathBuf> {
    let file = folder.join(format!("{side}-{round}.db"));
    rows::prepare(&file, pairs)?;
    Ok(file)
}

fn timed(run: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let begun = SystemClock.monotonic();
    run()?;
    Ok(SystemClock.monotonic() - begun)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn verdict(passes: bool) -> &'static str {
    if passes { "pass" } else { "MISS" }
}

fn load_average() -> String {
    std::fs::read_to_string("/proc/loadavg")
        .map_or_else(|_| "unknown".to_owned(), |text| text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}
