//! A folder of source, tests or SQL has at most 15 files: more of them are several rooms.

use std::collections::BTreeMap;

use super::{Finding, tree::Tree};

pub(super) const FILES: usize = 15;

pub(super) fn findings(tree: &Tree) -> Vec<Finding> {
    let crowded = flat(tree).into_iter().filter(|(_, files)| *files > FILES);
    crowded
        .map(|(folder, files)| Finding {
            check: "folders",
            file: folder.to_owned(),
            line: 1,
            remedy: format!("{files} files: at most {FILES}, group them by word"),
        })
        .collect()
}

/// Counts the Rust and SQL files directly in each folder.
pub(super) fn flat(tree: &Tree) -> BTreeMap<&str, usize> {
    let mut folders = BTreeMap::new();
    for (path, _) in tree.ending(&[".rs", ".sql"]) {
        *folders.entry(path.rsplit_once('/').map_or("", |(folder, _)| folder)).or_default() += 1;
    }
    folders
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
}
