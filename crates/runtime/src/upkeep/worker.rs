//! The row of this worker in the store: what it would run now, for people and for other workers that refuse
//! work whose code they lack.

mod build;
mod process;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use steadfast_store::{
    Abandon, Attempt, LeaseToken, ListedHandler, NeededHandler, ProviderError, ProviderErrorKind, Refusal,
    Refused, WorkerId, WorkerProcess, WorkerReport, WorkerSlots,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::build::BuildId;
use crate::dispatch::backoff::Backoff;
use crate::dispatch::lease::RETRY;
use crate::dispatch::until_stopped;
use crate::options::OnMissingHandler;
use crate::plan::Plan;
use crate::registry::{ActivityRegistry, OrchestrationRegistry};
use crate::runtime::RuntimeShared;

/// How often a worker reports. It counts as live for
/// [`WORKER_LIVE_FOR`](steadfast_store::WORKER_LIVE_FOR), so five reports may fail.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Bounds how long a report waits for the store: fetches wait for the first one.
const REPORT_PATIENCE: Duration = Duration::from_secs(5);

/// Bounds how long a report waits for the store while the runtime stops: a store that hangs must not keep the
/// process.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// What this worker knows about its own row.
pub(crate) struct WorkerRow {
    /// The id of this start of the runtime, which fetches carry.
    pub(crate) id: WorkerId,
    process: WorkerProcess,
    build: BuildId,
    /// Cancelled when the store has answered the first report: fetches wait for it.
    answered: CancellationToken,
    /// The store has the row.
    is_kept: AtomicBool,
    turns_busy: AtomicUsize,
    activities_busy: AtomicUsize,
    /// The task that reports. It outlives the other tasks of the runtime, to report the stop.
    task: TaskTracker,
}

impl WorkerRow {
    pub(crate) fn new(
        id: String,
        plan: &Plan,
        orchestrations: &OrchestrationRegistry,
        activities: &ActivityRegistry,
    ) -> Self {
        Self {
            id: WorkerId(id),
            process: process::facts(plan.node_id.clone()),
            build: BuildId::new(plan.build_id.clone(), orchestrations, activities),
            answered: CancellationToken::new(),
            is_kept: AtomicBool::new(false),
            turns_busy: AtomicUsize::new(0),
            activities_busy: AtomicUsize::new(0),
            task: TaskTracker::new(),
        }
    }

    /// Waits until the store has answered the first report, with success or an error. A fetch before it would
    /// be given work that was refused for handlers which this worker lacks.
    pub(crate) async fn until_answered(&self) {
        self.answered.cancelled().await;
    }

    /// Waits until the stop of the runtime is reported, or could not be reported in time.
    pub(crate) async fn until_stop_is_reported(&self) {
        self.task.wait().await;
    }

    /// Counts a slot for turns as busy until the answer is dropped.
    pub(crate) fn busy_with_turn(&self) -> Busy<'_> {
        Busy::new(&self.turns_busy)
    }

    /// Counts a slot for activities as busy until the answer is dropped.
    pub(crate) fn busy_with_activity(&self) -> Busy<'_> {
        Busy::new(&self.activities_busy)
    }
}

/// Counts a slot as busy until it is dropped.
pub(crate) struct Busy<'a>(&'a AtomicUsize);

impl<'a> Busy<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the runtime takes work when it reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerPhase {
    /// It takes work.
    Takes,
    /// It takes no more work, and what runs goes on.
    Stops,
    /// Nothing of it runs any more.
    Stopped,
}

/// Starts the task that reports until the runtime has stopped.
pub(crate) fn start(shared: &Arc<RuntimeShared>) {
    let again = Arc::clone(shared);
    shared.worker_row.task.spawn(async move { keep_row(&again).await });
    shared.worker_row.task.close();
}

/// Reports at once, about every [`REPORT_EVERY`], when the runtime begins to stop, and when it has stopped. A
/// store that keeps no rows is asked once.
async fn keep_row(shared: &RuntimeShared) {
    let mut backoff = Backoff::new(shared.seed);
    let mut warned = false;
    while !shared.stop.is_cancelled() {
        let (is_fenced, is_registered) = (shared.fenced.is_cancelled(), shared.sessions.owner().is_some());
        let answer = tokio::select! {
            biased;
            () = shared.stop.cancelled() => break,
            answer = report(shared, WorkerPhase::Takes) => answer,
            () = shared.plan.clock.sleep(REPORT_PATIENCE) => Err(took_too_long()),
        };
        shared.worker_row.answered.cancel();
        let wait = match answer {
            Ok(()) => {
                (warned, backoff) = (false, Backoff::new(shared.seed));
                REPORT_EVERY
            }
            Err(error) if error.kind == ProviderErrorKind::Unsupported => return,
            Err(error) => {
                let wait = backoff.next();
                if !warned {
                    warned = true;
                    tracing::warn!(
                        target: "steadfast::runtime",
                        %error,
                        ?wait,
                        "the row of this worker could not be written; trying again"
                    );
                }
                wait
            }
        };
        until_stopped(&shared.stop, next_report(shared, wait, is_fenced, is_registered)).await;
    }
    let answers = report_in_time(shared, WorkerPhase::Stops).await;
    shared.tasks.wait().await;
    if answers {
        report_in_time(shared, WorkerPhase::Stopped).await;
    }
}

/// Waits until the next report is due: after a time, or when the node is replaced or registered and that is
/// not reported yet.
async fn next_report(shared: &RuntimeShared, wait: Duration, is_fenced: bool, is_registered: bool) {
    tokio::select! {
        biased;
        () = shared.fenced.cancelled(), if !is_fenced => {}
        () = shared.sessions.until_registered(), if !is_registered => {}
        () = shared.plan.clock.sleep(wait) => {}
    }
}

fn took_too_long() -> ProviderError {
    let text = format!("the store did not answer within {REPORT_PATIENCE:?}");
    ProviderError::new(ProviderErrorKind::Unavailable, "report_worker", text)
}

async fn report(shared: &RuntimeShared, phase: WorkerPhase) -> Result<(), ProviderError> {
    shared.store.report_worker(&report_of(shared, phase)).await?;
    shared.worker_row.is_kept.store(true, Ordering::Relaxed);
    Ok(())
}

/// Reports once, and waits at most [`STOP_PATIENCE`] for the store. Returns whether the store answered.
async fn report_in_time(shared: &RuntimeShared, phase: WorkerPhase) -> bool {
    let answer = tokio::select! {
        biased;
        answer = report(shared, phase) => answer,
        () = shared.plan.clock.sleep(STOP_PATIENCE) => return false,
    };
    if let Err(error) = answer {
        tracing::debug!(
            target: "steadfast::runtime",
            %error,
            ?phase,
            "the stop of this worker could not be reported; its row counts as live for a minute"
        );
    }
    true
}

fn report_of(shared: &RuntimeShared, phase: WorkerPhase) -> WorkerReport {
    let (plan, row) = (&shared.plan, &shared.worker_row);
    let takes = phase == WorkerPhase::Takes && !shared.fenced.is_cancelled();
    let busy = |count: &AtomicUsize| count.load(Ordering::Relaxed) as u64;
    let (turns, activities) = (plan.turn_slots as u64, plan.worker_slots as u64);
    let listed = |slots: u64, list: &dyn Fn() -> Vec<ListedHandler>| {
        if takes && slots > 0 { list() } else { Vec::new() }
    };
    let mut process = row.process.clone();
    process.incarnation = shared.sessions.owner().and_then(|owner| owner.incarnation);
    process.build_id = row.build.get();
    WorkerReport {
        id: row.id.clone(),
        process,
        orchestrations: listed(turns, &|| shared.orchestrations.listed()),
        activities: listed(activities, &|| shared.activities.listed_names()),
        tags: plan.tags.clone(),
        serves_sessions: shared.sessions.serves(),
        engines: Some(plan.filter.clone()),
        takes_unlisted: plan.on_missing_handler == OnMissingHandler::Fail,
        // A task that was replaced because it does not return is still busy, but it is no slot.
        slots: WorkerSlots {
            turns,
            turns_busy: busy(&row.turns_busy).min(turns),
            activities,
            activities_busy: busy(&row.activities_busy).min(activities),
        },
        sessions: shared.sessions.count() as u64,
        is_stopped: phase == WorkerPhase::Stopped,
    }
}

/// What became of work whose handler is not registered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// A live worker has the handler and gets the work.
    Routed,
    /// No live worker has the handler: the work is tried again after this time, and each time counts.
    Delayed(Duration),
    /// No live worker has the handler: the work waits for one, and nothing is counted.
    Parked,
    /// The store did not take the refusal: the work is given back, and nothing is counted.
    Untold,
}

impl Missing {
    /// Says in a log line what becomes of the work after this many deliveries.
    pub(crate) fn text(self, max_attempts: u32, deliveries: u32) -> String {
        match self {
            Self::Routed => "leaving it to a worker that has it".to_owned(),
            Self::Parked => "parked until a worker has it".to_owned(),
            Self::Untold => "giving it back, because the store did not take the refusal".to_owned(),
            Self::Delayed(delay) => {
                let left = (u64::from(max_attempts) + 1).saturating_sub(u64::from(deliveries));
                let delay = delay.as_secs_f64();
                format!("abandoning with {delay:.1}s backoff (will poison in {left} more attempts)")
            }
        }
    }
}

impl RuntimeShared {
    /// Refuses a turn or an activity whose handler is not registered here. `deliveries` is the number of its
    /// leases, from 1.
    pub(crate) async fn refuse(
        &self,
        token: &LeaseToken,
        handler: NeededHandler,
        deliveries: u32,
    ) -> Missing {
        let delay = self.plan.unregistered.delay(deliveries);
        let is_kept = self.worker_row.is_kept.load(Ordering::Relaxed);
        let (if_unlisted, unlisted) = match self.plan.on_missing_handler {
            OnMissingHandler::Fail => {
                let counted = Abandon { retry_after: Some(delay), attempt: Attempt::Counts };
                (counted, Missing::Delayed(delay))
            }
            // A store that has no row of this worker would hand the work out to it again at once.
            OnMissingHandler::Park => {
                let retry_after = (!is_kept).then_some(delay);
                (Abandon { retry_after, attempt: Attempt::Uncounted }, Missing::Parked)
            }
        };
        let lasts = match token {
            LeaseToken::Turn(_) => self.plan.turn_lease.lasts,
            LeaseToken::Work(_) => self.plan.work_lease.lasts,
        };
        let answer = tokio::select! {
            biased;
            answer = self.store.refuse(token, Refusal { handler, if_unlisted }) => answer,
            () = self.plan.clock.sleep(lasts) => {
                tracing::warn!(
                    target: "steadfast::runtime",
                    ?lasts,
                    "the store did not answer a refusal within the lease; it is given back uncounted"
                );
                self.owe_abandon(token);
                return Missing::Untold;
            }
        };
        match answer {
            Ok(Refused::Routed) => {
                if !is_kept {
                    until_stopped(&self.stop, self.plan.clock.sleep(delay)).await;
                }
                Missing::Routed
            }
            Ok(Refused::Unlisted) => unlisted,
            Err(error) => {
                tracing::debug!(
                    target: "steadfast::runtime",
                    %error,
                    "a lease could not be refused"
                );
                if error.is_lease_lost() {
                    self.lose(token);
                } else if is_kept || unlisted == Missing::Parked {
                    // A live worker may have the handler, so the work is not delayed. This worker would
                    // lease it again at once, and fail again. A store that has no rows of workers hands the
                    // work out again after the lease, counted (compat 2.9).
                    self.owe_abandon(token);
                    until_stopped(&self.stop, self.plan.clock.sleep(RETRY)).await;
                }
                Missing::Untold
            }
        }
    }
}
