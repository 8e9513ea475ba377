//! The page that maps the tests of the session designs to ours names only tests that exist, and that run on
//! every store where they are about one.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

const MAP: &str = include_str!("../../../docs/contract/sessions.md");

/// What the designs name: 71 in `002`, two in `001`.
const NAMED: usize = 73;

/// What `003` names, in 18 sections.
const NAMED_BY_003: usize = 107;

/// The names of tests in the sources.
#[derive(Default)]
struct Sources {
    functions: BTreeSet<String>,
    /// Cases of the kit, which every store runs.
    cases: BTreeSet<String>,
    /// Tests with whole runtimes on every store: in memory, SQLite, PostgreSQL.
    on_every_store: BTreeSet<String>,
}

/// One entry of the map: a test of a design, and ours.
struct Entry {
    theirs: Option<&'static str>,
    /// Where ours are: the text in brackets.
    kind: &'static str,
    ours: Vec<&'static str>,
}

#[test]
fn every_test_that_the_map_of_sessions_names_exists() {
    let sources = Sources::read().expect("the sources can be read");
    let missing: Vec<_> = ours().filter(|name| !sources.functions.contains(*name)).collect();
    assert_eq!(missing, [] as [&str; 0], "the map names tests that do not exist");
    assert!(ours().count() > 300, "the map is read");
}

#[test]
fn every_named_test_of_the_designs_is_in_the_map_of_sessions() {
    let theirs: BTreeSet<_> = entries().into_iter().filter_map(|entry| entry.theirs).collect();
    let (older, explicit): (Vec<_>, Vec<_>) =
        theirs.into_iter().partition(|name: &&str| name.starts_with("test_"));
    assert_eq!((older.len(), explicit.len()), (NAMED, NAMED_BY_003));
}

#[test]
fn what_is_about_a_store_or_a_runtime_runs_on_every_store() {
    let sources = Sources::read().expect("the sources can be read");
    assert!(sources.cases.len() > 700 && sources.on_every_store.len() > 300, "the sources are read");
    let mut unshown = Vec::new();
    for entry in entries() {
        let runs = |names: &BTreeSet<String>| entry.ours.iter().any(|name| names.contains(*name));
        let shown = match entry.kind {
            "store" => runs(&sources.cases),
            "runtime" => runs(&sources.on_every_store) || runs(&sources.cases),
            "runtime, without a store" => runs(&sources.functions),
            core if core.starts_with("core") => runs(&sources.functions),
            _ => false,
        };
        if !shown {
            unshown.push((entry.theirs, entry.kind, entry.ours));
        }
    }
    assert_eq!(unshown, []);
}

/// The entries of the map: a line with a number, and the lines below it.
fn entries() -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in MAP.lines() {
        if let Some(rest) = line.strip_prefix("- ")
            && rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.contains("\\.")
        {
            let theirs = spans(line).next().filter(|name| is_identifier(name));
            let kind = line.rsplit_once('(').and_then(|(_, kind)| kind.strip_suffix(')'));
            entries.push(Entry { theirs, kind: kind.unwrap_or_default(), ours: Vec::new() });
        } else if line.starts_with("  ")
            && let Some(entry) = entries.last_mut()
        {
            entry.ours.extend(spans(line).filter(|name| is_test(name)));
        }
    }
    entries
}

/// The names of our tests: long identifiers in code spans that are neither theirs nor options.
fn ours() -> impl Iterator<Item = &'static str> {
    let theirs: BTreeSet<_> = entries().into_iter().filter_map(|entry| entry.theirs).collect();
    MAP.lines().flat_map(spans).filter(move |name| is_test(name) && !theirs.contains(name))
}

fn is_test(name: &str) -> bool {
    is_identifier(name) && name.matches('_').count() >= 3 && !name.starts_with("max_")
}

fn is_identifier(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn spans(line: &'static str) -> impl Iterator<Item = &'static str> {
    line.split('`').skip(1).step_by(2)
}

impl Sources {
    fn read() -> io::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut sources = Self::default();
        for folder in ["crates", "kits", "stores", "steadfast"] {
            sources.collect(&root.join(folder))?;
        }
        Ok(sources)
    }

    /// Collects the names of all functions below a folder.
    fn collect(&mut self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with("target") {
                self.collect(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path)?;
                self.functions.extend(functions_of(&text));
                for block in blocks_of(&text, "cases![", "\n];") {
                    self.cases.extend(block.split([',', '\n', ' ']).map(str::to_owned));
                }
                for start in ["on_every_store! {", "on_every_full_store! {"] {
                    for block in blocks_of(&text, start, "\n}") {
                        self.on_every_store.extend(functions_of(block));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The names of the functions in a text.
fn functions_of(text: &str) -> impl Iterator<Item = String> {
    let named =
        |rest: &str| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>();
    text.split("fn ").skip(1).map(named)
}

/// The parts of a text between a beginning and the next end.
fn blocks_of<'a>(text: &'a str, start: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(start).skip(1).map(move |rest| rest.split(end).next().unwrap_or_default())
}
