//! `cargo xtask conformance …`: the store contract, clause by clause.

use anyhow::{Result, bail};
use clap::Args;

use crate::{step::Steps, workspace::Workspace};

/// The stores of this repository, each with the package whose test proves it.
const STORES: [(&str, &str); 3] =
    [("memory", "steadfast-memory"), ("sqlite", "steadfast-sqlite"), ("postgres", "steadfast-postgres")];

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ConformanceArguments {
    /// The stores to prove; all of them if none is named
    #[arg(value_name = "STORE")]
    stores: Vec<String>,

    /// Prove the kit itself: run it on stores that are broken in one place each
    #[arg(long)]
    mutants: bool,
}

const AFTER_HELP: &str = "\
Examples:
  cargo xtask conformance memory       the memory store, by clause, with counts
  cargo xtask conformance --mutants    which case catches which broken store";

pub(crate) fn run(workspace: &Workspace, arguments: &ConformanceArguments) -> Result<()> {
    let mut steps = Steps::default();
    for (store, package) in selected(&arguments.stores, arguments.mutants)? {
        let mut command = workspace.cargo(["test", "--quiet", "--package", package, "--test", "conformance"]);
        steps.command(store, command.env("STEADFAST_REPORT", "1"));
    }
    if arguments.mutants {
        let test =
            ["test", "--quiet", "--package", "steadfast-mutants", "--test", "caught", "--", "--nocapture"];
        steps.command("mutants", &mut workspace.cargo(test));
    }
    steps.finish("conformance")
}

fn selected(named: &[String], mutants: bool) -> Result<Vec<(&'static str, &'static str)>> {
    if named.is_empty() {
        return Ok(if mutants { Vec::new() } else { STORES.to_vec() });
    }
    named
        .iter()
        .map(|name| match STORES.iter().find(|(store, _)| store == name) {
            Some(store) => Ok(*store),
            None => {
                let known: Vec<&str> = STORES.iter().map(|(store, _)| *store).collect();
                bail!("there is no store '{name}'; known: {}", known.join(", "))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_stores_are_proven_unless_some_are_named() {
        assert_eq!(selected(&[], false).unwrap(), STORES);
        assert_eq!(selected(&["memory".to_owned()], false).unwrap(), [STORES[0]]);
    }

    #[test]
    fn the_mutants_alone_need_no_store() {
        assert_eq!(selected(&[], true).unwrap(), []);
    }

    #[test]
    fn an_unknown_store_is_named_with_the_known_ones() {
        let error = selected(&["oracle".to_owned()], false).unwrap_err().to_string();
        assert_eq!(error, "there is no store 'oracle'; known: memory, sqlite, postgres");
    }
}
