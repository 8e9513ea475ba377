//! A folder of source, tests or SQL has at most 15 files: more of them are several rooms.

use std::collections::BTreeMap;

use super::{Finding, tree::Tree};

pub(super) const FILES: usize = 15;

/// Folders that may have more, each with its reason.
const EXCEPTIONS: [(&str, &str); 1] = [(
    "stores/postgres/sql/functions/compat",
    "one file per function of the compatible schema, named and listed as that schema has them",
)];

pub(super) fn findings(tree: &Tree) -> Vec<Finding> {
    let folders = flat(tree);
    let is_exempt = |folder: &str| EXCEPTIONS.iter().any(|(exempt, _)| *exempt == folder);
    let crowded = folders.iter().filter(|(folder, files)| **files > FILES && !is_exempt(folder)).map(
        |(folder, files)| finding(folder, format!("{files} files: at most {FILES}, group them by word")),
    );
    let idle = EXCEPTIONS
        .iter()
        .filter(|(folder, _)| folders.get(*folder).is_some_and(|files| *files <= FILES))
        .map(|(folder, _)| {
            finding(folder, "its exception in house/folders.rs is not needed: remove it".into())
        });
    crowded.chain(idle).collect()
}

/// Counts the Rust and SQL files directly in each folder.
pub(super) fn flat(tree: &Tree) -> BTreeMap<&str, usize> {
    let mut folders = BTreeMap::new();
    for (path, _) in tree.ending(&[".rs", ".sql"]) {
        *folders.entry(path.rsplit_once('/').map_or("", |(folder, _)| folder)).or_default() += 1;
    }
    folders
}

fn finding(folder: &str, remedy: String) -> Finding {
    Finding { check: "folders", file: folder.to_owned(), line: 1, remedy }
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    fn folder_of(files: usize) -> Tree {
        let paths: Vec<String> = (0..files).map(|index| format!("a/sql/{index}.sql")).collect();
        tree(&paths.iter().map(|path| (path.as_str(), "")).collect::<Vec<_>>())
    }

    #[test]
    fn sixteen_files_are_too_many_and_fifteen_are_not() {
        assert!(findings(&folder_of(15)).is_empty());
        let found = findings(&folder_of(16));
        assert_eq!((found.len(), found[0].file.as_str()), (1, "a/sql"));
    }

    #[test]
    fn an_exception_that_excuses_nothing_is_named() {
        let found = findings(&tree(&[("stores/postgres/sql/functions/compat/one.sql", "")]));
        assert!(found[0].remedy.contains("not needed"), "{}", found[0].remedy);
    }
}
