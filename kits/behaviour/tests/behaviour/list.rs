//! The list of rules and tests is true: every test that it names is there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The texts of the sources, by the name of their file.
fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = BTreeMap::<String, String>::new();
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
                let name = path.file_stem().expect("has a name").to_string_lossy().into_owned();
                let text = std::fs::read_to_string(&path).expect("is text");
                texts.entry(name).or_default().push_str(&text);
            }
        }
    }
    texts
}

/// The names of the form `file::test` between backticks.
fn named(page: &str) -> Vec<(String, String)> {
    let quoted = page.split('`').skip(1).step_by(2);
    let parts = quoted.filter_map(|quoted| quoted.split_once("::"));
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    parts
        .filter(|(file, test)| is_name(file) && is_name(test) && *file != "steadfast" && *file != "file")
        .map(|(file, test)| (file.to_owned(), test.to_owned()))
        .collect()
}

#[test]
fn every_test_that_the_lists_name_is_there() {
    let sources = sources();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for page in ["contract/behaviour.md", "internals/reliability.md"] {
        let text = std::fs::read_to_string(root.join(page)).expect("the page is there");
        let named = named(&text);
        assert!(named.len() > 20, "{page} names {} tests", named.len());
        for (file, test) in named {
            let found = sources.get(&file).is_some_and(|text| text.contains(&test));
            assert!(found, "{page} names {file}::{test}, which is not there");
        }
    }
}
