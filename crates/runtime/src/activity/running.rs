//! The activities that run here, so that one that is cancelled learns of it at once (F24).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_core::ScheduledActivityIdentifier;

use crate::activity::{CancelReason, Cancellation};

#[derive(Debug, Default)]
pub(crate) struct Running {
    activities: Mutex<HashMap<(String, u64, u64), Cancellation>>,
}

impl Running {
    /// Enters an activity; it is here until the entry is dropped.
    pub(crate) fn enter(self: &Arc<Self>, identity: (String, u64, u64), cancellation: Cancellation) -> Entry {
        self.lock().insert(identity.clone(), cancellation);
        Entry { running: Arc::clone(self), identity }
    }

    pub(crate) fn cancel(&self, cancelled: &[ScheduledActivityIdentifier]) {
        if cancelled.is_empty() {
            return;
        }
        let running = self.lock();
        for gone in cancelled {
            let identity = (gone.instance.clone(), gone.execution_id, gone.activity_id);
            if let Some(cancellation) = running.get(&identity) {
                cancellation.cancel(CancelReason::Withdrawn);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, u64, u64), Cancellation>> {
        self.activities.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Entry {
    running: Arc<Running>,
    identity: (String, u64, u64),
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.running.lock().remove(&self.identity);
    }
}
