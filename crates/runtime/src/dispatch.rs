//! The one loop: a slot fetches, processes, and fetches again. Two lanes use it, turns and activities.

pub(crate) mod backoff;
pub(crate) mod held;
pub(crate) mod lease;
pub(crate) mod owed;
pub(crate) mod pulse;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use steadfast_store::{ProviderError, ProviderErrorKind};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::runtime::RuntimeShared;
use backoff::Backoff;

/// How long a slot may take to abandon its lease once the time of a shutdown is up: a store that hangs must
/// not keep the process.
pub(crate) const ABANDON_TIME: Duration = Duration::from_secs(1);

/// Bounds how long a task waits for the store where nothing else bounds it: a call that is never answered
/// must not keep its task, which makes the call again.
pub(crate) const STORE_PATIENCE: Duration = Duration::from_secs(60);

/// The time to wait for the store is made of this many parts, and a pause of the process ends one of them: an
/// answer that came meanwhile is still taken.
const PARTS_OF_PATIENCE: u32 = 4;

/// How long a slot waits after a fetch failed with an error that is not retryable.
const PERMANENT_ERROR_PAUSE: Duration = Duration::from_millis(100);

/// A kind of leases and how to process them: turns, or activities.
#[async_trait]
pub(crate) trait Lane: Send + Sync + 'static {
    type Lease: Send + 'static;

    /// Names the lane in logs and metrics.
    fn name(&self) -> &'static str;

    /// Leases a turn or work, and waits for one at most as long as `Plan::poll` says. A dropped fetch leaves
    /// no lease behind.
    async fn fetch(&self, slot: &LaneSlot) -> Result<Option<Self::Lease>, ProviderError>;

    /// Processes a lease to its end: it is completed or abandoned when this returns.
    async fn process(&self, slot: &LaneSlot, lease: Self::Lease);
}

/// A slot processes one lease at a time; a lane has as many slots as it may run leases at once.
#[derive(Debug)]
pub(crate) struct LaneSlot {
    pub(crate) index: usize,
    replace: Arc<Notify>,
}

impl LaneSlot {
    /// Returns the signal that starts another task for this slot. The keeper of a lease gives it when the
    /// slot's task does not return.
    pub(crate) fn replacement(&self) -> Arc<Notify> {
        Arc::clone(&self.replace)
    }
}

/// Starts the slots of a lane. A slot that panics is restarted (F4).
pub(crate) fn start<L: Lane>(shared: &Arc<RuntimeShared>, lane: &Arc<L>, slots: usize) {
    for slot in 0..slots {
        let (shared_again, lane) = (Arc::clone(shared), Arc::clone(lane));
        shared.tasks.spawn(shared.slots.track_future(supervise(shared_again, lane, slot)));
    }
}

async fn supervise<L: Lane>(shared: Arc<RuntimeShared>, lane: Arc<L>, slot: usize) {
    while !shared.stop.is_cancelled() {
        let (again, working) = (Arc::clone(&shared), Arc::clone(&lane));
        let replace = Arc::new(Notify::new());
        let own = LaneSlot { index: slot, replace: Arc::clone(&replace) };
        // Not tracked: a task that never returns must not keep the runtime from ending.
        let mut run = AbortOnDropHandle::new(tokio::spawn(run(again, working, own)));
        let ended = tokio::select! {
            biased;
            ended = &mut run => ended,
            () = replace.notified() => {
                shared.slots_replaced.up();
                shared.metrics().record_slot_replacement(lane.name());
                continue;
            }
            () = until_abandon_deadline(&shared) => {
                tracing::warn!(
                    target: "steadfast::runtime",
                    lane = lane.name(),
                    slot,
                    "a slot could not give its item back in time; the lease will end (S5)"
                );
                return;
            }
        };
        match ended {
            Ok(()) => return,
            Err(error) => {
                shared.slots_restarted.up();
                shared.metrics().record_slot_restart(lane.name());
                tracing::error!(
                    target: "steadfast::runtime",
                    lane = lane.name(),
                    slot,
                    %error,
                    "a slot panicked and is restarted"
                );
            }
        }
    }
}

async fn run<L: Lane>(shared: Arc<RuntimeShared>, lane: Arc<L>, slot: LaneSlot) {
    let _alive = shared.slots_alive.one_more();
    let clock = Arc::clone(&shared.plan.clock);
    let mut backoff = Backoff::new(slot.index as u64 ^ shared.seed);
    while !shared.stop.is_cancelled() {
        let asked = clock.monotonic();
        let fetch = async {
            shared.send_owed_before_fetch().await;
            lane.fetch(&slot).await
        };
        let fetched = tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            // A newer process has the name of this node: this one takes no more work.
            () = shared.fenced.cancelled() => return shared.stop.cancelled().await,
            fetched = fetch => fetched,
        };
        match fetched {
            Ok(Some(lease)) => {
                backoff.reset();
                lane.process(&slot, lease).await;
                // A fetch from a store in memory never waits, so this gives the other tasks of the thread a
                // chance to run.
                tokio::task::coop::consume_budget().await;
            }
            Ok(None) => {
                backoff.reset();
                // A store whose fetch returns at once is asked at most once per
                // `dispatcher_min_poll_interval`.
                let took = clock.monotonic().saturating_sub(asked);
                pause(&shared, shared.plan.min_poll.saturating_sub(took)).await;
            }
            Err(error) => {
                let wait = if error.is_retryable() {
                    backoff.next()
                } else {
                    backoff.reset();
                    PERMANENT_ERROR_PAUSE
                };
                // Every slot meets the trouble of a store, again and again: it is told once in a while.
                if let Some(left_out) = shared.fetch_errors.tell(&error.to_string(), clock.monotonic()) {
                    tracing::warn!(
                        target: "steadfast::runtime",
                        lane = lane.name(),
                        slot = slot.index,
                        %error,
                        ?wait,
                        left_out,
                        "fetch failed"
                    );
                } else {
                    tracing::debug!(
                        target: "steadfast::runtime",
                        lane = lane.name(),
                        ?wait,
                        "fetch failed again"
                    );
                }
                pause(&shared, wait).await;
            }
        }
    }
}

/// Waits, unless the runtime stops meanwhile.
async fn pause(shared: &RuntimeShared, wait: Duration) {
    if wait.is_zero() {
        tokio::task::yield_now().await;
        return;
    }
    until_stopped(&shared.stop, shared.plan.clock.sleep(wait)).await;
}

/// Runs a future until it ends or the token is cancelled.
pub(crate) async fn until_stopped(stop: &CancellationToken, other: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = other => {}
    }
}

/// Waits for the answer to a call of the store, at most [`STORE_PATIENCE`]. A call that is given up may have
/// its effect all the same.
pub(crate) async fn in_time<T>(
    shared: &RuntimeShared,
    operation: &str,
    call: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    within(shared, operation, STORE_PATIENCE, call).await
}

/// Waits for the answer to a fetch, which may itself wait for `poll`. A fetch that is given up leaves no
/// lease behind.
pub(crate) async fn fetch_in_time<T>(
    shared: &RuntimeShared,
    operation: &str,
    poll: Duration,
    fetch: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    within(shared, operation, STORE_PATIENCE.saturating_add(poll), fetch).await
}

async fn within<T>(
    shared: &RuntimeShared,
    operation: &str,
    patience: Duration,
    call: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    let given_up = async {
        for _ in 0..PARTS_OF_PATIENCE {
            shared.plan.clock.sleep(patience / PARTS_OF_PATIENCE).await;
        }
    };
    tokio::select! {
        biased;
        answer = call => answer,
        () = given_up => {
            let text = format!("the store did not answer within {patience:?}");
            Err(ProviderError::new(ProviderErrorKind::Unavailable, operation, text))
        }
    }
}

/// Waits until the time of a shutdown is up, and one second longer. A task that still waits for the store
/// then must return.
pub(crate) async fn until_abandon_deadline(shared: &RuntimeShared) {
    shared.abort.cancelled().await;
    shared.plan.clock.sleep(ABANDON_TIME).await;
}

/// Counts the slots that run.
#[derive(Debug, Default)]
pub(crate) struct SlotsAlive(AtomicUsize);

impl SlotsAlive {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn one_more(&self) -> AliveSlot<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        AliveSlot(self)
    }
}

/// Counts a slot as running until it is dropped.
struct AliveSlot<'a>(&'a SlotsAlive);

impl Drop for AliveSlot<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
