//! Leases, as the watch knows them.

use std::{collections::BTreeMap, time::Duration};

use steadfast_store::LeaseToken;

use super::Found;

/// All leases of one kind that were ever granted, by their tokens.
pub(super) struct Leases<R> {
    by_token: BTreeMap<String, Granted<R>>,
}

/// One lease.
pub(super) struct Granted<R> {
    /// What is leased.
    pub(super) row: R,
    /// When it ends unless it is renewed.
    pub(super) until_ms: u64,
    /// Whether its holder has ended it: it was committed, finished or abandoned.
    pub(super) is_settled: bool,
    /// Whether its delivery was taken off the count.
    pub(super) is_excused: bool,
    /// Whether its holder asked for that.
    pub(super) is_asked: bool,
}

impl<R> Granted<R> {
    pub(super) fn is_live(&self, now: u64) -> bool {
        !self.is_settled && self.until_ms > now
    }
}

impl<R> Default for Leases<R> {
    fn default() -> Self {
        Self { by_token: BTreeMap::new() }
    }
}

impl<R: std::fmt::Debug> Leases<R> {
    pub(super) fn grant(&mut self, token: &LeaseToken, row: R, until_ms: u64) {
        let granted = Granted { row, until_ms, is_settled: false, is_excused: false, is_asked: false };
        self.by_token.insert(token.as_str().to_owned(), granted);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Granted<R>> {
        self.by_token.values()
    }

    /// Returns what was leased by a holder that let the lease expire and said nothing about it.
    pub(super) fn outlived(&self, now: u64) -> impl Iterator<Item = &R> {
        let expired = self.by_token.values().filter(move |granted| !granted.is_live(now));
        expired.filter(|granted| !granted.is_settled && !granted.is_asked).map(|granted| &granted.row)
    }

    pub(super) fn get_mut(&mut self, token: &LeaseToken) -> Option<&mut Granted<R>> {
        self.by_token.get_mut(token.as_str())
    }

    /// Settles the leases of some rows, expired ones included.
    pub(super) fn settle(&mut self, is_settled: impl Fn(&R) -> bool) {
        for granted in self.by_token.values_mut().filter(|granted| is_settled(&granted.row)) {
            granted.is_settled = true;
        }
    }

    /// Returns a lease that a call used with success. The lease must be live.
    pub(super) fn used(
        &mut self,
        token: &LeaseToken,
        call: &str,
        rule: &'static str,
        now: u64,
        found: &mut Found,
    ) -> Option<&mut Granted<R>> {
        let granted = self.by_token.get_mut(token.as_str());
        match &granted {
            Some(granted) if granted.is_live(now) => {}
            Some(Granted { row, until_ms, is_settled, .. }) => found.add(
                rule,
                format!("{call} succeeds at {now} with a lease of {row:?} until {until_ms}, {is_settled}"),
            ),
            None => found.add(rule, format!("{call} succeeds with a lease that was not granted")),
        }
        granted
    }

    /// Looks at the answer that a lease is lost. The lease must not be live.
    pub(super) fn lost(&mut self, token: &LeaseToken, now: u64, found: &mut Found) {
        if let Some(granted) = self.by_token.get(token.as_str())
            && granted.is_live(now)
        {
            let Granted { row, until_ms, .. } = granted;
            found.add_unless_deleted(
                "S5",
                format!("the lease of {row:?} is called lost at {now}, before its end at {until_ms}"),
            );
        }
    }
}

/// Returns the moment after a time.
pub(super) fn after(now: u64, time: Duration) -> u64 {
    now.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
