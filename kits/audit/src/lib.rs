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
pub use watch::{ExpiredClaim, TurnWait, Watch, WatchedStore};

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, as `docs/contract/rules.md` numbers it, or `effects`.
    pub rule: &'static str,
    /// What was found.
    pub text: String,
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
