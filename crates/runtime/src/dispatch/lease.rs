//! Leases of turns and of work: renewing one while its holder is busy, and abandoning one.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use steadfast_store::{Abandon, Attempt, LeaseToken, ProviderError, ProviderErrorKind};
use tokio::task::JoinHandle;

use super::in_time;
use crate::plan::LeasePlan;
use crate::runtime::RuntimeShared;
use crate::session::SeenRises;

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
    /// its word on the lease loses nothing (F7, G8): the renewal is tried again until the lease expires. When
    /// one of `early` rises, the lease is renewed at once.
    pub(crate) fn start(
        shared: &Arc<RuntimeShared>,
        token: LeaseToken,
        plan: LeasePlan,
        early: Vec<SeenRises>,
        ended: impl FnOnce(LeaseEnd) + Send + 'static,
    ) -> Self {
        let again = Arc::clone(shared);
        let task = shared.tasks.spawn(async move {
            ended(keep(&again, &token, plan, early, None).await);
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
            let end = keep(&again, &token, plan, Vec::new(), Some(bound)).await;
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
async fn keep(
    shared: &RuntimeShared,
    token: &LeaseToken,
    plan: LeasePlan,
    mut early: Vec<SeenRises>,
    bound: Option<Bound>,
) -> LeaseEnd {
    let clock = &shared.plan.clock;
    let mut bound = bound.map(|bound| RunningBound::start(shared, bound));
    let mut ends = clock.monotonic().saturating_add(plan.lasts);
    let mut wait = plan.renew_every;
    loop {
        let due = clock.monotonic().saturating_add(wait);
        if let Some(running) = bound.take_if(|bound| bound.deadline <= due) {
            clock.sleep_until(running.deadline).await;
            match running.reach(shared, plan) {
                Reached::Stop => return LeaseEnd::Bound,
                Reached::GoOn => {}
                Reached::NotYet(again) => bound = Some(again),
            }
        }
        tokio::select! {
            biased;
            () = clock.sleep_until(due) => {}
            () = until_risen(&mut early) => {}
        }
        let (asked, asked_at) = (clock.monotonic(), shared.held.pulse().lived());
        let renewed = tokio::select! {
            biased;
            renewed = watch(shared, token, shared.store.renew(token, plan.lasts)) => renewed,
            () = clock.sleep_until(ends.max(asked.saturating_add(RETRY))) => {
                shared.held.lose(token);
                return LeaseEnd::Unproven;
            }
        };
        match renewed {
            Ok(waited) => {
                shared.held.renewed(token, asked_at);
                // If this lease is lost before its next renewal, the store was slow to answer.
                shared.held.waited(token, waited);
                ends = asked.saturating_add(plan.lasts);
                wait = plan.renew_every;
            }
            Err(error) if error.is_lease_lost() => {
                tracing::debug!(target: "steadfast::runtime", %error, "the lease is lost");
                shared.held.lose(token);
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
                shared.held.waited(token, wait);
                if clock.monotonic().saturating_add(wait) >= ends {
                    shared.held.lose(token);
                    return LeaseEnd::Unproven;
                }
            }
        }
    }
}

/// Waits until one of them rises; for ever if there is nothing that rises.
async fn until_risen(early: &mut [SeenRises]) {
    let mut rises: Vec<_> = early.iter_mut().map(|early| Box::pin(early.risen())).collect();
    poll_fn(|task| {
        let has_risen = rises.iter_mut().any(|rise| rise.as_mut().poll(task).is_ready());
        if has_risen { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Waits for the answer of the store to a renewal, and notes for how long: tick by tick, because code that
/// holds the thread of this task keeps the answer from it too, and that time is not the store's. Returns the
/// time of an answer that renews the lease.
async fn watch(
    shared: &RuntimeShared,
    token: &LeaseToken,
    renewal: impl Future<Output = Result<(), ProviderError>>,
) -> Result<Duration, ProviderError> {
    let (clock, pulse) = (&shared.plan.clock, shared.held.pulse());
    let Some(tick) = pulse.tick() else { return renewal.await.map(|()| Duration::ZERO) };
    tokio::pin!(renewal);
    let mut waited = Duration::ZERO;
    loop {
        let before = pulse.lived();
        let answer = tokio::select! {
            biased;
            answer = &mut renewal => Some(answer),
            () = clock.sleep(tick) => None,
        };
        let passed = pulse.lived_since(before).unwrap_or_default();
        // Code held the thread of this task if its timer is late. The answer may have come before, so this
        // time is not the store's.
        let passed = if passed > tick.saturating_add(tick / 8) { Duration::ZERO } else { passed };
        shared.held.waited(token, passed);
        waited = waited.saturating_add(passed);
        if let Some(answer) = answer {
            return answer.map(|()| waited);
        }
    }
}

/// The bound of a lease, and when it is reached unless the process is paused.
struct RunningBound {
    bound: Bound,
    deadline: Duration,
    /// The reading of the pulse at the start.
    began: Option<Duration>,
}

/// What follows from the deadline of a bound.
enum Reached {
    /// The lease is renewed no more.
    Stop,
    /// The holder needs its lease for something else than its code.
    GoOn,
    /// The process was paused meanwhile: its holder has had less time than that.
    NotYet(RunningBound),
}

impl RunningBound {
    fn start(shared: &RuntimeShared, bound: Bound) -> Self {
        let deadline = shared.plan.clock.monotonic().saturating_add(bound.limit);
        Self { bound, deadline, began: shared.held.pulse().lived() }
    }

    fn reach(self, shared: &RuntimeShared, plan: LeasePlan) -> Reached {
        let now = shared.plan.clock.monotonic();
        let had = match shared.held.pulse().lived_since(self.began) {
            Some(lived) => lived,
            // Without a pulse, a task that runs late by more than a lease was paused for all of its time.
            None if now.saturating_sub(self.deadline) > plan.lasts => Duration::ZERO,
            None => self.bound.limit,
        };
        let left = self.bound.limit.saturating_sub(had);
        if !left.is_zero() {
            return Reached::NotYet(Self { deadline: now.saturating_add(left), ..self });
        }
        if (self.bound.is_reached)() { Reached::Stop } else { Reached::GoOn }
    }
}

impl RuntimeShared {
    /// Abandons a lease: the turn or the work can be leased again, after `retry_after` if that is given, and
    /// the delivery counts. If the store cannot be reached, the lease expires by itself.
    ///
    /// [`abandon_uncounted`](Self::abandon_uncounted) is for a delivery that should not count.
    pub(crate) async fn abandon(&self, token: &LeaseToken, retry_after: Option<Duration>) {
        let how = Abandon { retry_after, attempt: Attempt::Counts };
        if let Err(error) = in_time(self, "abandon", self.store.abandon(token, how)).await {
            tracing::debug!(target: "steadfast::runtime", %error, "abandon failed; the lease will end (S5)");
        }
    }
}
