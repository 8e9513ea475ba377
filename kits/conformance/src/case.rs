//! Cases: one claim about one clause each.

use std::pin::Pin;

use crate::{Bench, Clause};

/// One claim that a store must keep.
#[derive(Clone, Copy)]
pub struct Case {
    /// The claim, as an identifier that begins with its clause: `s4_an_expired_token_cannot_commit`.
    pub name: &'static str,
    run: Run,
}

type Run = fn(Bench) -> Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// How a case ended. A broken claim panics with what was expected, as a test does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The claim holds.
    Kept,
    /// The claim needs something that this store does not have.
    Skipped {
        /// What the store lacks, for the report.
        needs: &'static str,
    },
}

impl Case {
    #[doc(hidden)]
    pub const fn new(name: &'static str, run: Run) -> Self {
        Self { name, run }
    }

    /// Returns the clause that the case is named after.
    pub fn clause(&self) -> Clause {
        Clause::of(self.name).unwrap_or(Clause::Api)
    }

    /// Runs the case on a fresh store.
    pub async fn run(&self, bench: Bench) -> Verdict {
        (self.run)(bench).await
    }
}

/// Lists the cases of a module. A case is an `async fn(Bench) -> Verdict`, or one that returns `()`.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CASES: &[$crate::Case] = &[
            $($crate::Case::new(stringify!($name), |bench| Box::pin(async move {
                $crate::case::IntoVerdict::into_verdict($name(bench).await)
            }))),*
        ];
    };
}
pub(crate) use cases;

/// Ends a case as skipped when the store lacks something: `let store = need!(bench.store(), "Store");`
macro_rules! need {
    ($what:expr, $needs:literal) => {
        match $what {
            Some(there) => there,
            None => return $crate::Verdict::Skipped { needs: $needs },
        }
    };
}
pub(crate) use need;

pub(crate) trait IntoVerdict {
    fn into_verdict(self) -> Verdict;
}

impl IntoVerdict for () {
    fn into_verdict(self) -> Verdict {
        Verdict::Kept
    }
}

impl IntoVerdict for Verdict {
    fn into_verdict(self) -> Verdict {
        self
    }
}

/// Lists every case of the kit, by clause.
pub fn all_cases() -> Vec<Case> {
    let mut all: Vec<Case> = crate::cases::ALL.iter().flat_map(|cases| cases.iter()).copied().collect();
    all.sort_by_cached_key(|case| (case.clause(), case.name));
    all
}
