//! The one command behind every habit of the repository.
//!
//! `cargo xtask check` says whether a change may be proposed, `cargo xtask test` whether it works, and `cargo
//! xtask sim` what was missed; together they are `.ci/run`. The other commands are parts of these, or
//! measurements. One file per command.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool speaks to its terminal")]

mod bench;
mod built;
mod check;
mod conformance;
mod house;
mod layers;
mod metadata;
mod migration_diff;
mod server;
mod step;
mod test;
mod trial;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use trial::{harness, scale, sim};
use workspace::Workspace;

/// Checks, tests and measures this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Before proposing a change:
  cargo xtask check    then    cargo xtask test    then    cargo xtask sim    (or all at once: .ci/run)

Exit codes: 0 all is well, 1 a step failed (its name is printed last), 2 the command line is wrong.";

#[derive(Subcommand)]
enum Command {
    /// Format, layers, the house, clippy and docs (warnings denied); runs no code of the project
    Check,
    /// Read the files of the repository and name what breaks a rule of the house
    House(house::HouseArguments),
    /// Compare the dependencies between workspace packages with the table of allowed edges
    Layers,
    /// Run all tests, then doctests, then every program in examples/
    Test(test::TestArguments),
    /// Prove stores against the contract, clause by clause, or prove the kit that does it
    Conformance(conformance::ConformanceArguments),
    /// Play stories of workers in trouble, and name each promise that was broken; see `sim --help`
    Sim(sim::SimArguments),
    /// Count the work of a part of the project and compare it with its bars
    Bench {
        #[command(subcommand)]
        benchmark: bench::Benchmark,
    },
    /// Make a small store and a very large one, and count the work of the same calls on both
    Scale(scale::ScaleArguments),
    /// Kill, pause and cut off real processes under load, then audit the store (see `crash --help`)
    #[command(disable_help_flag = true)]
    Crash(harness::HarnessArguments),
    /// Keep real processes under a steady load and fail on a trend (see `soak --help`)
    #[command(disable_help_flag = true)]
    Soak(harness::HarnessArguments),
    /// Write what a migration of the Postgres store changes: tables, indexes, functions in full
    MigrationDiff(migration_diff::MigrationDiffArguments),
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    let workspace = Workspace::find()?;
    match cli.command {
        Command::Check => check::run(&workspace),
        Command::House(arguments) => house::run(&workspace, &arguments),
        Command::Layers => layers::run(&workspace),
        Command::Test(arguments) => test::run(&workspace, &arguments),
        Command::Conformance(arguments) => conformance::run(&workspace, &arguments),
        Command::Sim(arguments) => sim::run(&workspace, &arguments),
        Command::Bench { benchmark } => bench::run(&workspace, &benchmark),
        Command::Scale(arguments) => scale::run(&workspace, &arguments),
        Command::Crash(arguments) => harness::crash(&workspace, &arguments),
        Command::Soak(arguments) => harness::soak(&workspace, &arguments),
        Command::MigrationDiff(arguments) => migration_diff::run(&workspace, &arguments),
    }
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
