//! `cargo xtask bench …`: work that is counted and compared with a bar.

mod core;
mod store;

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
    /// Run W1, W3, W4, W7 and W8 on a SQLite file and print the figures, with one bare commit of the same run beside them
    Quick {
        /// Run only this workload; may be given more than once
        #[arg(long, value_name = "NAME")]
        workload: Vec<String>,
    },
    /// Move a session 100 times between two runtimes on a SQLite file; p99 of release to next activity is below 250 ms
    ///
    /// The work waits when the owner, which is being shut down, lets go: what is measured is what a deploy adds.
    Sessions,
    /// Compare the SQLite store with its own statements on a bare connection, at 64 callers and at one
    ///
    /// Both sides are durable and take turns in the same run, so that what else the machine does is in both.
    Store,
}

/// Runs the measurements of one part.
///
/// # Errors
///
/// A missed bar is an error, and so is a missing tool.
pub(crate) fn run(workspace: &Workspace, part: &Part) -> Result<()> {
    match part {
        Part::Core => core::run(workspace),
        Part::Quick { workload } => quick(workspace, workload),
        Part::Sessions => quick(workspace, &["sessions".to_owned()]),
        Part::Store => store::run(workspace),
    }
}

/// The figures are for a person to read; only moves of sessions are judged, by the program.
fn quick(workspace: &Workspace, workloads: &[String]) -> Result<()> {
    let mut steps = crate::step::Steps::default();
    let program = ["run", "--release", "--package", "steadfast-bench-quick", "--"];
    steps.command("quick", workspace.cargo(program).args(workloads));
    steps.finish("bench")
}
