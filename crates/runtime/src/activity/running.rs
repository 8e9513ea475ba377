//! The activities that run in this process, so that a turn can cancel one at once (F24).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_core::ScheduledActivityIdentifier;

use super::{ActivityCancellation, CancelReason};

/// Instance, execution and event id of an activity.
type ActivityKey = (String, u64, u64);

/// The activities that run in this process, each with the handle that cancels it.
#[derive(Debug, Default)]
pub(crate) struct RunningActivities {
    activities: Mutex<HashMap<ActivityKey, ActivityCancellation>>,
}

impl RunningActivities {
    /// Enters an activity. It can be cancelled until the returned guard is dropped.
    pub(crate) fn enter(
        self: &Arc<Self>,
        key: ActivityKey,
        cancellation: ActivityCancellation,
    ) -> RunningActivity {
        self.lock().insert(key.clone(), cancellation);
        RunningActivity { all: Arc::clone(self), key }
    }

    /// Cancels the given activities, as far as they run in this process.
    pub(crate) fn cancel(&self, cancelled: &[ScheduledActivityIdentifier]) {
        if cancelled.is_empty() {
            return;
        }
        let running = self.lock();
        for activity in cancelled {
            let key = (activity.instance.clone(), activity.execution_id, activity.activity_id);
            if let Some(cancellation) = running.get(&key) {
                cancellation.cancel(CancelReason::Withdrawn);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ActivityKey, ActivityCancellation>> {
        self.activities.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guards the entry of an activity that runs in this process: the activity can be cancelled until this is
/// dropped.
pub(crate) struct RunningActivity {
    all: Arc<RunningActivities>,
    key: ActivityKey,
}

impl Drop for RunningActivity {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}
