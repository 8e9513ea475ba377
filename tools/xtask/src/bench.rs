//! `cargo xtask bench …`: work that is counted and compared with a bar.

mod core;

use anyhow::Result;
use clap::Subcommand;

use crate::workspace::Workspace;

#[derive(Subcommand)]
pub(crate) enum Part {
    /// Count the instructions of replay, fan-in and warm turns at two sizes, with callgrind
    ///
    /// How the count grows with the size is a property of the code and not of the machine. Each workload runs
    /// at a small and a large size, and each size also without its work; the difference is what is compared.
    Core,
}

/// Runs the measurements of one part.
///
/// # Errors
///
/// A missed bar is an error, and so is a missing tool.
pub(crate) fn run(workspace: &Workspace, part: &Part) -> Result<()> {
    match part {
        Part::Core => core::run(workspace),
    }
}
