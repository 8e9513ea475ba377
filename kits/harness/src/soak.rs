//! The soak: a steady load and no trouble, for as long as one likes. What the workers and the store use must
//! not rise, and what they do must not fall.

pub mod code;
mod figures;
mod load;
pub mod trend;

use std::{
    fmt::{self, Display, Formatter},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use clap::Args;
use steadfast::Client;
use steadfast_clock::{Clock, SystemClock};

use self::{
    figures::{FIGURES, Figures},
    load::Load,
    trend::Trend,
};
use crate::{
    crash::minutes,
    crew::{Crew, Orders},
    notes::Notes,
    place::{Place, StoreKind},
    worker::Role,
};

/// How long a worker may take to shut down.
const STOP_PATIENCE: Duration = Duration::from_secs(60);
/// How many lines of figures a judgement needs.
const NEEDED: usize = 5;

/// What a run is told.
#[derive(Args, Clone, Debug)]
pub struct SoakArguments {
    /// The store
    #[arg(long, value_enum, default_value = "sqlite")]
    pub store: StoreKind,
    /// How long it runs, in minutes; fractions are fine
    #[arg(long, value_name = "M", default_value = "15", value_parser = minutes)]
    pub minutes: Duration,
    /// How many orchestrations are started in a second
    #[arg(long, value_name = "N", default_value = "20")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rate: u32,
    /// How many worker processes there are
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u8).range(1..=32))]
    pub workers: u8,
    /// How many minutes one line of figures is about; fractions are fine
    #[arg(long, value_name = "M", default_value = "1", value_parser = minutes)]
    pub interval: Duration,
    /// How many of the first lines are not judged: caches fill, and nothing is old enough to be deleted
    #[arg(long, value_name = "N", default_value = "2")]
    pub warm_up: usize,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct SoakOutcome {
    /// The figures that rise or fall, and what else went wrong.
    pub faults: Vec<String>,
    /// How many lines of figures were judged; 0 if the run was too short.
    pub judged: usize,
    /// How many orchestrations ended.
    pub ended: u64,
}

impl SoakOutcome {
    /// Tells whether nothing rises that should not.
    pub fn is_good(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Runs the soak: prints a line of figures for each interval.
///
/// # Errors
///
/// The harness itself could not do its work. What the engine did wrong is in the outcome.
///
/// # Cancel safety
///
/// A dropped call kills the workers, stops the server and deletes the data.
pub async fn run(arguments: &SoakArguments, program: PathBuf) -> Result<SoakOutcome> {
    let folder = tempfile::Builder::new().prefix("steadfast-soak-").tempdir()?;
    println!(
        "soak: {:?}, {} workers, {} starts/s, {:.1} minutes, in {}",
        arguments.store,
        arguments.workers,
        arguments.rate,
        arguments.minutes.as_secs_f64() / 60.0,
        folder.path().display()
    );
    let place = Place::make(arguments.store, folder.path())?;
    let client = Client::new(place.address().open().await?);
    let notes = Notes::begin(folder.path(), "driver")?;
    let orders = Orders {
        program,
        address: place.address(),
        folder: folder.path().to_path_buf(),
        seed: 0,
        role: Role::Soak,
    };
    let mut crew = Crew::start(orders, notes, usize::from(arguments.workers))?;
    let load = Arc::new(Load::new(client, arguments.rate));
    let mut series: Vec<Figures> = Vec::new();
    println!("{}", Figures::heading());
    let began = SystemClock.monotonic();
    let until = began + arguments.minutes;
    let measured = async {
        let mut next = began + arguments.interval;
        while next <= until {
            SystemClock.sleep_until(next).await;
            let figures = Figures::measure(&place, &crew.pids(), load.take(), arguments.interval).await?;
            println!("{}", figures.line(SystemClock.monotonic() - began));
            series.push(figures);
            next += arguments.interval;
        }
        anyhow::Ok(())
    };
    let (measured, ()) = tokio::join!(measured, Arc::clone(&load).run(until));
    measured?;
    crew.stop_all(STOP_PATIENCE).await?;
    let mut outcome = judged(arguments.store, series.get(arguments.warm_up..).unwrap_or_default());
    outcome.ended = load.ended();
    outcome.faults.extend(crew.surprises());
    outcome.faults.extend(load.faults());
    Ok(outcome)
}

/// Judges the figures of the lines after the warm-up.
fn judged(store: StoreKind, series: &[Figures]) -> SoakOutcome {
    if series.len() < NEEDED {
        return SoakOutcome::default();
    }
    let mut outcome = SoakOutcome { judged: series.len(), ..SoakOutcome::default() };
    for figure in FIGURES {
        let values: Vec<f64> = series.iter().map(figure.of).collect();
        let trend = Trend::of(&values);
        if trend.breaks(&figure.bound(store)) {
            outcome.faults.push(format!("{}: {trend}", figure.name));
        }
    }
    outcome
}

impl Display for SoakOutcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "summary: {} orchestrations ended, {} lines were judged", self.ended, self.judged)?;
        if self.judged == 0 {
            writeln!(f, "the run was too short to judge: {NEEDED} lines after the warm-up are needed")?;
        }
        for fault in &self.faults {
            writeln!(f, "TREND {fault}")?;
        }
        f.write_str(if self.is_good() { "nothing rises that should not" } else { "the soak failed" })
    }
}
