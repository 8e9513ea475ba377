//! Wake-ups from outside: an orchestration that awaits a future which history does not record fails with the
//! reason, if it is still in memory when that future wakes it (F20).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use steadfast_core::WorkItem;
use steadfast_core::replay::Execution;
use tokio::runtime::Handle;

use crate::dispatch::in_time;
use crate::runtime::RuntimeShared;

struct Alarm {
    shared: Weak<RuntimeShared>,
    instance: String,
    tasks: Handle,
    has_rung: AtomicBool,
}

/// Makes a wake-up of the execution from outside lead to a turn, which fails the execution with the reason.
pub(super) fn set(shared: &Arc<RuntimeShared>, instance: &str, execution: &mut Execution) {
    if !shared.plan.keeps_warm() {
        return;
    }
    let alarm = Alarm {
        shared: Arc::downgrade(shared),
        instance: instance.to_owned(),
        tasks: Handle::current(),
        has_rung: AtomicBool::new(false),
    };
    execution.set_alarm(Waker::from(Arc::new(alarm)));
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.has_rung.swap(true, Ordering::Relaxed) {
            return;
        }
        let Some(shared) = self.shared.upgrade().filter(|shared| !shared.stop.is_cancelled()) else { return };
        let instance = self.instance.clone();
        let again = Arc::clone(&shared);
        shared.tasks.spawn_on(
            async move {
                tracing::warn!(
                    target: "steadfast::runtime",
                    %instance,
                    "the orchestration was woken from outside; a turn will say why it fails"
                );
                let nudge = WorkItem::Nudge { instance };
                if let Err(error) = in_time(&again, "send", again.store.send(vec![nudge.into()])).await {
                    tracing::warn!(
                        target: "steadfast::runtime",
                        %error,
                        "the turn could not be asked for; the next one will say it"
                    );
                }
            },
            &self.tasks,
        );
    }
}
