//! The facts that a process writes down: each process has a ledger of its own, so that a line which a killed
//! process could not finish is the last of its file.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use steadfast::ActivityContext;
use steadfast_audit::{Entry, Evidence, Fact, Ledger, Run, SessionRun};
use steadfast_clock::{Clock, SystemClock};

/// How the names of ledgers end.
const ENDING: &str = "ledger";

/// The ledger of one process. Clones share it.
#[derive(Clone, Debug)]
pub struct Notes {
    ledger: Arc<Ledger>,
    process: String,
    runs: Arc<AtomicU64>,
}

impl Notes {
    /// Begins the ledger of a process in a folder.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn begin(folder: &Path, process: &str) -> Result<Self> {
        let path = folder.join(format!("{process}.{ENDING}"));
        let ledger = Ledger::open(&path).with_context(|| format!("{} does not open", path.display()))?;
        Ok(Self { ledger: Arc::new(ledger), process: process.to_owned(), runs: Arc::default() })
    }

    /// Returns the name of the process.
    pub fn process(&self) -> &str {
        &self.process
    }

    /// Writes a fact of this moment.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn note(&self, fact: Fact) -> io::Result<()> {
        self.note_at(now_us(), fact)
    }

    /// Writes a fact of an earlier moment.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn note_at(&self, at_us: u64, fact: Fact) -> io::Result<()> {
        self.ledger.append(&Entry { at_us, fact })
    }

    /// Writes a fact of this moment on a thread that may wait for the disk.
    ///
    /// # Errors
    ///
    /// What the file system says, in words.
    ///
    /// # Cancel safety
    ///
    /// The fact is written although the call is dropped.
    pub async fn noted(&self, fact: Fact) -> Result<(), String> {
        let (notes, at_us) = (self.clone(), now_us());
        let written = tokio::task::spawn_blocking(move || notes.note_at(at_us, fact)).await;
        written.map_err(|error| error.to_string())?.map_err(|error| format!("no ledger: {error}"))
    }

    /// Describes the run of an activity that begins.
    pub fn run(&self, ctx: &ActivityContext, session: Option<SessionRun>) -> Run {
        Run {
            number: self.runs.fetch_add(1, Ordering::Relaxed),
            process: self.process.clone(),
            instance: ctx.instance_id().to_owned(),
            execution: ctx.execution_id(),
            id: ctx.activity_id(),
            name: ctx.activity_name().to_owned(),
            attempt: ctx.counted_deliveries(),
            tried: ctx.attempt(),
            call_key: ctx.idempotency_key(),
            session,
        }
    }
}

/// Reads the moment of which all processes of the machine have the same idea.
pub fn now_us() -> u64 {
    micros(SystemClock.monotonic())
}

/// Returns a time in microseconds.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Reads the ledgers of all processes.
///
/// # Errors
///
/// What the file system says, or that a line is no fact.
pub fn read_all(folder: &Path) -> Result<Evidence> {
    let mut entries = Vec::new();
    let mut paths: Vec<PathBuf> = Vec::new();
    for file in fs::read_dir(folder)? {
        paths.push(file?.path());
    }
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == ENDING)) {
        let evidence = Ledger::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        entries.extend_from_slice(evidence.entries());
    }
    Ok(Evidence::of(entries))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use steadfast_audit::Life;

    use super::*;

    #[test]
    fn the_facts_of_all_processes_are_read_in_the_order_of_time() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) =
            (Notes::begin(folder.path(), "a.1").unwrap(), Notes::begin(folder.path(), "b.1").unwrap());
        two.note_at(5, Fact::Process("b.1".to_owned(), Life::Started)).unwrap();
        one.note_at(3, Fact::Process("a.1".to_owned(), Life::Started)).unwrap();
        // A process was killed while it wrote.
        let torn = OpenOptions::new().append(true).open(folder.path().join("a.1.ledger"));
        torn.unwrap().write_all(b"{\"at_us\":9,\"fa").unwrap();
        fs::write(folder.path().join("store.db"), "no ledger").unwrap();
        let read = read_all(folder.path()).unwrap();
        let moments: Vec<u64> = read.entries().iter().map(|entry| entry.at_us).collect();
        assert_eq!(moments, [3, 5]);
    }
}
