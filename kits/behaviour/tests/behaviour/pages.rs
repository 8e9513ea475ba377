//! The pages that say which test shows which rule are true: every test that they name is there.

use std::path::{Path, PathBuf};

/// The pages, each with a number of names that it has at least: a page that is read wrongly names fewer.
const PAGES: [(&str, usize); 2] = [("contract/behaviour.md", 700), ("internals/reliability.md", 60)];

/// First segments of paths that name no test: targets of log lines, paths of Rust items, and the pages' own
/// examples.
const NOT_TESTS: [&str; 4] = ["steadfast", "futures", "file", "std"];

/// A source file of the repository.
struct Source {
    /// The path without its ending, with `/` between its parts; a `mod.rs` is named by its folder.
    path: String,
    text: String,
}

impl Source {
    fn is_named(&self, module: &str) -> bool {
        self.path.strip_suffix(module).is_some_and(|rest| rest.ends_with('/'))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads every Rust file of the folders that tests are in.
fn sources() -> Vec<Source> {
    let root = root();
    let mut sources = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["kits", "crates", "stores", "steadfast"].map(|folder| root.join(folder)).into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("can be read").path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("is text");
                let module = path.with_extension("");
                let module = if module.ends_with("mod") { folder.clone() } else { module };
                sources.push(Source { path: module.to_string_lossy().into_owned(), text });
            }
        }
    }
    sources
}

/// Finds the names of tests between backticks: a path of modules, and the test or, before `…`, how it begins.
fn named(page: &str) -> Vec<(String, String)> {
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let quoted = page.split('`').skip(1).step_by(2);
    let parts = quoted.filter_map(|quoted| quoted.rsplit_once("::"));
    parts
        .map(|(modules, test)| (modules, test.trim_end_matches('…')))
        .filter(|(modules, test)| {
            !test.is_empty()
                && is_name(test)
                && modules.split("::").all(|part| !part.is_empty() && is_name(part))
        })
        .filter(|(modules, _)| !NOT_TESTS.iter().any(|first| modules.split("::").next() == Some(first)))
        .map(|(modules, test)| (modules.replace("::", "/"), test.to_owned()))
        .collect()
}

#[test]
fn every_test_that_the_pages_name_is_there() {
    let sources = sources();
    let mut missing = Vec::new();
    for (page, least) in PAGES {
        let text = std::fs::read_to_string(root().join("docs").join(page)).expect("the page is there");
        let named = named(&text);
        assert!(named.len() >= least, "{page} names {} tests", named.len());
        for (module, test) in named {
            let found = |source: &Source| source.is_named(&module) && source.text.contains(&test);
            if !sources.iter().any(found) {
                missing.push(format!("{page} names {module}::{test}"));
            }
        }
    }
    assert!(missing.is_empty(), "these tests are not there:\n{}", missing.join("\n"));
}
