//! Walks as tests.

use std::sync::Arc;

use libtest_mimic::{Failed, Trial};

use super::{Walked, walk};
use crate::Subject;
use crate::report::note;

/// How many tests of walks there are.
const TRIALS: u64 = 8;

/// How many steps a walk has: enough for leases, sessions and executions to follow each other.
const STEPS: usize = 200;

pub(crate) fn trials(subject: &Arc<dyn Subject>, oracle: &Arc<dyn Subject>) -> Vec<Trial> {
    (1..=TRIALS)
        .map(|number| {
            let (subject, oracle) = (Arc::clone(subject), Arc::clone(oracle));
            Trial::test(format!("walk_{number}"), move || take_all(&subject, &oracle, number))
                .with_kind("walk")
        })
        .collect()
}

fn take_all(subject: &Arc<dyn Subject>, oracle: &Arc<dyn Subject>, trial: u64) -> Result<(), Failed> {
    let seeds = match from_environment("STEADFAST_SEED") {
        Some(seed) => vec![seed],
        None => {
            let walks = subject.walks().saturating_mul(from_environment("STEADFAST_CASES").unwrap_or(1));
            (0..walks).map(|walk| walk * TRIALS + trial).collect()
        }
    };
    for seed in seeds {
        match walk(subject, oracle, seed, STEPS) {
            Ok(Walked::Alike) => {}
            Ok(Walked::Skipped) => {
                note("skipped walks: they need Store");
                return Ok(());
            }
            Err(divergence) => return Err(Failed::from(divergence.to_string())),
        }
    }
    Ok(())
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
