//! Turns that run longer than they may, so that their instance does not take one slot after another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The instances whose code runs now.
#[derive(Debug, Default)]
pub(crate) struct Overdue {
    instances: Mutex<BTreeMap<String, Turn>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Runs,
    IsOverdue,
}

impl Overdue {
    /// Enters an instance; its code runs until the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>, instance: &str) -> Running {
        self.lock().insert(instance.to_owned(), Turn::Runs);
        Running { overdue: Arc::clone(self), instance: instance.to_owned() }
    }

    /// Notes that the code of an instance runs for too long. False when it does not run: something else takes long.
    pub(crate) fn note(&self, instance: &str) -> bool {
        match self.lock().get_mut(instance) {
            Some(turn) => {
                *turn = Turn::IsOverdue;
                true
            }
            None => false,
        }
    }

    pub(crate) fn contains(&self, instance: &str) -> bool {
        self.lock().get(instance) == Some(&Turn::IsOverdue)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Turn>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An instance whose code runs.
pub(crate) struct Running {
    overdue: Arc<Overdue>,
    instance: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.overdue.lock().remove(&self.instance);
    }
}
