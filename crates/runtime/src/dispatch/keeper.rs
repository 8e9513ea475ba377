//! Keeping a lease while its item is processed.

use std::sync::Arc;
use std::time::Duration;

use steadfast_store::LeaseToken;
use tokio::task::JoinHandle;

use crate::plan::LeasePlan;
use crate::runtime::Shared;

/// Renews a lease until it is dropped.
pub(crate) struct Keeper {
    task: JoinHandle<()>,
}

impl Keeper {
    /// Starts renewing. `lost` is called when the store says that the item is gone, or when the lease has ended because
    /// the store could not be reached in time: a transient error alone loses nothing (F7).
    pub(crate) fn start(
        shared: &Arc<Shared>,
        token: LeaseToken,
        plan: LeasePlan,
        lost: impl FnOnce() + Send + 'static,
    ) -> Self {
        let again = Arc::clone(shared);
        let task = shared.tasks.spawn(async move {
            keep(&again, &token, plan, None).await;
            lost();
        });
        Self { task }
    }

    /// Starts renewing, until what is done under the lease takes too long.
    pub(crate) fn bounded(shared: &Arc<Shared>, token: LeaseToken, plan: LeasePlan, bound: Bound) -> Self {
        let again = Arc::clone(shared);
        let task = shared.tasks.spawn(async move { keep(&again, &token, plan, Some(bound)).await });
        Self { task }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Says when a lease is no longer worth keeping.
pub(crate) struct Bound {
    pub(crate) limit: Duration,
    /// Asked when the limit is reached; false goes on renewing.
    pub(crate) is_over: Box<dyn FnOnce() -> bool + Send>,
}

/// Returns when the lease is lost, or let go.
async fn keep(shared: &Shared, token: &LeaseToken, plan: LeasePlan, bound: Option<Bound>) {
    let clock = &shared.plan.clock;
    let began = clock.monotonic();
    let mut bound = bound;
    let mut ends = began.saturating_add(plan.lasts);
    let mut wait = plan.renew_every;
    loop {
        let due = clock.monotonic().saturating_add(wait);
        if let Some(reached) = bound.take_if(|bound| began.saturating_add(bound.limit) <= due) {
            clock.sleep_until(began.saturating_add(reached.limit)).await;
            if (reached.is_over)() {
                return;
            }
        }
        clock.sleep_until(due).await;
        let asked = clock.monotonic();
        match shared.store.renew(token, plan.lasts).await {
            Ok(()) => {
                ends = asked.saturating_add(plan.lasts);
                wait = plan.renew_every;
            }
            Err(error) if error.is_lease_lost() || !error.is_retryable() => {
                tracing::debug!(target: "steadfast::runtime", %error, "the lease is lost");
                return;
            }
            Err(error) => {
                tracing::warn!(target: "steadfast::runtime", %error, "a lease could not be renewed; trying again");
                wait = RETRY.min(plan.renew_every);
                if clock.monotonic().saturating_add(wait) >= ends {
                    return;
                }
            }
        }
    }
}

/// How soon a renewal is tried again.
pub(crate) const RETRY: Duration = Duration::from_millis(250);
