//! The harness: `cargo xtask crash` and `cargo xtask soak` run it. The driver starts this program again for
//! its workers.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool speaks to its terminal")]

use std::{env, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use steadfast_harness::{
    crash::{self, AuditArguments, CrashArguments},
    holder::{self, HolderArguments},
    soak::{self, SoakArguments},
    worker::{self, WorkerArguments},
};
use tokio::signal::unix::{SignalKind, signal};

/// What a shell returns for a program that was stopped by Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Runs real processes on one store under load.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 all is well, 1 a promise was broken or the harness failed, 2 the command line is wrong,
130 stopped by Ctrl-C. docs/internals/harness.md says how to read what is printed.";

const CRASH_HELP: &str = "\
Examples:
  cargo xtask crash --store sqlite --minutes 3
  cargo xtask crash --store postgres --minutes 30 --seed 7
  RUST_LOG=info cargo xtask crash --minutes 1     workers log more

On a violation the store, the ledgers and the logs are kept, and the folder is printed. Ctrl-C stops all
processes and deletes everything.";

const SOAK_HELP: &str = "\
Examples:
  cargo xtask soak --store sqlite --minutes 30
  cargo xtask soak --store postgres --minutes 480 --rate 100

A line of figures is printed each minute. After the warm-up a line is fitted through each figure; a figure
that rises (or a throughput that falls) by more than its bound is named, and the exit code is 1.";

#[derive(Subcommand)]
enum Command {
    /// Kill, pause and cut off workers under load, then audit the store against what they did
    #[command(after_help = CRASH_HELP)]
    Crash(CrashArguments),
    /// Keep workers under a steady load and fail on a trend in what they use
    #[command(after_help = SOAK_HELP)]
    Soak(SoakArguments),
    /// Audit once more what a crash run on SQLite has left in its folder
    #[command(hide = true)]
    Audit(AuditArguments),
    #[command(hide = true)]
    Worker(WorkerArguments),
    #[command(hide = true)]
    Hold(HolderArguments),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Crash(arguments) => drive(async move |program| {
            let outcome = crash::run(&arguments, program).await?;
            println!("{outcome}");
            Ok(outcome.is_good())
        }),
        Command::Soak(arguments) => drive(async move |program| {
            let outcome = soak::run(&arguments, program).await?;
            println!("{outcome}");
            Ok(outcome.is_good())
        }),
        Command::Audit(arguments) => drive(async move |_| {
            let violations = crash::audit_again(&arguments).await?;
            violations.iter().for_each(|violation| println!("VIOLATION {violation}"));
            println!("{} violations", violations.len());
            Ok(violations.is_empty())
        }),
        Command::Worker(arguments) => worker::run(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Hold(arguments) => holder::run(&arguments).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Runs a driver until it has ended or is told to stop; either way all of its processes have ended then.
fn drive(run: impl AsyncFnOnce(std::path::PathBuf) -> Result<bool>) -> Result<ExitCode> {
    let program = env::current_exe().context("this program has no path")?;
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    threads.block_on(async {
        let mut terminated = signal(SignalKind::terminate())?;
        // Workers are started on this thread, and die with it.
        tokio::select! {
            outcome = run(program) => {
                Ok(if outcome? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
            }
            _ = tokio::signal::ctrl_c() => Ok(stopped()),
            _ = terminated.recv() => Ok(stopped()),
        }
    })
}

fn stopped() -> ExitCode {
    eprintln!("stopped by hand: nothing is judged, and nothing is kept");
    ExitCode::from(INTERRUPTED)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
