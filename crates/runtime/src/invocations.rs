//! Tasks that run code of the application: activities and hooks of sessions.
//!
//! The runtime can abort such a task, but it cannot take its thread away: code that blocks its thread runs
//! on. So a shutdown does not wait for these tasks longer than for others, and names those that are left
//! (G14).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// The tasks that run code of the application. Clones share one list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Invocations {
    tasks: TaskTracker,
    running: Arc<Mutex<RunningCode>>,
}

#[derive(Debug, Default)]
struct RunningCode {
    next: u64,
    /// What runs, in words for people, by the order of the starts.
    names: BTreeMap<u64, String>,
}

impl Invocations {
    /// Runs code of the application on a task of its own, which is aborted when the handle is dropped. `name`
    /// tells people what it is.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        name: String,
        code: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDropHandle<T> {
        let entry = self.enter(name);
        AbortOnDropHandle::new(self.tasks.spawn(async move {
            // Dropped after the code, also when the task is aborted.
            let _entry = entry;
            code.await
        }))
    }

    /// Lets [`wait`](Self::wait) return when no task runs.
    pub(crate) fn close(&self) {
        self.tasks.close();
    }

    /// Waits until no code of the application runs, after [`close`](Self::close).
    pub(crate) async fn wait(&self) {
        self.tasks.wait().await;
    }

    /// Names what runs now.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().names.values().cloned().collect()
    }

    fn enter(&self, name: String) -> RunningEntry {
        let mut running = self.lock();
        let id = running.next;
        running.next += 1;
        running.names.insert(id, name);
        RunningEntry { all: self.clone(), id }
    }

    fn lock(&self) -> MutexGuard<'_, RunningCode> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps code of the application among what runs until it is dropped.
struct RunningEntry {
    all: Invocations,
    id: u64,
}

impl Drop for RunningEntry {
    fn drop(&mut self) {
        self.all.lock().names.remove(&self.id);
    }
}
