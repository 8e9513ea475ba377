//! Proof that a store keeps the contract.
//!
//! The contract is in `CONTRACT.md` of `steadfast-store`: numbered clauses. This kit has cases for each of
//! them; a case is named after its clause (`s4_an_expired_token_cannot_commit`). A store is proven by one
//! call:
//!
//! ```no_run
//! use std::sync::Arc;
//! use steadfast_conformance::{BoxError, Subject, async_trait};
//! use steadfast_clock::Clock;
//! use steadfast_store::Provider;
//!
//! struct MyStore;
//!
//! #[async_trait]
//! impl Subject for MyStore {
//!     fn name(&self) -> &str {
//!         "my store"
//!     }
//!
//!     async fn open(&self, clock: Arc<dyn Clock>) -> Result<Arc<dyn Provider>, BoxError> {
//! #       let _ = clock;
//!         // Make a fresh, empty store whose only clock is the given one.
//! #       Err("not written".into())
//!     }
//! }
//!
//! // In a test target with `harness = false`:
//! fn main() {
//!     steadfast_conformance::main(Arc::new(MyStore));
//! }
//! ```
//!
//! Each case then is a test of its own. Time is told, not waited for: the store follows the clock that it was
//! opened with. What a store cannot do is asked for, and cases that need it are reported as skipped, with
//! what they need.
//!
//! [`main_with_oracle`] adds random walks, which compare the store with one that is trusted, step by step,
//! and tell a short story when the two differ ([`walk()`]). Both run a stress test under the clock of the
//! machine ([`stress()`]), which reports how fast the store was and judges only whether it was right.

#[allow(clippy::expect_used, clippy::panic, reason = "what a case relies on, it panics without")]
mod bench;
mod case;
mod cases;
mod clause;
mod dice;
mod report;
mod stress;
mod subject;
mod walk;

pub use async_trait::async_trait;
pub use bench::{Bench, Commit, Turning};
pub use case::{Case, Verdict, all_cases};
pub use clause::Clause;
pub use report::{Report, main, main_with_oracle, prove};
pub use stress::{Stress, Stressed, hammer, stress};
pub use subject::{BoxError, Damage, Subject};
pub use walk::{Divergence, Walked, walk};
