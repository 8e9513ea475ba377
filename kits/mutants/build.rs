//! Copies the memory store with every mutant in it.
//!
//! A copy for each mutant would take minutes to compile. So there is one copy, and each function that a
//! mutant changes has one more body for it: the name of the mutant that runs chooses the body. A mutant whose
//! place is not found exactly once, in the body of a function, fails the build: the list follows the store.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{env, fs};

include!("src/list.rs");

fn main() -> Result<(), Box<dyn Error>> {
    let store = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../stores/memory/src");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("store");
    println!("cargo::rerun-if-changed={}", store.display());
    println!("cargo::rerun-if-changed=src");

    let mut placed = 0;
    for path in files_below(&store)? {
        let file = path.strip_prefix(&store)?;
        let text = without_docs(&fs::read_to_string(&path)?).replace("crate::", "crate::broken::");
        let mutants: Vec<&Mutant> = MUTANTS.iter().filter(|mutant| Path::new(mutant.file) == file).collect();
        let copy = out.join(file);
        fs::create_dir_all(copy.parent().unwrap_or(&out))?;
        fs::write(copy, with_mutants(text, &mutants)?)?;
        placed += mutants.len();
    }
    if placed != MUTANTS.len() {
        return Err("a mutant names a file that the store does not have".into());
    }
    // The copy is linted where it lives.
    let module = format!("#[allow(warnings, clippy::all)]\n#[path = {:?}]\nmod broken;", out.join("lib.rs"));
    fs::write(out.with_file_name("broken.rs"), module)?;
    Ok(())
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// Leaves the docs out: their examples name the store that they belong to, and are tested there.
fn without_docs(text: &str) -> String {
    let is_doc = |line: &&str| line.trim_start().starts_with("///") || line.trim_start().starts_with("//!");
    text.lines().filter(|line| !is_doc(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Gives each function that is changed a body for each of its mutants, beside its own.
fn with_mutants(mut text: String, mutants: &[&Mutant]) -> Result<String, Box<dyn Error>> {
    let mut arms: BTreeMap<(usize, usize), String> = BTreeMap::new();
    for mutant in mutants {
        let body = place(&text, mutant).map_err(|why| format!("mutant {}: {why}", mutant.name))?;
        let changed = text[body.clone()].replace(mutant.find, mutant.replace);
        writeln!(arms.entry((body.start, body.end)).or_default(), "{:?} => {{\n{changed}}}", mutant.name)?;
    }
    // From the last to the first, so that the places ahead stay where they are.
    for ((start, end), arms) in arms.into_iter().rev() {
        let own = &text[start..end];
        let choice = format!("match crate::running() {{\n{arms}_ => {{\n{own}}}\n}}\n");
        text.replace_range(start..end, &choice);
    }
    Ok(text)
}

/// Finds the body of the function in which a mutant has its place.
fn place(text: &str, mutant: &Mutant) -> Result<Range<usize>, String> {
    let found: Vec<usize> = text.match_indices(mutant.find).map(|(at, _)| at).collect();
    let &[at] = found.as_slice() else {
        let place = format!("{} has {} places like {:?}", mutant.file, found.len(), mutant.find);
        return Err(format!("{place}; it must be exactly one"));
    };
    body_around(text, at..at + mutant.find.len())
        .ok_or_else(|| format!("{:?} is not in the body of a function", mutant.find))
}

/// Finds the lines between the braces of the function around a place. The text is formatted: the line with
/// the opening brace and the one with the closing brace are indented like the `fn`.
fn body_around(text: &str, place: Range<usize>) -> Option<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        lines.push((start, line));
        start += line.len();
    }
    let head = lines.iter().rposition(|(start, line)| *start <= place.start && is_head(line))?;
    let indent = indent_of(lines[head].1);
    let open = head
        + lines[head..].iter().position(|(_, line)| indent_of(line) == indent && line.ends_with("{\n"))?;
    let close = open + lines[open..].iter().position(|(_, line)| line.trim_end() == format!("{indent}}}"))?;
    let body = lines[open + 1].0..lines[close].0;
    (body.start <= place.start && place.end <= body.end).then_some(body)
}

fn is_head(line: &str) -> bool {
    let line = line.trim_start();
    let scopes = ["pub(crate) ", "pub(super) ", "pub "];
    let line = scopes.iter().find_map(|scope| line.strip_prefix(scope)).unwrap_or(line);
    line.strip_prefix("async ").unwrap_or(line).starts_with("fn ")
}

fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}
