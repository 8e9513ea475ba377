//! Leases of turns and of work: renewing one while its holder is busy, and abandoning one.

use std::sync::Arc;
use std::time::Duration;

use steadfast_store::{Abandon, Attempt, LeaseToken, ProviderErrorKind};
use tokio::task::JoinHandle;

use crate::plan::LeasePlan;
use crate::runtime::RuntimeShared;

/// How soon a renewal is tried again after the store could not be reached.
pub(crate) const RETRY: Duration = Duration::from_millis(250);

/// Renews a lease until it is dropped.
pub(crate) struct Keeper {
    task: JoinHandle<()>,
}

/// Why a keeper stopped to renew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseEnd {
    /// The store says that the lease is lost.
    Lost,
    /// The store says that the work was withdrawn (S12).
    Withdrawn,
    /// The store could not be reached until the lease had to be taken for expired.
    Unproven,
    /// The bound of the keeper was reached.
    Bound,
}

impl LeaseEnd {
    /// Tells whether the store itself has ended the lease: its holder need not try anything with it.
    pub(crate) fn is_word_of_the_store(self) -> bool {
        matches!(self, Self::Lost | Self::Withdrawn)
    }
}

impl Keeper {
    /// Starts to renew. `ended` is called when the keeper stops to renew. An error of the store that is not
    /// its word on the lease loses nothing (F7, G8): the renewal is tried again until the lease expires.
    pub(crate) fn start(
        shared: &Arc<RuntimeShared>,
        token: LeaseToken,
        plan: LeasePlan,
        ended: impl FnOnce(LeaseEnd) + Send + 'static,
    ) -> Self {
        let again = Arc::clone(shared);
        let task = shared.tasks.spawn(async move {
            ended(keep(&again, &token, plan, None).await);
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
        let task = shared.tasks.spawn(async move {
            let end = keep(&again, &token, plan, Some(bound)).await;
            tracing::debug!(target: "steadfast::runtime", ?end, "the lease of a turn is not renewed");
        });
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
async fn keep(shared: &RuntimeShared, token: &LeaseToken, plan: LeasePlan, bound: Option<Bound>) -> LeaseEnd {
    let clock = &shared.plan.clock;
    let mut began = clock.monotonic();
    let mut bound = bound;
    let mut ends = began.saturating_add(plan.lasts);
    let mut wait = plan.renew_every;
    loop {
        let due = clock.monotonic().saturating_add(wait);
        if let Some(reached) = bound.take_if(|bound| began.saturating_add(bound.limit) <= due) {
            let limit = began.saturating_add(reached.limit);
            clock.sleep_until(limit).await;
            if clock.monotonic().saturating_sub(limit) > plan.lasts {
                // This task runs late by more than a lease: the whole process was paused. The time of the
                // pause is not the holder's, which gets its time again.
                began = clock.monotonic();
                bound = Some(reached);
            } else if (reached.is_reached)() {
                return LeaseEnd::Bound;
            }
        }
        clock.sleep_until(due).await;
        let asked = clock.monotonic();
        let renewed = tokio::select! {
            biased;
            renewed = shared.store.renew(token, plan.lasts) => renewed,
            () = clock.sleep_until(ends.max(asked.saturating_add(RETRY))) => return LeaseEnd::Unproven,
        };
        match renewed {
            Ok(()) => {
                ends = asked.saturating_add(plan.lasts);
                wait = plan.renew_every;
            }
            Err(error) if error.is_lease_lost() => {
                tracing::debug!(target: "steadfast::runtime", %error, "the lease is lost");
                let is_withdrawn = error.kind == ProviderErrorKind::Withdrawn;
                return if is_withdrawn { LeaseEnd::Withdrawn } else { LeaseEnd::Lost };
            }
            Err(error) => {
                tracing::warn!(
                    target: "steadfast::runtime",
                    %error,
                    "a lease could not be renewed; trying again"
                );
                wait = RETRY.min(plan.renew_every);
                if clock.monotonic().saturating_add(wait) >= ends {
                    return LeaseEnd::Unproven;
                }
            }
        }
    }
}

impl RuntimeShared {
    /// Abandons a lease: the turn or the work can be leased again, after `retry_after` if that is given, and
    /// the delivery counts. If the store cannot be reached, the lease expires by itself.
    ///
    /// [`abandon_uncounted`](Self::abandon_uncounted) is for a delivery that should not count.
    pub(crate) async fn abandon(&self, token: &LeaseToken, retry_after: Option<Duration>) {
        let how = Abandon { retry_after, attempt: Attempt::Counts };
        if let Err(error) = self.store.abandon(token, how).await {
            tracing::debug!(target: "steadfast::runtime", %error, "abandon failed; the lease will end (S5)");
        }
    }
}
