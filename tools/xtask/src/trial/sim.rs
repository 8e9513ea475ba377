//! `cargo xtask sim …`: stories of workers, clients and a store in trouble, and an auditor that reads what is
//! left.

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{
    built,
    step::Steps,
    workspace::{Workspace, read, shown},
};

#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct SimArguments {
    /// What the simulation is told; `--help` lists it
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// The features of the whole workspace, so that what the tests were built from is used again. An example is
/// among the programs because cargo leaves the dependencies of tests out of its features otherwise, and
/// builds everything a second time.
const PROGRAMS: [&str; 9] =
    ["build", "--workspace", "--all-features", "--bin", "sim", "--bin", "mutations", "--example", "01_hello"];

/// Nothing else is built optimized, so there is nothing to use again.
const OPTIMIZED: [&str; 10] = [
    "build",
    "--release",
    "--package",
    "steadfast-simulation",
    "--package",
    "steadfast-mutations",
    "--bin",
    "sim",
    "--bin",
    "mutations",
];

const AS_MESSAGES: [&str; 3] = ["--quiet", "--message-format", "json-render-diagnostics"];

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Asked<'a> {
    is_optimized: bool,
    what: What,
    /// What the program is told.
    options: Vec<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The stories of the default seeds, then every mutant.
    All,
    Stories,
    Mutations,
}

impl<'a> Asked<'a> {
    fn of(arguments: &'a [String]) -> Self {
        let is_given = |name| arguments.iter().any(|argument| argument == name);
        let ours = ["--release", "--mutations"];
        let options: Vec<_> =
            arguments.iter().map(String::as_str).filter(|one| !ours.contains(one)).collect();
        let what = match (is_given("--mutations"), options.is_empty()) {
            (true, _) => What::Mutations,
            (false, true) => What::All,
            (false, false) => What::Stories,
        };
        Self { is_optimized: is_given("--release"), what, options }
    }

    /// Returns the programs to run, each with its step and what one types to run it alone.
    fn programs(&self) -> Vec<(&'static str, &'static str, String)> {
        let release = if self.is_optimized { " --release" } else { "" };
        let options: String = self.options.iter().map(|option| format!(" {option}")).collect();
        let stories = |options: &str| ("stories", "sim", format!("cargo xtask sim{release}{options}"));
        let mutations = format!("cargo xtask sim{release} --mutations{options}");
        let mutations = ("mutations", "mutations", mutations);
        match self.what {
            What::All => vec![stories(" --store all"), mutations],
            What::Stories => vec![stories(&options)],
            What::Mutations => vec![mutations],
        }
    }
}

/// Builds the simulation and starts it.
///
/// # Errors
///
/// A promise that was broken is an error, and so is a mutant that breaks none.
pub(crate) fn run(workspace: &Workspace, arguments: &SimArguments) -> Result<()> {
    let asked = Asked::of(&arguments.arguments);
    let mut build = if asked.is_optimized { workspace.cargo(OPTIMIZED) } else { workspace.cargo(PROGRAMS) };
    let alone = shown(&build);
    let mut messages = String::new();
    let mut steps = Steps::default();
    steps.action("build", &alone, || {
        messages = read(build.args(AS_MESSAGES))?;
        Ok(())
    });
    for (step, program, alone) in asked.programs() {
        steps.action(step, &alone, || {
            let built = built::executable(&messages, program).context("it is not built")?;
            let status = workspace.program(built).args(&asked.options).status();
            let status = status.context("it cannot be started")?;
            ensure!(status.success(), "{status}");
            Ok(())
        });
    }
    steps.finish("sim")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn alone(line: &str) -> Vec<String> {
        Asked::of(&words(line)).programs().into_iter().map(|(_, _, alone)| alone).collect()
    }

    #[test]
    fn without_options_the_stories_and_every_mutant_are_played() {
        assert_eq!(alone(""), ["cargo xtask sim --store all", "cargo xtask sim --mutations"]);
        let optimized = ["cargo xtask sim --release --store all", "cargo xtask sim --release --mutations"];
        assert_eq!(alone("--release"), optimized);
    }

    #[test]
    fn options_are_handed_on_to_the_program_that_was_asked_for() {
        assert_eq!(alone("--seed 7 --trace"), ["cargo xtask sim --seed 7 --trace"]);
        assert_eq!(alone("--mutations lease"), ["cargo xtask sim --mutations lease"]);
        let typed = words("--seed 7 --release --trace");
        let asked = Asked::of(&typed);
        assert!(asked.is_optimized);
        assert_eq!(asked.options, ["--seed", "7", "--trace"]);
    }

    #[test]
    fn help_builds_one_program_and_asks_it() {
        assert_eq!(Asked::of(&words("--help")).what, What::Stories);
    }
}
