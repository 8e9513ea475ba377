//! The SQL files of the store: each can be prepared, says what it does, and is used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::{connect, open, server};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The files below a folder with an ending, by their names without it.
fn files(folder: &Path, ending: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut next = vec![folder.to_path_buf()];
    while let Some(current) = next.pop() {
        for entry in fs::read_dir(&current).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                next.push(path);
            } else if let Some(name) = path.to_str().and_then(|path| path.strip_suffix(ending)) {
                let name = name.strip_prefix(folder.to_str().unwrap()).unwrap().trim_start_matches('/');
                found.insert(name.to_owned(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// Scripts are run as a whole and create what statements need, so they cannot be prepared.
fn is_script(name: &str) -> bool {
    ["functions/", "migrations/", "schema/"].iter().any(|folder| name.starts_with(folder))
}

#[tokio::test]
async fn every_statement_can_be_prepared() {
    let schema = server().schema("statements");
    open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    for (name, text) in files(&folder("sql"), ".sql").iter().filter(|(name, _)| !is_script(name)) {
        let text = text.replace("{schema}", schema.name()).replace("{channel}", "somewhere");
        let prepared = client.prepare(&text).await;
        assert!(prepared.is_ok(), "{name}: {:?}", prepared.err());
    }
}

#[tokio::test]
async fn every_function_that_has_a_file_is_made_from_it() {
    let schema = server().schema("function_files");
    open(server().url(), schema.name()).await.unwrap();
    let client = connect(server().url()).await;
    let made = client
        .query(&"SELECT name FROM {name}.steadfast_functions".replace("{name}", schema.name()), &[])
        .await
        .unwrap();
    let made: BTreeSet<String> = made.iter().map(|row| row.get(0)).collect();
    let files = files(&folder("sql/functions"), ".sql");
    let named = files.keys().map(|name| name.rsplit('/').next().unwrap().to_owned()).collect();
    assert_eq!(made, named);
    for (name, text) in &files {
        let short = name.rsplit('/').next().unwrap();
        let heads = text.matches(&format!("CREATE OR REPLACE FUNCTION {{schema}}.{short}(")).count();
        assert_eq!(heads, 1, "{name} makes the function of its name");
    }
}

#[test]
fn every_file_says_what_it_does() {
    for (name, text) in files(&folder("sql"), ".sql") {
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("-- ") && first.len() > 10, "{name} begins with {first:?}");
    }
}

#[test]
fn every_file_is_used_and_every_use_has_a_file() {
    let written: String = files(&folder("src"), ".rs").into_values().collect();
    let quoted = |begin: &str| -> BTreeSet<String> {
        let uses = written.split(begin).skip(1).filter_map(|rest| rest.split('"').next());
        uses.map(str::to_owned).collect()
    };
    let mut used: BTreeSet<String> = quoted(" sql!(\"");
    used.extend(quoted("(sql!(\""));
    used.extend(quoted("[sql!(\""));
    for list in written.split("functions![").skip(1).filter_map(|rest| rest.split(']').next()) {
        let names = list.split('"').skip(1).step_by(2);
        used.extend(names.map(|name| format!("functions/{name}")));
    }
    let there: BTreeSet<String> = files(&folder("sql"), ".sql").into_keys().collect();
    assert_eq!(used.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new(), "uses without a file");
    assert_eq!(there.difference(&used).collect::<Vec<_>>(), Vec::<&String>::new(), "files without a use");
}
