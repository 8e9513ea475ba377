//! The crash harness: workers under load are killed, paused and cut off, then everything must end, and the
//! auditor reads what is left.

mod clients;
mod outcome;
mod trouble;

use std::{cell::RefCell, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use clap::Args;
use steadfast::{Client, providers::store::store_of};
use steadfast_audit::{Evidence, Fact, Terms, audit};
use steadfast_clock::{Clock, SystemClock};
use steadfast_testing::program::dice::Dice;
use tempfile::TempDir;

use self::{
    clients::{Clients, LoadOptions},
    trouble::Trouble,
};
use crate::{
    address::Address,
    code::Code,
    crew::{Crew, Orders},
    notes::{self, Notes},
    place::{Place, StoreKind},
    tally::Tally,
    worker::{self, Role},
};

pub use outcome::Outcome;

/// How often progress is printed.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long a worker may take to shut down at the end.
const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// How far the moments of the ledgers may be off: a line is written before the engine learns of the end, and
/// the disk of a busy machine takes its time.
const BLUR: Duration = Duration::from_secs(2);

/// What a run is told.
#[derive(Args, Clone, Debug)]
pub struct CrashArguments {
    /// The store
    #[arg(long, value_enum, default_value = "sqlite")]
    pub store: StoreKind,
    /// How long there is trouble, in minutes; fractions are fine
    #[arg(long, value_name = "M", default_value = "3", value_parser = minutes)]
    pub minutes: Duration,
    /// Decides the programs, and the choices of the driver and the clients; random if it is not given.
    /// What the processes make of them differs from run to run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How many worker processes there are
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=32))]
    pub workers: u8,
    /// How many instances run at a time, children aside
    #[arg(long, value_name = "N", default_value = "120")]
    pub window: usize,
    /// Delete instances while they run and start others under their ids; what one execution left is then hard
    /// to tell from the next, and some checks are left out
    #[arg(long)]
    pub deletions: bool,
    /// How long everything may take to end when the trouble is over, in seconds
    #[arg(long, value_name = "S", default_value = "240")]
    pub patience: u64,
    /// Keep the store, the ledgers and the logs also if every promise was kept
    #[arg(long)]
    pub keep: bool,
}

/// Runs the harness: prints progress, and at the end a summary.
///
/// # Errors
///
/// The harness itself could not do its work. What the engine did wrong is in the outcome.
///
/// # Cancel safety
///
/// A dropped call kills the workers, stops the server and deletes the data.
pub async fn run(arguments: &CrashArguments, program: PathBuf) -> Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("steadfast-crash-").tempdir()?;
    let seed = arguments.seed.unwrap_or_else(|| SystemClock.now_ms() % 1_000_000);
    println!(
        "crash: {:?}, {} workers, {:.1} minutes of trouble, seed {seed}, in {}",
        arguments.store,
        arguments.workers,
        arguments.minutes.as_secs_f64() / 60.0,
        folder.path().display()
    );
    let place = Place::make(arguments.store, folder.path())?;
    let stage = Stage { arguments: arguments.clone(), seed, place, folder, tally: Tally::default() };
    let played = stage.play(program).await;
    let Stage { place, folder, tally, .. } = stage;
    if played.as_ref().is_ok_and(Vec::is_empty) && !arguments.keep {
        return Ok(Outcome { seed, tally, violations: Vec::new(), kept: None });
    }
    let folder = folder.keep();
    let context = || format!("seed {seed}; the ledgers and the logs are in {}", folder.display());
    let violations = played.with_context(context)?;
    place.keep(&folder).with_context(context)?;
    Ok(Outcome { seed, tally, violations, kept: Some(folder) })
}

/// One run.
struct Stage {
    arguments: CrashArguments,
    seed: u64,
    place: Place,
    folder: TempDir,
    tally: Tally,
}

impl Stage {
    /// Runs everything, and returns the promises that were broken.
    async fn play(&self, program: PathBuf) -> Result<Vec<String>> {
        let notes = Notes::begin(self.folder.path(), "driver")?;
        let provider = self.place.address().open().await?;
        let orders = Orders {
            program: program.clone(),
            address: self.place.address(),
            folder: self.folder.path().to_path_buf(),
            seed: self.seed,
            role: Role::Crash,
        };
        let crew = Crew::start(orders, notes.clone(), usize::from(self.arguments.workers))?;
        let crew = RefCell::new(crew);
        let clients = Clients::new(
            Client::new(Arc::clone(&provider)),
            notes.clone(),
            &self.tally,
            self.seed,
            LoadOptions { window: self.arguments.window, deletions: self.arguments.deletions },
        );
        let until = SystemClock.monotonic() + self.arguments.minutes;
        let dice = |salt: u64| Dice::new(self.seed.wrapping_mul(0x9E37_79B9).wrapping_add(salt));
        let trouble = Trouble { place: &self.place, program: &program, notes: &notes, tally: &self.tally };
        tokio::try_join!(
            trouble.workers(&crew, dice(1), until),
            trouble.store(dice(2), until),
            clients.load(until),
            self.progress(&clients, until),
        )?;
        println!("crash: the trouble is over; everything has {} s to end", self.arguments.patience);
        let mut crew = crew.into_inner();
        crew.restore()?;
        let patience = Duration::from_secs(self.arguments.patience);
        let all_ended = clients.settle(patience).await?;
        crew.stop_all(STOP_PATIENCE).await?;
        self.count_logs(&crew);
        let mut violations = crew.surprises();
        violations.extend(clients.surprises());
        let evidence = notes::read_all(self.folder.path())?;
        self.count_runs(&evidence);
        let store = store_of(provider, Arc::new(SystemClock));
        let found = audit(&*store, evidence, terms(self.seed)?).await.context("the store cannot be read")?;
        violations.extend(found.iter().map(ToString::to_string));
        if all_ended {
            violations.extend(self.place.left_over().await?);
        }
        Ok(violations)
    }

    /// Prints a line every ten seconds.
    async fn progress(&self, clients: &Clients<'_>, until: Duration) -> Result<()> {
        let began = SystemClock.monotonic();
        loop {
            let next = SystemClock.monotonic() + PROGRESS;
            if next >= until {
                SystemClock.sleep_until(until).await;
                return Ok(());
            }
            SystemClock.sleep_until(next).await;
            let time = (SystemClock.monotonic() - began).as_secs();
            println!("  {time:>5} s: {} running; {}", clients.running(), self.tally.line());
        }
    }

    fn count_logs(&self, crew: &Crew) {
        self.tally.add("warnings in logs", crew.lines_with(" WARN "));
        self.tally.add("errors in logs", crew.lines_with("ERROR "));
    }

    fn count_runs(&self, evidence: &Evidence) {
        let mut runs = std::collections::BTreeMap::<_, u64>::new();
        for entry in evidence.entries() {
            if let Fact::Began(run) = &entry.fact {
                *runs.entry(run.key()).or_default() += 1;
            }
        }
        self.tally.add("activities that ran", runs.len() as u64);
        self.tally.add("runs of activities", runs.values().sum());
    }
}

/// Audits what a run on a file has left in its folder, once more.
///
/// # Errors
///
/// The folder has no store, or what is in it cannot be read.
///
/// # Cancel safety
///
/// It only reads.
pub async fn audit_again(arguments: &AuditArguments) -> Result<Vec<String>> {
    let file = arguments.folder.join("store.db");
    anyhow::ensure!(file.is_file(), "{} is no file", file.display());
    let evidence = notes::read_all(&arguments.folder)?;
    let store = store_of(Address::Sqlite(file).open().await?, Arc::new(SystemClock));
    let found = audit(&*store, evidence, terms(arguments.seed)?).await?;
    Ok(found.iter().map(ToString::to_string).collect())
}

/// What an audit is told.
#[derive(Args, Clone, Debug)]
pub struct AuditArguments {
    /// The folder of the run
    #[arg(long)]
    pub folder: PathBuf,
    /// The seed of the run
    #[arg(long)]
    pub seed: u64,
}

/// The terms that the workers run under.
fn terms(seed: u64) -> Result<Terms> {
    let since_start = u64::try_from(SystemClock.monotonic().as_millis())?;
    Ok(Terms {
        work_lease: worker::WORK_LEASE,
        turn_lease: worker::TURN_LEASE,
        session_lease: worker::SESSION_LEASE,
        max_attempts: worker::MAX_ATTEMPTS,
        all_ended: true,
        // The ledgers count from the start of the machine, whose wall clock is also that of the store.
        store_began_ms: Some(SystemClock.now_ms().saturating_sub(since_start)),
        blur: BLUR,
        code: Some(Arc::new(Code::of(seed)?)),
        ..Terms::default()
    })
}

/// Reads a number of minutes.
pub(crate) fn minutes(text: &str) -> Result<Duration, String> {
    /// A week.
    const MOST: f64 = 7.0 * 24.0 * 60.0;
    match text.parse::<f64>() {
        Ok(minutes) if minutes > 0.0 && minutes <= MOST => Ok(Duration::from_secs_f64(minutes * 60.0)),
        _ => Err(format!("`{text}` is no number of minutes above 0 and up to {MOST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_above_zero_and_bounded() {
        assert_eq!(minutes("0.5"), Ok(Duration::from_secs(30)));
        for bad in ["0", "-1", "NaN", "inf", "soon", "1e9"] {
            assert!(minutes(bad).is_err(), "{bad}");
        }
    }
}
