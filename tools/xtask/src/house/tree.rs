//! The files that the keeper reads: those that git tracks, and those that it would.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context, Result};

use super::source::RustFile;
use crate::workspace::read;

/// The text files of a checkout, and what the Rust files among them define.
pub(super) struct Tree {
    /// Path from the root, with `/`, to text. Files that are not UTF-8 are left out.
    pub(super) files: BTreeMap<String, String>,
    /// The Rust files, in the order of their paths.
    pub(super) sources: Vec<RustFile>,
}

impl Tree {
    /// Reads the files that git tracks and the untracked ones that it does not ignore.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut list = Command::new("git");
        list.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let mut files = BTreeMap::new();
        for path in read(&mut list)?.split('\0').filter(|path| !path.is_empty()) {
            let Ok(bytes) = fs::read(root.join(path)) else { continue }; // deleted, and not committed yet
            if let Ok(text) = String::from_utf8(bytes) {
                files.insert(path.to_owned(), text);
            }
        }
        Self::of(files).with_context(|| format!("cannot read the sources in {}", root.display()))
    }

    /// Parses the Rust files among these.
    pub(super) fn of(files: BTreeMap<String, String>) -> Result<Self> {
        let sources = files
            .iter()
            .filter(|(path, _)| path.ends_with(".rs"))
            .map(|(path, text)| RustFile::parse(path, text))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { files, sources: super::source::without_tests_of_others(sources) })
    }

    /// Returns the files whose name ends so.
    pub(super) fn ending<'a>(&'a self, ends: &'a [&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(|(path, _)| ends.iter().any(|end| path.ends_with(end)))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the folder of the package that a file belongs to: the nearest one with a `Cargo.toml`.
    pub(super) fn package_of<'a>(&self, path: &'a str) -> &'a str {
        let mut folder = path;
        while let Some((parent, _)) = folder.rsplit_once('/') {
            folder = parent;
            if self.files.contains_key(&format!("{folder}/Cargo.toml")) {
                return folder;
            }
        }
        ""
    }
}

#[cfg(test)]
pub(super) fn tree(files: &[(&str, &str)]) -> Tree {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    Tree::of(files.collect()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_nearest_package() {
        let tree = tree(&[("a/Cargo.toml", ""), ("a/b/Cargo.toml", ""), ("a/b/src/lib.rs", "")]);
        assert_eq!(tree.package_of("a/b/src/lib.rs"), "a/b");
        assert_eq!(tree.package_of("a/src/lib.rs"), "a");
        assert_eq!(tree.package_of("README.md"), "");
    }

    #[test]
    fn a_file_that_is_no_rust_is_an_error_that_names_it() {
        let files = BTreeMap::from([("a/src/lib.rs".to_owned(), "fn (".to_owned())]);
        let error = Tree::of(files).err().unwrap();
        assert!(format!("{error:#}").contains("a/src/lib.rs"), "{error:#}");
    }
}
