//! What came of a run.

use std::{
    fmt::{self, Display, Formatter},
    path::PathBuf,
};

use crate::tally::Tally;

/// The most violations that are printed; all of them are counted.
const SHOWN: usize = 50;

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What was done, and how often.
    pub tally: Tally,
    /// The promises that were broken.
    pub violations: Vec<String>,
    /// Where the store, the ledgers and the logs are, if they were kept.
    pub kept: Option<PathBuf>,
}

impl Outcome {
    /// Tells whether all promises were kept.
    pub fn is_good(&self) -> bool {
        self.violations.is_empty()
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { seed, tally, violations, kept } = self;
        write!(f, "summary of seed {seed}:\n{tally}")?;
        for violation in violations.iter().take(SHOWN) {
            writeln!(f, "VIOLATION {violation}")?;
        }
        if violations.len() > SHOWN {
            writeln!(f, "… and {} more", violations.len() - SHOWN)?;
        }
        match violations.len() {
            0 => write!(f, "every promise was kept")?,
            count => write!(f, "{count} violations")?,
        }
        match kept {
            Some(path) => write!(f, "; the store, the ledgers and the logs are in {}", path.display()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_violations_and_the_place_of_what_was_kept() {
        let tally = Tally::default();
        tally.count("kills");
        let violations = (0..60).map(|n| format!("I7: number {n}")).collect();
        let outcome = Outcome { seed: 7, tally, violations, kept: Some(PathBuf::from("/tmp/x")) };
        let text = outcome.to_string();
        assert!(text.contains("VIOLATION I7: number 49\n… and 10 more\n60 violations; "), "{text}");
        assert!(text.ends_with("/tmp/x") && !outcome.is_good(), "{text}");
        assert_eq!(Tally::parse(&text), outcome.tally);
    }
}
