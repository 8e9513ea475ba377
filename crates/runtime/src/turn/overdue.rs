//! The turns whose code runs, and which of them run longer than `max_turn_time`: this process runs no other
//! turn of such an instance, so that it does not take one slot after another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The instances whose code runs in this process now, and whether each is overdue.
#[derive(Debug, Default)]
pub(crate) struct RunningTurns {
    turns: Mutex<BTreeMap<String, TurnTime>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnTime {
    InTime,
    Overdue,
}

impl RunningTurns {
    /// Enters an instance. Its code runs until the returned guard is dropped.
    pub(super) fn enter(self: &Arc<Self>, instance: &str) -> RunningTurn {
        self.lock().insert(instance.to_owned(), TurnTime::InTime);
        RunningTurn { all: Arc::clone(self), instance: instance.to_owned() }
    }

    /// Marks the code of an instance as overdue. `false` if its code does not run: then the turn waits for
    /// the store, and its lease is still renewed.
    pub(super) fn mark_overdue(&self, instance: &str) -> bool {
        let mut turns = self.lock();
        let Some(time) = turns.get_mut(instance) else { return false };
        *time = TurnTime::Overdue;
        true
    }

    pub(super) fn is_overdue(&self, instance: &str) -> bool {
        self.lock().get(instance) == Some(&TurnTime::Overdue)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, TurnTime>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps an instance among the running ones until it is dropped.
pub(super) struct RunningTurn {
    all: Arc<RunningTurns>,
    instance: String,
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        self.all.lock().remove(&self.instance);
    }
}
