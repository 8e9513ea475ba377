//! `cargo xtask test`: every test, every doctest, every example. It does its own set-up.

mod failures;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use steadfast_cluster::INSTALL;

use crate::{
    built,
    metadata::Metadata,
    server,
    step::Steps,
    workspace::{Workspace, read, shown, succeeds},
};

/// The profile says how many slots a test takes.
const NEXTEST: [&str; 7] =
    ["nextest", "run", "--workspace", "--all-features", "--profile", "all", "--no-fail-fast"];
const CARGO_TEST: [&str; 6] = ["test", "--workspace", "--all-features", "--lib", "--bins", "--tests"];
/// A store as others would write it lives outside the workspace, so its test is a step of its own. With the
/// profile and the target folder of the workspace it uses the dependencies that are built already.
const FOREIGN: [&str; 11] = [
    "test",
    "--manifest-path",
    "kits/conformance/foreign/Cargo.toml",
    "--target-dir",
    "target",
    "--config",
    "profile.dev.debug=\"line-tables-only\"",
    "--config",
    "profile.dev.package.\"*\".debug=false",
    "--config",
    "profile.dev.build-override.debug=false",
];
/// The features of the whole workspace, so that what the tests were built from is used again.
const EXAMPLES: [&str; 8] = [
    "build",
    "--workspace",
    "--all-features",
    "--examples",
    "--bins",
    "--quiet",
    "--message-format",
    "json-render-diagnostics",
];
const DOCTESTS: [&str; 4] = ["test", "--doc", "--workspace", "--all-features"];

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TestArguments {
    /// Run only this part
    #[arg(long, value_enum)]
    only: Option<Part>,

    /// Show the behaviour warm, cold and with constant eviction on more stores than CI takes
    #[arg(long)]
    all: bool,

    /// TestArguments for the test runner: cargo-nextest where installed, else `cargo test`
    #[arg(last = true, value_name = "ARGUMENTS")]
    runner: Vec<String>,
}

const AFTER_HELP: &str = "\
Examples:
  cargo xtask test                                          everything, as in CI
  cargo xtask test --only tests -- a_dropped_timer          the tests whose name contains this
  cargo xtask test --only tests -- --no-capture a_dropped_timer
  cargo xtask test --only doctests
  cargo xtask test --only cold --all                        the behaviour without a warm cache, on more stores

Tests run under cargo-nextest where it is installed (cargo install --locked cargo-nextest), else under
`cargo test`. TestArguments after -- go to that runner; doctests and examples do not receive them.

Tests that need a PostgreSQL server share a throw-away one, which they start and stop by themselves, or take
the one that TEST_DATABASE_URL names. Where no server is installed, root gets the Debian package `postgresql`
from apt-get, and `pgbouncer` with it; the tests through a pooler say that they were not tried where there is
none.

What failed is named again at the end, with the last lines that each test printed.";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Unit and integration tests
    Tests,
    /// The behaviour again: cold, and with room for one warm orchestration
    Cold,
    /// A store outside the workspace, through the adapter
    Foreign,
    /// The code blocks of the documentation
    Doctests,
    /// Every program in examples/
    Examples,
}

/// Runs the parts that were asked for, all by default.
pub(crate) fn run(workspace: &Workspace, arguments: &TestArguments) -> Result<()> {
    let asked = |part| arguments.only.is_none_or(|only| only == part);
    if !asked(Part::Tests) && !arguments.runner.is_empty() {
        bail!("arguments after -- are for the test runner, and --only leaves it out");
    }
    let runner = Runner::of(workspace)?;
    let mut steps = Steps::default();
    if asked(Part::Tests) || asked(Part::Cold) {
        steps.action("server", INSTALL, server::provide);
    }
    if asked(Part::Tests) {
        runner.run(&mut steps, "tests", runner.everything(workspace).args(&arguments.runner));
    }
    if asked(Part::Cold) {
        for pass in PASSES.iter().filter(|pass| arguments.all || !pass.by_hand) {
            runner.run(&mut steps, pass.name, &mut pass.command(workspace, &runner));
        }
    }
    if asked(Part::Foreign) {
        steps.command("foreign", &mut workspace.cargo(FOREIGN));
    }
    if asked(Part::Doctests) {
        steps.command("doctests", &mut workspace.cargo(DOCTESTS));
    }
    if asked(Part::Examples) {
        examples(workspace, &mut steps)?;
    }
    steps.finish("test")
}

/// The claims about what a user observes, with another number of orchestrations that stay warm.
struct Pass {
    name: &'static str,
    warm: &'static str,
    /// The store, as the names of the tests end.
    store: &'static str,
    claims: Claims,
    by_hand: bool,
}

/// Which claims a pass shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claims {
    All,
    /// Those of every room but [`ABOUT_CODE`].
    AboutStores,
    /// Those of [`ABOUT_CODE`].
    AboutCode,
}

/// Rooms of the behaviour whose claims are about the code of applications. What they need of a store, other
/// rooms and the conformance kit show: on a server, where tests are slow, they are shown by hand.
const ABOUT_CODE: [&str; 6] = ["activity", "codec", "custom_status", "execution", "observe", "replay"];

/// The run of all tests shows them with the default, on every store but the server, which has a pass of its
/// own.
const PASSES: &[Pass] = &[
    Pass { name: "cold, memory", warm: "0", store: "memory", claims: Claims::All, by_hand: false },
    Pass { name: "one warm, memory", warm: "1", store: "memory", claims: Claims::All, by_hand: false },
    Pass { name: "one warm, sqlite", warm: "1", store: "sqlite", claims: Claims::All, by_hand: false },
    Pass {
        name: "warm, postgres",
        warm: "1000",
        store: "postgres",
        claims: Claims::AboutStores,
        by_hand: false,
    },
    Pass {
        name: "warm, postgres, code",
        warm: "1000",
        store: "postgres",
        claims: Claims::AboutCode,
        by_hand: true,
    },
    Pass { name: "cold, sqlite", warm: "0", store: "sqlite", claims: Claims::All, by_hand: true },
    Pass { name: "cold, wrapped", warm: "0", store: "wrapped", claims: Claims::All, by_hand: true },
    Pass { name: "one warm, wrapped", warm: "1", store: "wrapped", claims: Claims::All, by_hand: true },
];

const BEHAVIOUR: &str = "steadfast-behaviour";

/// The test binaries whose claims take the number of warm orchestrations from outside, if they exist.
const WARM_OR_COLD: [&str; 4] = ["behaviour", "faults", "input", "trouble"];

impl Pass {
    fn command(&self, workspace: &Workspace, runner: &Runner) -> Command {
        let mut command = if runner.is_nextest {
            // The whole workspace, because one package alone would be built anew with fewer features.
            let binaries: Vec<_> =
                runner.warm_or_cold.iter().map(|binary| format!("binary({binary})")).collect();
            let binaries = binaries.join(" | ");
            let about_code = format!("test(/^({})::/)", ABOUT_CODE.join("|"));
            let claims = match self.claims {
                Claims::All => "all()".to_owned(),
                Claims::AboutStores => format!("not {about_code}"),
                Claims::AboutCode => about_code,
            };
            let filter =
                format!("package({BEHAVIOUR}) & ({binaries}) & test(/::{}$/) & {claims}", self.store);
            let mut command = runner.everything(workspace);
            command.args(["--ignore-default-filter", "-E", &filter]);
            command
        } else {
            let mut command = workspace.cargo(["test", "--all-features", "--package", BEHAVIOUR]);
            command.args(runner.warm_or_cold.iter().flat_map(|binary| ["--test", binary]));
            command.args(["--", &format!("::{}", self.store)]);
            // `cargo test` can leave tests out and cannot choose by two names: the other passes show all.
            if self.claims == Claims::AboutStores {
                command.args(ABOUT_CODE.iter().flat_map(|room| ["--skip".to_owned(), format!("{room}::")]));
            }
            command
        };
        command.env("STEADFAST_WARM", self.warm);
        command
    }
}

/// What runs the tests: cargo-nextest where it is installed, else `cargo test`.
struct Runner {
    is_nextest: bool,
    /// Where nextest writes which tests failed.
    report: PathBuf,
    /// Those of [`WARM_OR_COLD`] that exist.
    warm_or_cold: Vec<&'static str>,
}

impl Runner {
    fn of(workspace: &Workspace) -> Result<Self> {
        let metadata = Metadata::of(workspace)?;
        let warm_or_cold = tests_of(BEHAVIOUR, &metadata, &WARM_OR_COLD);
        ensure!(!warm_or_cold.is_empty(), "{BEHAVIOUR} has none of the tests {}", WARM_OR_COLD.join(", "));
        Ok(Self {
            is_nextest: succeeds(&mut workspace.cargo(["nextest", "--version"])),
            report: metadata.target_directory.join(failures::REPORT),
            warm_or_cold,
        })
    }

    /// The command for all tests. Three slots for each core: tests wait for a disk, a server or real time.
    fn everything(&self, workspace: &Workspace) -> Command {
        if !self.is_nextest {
            return workspace.cargo(CARGO_TEST);
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut command = workspace.cargo(NEXTEST);
        command.args(["--test-threads", &(3 * cores).to_string()]);
        command
    }

    /// Runs tests as a step that names those which failed.
    fn run(&self, steps: &mut Steps, name: &str, command: &mut Command) {
        // One of an earlier run would be taken for this one's where the tests do not even build.
        drop(std::fs::remove_file(&self.report));
        steps.explained_command(name, command, || failures::described(&self.report).ok().flatten());
    }
}

/// Finds which of some tests a package has.
fn tests_of<'a>(package: &str, metadata: &Metadata, names: &[&'a str]) -> Vec<&'a str> {
    let targets = metadata.packages.iter().filter(|one| one.name == package).flat_map(|one| &one.targets);
    let tests: Vec<_> = targets.filter(|target| target.kind.iter().any(|kind| kind == "test")).collect();
    names.iter().copied().filter(|name| tests.iter().any(|test| test.name == *name)).collect()
}

/// Runs the programs from where the build of all tests has put them: `cargo run` of one package would resolve
/// fewer features and build everything below it again.
fn examples(workspace: &Workspace, steps: &mut Steps) -> Result<()> {
    let folder = workspace.root().join("examples");
    if !folder.is_dir() {
        println!("── examples: none yet\n");
        return Ok(());
    }
    let programs = programs_under(&folder, &Metadata::of(workspace)?);
    if programs.is_empty() {
        bail!("examples/ exists, but no package of the workspace has a program in it");
    }
    let mut messages = String::new();
    let mut build = workspace.cargo(EXAMPLES);
    steps.action("examples", &shown(&build), || {
        messages = read(&mut build)?;
        Ok(())
    });
    // A file that an earlier build has left would be opened again.
    let temporary = emptied(workspace.root().join("target/tmp/examples"))?;
    for program in programs {
        let alone = shown(&workspace.cargo(program.command()));
        steps.action(&program.name, &alone, || {
            let built = built::executable(&messages, &program.name).context("cargo has not built it")?;
            check_output(workspace.program(built).env("TMPDIR", &temporary), &folder, &program.name)
        });
    }
    Ok(())
}

/// Makes a folder that is empty.
fn emptied(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("{} must be removed", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("{} must be made", folder.display()))?;
    Ok(folder)
}

/// Runs a program and compares what it prints with its text in `expected`.
fn check_output(run: &mut Command, folder: &Path, name: &str) -> Result<()> {
    let text = folder.join("expected").join(format!("{name}.txt"));
    let expected = std::fs::read_to_string(&text)
        .with_context(|| format!("{} must say what the program prints", text.display()))?;
    let ran = run.stderr(Stdio::inherit()).output().context("it cannot be started")?;
    ensure!(ran.status.success(), "{}", ran.status);
    let printed = String::from_utf8_lossy(&ran.stdout);
    ensure!(printed == expected, "it printed\n{printed}\nand not\n{expected}");
    Ok(())
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Program {
    name: String,
    package: String,
    flag: &'static str,
}

impl Program {
    fn command(&self) -> [&str; 6] {
        ["run", "--quiet", "--package", &self.package, self.flag, &self.name]
    }
}

/// Finds the programs whose source is in a folder, whichever package owns them, in reading order.
fn programs_under(folder: &std::path::Path, metadata: &Metadata) -> Vec<Program> {
    let mut programs = Vec::new();
    for package in &metadata.packages {
        for target in package.targets.iter().filter(|target| target.src_path.starts_with(folder)) {
            let flag = match target.kind.first().map(String::as_str) {
                Some("example") => "--example",
                Some("bin") => "--bin",
                _ => continue,
            };
            programs.push(Program { name: target.name.clone(), package: package.name.clone(), flag });
        }
    }
    programs.sort();
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{ "target_directory": "target", "packages": [
        { "name": "steadfast", "dependencies": [], "targets": [
            { "name": "steadfast", "kind": ["lib"], "src_path": "/r/steadfast/src/lib.rs" },
            { "name": "elsewhere", "kind": ["example"], "src_path": "/r/steadfast/examples/elsewhere.rs" },
            { "name": "02_signals", "kind": ["example"], "src_path": "/r/examples/02_signals.rs" }
        ] },
        { "name": "steadfast-examples", "dependencies": [], "targets": [
            { "name": "steadfast_examples", "kind": ["lib"], "src_path": "/r/examples/src/lib.rs" },
            { "name": "01_hello", "kind": ["bin"], "src_path": "/r/examples/01_hello/main.rs" }
        ] }
    ] }"#;

    #[test]
    fn the_tests_of_a_package_are_those_that_exist() {
        let metadata = r#"{ "target_directory": "target", "packages": [
            { "name": "kit", "dependencies": [], "targets": [
                { "name": "behaviour", "kind": ["test"], "src_path": "/r/kit/tests/behaviour.rs" },
                { "name": "input", "kind": ["lib"], "src_path": "/r/kit/src/lib.rs" }
            ] }
        ] }"#;
        let found = tests_of("kit", &Metadata::parse(metadata).unwrap(), &["behaviour", "faults", "input"]);
        assert_eq!(found, ["behaviour"]);
    }

    #[test]
    fn programs_in_the_examples_folder_are_found_in_reading_order() {
        let found = programs_under(Path::new("/r/examples"), &Metadata::parse(METADATA).unwrap());
        let program =
            |name: &str, package: &str, flag| Program { name: name.into(), package: package.into(), flag };
        assert_eq!(
            found,
            [
                program("01_hello", "steadfast-examples", "--bin"),
                program("02_signals", "steadfast", "--example")
            ]
        );
    }
}
