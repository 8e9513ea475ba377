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
use steadfast_mutations::{
    story::Story,
    world::{play_on, play_on_disk},
};
use steadfast_runtime as broken_runtime;
use steadfast_sqlite::{self as broken_sqlite, Durability};

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
    /// The story that caught it.
    pub(crate) story: Option<Story>,
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
        let Self { number, place, what, clause, caught, unbroken, .. } = self;
        write!(f, "{number:3} {place:34} {what:58} {clause:4} ")?;
        match caught {
            Some((violation, seeds)) => write!(f, "{:7} after {seeds:2}", violation.rule)?,
            None => write!(f, "survives")?,
        }
        unbroken.iter().try_for_each(|violation| write!(f, "\n    but unbroken: {violation}"))
    }
}

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Runtime,
    /// The SQLite store: a statement of it, or its code.
    Sqlite,
    Memory,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Sqlite => "sqlite",
            Self::Memory => "memory",
        }
    }
}

/// One mutant.
#[derive(Clone, Copy)]
struct Candidate {
    part: Part,
    file: &'static str,
    what: &'static str,
    clause: &'static str,
}

impl Candidate {
    fn is_named(&self, only: &str) -> bool {
        self.part.name() == only || self.what.contains(only)
    }
}

/// Lists the mutants: those of the runtime, of the SQLite store, and those of the memory store that stories
/// observe.
fn candidates() -> Vec<Candidate> {
    let of = |part, mutant: (&'static str, &'static str, &'static str)| {
        let (file, what, clause) = mutant;
        Candidate { part, file, what, clause }
    };
    let runtime = broken_runtime::MUTANTS.iter();
    let runtime = runtime.map(|one| of(Part::Runtime, (one.file, one.name, one.clause)));
    let sqlite = broken_sqlite::mutants().map(|one| of(Part::Sqlite, (one.file, one.name, one.clause)));
    let memory = steadfast_mutants::MUTANTS.iter().filter(|mutant| focus::is_observed(mutant.name));
    let memory = memory.map(|one| of(Part::Memory, (one.file, one.name, one.clause)));
    runtime.chain(sqlite).chain(memory).collect()
}

/// Writes the list of all mutants, as `docs/internals/simulation.md` has it.
pub(crate) fn page() -> String {
    let mut page = String::new();
    let all = candidates();
    for (part, title) in [
        (Part::Runtime, "Of the runtime"),
        (Part::Sqlite, "Of the SQLite store: its statements, then its code"),
        (Part::Memory, "Of the memory store"),
    ] {
        page += &format!("### {title}\n\n| rule | mutant | place |\n|---|---|---|\n");
        for Candidate { file, what, clause, .. } in all.iter().filter(|one| one.part == part) {
            page += &format!("| {clause} | `{what}` | `{file}` |\n");
        }
        page += "\n";
    }
    page
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
    let Candidate { part, file, what, clause } = candidate;
    let (focus, place) = (Focus::of(what), format!("{}/{file}", part.name()));
    let mut row = Row { number, place, what, clause, caught: None, story: None, unbroken: Vec::new() };
    for seed in 1..=seeds {
        let story = focus.applied(Story::of(seed));
        if let Some(violation) = violations(&story, part, what)?.into_iter().next() {
            row.caught = Some((violation, seed));
            row.unbroken = violations(&story, part, "none")?;
            row.story = Some(story);
            break;
        }
    }
    Ok(row)
}

/// Plays a story with a mutant of a part, and everything else unbroken.
fn violations(story: &Story, part: Part, mutant: &'static str) -> io::Result<Vec<Violation>> {
    broken_runtime::choose(if part == Part::Runtime { mutant } else { "none" });
    broken_sqlite::choose(if part == Part::Sqlite { mutant } else { "none" });
    let memory = if part == Part::Memory { mutant } else { "none" };
    let played = match part {
        Part::Sqlite => play_on_disk(story, Durability::PowerLoss),
        Part::Runtime | Part::Memory => play_on(story, |clock| steadfast_mutants::open(memory, clock)),
    };
    broken_runtime::choose("none");
    broken_sqlite::choose("none");
    Ok(played?.violations)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use super::*;

    #[test]
    #[allow(clippy::expect_used, reason = "a page that cannot be read fails the test")]
    fn the_page_lists_every_mutant_as_it_is() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/simulation.md");
        let text = std::fs::read_to_string(path).expect("the page");
        let (_, list) = text.split_once("## Every mutant\n\n").expect("the page has a list");
        assert_eq!(list.trim_end(), page().trim_end(), "`cargo xtask sim --mutations --list` prints it");
    }

    #[test]
    fn every_mutant_of_a_part_has_a_name_of_its_own() {
        let mut names = BTreeSet::new();
        for Candidate { part, what, .. } in candidates() {
            assert!(names.insert((part.name(), what)), "{what}");
        }
    }

    #[test]
    fn every_focus_is_that_of_a_mutant() {
        let known: BTreeSet<_> = candidates().into_iter().map(|candidate| candidate.what).collect();
        for (name, _) in focus::FOCUSED {
            assert!(known.contains(name), "{name}");
        }
    }

    #[test]
    fn every_observed_mutant_of_the_memory_store_exists() {
        let known: BTreeSet<_> = steadfast_mutants::MUTANTS.iter().map(|mutant| mutant.name).collect();
        for name in focus::OBSERVED {
            assert!(known.contains(name), "{name}");
        }
    }
}
