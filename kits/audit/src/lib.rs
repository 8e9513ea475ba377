//! The auditor: checks what a store holds, and what processes did, against what Steadfast promises.
//!
//! Whoever runs an engine under trouble collects [`Evidence`] beside it: which activities ran where and how
//! they ended, what clients asked for and were told, and which faults happened. Evidence is one JSON line for
//! each fact, so that processes can append it to a [`Ledger`] that outlives them. When the trouble has ended
//! and everything had time to end, [`audit`] reads the store and names each promise that was broken.
//!
//! The checks are pure functions of a [`Case`], one for each promise, and have tests that feed them evidence
//! of a broken engine: an auditor that cannot find anything proves nothing.

mod case;
mod checks;
mod evidence;
mod ledger;
mod records;
mod watch;

use std::fmt::{self, Display, Formatter};

use steadfast_store::{ProviderError, Store};

pub use case::{Case, MayFail, Replayer, Terms};
pub use evidence::{Entry, Evidence, Fact, Fault, FaultKind, Life, Run, SessionRun, Told};
pub use ledger::Ledger;
pub use records::{InstanceRecords, Records};
pub use watch::{DeletedInstance, ExpiredClaim, TurnWait, Watch, WatchedStore};

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, as `docs/contract/rules.md` numbers it, or `effects`.
    pub rule: &'static str,
    /// What was found.
    pub text: String,
}

impl Violation {
    /// Tells whether another violation is one of the same kind: of the same rule, and told in the same words
    /// but for names and numbers.
    pub fn is_like(&self, other: &Self) -> bool {
        let words = |text: &str| -> Vec<String> {
            let is_word =
                |word: &&str| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_lowercase());
            text.split(' ').filter(is_word).take(4).map(str::to_owned).collect()
        };
        self.rule == other.rule && words(&self.text) == words(&other.text)
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.text)
    }
}

/// Reads a store and checks it and the evidence against every promise.
///
/// # Errors
///
/// The first error of a read: the store must be healthy by now.
///
/// # Cancel safety
///
/// It only reads, so it may be dropped at any time.
pub async fn audit(
    store: &dyn Store,
    evidence: Evidence,
    terms: Terms,
) -> Result<Vec<Violation>, ProviderError> {
    let records = Records::read(store).await?;
    Ok(Case { records, evidence, terms }.violations())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_are_alike_if_only_names_and_numbers_differ() {
        let of = |text: &str| Violation { rule: "I7", text: text.to_owned() };
        assert!(of("i1 has not ended; last 5").is_like(&of("i2 has not ended; last 7")));
        assert!(!of("i1 has not ended; last 5").is_like(&of("something is left: 5")));
    }
}
