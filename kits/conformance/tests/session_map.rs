//! The page that maps the tests of the session designs to ours names only tests that exist.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

const MAP: &str = include_str!("../../../docs/contract/sessions-test-map.md");

/// What the designs name: 71 in `002`, two in `001`.
const NAMED: usize = 73;

#[test]
fn every_test_that_the_map_of_sessions_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut functions = BTreeSet::new();
    for folder in ["crates", "kits", "stores", "steadfast"] {
        collect(&root.join(folder), &mut functions).expect("the sources can be read");
    }
    let missing: Vec<_> = ours().filter(|name| !functions.contains(*name)).collect();
    assert_eq!(missing, [] as [&str; 0], "the map names tests that do not exist");
    assert!(ours().count() > 150, "the map is read");
}

#[test]
fn every_named_test_of_the_designs_is_in_the_map_of_sessions() {
    let theirs: BTreeSet<_> = words().filter(|word| word.starts_with("test_")).collect();
    assert_eq!(theirs.len(), NAMED);
}

/// The names of our tests: long identifiers in code spans that are neither theirs nor options.
fn ours() -> impl Iterator<Item = &'static str> {
    words().filter(|word| {
        let option = word.starts_with("max_");
        let identifier = word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        identifier && word.matches('_').count() >= 3 && !word.starts_with("test_") && !option
    })
}

fn words() -> impl Iterator<Item = &'static str> {
    MAP.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Collects the names of all functions below a folder.
fn collect(folder: &Path, functions: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, functions)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            let names = text.split("fn ").skip(1).map(|rest| {
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>()
            });
            functions.extend(names);
        }
    }
    Ok(())
}
