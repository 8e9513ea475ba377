//! `cargo xtask house --figures`: health figures of a tree, to compare one commit with another.

use std::collections::BTreeMap;

use super::{CHECKS, codes, folders, lengths, source::RustFile, tree::Tree, types};

pub(super) fn print(tree: &Tree) {
    let folders = folders::flat(tree);
    let crowded = folders.iter().filter(|(_, files)| **files > folders::FILES).count();
    let (fullest, most) = folders.iter().max_by_key(|(_, files)| **files).map_or(("", 0), |(f, n)| (*f, *n));
    let twice = types::named_twice(tree);
    let functions: usize = tree.sources.iter().map(|source| source.functions.len()).sum();
    let long = lengths::too_long(tree).count();
    println!("files flat in a folder, most        {most} ({fullest})");
    println!("folders over {}                     {crowded}", folders::FILES);
    println!("type names used twice in a crate    {}", twice.len());
    println!("  definitions under those names     {}", twice.values().map(Vec::len).sum::<usize>());
    println!("functions                           {functions}");
    println!(
        "functions over {} lines             {long} ({:.2} %)",
        lengths::LINES,
        percent(long, functions)
    );
    println!("`_ =>` beside variants, crates/core {}", wildcards(tree, "crates/core/src/"));
    println!("codes in names and comments         {}", codes::count(tree));
    for (kind, lines) in lines_of_code(tree) {
        println!("lines of code, {kind:<21}{lines}");
    }
    for (name, check) in CHECKS {
        println!("findings, {name:<26}{}", check(tree).len());
    }
}

fn wildcards(tree: &Tree, folder: &str) -> usize {
    let within = tree.sources.iter().filter(|source| source.path.starts_with(folder));
    within.map(|source: &RustFile| source.wildcards.len()).sum()
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Counts the lines that are neither blank nor a comment.
fn lines_of_code(tree: &Tree) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for (path, text) in tree.ending(&[".rs", ".sql"]) {
        let (kind, comment) = match path {
            path if path.ends_with(".sql") => ("SQL", "--"),
            path if path.contains("/tests/") || path.starts_with("kits/") => ("Rust, tests and kits", "//"),
            _ => ("Rust", "//"),
        };
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(comment));
        *counts.entry(kind).or_default() += lines.count();
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    #[test]
    fn lines_of_code_are_neither_blank_nor_comments() {
        let counts = lines_of_code(&tree(&[
            ("a/src/lib.rs", "//! Doc.\n\nfn a() {}\n"),
            ("a/tests/all.rs", "fn a() {}\nfn b() {}\n"),
            ("a/sql/one.sql", "-- Reads.\nSELECT 1\n"),
        ]));
        assert_eq!(counts, BTreeMap::from([("Rust", 1), ("Rust, tests and kits", 2), ("SQL", 1)]));
    }
}
