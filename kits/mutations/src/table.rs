//! Broken engines: each must be caught by the auditor within a bounded number of stories.
//!
//! A mutant is the runtime or the memory store with one place changed (`kits/broken`, `kits/mutants`). Worlds
//! with a mutant are played until the auditor finds a violation. The same story is then played on the
//! unbroken copy, where it must find none: otherwise the violation proves nothing.

use std::{
    fmt::{self, Display, Formatter},
    io,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use steadfast_audit::Violation;
use steadfast_mutations::{story::Story, world::play_on};
use steadfast_runtime as broken_runtime;

use crate::focus::{self, Focus};

/// A mutant, and how it was caught.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The number of the mutant in the table, from 1.
    pub(crate) number: usize,
    /// Where it is: `runtime` or `memory`, with the file.
    pub(crate) place: String,
    /// What is broken.
    pub(crate) what: &'static str,
    /// The rule that the change breaks.
    pub(crate) clause: &'static str,
    /// The first violation that was found, and how many stories that took; `None` if it survived.
    pub(crate) caught: Option<(Violation, u64)>,
    /// What the auditor finds in the same story on the unbroken copy.
    pub(crate) unbroken: Vec<Violation>,
}

impl Row {
    /// Tells whether the mutant was caught by a story that breaks no promise on the unbroken copy.
    pub(crate) fn is_caught(&self) -> bool {
        self.caught.is_some() && self.unbroken.is_empty()
    }

    /// Returns how many stories it took to catch the mutant; `None` if it survived.
    pub(crate) fn stories(&self) -> Option<u64> {
        self.caught.as_ref().map(|(_, stories)| *stories)
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { number, place, what, clause, caught, unbroken } = self;
        write!(f, "{number:3} {place:27} {what:64} {clause:4} ")?;
        match caught {
            Some((violation, seeds)) => write!(f, "{:7} after {seeds:2}", violation.rule)?,
            None => write!(f, "survives")?,
        }
        unbroken.iter().try_for_each(|violation| write!(f, "\n    but unbroken: {violation}"))
    }
}

/// One mutant.
#[derive(Clone, Copy)]
struct Candidate {
    place: &'static str,
    file: &'static str,
    what: &'static str,
    clause: &'static str,
}

impl Candidate {
    fn is_named(&self, only: &str) -> bool {
        self.place == only || self.what.contains(only)
    }
}

/// Lists the mutants: those of the runtime, then those of the memory store that stories observe.
fn candidates() -> Vec<Candidate> {
    let runtime = broken_runtime::MUTANTS.iter().map(|mutant| Candidate {
        place: "runtime",
        file: mutant.file,
        what: mutant.name,
        clause: mutant.clause,
    });
    let observed = steadfast_mutants::MUTANTS.iter().filter(|mutant| focus::is_observed(mutant.name));
    let memory = observed.map(|mutant| Candidate {
        place: "memory",
        file: mutant.file,
        what: mutant.name,
        clause: mutant.clause,
    });
    runtime.chain(memory).collect()
}

/// Plays stories on every mutant whose name contains `only`, or whose place is `only`, at most `seeds` on
/// each, on two threads. `tell` is called for each mutant when it is decided.
///
/// # Errors
///
/// What the operating system says if it cannot give descriptors to a process.
pub(crate) fn table(seeds: u64, only: Option<&str>, tell: impl Fn(&Row) + Sync) -> io::Result<Vec<Row>> {
    let all = candidates();
    let chosen: Vec<(usize, Candidate)> = all
        .into_iter()
        .enumerate()
        .filter(|(_, candidate)| only.is_none_or(|only| candidate.is_named(only)))
        .collect();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let work = || -> io::Result<()> {
            while let Some((number, candidate)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                let row = decide(*number + 1, *candidate, seeds)?;
                tell(&row);
                rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
            }
            Ok(())
        };
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Err(io::Error::other("panicked"))))
    })?;
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|row| row.number);
    Ok(rows)
}

fn decide(number: usize, candidate: Candidate, seeds: u64) -> io::Result<Row> {
    let Candidate { place, file, what, clause } = candidate;
    let focus = Focus::of(what);
    let mut row =
        Row { number, place: format!("{place}/{file}"), what, clause, caught: None, unbroken: Vec::new() };
    for seed in 1..=seeds {
        let story = focus.applied(Story::of(seed));
        if let Some(violation) = violations(&story, candidate.place, what)?.into_iter().next() {
            row.caught = Some((violation, seed));
            row.unbroken = violations(&story, "", "none")?;
            break;
        }
    }
    Ok(row)
}

fn violations(story: &Story, place: &str, what: &'static str) -> io::Result<Vec<Violation>> {
    broken_runtime::choose(if place == "runtime" { what } else { "none" });
    let memory = if place == "memory" { what } else { "none" };
    let played = play_on(story, |clock| steadfast_mutants::open(memory, clock));
    broken_runtime::choose("none");
    Ok(played?.violations)
}
