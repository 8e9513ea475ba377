//! The clauses of the contract.

use std::fmt;

/// A clause of the store contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the titles say what each clause is about, and CONTRACT.md what it means")]
pub enum Clause {
    S1,
    S2,
    S3,
    S4,
    S5,
    S6,
    S7,
    S8,
    S9,
    S10,
    S11,
    S12,
    S13,
    S14,
    S15,
    S16,
    S17,
    S18,
    S19,
    S20,
    S21,
    S22,
    /// What the compatible API and its management interface promise beyond the clauses.
    Api,
}

impl Clause {
    /// Lists all clauses in order.
    pub const ALL: [Self; 23] = [
        Self::S1,
        Self::S2,
        Self::S3,
        Self::S4,
        Self::S5,
        Self::S6,
        Self::S7,
        Self::S8,
        Self::S9,
        Self::S10,
        Self::S11,
        Self::S12,
        Self::S13,
        Self::S14,
        Self::S15,
        Self::S16,
        Self::S17,
        Self::S18,
        Self::S19,
        Self::S20,
        Self::S21,
        Self::S22,
        Self::Api,
    ];

    /// Returns the title of the clause.
    pub fn title(self) -> &'static str {
        match self {
            Self::S1 => "One holder",
            Self::S2 => "Whole batch",
            Self::S3 => "All or nothing",
            Self::S4 => "Stale loses",
            Self::S5 => "Nothing is lost",
            Self::S6 => "Only the leased",
            Self::S7 => "Late waits",
            Self::S8 => "Append only",
            Self::S9 => "Not before",
            Self::S10 => "Own history",
            Self::S11 => "Work and answer",
            Self::S12 => "Cancelled work",
            Self::S13 => "Sessions",
            Self::S14 => "Tags",
            Self::S15 => "Unreadable",
            Self::S16 => "One clock",
            Self::S17 => "No strays",
            Self::S18 => "Fair",
            Self::S19 => "Acknowledged",
            Self::S20 => "Bounded cost",
            Self::S21 => "Routes",
            Self::S22 => "Tries",
            Self::Api => "Compatible API",
        }
    }

    /// Finds the clause that a case is named after: the letters before the first underscore.
    pub fn of(case: &str) -> Option<Self> {
        let prefix = case.split('_').next()?;
        Self::ALL.into_iter().find(|clause| clause.to_string().eq_ignore_ascii_case(prefix))
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}"))
    }
}
