//! What the tasks saw, and what must hold of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};

/// Counts what was done, and knows who holds what.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) completed: AtomicU64,
    pub(super) turns: AtomicU64,
    pub(super) activities: AtomicU64,
    pub(super) mishaps: AtomicU64,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    /// Leases that are held for certain until the given time.
    held: BTreeMap<String, Duration>,
    /// How often each activity was finished.
    finished: BTreeMap<(String, u64), u32>,
    /// The process that each attachment of a session belongs to.
    owners: BTreeMap<(String, u64), usize>,
    violations: Vec<String>,
}

impl Ledger {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a lease. It was given before now and lasts at least until `until`, so no other task may
    /// have noted it for a time that is still to come.
    pub(super) fn take(&self, what: &str, until: Duration) {
        let now = SystemClock.monotonic();
        let mut books = self.books();
        if books.held.insert(what.to_owned(), until).is_some_and(|other| other > now) {
            books.violations.push(format!("{what} was leased to two at a time"));
        }
    }

    /// Removes the note: from here on another task may hold the lease.
    pub(super) fn give(&self, what: &str) {
        self.books().held.remove(what);
    }

    pub(super) fn finish(&self, instance: &str, id: u64) {
        *self.books().finished.entry((instance.to_owned(), id)).or_default() += 1;
        Self::count(&self.activities);
    }

    pub(super) fn attach(&self, session: &str, epoch: u64, owner: usize) {
        let mut books = self.books();
        let first = *books.owners.entry((session.to_owned(), epoch)).or_insert(owner);
        if first != owner {
            let text = format!("epoch {epoch} of session '{session}' belongs to {first} and to {owner}");
            books.violations.push(text);
        }
    }

    pub(super) fn violate(&self, text: String) {
        self.books().violations.push(text);
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let books = self.books();
        let twice = books.finished.iter().find(|(_, times)| **times != 1);
        if let Some(((instance, id), times)) = twice {
            return Err(format!("activity {id} of '{instance}' was finished {times} times"));
        }
        match books.violations.as_slice() {
            [] => Ok(()),
            [first, rest @ ..] => Err(format!("{first} (and {} more)", rest.len())),
        }
    }
}
