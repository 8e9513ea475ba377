//! How the cost of the core grows: instructions counted by callgrind at two sizes of each workload.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    built,
    metadata::Metadata,
    workspace::{Workspace, read, shown, succeeds},
};

const PACKAGE: &str = "steadfast-bench-core";

/// Names a workload of the benchmark program, its two sizes and how much more the larger may cost.
struct Growth {
    workload: &'static str,
    small: u32,
    large: u32,
    bar: f64,
}

const GROWTHS: [Growth; 3] = [
    Growth { workload: "replay", small: 10_000, large: 100_000, bar: 13.0 },
    Growth { workload: "fan-in", small: 1_000, large: 10_000, bar: 14.0 },
    Growth { workload: "warm", small: 100, large: 100_000, bar: 1.2 },
];

pub(super) fn run(workspace: &Workspace) -> Result<()> {
    ensure!(succeeds(workspace.program("valgrind").arg("--version")), MISSING_VALGRIND);
    let metadata = Metadata::of(workspace)?;
    ensure!(
        metadata.packages.iter().any(|package| package.name == PACKAGE),
        "the workspace has no package {PACKAGE} (benches/core)"
    );
    let counter = Counter {
        workspace,
        program: build(workspace)?,
        folder: metadata.target_directory.join("callgrind"),
    };
    fs::create_dir_all(&counter.folder)
        .with_context(|| format!("cannot create {}", counter.folder.display()))?;

    println!("{}", heading());
    let mut missed = Vec::new();
    for growth in &GROWTHS {
        let small = counter.work(growth.workload, growth.small)?;
        let large = counter.work(growth.workload, growth.large)?;
        println!("{}", line(growth, small, large));
        if !passes(growth, small, large) {
            missed.push(growth.workload);
        }
    }
    ensure!(missed.is_empty(), "bar missed: {}", missed.join(", "));
    Ok(())
}

const MISSING_VALGRIND: &str = "\
valgrind is not installed, and this benchmark counts instructions with it. Install it with one of:
  apt-get install valgrind
  dnf install valgrind
  pacman -S valgrind";

fn build(workspace: &Workspace) -> Result<PathBuf> {
    let arguments =
        ["build", "--release", "--package", PACKAGE, "--message-format", "json-render-diagnostics"];
    let messages = read(&mut workspace.cargo(arguments))?;
    built::executable(&messages, PACKAGE).with_context(|| format!("cargo built no program named {PACKAGE}"))
}

/// Counts the instructions of runs of the benchmark program.
struct Counter<'a> {
    workspace: &'a Workspace,
    program: PathBuf,
    folder: PathBuf,
}

impl Counter<'_> {
    /// Counts one workload at one size, less what preparing it costs.
    fn work(&self, workload: &str, size: u32) -> Result<u64> {
        let whole = self.run(workload, size, None)?;
        let setup = self.run(workload, size, Some("setup"))?;
        net(whole, setup)
            .with_context(|| format!("{workload} {size} did no work: {whole} with it, {setup} without"))
    }

    fn run(&self, workload: &str, size: u32, mode: Option<&str>) -> Result<u64> {
        let file = self.folder.join(format!("core.{workload}.{size}.{}.out", mode.unwrap_or("whole")));
        let mut command = self.workspace.program("valgrind");
        command.args(["--tool=callgrind", "--quiet"]).arg(out_file_argument(&file));
        command.arg(&self.program).arg(workload).arg(size.to_string()).args(mode);
        let shown = shown(&command);
        let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
        if !output.status.success() {
            bail!("`{shown}` failed ({})\n{}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        instructions_in(&text).with_context(|| format!("no total in {}", file.display()))
    }
}

fn out_file_argument(file: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from("--callgrind-out-file=");
    argument.push(file);
    argument
}

/// Reads the total of the first event, which is instructions read, from a profile.
fn instructions_in(profile: &str) -> Option<u64> {
    let total = |line: &str| {
        let counts = line.strip_prefix("totals:").or_else(|| line.strip_prefix("summary:"))?;
        counts.split_whitespace().next()?.parse().ok()
    };
    profile.lines().find_map(total)
}

fn net(whole: u64, setup: u64) -> Option<u64> {
    whole.checked_sub(setup).filter(|&work| work > 0)
}

fn ratio(small: u64, large: u64) -> f64 {
    large as f64 / small as f64
}

fn passes(growth: &Growth, small: u64, large: u64) -> bool {
    ratio(small, large) <= growth.bar
}

fn heading() -> String {
    format!(
        "{:<8} {:>16} {:>14} {:>16} {:>14} {:>7} {:>6}",
        "workload", "small", "instructions", "large", "instructions", "ratio", "bar"
    )
}

fn line(growth: &Growth, small: u64, large: u64) -> String {
    let verdict = if passes(growth, small, large) { "pass" } else { "MISS" };
    format!(
        "{:<8} {:>16} {:>14} {:>16} {:>14} {:>7.2} {:>6.1}  {verdict}",
        growth.workload,
        growth.small,
        small,
        growth.large,
        large,
        ratio(small, large),
        growth.bar
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLAY: &Growth = &GROWTHS[0];

    #[test]
    fn the_total_is_read_from_a_profile() {
        assert_eq!(instructions_in("events: Ir\nfn=(1) main\n1 5\n\ntotals: 12345\n"), Some(12_345));
        assert_eq!(instructions_in("summary: 77 3 4\n"), Some(77));
        assert_eq!(instructions_in("events: Ir\n"), None);
    }

    #[test]
    fn the_setup_is_subtracted_and_nothing_left_is_no_work() {
        assert_eq!((net(10, 4), net(4, 4), net(3, 4)), (Some(6), None, None));
    }

    #[test]
    fn a_ratio_at_its_bar_passes_and_one_above_it_misses() {
        assert!(passes(REPLAY, 100, 1_300));
        assert!(!passes(REPLAY, 100, 1_301));
        assert!(line(REPLAY, 100, 1_300).ends_with("pass"));
        assert!(line(REPLAY, 100, 1_301).ends_with("MISS"));
    }
}
