//! Running cases and saying what they found.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use crate::{Bench, Case, Clause, Subject, Verdict, all_cases};

/// Holds what each case found.
#[derive(Debug, Default)]
pub struct Report {
    /// The name of the store, as its subject gives it.
    pub store: String,
    /// How each case ended, by its name: kept, skipped, or why it failed.
    pub cases: BTreeMap<&'static str, Result<Verdict, String>>,
}

impl Report {
    /// Returns the cases that failed, each with its reason.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.cases.iter().filter_map(|(name, end)| end.as_ref().err().map(|why| (*name, why.as_str())))
    }

    /// Tells whether no case failed.
    pub fn is_kept(&self) -> bool {
        self.failures().next().is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} cases", self.store, self.cases.len())?;
        for clause in Clause::ALL {
            let of_clause = || self.cases.iter().filter(move |(name, _)| Clause::of(name) == Some(clause));
            let (mut kept, mut skipped, mut failed) = (0, Vec::new(), Vec::new());
            for (name, end) in of_clause() {
                match end {
                    Ok(Verdict::Kept) => kept += 1,
                    Ok(Verdict::Skipped { needs }) => skipped.push((name, needs)),
                    Err(why) => failed.push((name, why)),
                }
            }
            writeln!(f, "{clause:>4}  {:<16} {kept:>3} kept", clause.title())?;
            for (name, needs) in skipped {
                writeln!(f, "        skipped {name}: needs {needs}")?;
            }
            for (name, why) in failed {
                writeln!(f, "        FAILED  {name}: {why}")?;
            }
        }
        Ok(())
    }
}

/// Runs cases one after the other, those that `select` accepts.
pub fn prove(subject: &Arc<dyn Subject>, select: impl Fn(&Case) -> bool) -> Report {
    let mut report = Report { store: subject.name().to_owned(), cases: BTreeMap::new() };
    for case in all_cases().into_iter().filter(select) {
        report.cases.insert(case.name, run(subject, case));
    }
    report
}

/// Runs every case as a test of its own, with the usual arguments of a test program. For a test target with
/// `harness = false`. With `STEADFAST_REPORT` in the environment it prints the list by clause instead.
pub fn main(subject: Arc<dyn Subject>) -> ! {
    run_as_tests(&subject, Vec::new())
}

/// Runs what [`main`] runs, and random walks that compare the store with an oracle: the memory store, or any
/// store that is trusted. `STEADFAST_CASES` multiplies the number of walks, `STEADFAST_SEED` takes one again.
pub fn main_with_oracle(subject: Arc<dyn Subject>, oracle: Arc<dyn Subject>) -> ! {
    let walks = crate::walk::trials(&subject, &oracle);
    run_as_tests(&subject, walks)
}

fn run_as_tests(subject: &Arc<dyn Subject>, more: Vec<Trial>) -> ! {
    if std::env::var_os("STEADFAST_REPORT").is_some() {
        let report = prove(subject, |_| true);
        note(&report.to_string());
        std::process::exit(i32::from(!report.is_kept()));
    }
    let mut arguments = Arguments::from_args();
    // A case is small, and its store may not be: one at a time a core is enough.
    arguments.test_threads.get_or_insert(2);
    let mut trials: Vec<Trial> = all_cases().into_iter().map(|case| trial(subject, case)).collect();
    trials.push(crate::stress::trial(subject));
    trials.extend(more);
    libtest_mimic::run(&arguments, trials).exit()
}

fn trial(subject: &Arc<dyn Subject>, case: Case) -> Trial {
    let subject = Arc::clone(subject);
    let run = move || match run(&subject, case) {
        Ok(Verdict::Kept) => Ok(()),
        Ok(Verdict::Skipped { needs }) => {
            note(&format!("skipped {}: needs {needs}", case.name));
            Ok(())
        }
        Err(why) => Err(Failed::from(why)),
    };
    Trial::test(case.name, run).with_kind(case.clause().to_string())
}

fn run(subject: &Arc<dyn Subject>, case: Case) -> Result<Verdict, String> {
    let clause = case.clause();
    let found = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let end = runtime.block_on(async {
            let bench = Bench::open(Arc::clone(subject), clause).await?;
            let limit = 6 * subject.patience();
            let end = tokio::time::timeout(limit, case.run(bench)).await;
            end.map_err(|_| crate::BoxError::from(format!("it has not ended in {limit:?}")))
        });
        runtime.shutdown_background();
        end
    }));
    match found {
        Ok(Ok(verdict)) => Ok(verdict),
        Ok(Err(error)) => Err(format!("{clause} ({}) could not be tried: {error}", clause.title())),
        Err(panic) => Err(format!("breaks {clause} ({}): {}", clause.title(), text_of(panic.as_ref()))),
    }
}

pub(crate) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}

#[allow(clippy::print_stderr, reason = "the output of a test program is where its reader looks")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}
