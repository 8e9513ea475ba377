//! A list of named steps: each is announced and timed, all run, and the failures are named at the end.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::shown;

/// Runs steps one after the other and remembers which failed.
///
/// A failure does not stop the rest, so that one run tells everything there is to mend.
#[derive(Default)]
pub(crate) struct Steps {
    ran: Vec<Ran>,
}

impl Steps {
    /// Runs a command with its output in view; it fails when its exit code says so.
    pub(crate) fn command(&mut self, name: &str, command: &mut Command) {
        self.explained_command(name, command, || None);
    }

    /// Runs a command like [`Self::command`]; when it fails, `explain` may say more than its exit code does.
    pub(crate) fn explained_command(
        &mut self,
        name: &str,
        command: &mut Command,
        explain: impl FnOnce() -> Option<String>,
    ) {
        let alone = shown(command);
        self.action(name, &alone, || {
            let status = command.status().context("it cannot be started")?;
            ensure!(status.success(), "{}", explain().unwrap_or_else(|| status.to_string()));
            Ok(())
        });
    }

    /// Runs a function; `alone` is the command that does the same by itself.
    pub(crate) fn action(&mut self, name: &str, alone: &str, act: impl FnOnce() -> Result<()>) {
        println!("── {name}: {alone}");
        let (failure, took) = timed(act);
        let step = Ran { name: name.to_owned(), alone: alone.to_owned(), took, failure };
        println!("── {name}: {} in {}\n", step.verdict(), seconds(took));
        self.ran.push(step);
    }

    /// Prints the summary and turns failures into an error that says how to run each of them alone.
    pub(crate) fn finish(self, title: &str) -> Result<()> {
        let width = self.ran.iter().map(|step| step.name.len()).max().unwrap_or_default().max("total".len());
        for step in &self.ran {
            println!("{title}: {:<width$} {:>9}  {}", step.name, minutes(step.took), step.verdict());
        }
        let total = self.ran.iter().map(|step| step.took).sum();
        println!("{title}: {:<width$} {:>9}", "total", minutes(total));
        let failures: Vec<_> =
            self.ran.iter().filter_map(|step| Some((step, step.failure.as_ref()?))).collect();
        if failures.is_empty() {
            return Ok(());
        }
        let mut text = format!("{title}: {} of {} steps failed", failures.len(), self.ran.len());
        for (step, failure) in failures {
            let reason = format!("{failure:#}").replace('\n', "\n  ");
            text += &format!("\n  {}: {reason}\n    run it alone: {}", step.name, step.alone);
        }
        bail!(text)
    }
}

struct Ran {
    name: String,
    alone: String,
    took: Duration,
    failure: Option<anyhow::Error>,
}

impl Ran {
    fn verdict(&self) -> &'static str {
        if self.failure.is_some() { "FAILED" } else { "ok" }
    }
}

#[expect(clippy::disallowed_methods, reason = "the time shown is that of the person who waits")]
fn timed(act: impl FnOnce() -> Result<()>) -> (Option<anyhow::Error>, Duration) {
    let started = Instant::now();
    let failure = act().err();
    (failure, started.elapsed())
}

fn minutes(duration: Duration) -> String {
    format!("{:.1} min", duration.as_secs_f64() / 60.0)
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn steps_that_succeed_finish_well() {
        let mut steps = Steps::default();
        steps.action("one", "run one", || Ok(()));
        steps.finish("check").unwrap();
    }

    #[test]
    fn a_failure_names_its_step_its_reason_and_how_to_run_it_alone() {
        let mut steps = Steps::default();
        steps.action("one", "run one", || Err(anyhow!("too bad")));
        steps.action("two", "run two", || Ok(()));
        let text = steps.finish("check").unwrap_err().to_string();
        assert_eq!(text, "check: 1 of 2 steps failed\n  one: too bad\n    run it alone: run one");
    }

    #[test]
    fn the_steps_after_a_failure_still_run() {
        let mut ran = false;
        let mut steps = Steps::default();
        steps.action("one", "run one", || Err(anyhow!("too bad")));
        steps.action("two", "run two", || {
            ran = true;
            Ok(())
        });
        drop(steps);
        assert!(ran);
    }

    #[test]
    fn a_command_that_fails_is_explained() {
        let mut steps = Steps::default();
        steps.explained_command("one", &mut Command::new("false"), || Some("a claim is wrong".into()));
        steps.explained_command("two", &mut Command::new("false"), || None);
        let text = steps.finish("check").unwrap_err().to_string();
        assert!(text.contains("one: a claim is wrong"), "{text}");
        assert!(text.contains("two: exit status: 1"), "{text}");
    }

    #[test]
    fn a_command_that_cannot_start_is_a_failed_step() {
        let mut steps = Steps::default();
        steps.command("one", &mut Command::new("a-program-that-does-not-exist"));
        let text = steps.finish("check").unwrap_err().to_string();
        assert!(text.contains("it cannot be started"), "{text}");
    }
}
