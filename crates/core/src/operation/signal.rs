//! Signals: positional events, raised with `raise_event` and awaited with `schedule_wait`.
//!
//! A raise is accepted only if a wait for its name is open at that point of history, and goes to the oldest
//! such wait. A raise that comes early stays in history and is never delivered.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Action, EventKind};

pub(crate) fn event(name: &str) -> EventKind {
    EventKind::ExternalSubscribed { name: name.to_owned() }
}

pub(crate) fn matches(action: &Action, recorded: &str) -> bool {
    matches!(action, Action::WaitExternal { name, .. } if name == recorded)
}

/// The open waits of an execution: by name, then in the order in which history recorded them.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    open: BTreeMap<String, BTreeSet<u64>>,
}

impl Signals {
    pub(crate) fn open(&mut self, name: &str, wait: u64) {
        match self.open.get_mut(name) {
            Some(waits) => _ = waits.insert(wait),
            None => _ = self.open.insert(name.to_owned(), [wait].into()),
        }
    }

    /// Accepts a raise: the oldest open wait takes it, if there is one.
    pub(crate) fn accept(&mut self, name: &str) -> Option<u64> {
        let waits = self.open.get_mut(name)?;
        let wait = waits.pop_first();
        if waits.is_empty() {
            self.open.remove(name);
        }
        wait
    }

    pub(crate) fn is_awaited(&self, name: &str) -> bool {
        self.open.contains_key(name)
    }

    pub(crate) fn cancel(&mut self, name: &str, wait: u64) {
        if let Some(waits) = self.open.get_mut(name) {
            waits.remove(&wait);
            if waits.is_empty() {
                self.open.remove(name);
            }
        }
    }

    /// All open waits, oldest first.
    pub(crate) fn unanswered(&self) -> Vec<u64> {
        let mut waits: Vec<u64> = self.open.values().flatten().copied().collect();
        waits.sort_unstable();
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_open_wait_takes_a_raise() {
        let mut signals = Signals::default();
        signals.open("go", 2);
        signals.open("go", 5);
        assert_eq!(signals.accept("go"), Some(2));
        assert_eq!(signals.accept("go"), Some(5));
        assert_eq!(signals.accept("go"), None);
    }

    #[test]
    fn a_raise_nobody_waits_for_is_not_accepted() {
        assert_eq!(Signals::default().accept("go"), None);
    }

    #[test]
    fn a_cancelled_wait_takes_nothing() {
        let mut signals = Signals::default();
        signals.open("go", 2);
        signals.open("go", 5);
        signals.cancel("go", 2);
        assert_eq!(signals.accept("go"), Some(5));
    }
}
