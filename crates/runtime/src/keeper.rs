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
            keep(&again, &token, plan).await;
            lost();
        });
        Self { task }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns when the lease is lost.
async fn keep(shared: &Shared, token: &LeaseToken, plan: LeasePlan) {
    let clock = &shared.plan.clock;
    let mut ends = clock.monotonic().saturating_add(plan.lasts);
    let mut wait = plan.renew_every;
    loop {
        clock.sleep(wait).await;
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
