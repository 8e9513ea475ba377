//! `cargo xtask sim …`: stories of workers, clients and a store in trouble, and an auditor that reads what is
//! left.

use anyhow::Result;
use clap::Args;

use crate::{step::Steps, workspace::Workspace};

#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct SimArguments {
    /// What the simulation is told; `--help` lists it
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// The argument that needs an engine with mutants in it, which is built apart.
const MUTATIONS: &str = "--mutations";

/// Builds the simulation and starts it.
///
/// # Errors
///
/// A promise that was broken is an error.
pub(crate) fn run(workspace: &Workspace, arguments: &SimArguments) -> Result<()> {
    let mut steps = Steps::default();
    let mut command =
        workspace.cargo(["run", "--quiet", "--package", "steadfast-simulation", "--bin", "sim"]);
    if arguments.arguments.iter().any(|argument| argument == MUTATIONS) {
        command.args(["--features", "mutations"]);
    }
    steps.command("sim", command.arg("--").args(&arguments.arguments));
    steps.finish("sim")
}
