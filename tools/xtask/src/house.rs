//! `cargo xtask house`: the keeper. It reads the files of the repository and names what breaks a rule of the
//! house.
//!
//! | check | what it keeps |
//! |---|---|
//! | [`width`] | lines of Rust, SQL and Markdown end at 110 columns |
//! | [`folders`] | a folder of source, tests or SQL has at most 15 files |
//! | [`types`] | a type name is used once in a crate |
//! | [`words`] | one word per concept: the names that we define avoid the words that the glossary replaced |
//! | [`lengths`] | a function has at most 70 lines |
//! | [`codes`] | each code (`S5`, `f6_…`) is defined in `docs/contract/rules.md` |
//! | [`chance`] | every `select!` is biased, so that a run follows from a seed |
//! | [`walks`] | the walks of `ARCHITECTURE.md` name files and functions that exist |
//!
//! A finding names its place and the remedy. An exception is a row of a table in the file of its check, with
//! a reason; a row that excuses nothing is itself a finding.

mod chance;
mod codes;
mod figures;
mod folders;
mod lengths;
mod source;
mod tree;
mod types;
mod walks;
mod width;
mod words;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::workspace::Workspace;
use tree::Tree;

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct HouseArguments {
    /// Show only findings whose place begins with one of these paths
    #[arg(value_name = "PATH")]
    paths: Vec<String>,

    /// Run only these checks
    #[arg(long, value_name = "CHECK", value_delimiter = ',')]
    only: Vec<String>,

    /// Print counts instead of findings
    #[arg(long)]
    figures: bool,

    /// Look at another checkout of this repository
    #[arg(long, value_name = "FOLDER")]
    root: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Examples:
  cargo xtask house                             every finding, with its remedy
  cargo xtask house crates/core stores          those of some folders
  cargo xtask house --only words,types          those of some checks
  cargo xtask house --figures --root ../before  the figures of another checkout";

/// Files that stay as they are, byte for byte: they show that what is written for the compatible crate
/// compiles.
const FROZEN: [&str; 2] = ["kits/compat/", "steadfast/tests/names.rs"];

fn is_frozen(path: &str) -> bool {
    FROZEN.iter().any(|frozen| path.starts_with(frozen))
}

/// One breach of a rule: where it is, and what to do.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    check: &'static str,
    file: String,
    line: usize,
    remedy: String,
}

/// A check reads the tree and returns its findings.
type Check = fn(&Tree) -> Vec<Finding>;

const CHECKS: [(&str, Check); 8] = [
    ("width", width::findings),
    ("folders", folders::findings),
    ("types", types::findings),
    ("words", words::findings),
    ("lengths", lengths::findings),
    ("codes", codes::findings),
    ("chance", chance::findings),
    ("walks", walks::findings),
];

/// Prints findings or figures.
///
/// # Errors
///
/// Says how many findings there are, if any.
pub(crate) fn run(workspace: &Workspace, arguments: &HouseArguments) -> Result<()> {
    let root = arguments.root.clone().unwrap_or_else(|| workspace.root().to_path_buf());
    let tree = Tree::read(&root)?;
    if arguments.figures {
        figures::print(&tree);
        return Ok(());
    }
    if let Some(unknown) = arguments.only.iter().find(|name| !CHECKS.iter().any(|(known, _)| known == name)) {
        bail!("there is no check '{unknown}'; known: {}", CHECKS.map(|(name, _)| name).join(", "));
    }
    let chosen = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    let shown =
        |file: &str| arguments.paths.is_empty() || arguments.paths.iter().any(|path| file.starts_with(path));
    let findings: Vec<_> = CHECKS
        .iter()
        .filter(|(name, _)| chosen(name))
        .flat_map(|(_, check)| check(&tree))
        .filter(|finding| shown(&finding.file))
        .collect();
    for finding in &findings {
        println!("{}:{}: {}: {}", finding.file, finding.line, finding.check, finding.remedy);
    }
    let counts = counts(&findings);
    if findings.is_empty() {
        println!("house: in order (files: {})", tree.files.len());
        return Ok(());
    }
    bail!("house: {counts}")
}

/// The step of `cargo xtask check`: all checks over all files.
///
/// # Errors
///
/// Says how many findings there are, if any.
pub(crate) fn step(workspace: &Workspace) -> Result<()> {
    run(workspace, &HouseArguments { paths: Vec::new(), only: Vec::new(), figures: false, root: None })
}

/// Says how many findings each check has.
fn counts(findings: &[Finding]) -> String {
    let parts: Vec<_> = CHECKS
        .iter()
        .filter_map(|(name, _)| {
            let count = findings.iter().filter(|finding| finding.check == *name).count();
            (count > 0).then(|| format!("{name} {count}"))
        })
        .collect();
    format!("findings: {} ({})", findings.len(), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted_by_check() {
        let finding = |check| Finding { check, file: String::new(), line: 1, remedy: String::new() };
        let findings = [finding("words"), finding("width"), finding("words")];
        assert_eq!(counts(&findings), "findings: 3 (width 1, words 2)");
    }
}
