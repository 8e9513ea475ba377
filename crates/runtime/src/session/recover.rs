//! Recovery: an activity of the application that restores the state of a session which another activity did
//! not find, before the failure reaches the orchestration (D36).

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Mutex, MutexGuard};

use super::Session;

/// Restores the state of a session when an activity reports it as lost.
///
/// An activity on a session that fails with
/// [`ctx.session_lost(..)`](crate::ActivityContext::session_lost) does not fail at once: the worker first
/// runs `rebuild_activity` on the session, and then the activity again. Nothing of that is recorded. Of
/// activities of one session that fail at the same time, one rebuilds and the others wait for it.
///
/// The rebuild activity gets the input of the failed activity. It runs in the same process, under the lease
/// and the delivery of the failed activity, and is cancelled with it: both must return before a shutdown is
/// over.
///
/// The failure reaches the orchestration, as `AppErrorKind::SessionLost`, when the state was rebuilt
/// `max_rebuilds` times in vain, and at once if the session has been detached from this process, because
/// state that is made then would be dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecoveryPolicy {
    /// The name of the activity that restores the state. It must be registered, or the runtime does not
    /// start.
    pub rebuild_activity: String,
    /// How often one delivery of an activity has the state rebuilt, failed rebuilds included. At least 1.
    ///
    /// Too few give up while a checkpoint store is away for a moment; too many keep a slot busy with state
    /// that cannot be restored.
    pub max_rebuilds: u32,
}

/// The rebuilds of one attachment of a session.
#[derive(Debug, Default)]
pub(super) struct Rebuilding {
    one_at_a_time: Mutex<()>,
    count: AtomicU64,
}

impl Session {
    /// Counts how often the state of this attachment was rebuilt.
    pub(crate) fn rebuilds(&self) -> u64 {
        self.rebuilding().count.load(Ordering::Acquire)
    }

    /// Waits until no other activity rebuilds the state of this attachment.
    pub(crate) async fn one_rebuild(&self) -> MutexGuard<'_, ()> {
        self.rebuilding().one_at_a_time.lock().await
    }

    /// Notes that the state of this attachment was rebuilt.
    pub(crate) fn rebuilt(&self) {
        self.rebuilding().count.fetch_add(1, Ordering::AcqRel);
    }
}
