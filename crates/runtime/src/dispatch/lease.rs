//! Leases of turns and of work: renewing one while its holder is busy, and abandoning one.

use std::sync::Arc;
use std::time::Duration;

use steadfast_store::{Abandon, Attempt, LeaseToken};
use tokio::task::JoinHandle;

use crate::plan::LeasePlan;
use crate::runtime::RuntimeShared;

/// How soon a renewal is tried again after the store could not be reached.
pub(crate) const RETRY: Duration = Duration::from_millis(250);

/// Renews a lease until it is dropped.
pub(crate) struct Keeper {
    task: JoinHandle<()>,
}

impl Keeper {
    /// Starts to renew. `lost` is called when the store answers that the lease is lost, or when the lease
    /// expires because the store could not be reached in time. A transient error alone loses nothing (F7).
    pub(crate) fn start(
        shared: &Arc<RuntimeShared>,
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

    /// Starts to renew. At the limit of `bound`, asks it whether to stop. A lost lease is not reported: the
    /// store refuses the next call of the holder.
    pub(crate) fn bounded(
        shared: &Arc<RuntimeShared>,
        token: LeaseToken,
        plan: LeasePlan,
        bound: Bound,
    ) -> Self {
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

/// Ends the renewal of a lease whose holder takes too long.
pub(crate) struct Bound {
    /// How long the lease is renewed.
    pub(crate) limit: Duration,
    /// Called when the limit is reached. If it returns `false`, the keeper goes on renewing.
    pub(crate) is_reached: Box<dyn FnOnce() -> bool + Send>,
}

/// Renews the lease, and returns when it is lost or its bound is reached.
async fn keep(shared: &RuntimeShared, token: &LeaseToken, plan: LeasePlan, bound: Option<Bound>) {
    let clock = &shared.plan.clock;
    let began = clock.monotonic();
    let mut bound = bound;
    let mut ends = began.saturating_add(plan.lasts);
    let mut wait = plan.renew_every;
    loop {
        let due = clock.monotonic().saturating_add(wait);
        if let Some(reached) = bound.take_if(|bound| began.saturating_add(bound.limit) <= due) {
            clock.sleep_until(began.saturating_add(reached.limit)).await;
            if (reached.is_reached)() {
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
                tracing::warn!(
                    target: "steadfast::runtime",
                    %error,
                    "a lease could not be renewed; trying again"
                );
                wait = RETRY.min(plan.renew_every);
                if clock.monotonic().saturating_add(wait) >= ends {
                    return;
                }
            }
        }
    }
}

impl RuntimeShared {
    /// Abandons a lease: the turn or the work can be leased again, after `retry_after` if that is given. If
    /// the store cannot be reached, the lease expires by itself.
    pub(crate) async fn abandon(&self, token: &LeaseToken, retry_after: Option<Duration>, attempt: Attempt) {
        if let Err(error) = self.store.abandon(token, Abandon { retry_after, attempt }).await {
            tracing::debug!(target: "steadfast::runtime", %error, "abandon failed; the lease will end (S5)");
        }
    }
}
