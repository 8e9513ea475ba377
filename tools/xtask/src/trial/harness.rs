//! `cargo xtask crash …` and `cargo xtask soak …`: real processes on one store, by `kits/harness`.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::workspace::Workspace;

/// What is handed on: the harness has the options and the help.
#[derive(Args)]
pub(crate) struct HarnessArguments {
    /// The options of the harness; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    options: Vec<String>,
}

/// Runs the crash harness. It is built with debug assertions: a broken one is a finding too.
///
/// # Errors
///
/// A broken promise, or a harness that could not do its work.
pub(crate) fn crash(workspace: &Workspace, arguments: &HarnessArguments) -> Result<()> {
    run(command(workspace, &[], "crash", arguments), "crash")
}

/// Runs the soak, optimized: its figures are those of a program that is deployed.
///
/// # Errors
///
/// A trend, or a harness that could not do its work.
pub(crate) fn soak(workspace: &Workspace, arguments: &HarnessArguments) -> Result<()> {
    run(command(workspace, &["--release"], "soak", arguments), "soak")
}

fn command(workspace: &Workspace, profile: &[&str], name: &str, arguments: &HarnessArguments) -> Command {
    let mut command = workspace.cargo(["run", "--quiet", "--package", "steadfast-harness"]);
    command.args(profile).args(["--", name]).args(&arguments.options);
    command
}

/// The harness says what is wrong, so only its name is added.
fn run(mut command: Command, name: &str) -> Result<()> {
    let status = command.status().context("cargo cannot be started")?;
    ensure!(status.success(), "{name}: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        arguments: HarnessArguments,
    }

    #[test]
    fn every_option_is_handed_on_as_it_was_typed() {
        let typed = ["--store", "postgres", "--minutes", "0.5", "--help"];
        let words = Words::try_parse_from([&["x"], &typed[..]].concat());
        assert_eq!(words.unwrap_or_else(|error| panic!("{error}")).arguments.options, typed);
    }
}
