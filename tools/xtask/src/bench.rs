//! `cargo xtask bench …`: work that is counted and compared with a bar.

mod core;
mod store;

use anyhow::Result;
use clap::Subcommand;

use crate::workspace::Workspace;

#[derive(Subcommand)]
pub(crate) enum Benchmark {
    /// Count the instructions of replay, fan-in and warm turns at two sizes, with callgrind
    ///
    /// How the count grows with the size is a property of the code and not of the machine. Each workload runs
    /// at a small and a large size, and each size also without its work; the difference is what is compared.
    Core,
    /// Run W1, W3, W4, W6, W7 and W8 and print the figures, with one bare durable commit of the same run
    /// beside them
    Quick {
        /// Run on this store: sqlite (a file, synchronous FULL) or postgres (a server of its own,
        /// synchronous_commit on)
        #[arg(long, value_name = "STORE", default_value = "sqlite")]
        store: String,

        /// Run only this workload; may be given more than once
        #[arg(long, value_name = "NAME")]
        workload: Vec<String>,
    },
    /// Move a session 100 times between two runtimes; p99 of release to next activity is below 250 ms
    ///
    /// The work waits when the owner, which is being shut down, lets go: what is measured is what a deploy
    /// adds.
    Sessions {
        /// Run on this store: sqlite or postgres
        #[arg(long, value_name = "STORE", default_value = "sqlite")]
        store: String,
    },
    /// Compare the SQLite store with its own statements on a bare connection, at 64 callers and at one
    ///
    /// Both sides are durable and take turns in the same run, so that what else the machine does is in both.
    Store,
}

/// Runs one of the benchmarks.
///
/// # Errors
///
/// A missed bar is an error, and so is a missing tool.
pub(crate) fn run(workspace: &Workspace, benchmark: &Benchmark) -> Result<()> {
    match benchmark {
        Benchmark::Core => core::run(workspace),
        Benchmark::Quick { store, workload } => quick(workspace, store, workload),
        Benchmark::Sessions { store } => quick(workspace, store, &["sessions".to_owned()]),
        Benchmark::Store => store::run(workspace),
    }
}

/// The figures are for a person to read; only moves of sessions are judged, by the program.
fn quick(workspace: &Workspace, store: &str, workloads: &[String]) -> Result<()> {
    let mut steps = crate::step::Steps::default();
    let program = ["run", "--release", "--package", "steadfast-bench-quick", "--"];
    steps.command("quick", workspace.cargo(program).args(["--store", store]).args(workloads));
    steps.finish("bench")
}
