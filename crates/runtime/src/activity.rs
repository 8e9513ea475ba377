//! The lane of activities: fetch work, run its code, record the outcome.

pub(crate) mod builtin;
mod context;
mod error;
pub(crate) mod panic;
mod rebuild;
mod run;
pub(crate) mod running;
mod timeout;
mod tries;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_core::{ErrorDetails, PoisonMessageType, WorkItem};
use steadfast_store::{
    EndedTry, LeaseToken, Outcome, ProviderError, ProviderErrorKind, WorkLease, WorkRequest,
};

pub(crate) use context::{ActivityCancellation, ActivityInfo};
pub use context::{ActivityContext, CancelReason};
pub use error::{ActivityError, MAX_ERROR_DATA_BYTES};

use crate::dispatch::backoff::Backoff;
use crate::dispatch::held::LeasedRow;
use crate::dispatch::lease::Keeper;
use crate::dispatch::owed::CountedLease;
use crate::dispatch::{Lane, LaneSlot, fetch_in_time, in_time};
use crate::plan::Plan;
use crate::runtime::RuntimeShared;
use crate::session::{self, Session, SessionAsk, WorkSession};
use crate::upkeep::worker::Missing;
use run::ActivityRun;
use tokio_util::sync::CancellationToken;

/// How long work is delayed if this process cannot serve its session. Only a store whose fetch cannot exclude
/// sessions brings such work, and without the delay it would bring the same work again at once.
const REFUSED_SESSION_DELAY: Duration = Duration::from_millis(100);

/// How long work is delayed whose result the store refuses.
const REFUSED_RESULT_DELAY: Duration = Duration::from_millis(100);

/// How long a row of the work queue is delayed that holds another message than an activity.
const NOT_AN_ACTIVITY_DELAY: Duration = Duration::from_secs(60);

/// The lane of activities: fetches work, and runs the handler that is registered for it.
pub(crate) struct Activities {
    pub(crate) shared: Arc<RuntimeShared>,
}

/// Leased work, the request for sessions that the fetch made, when that was, and how many deliveries had been
/// excused then.
pub(crate) struct FetchedWork {
    lease: WorkLease,
    ask: SessionAsk,
    /// When the store was asked for the lease. The lease is granted at some moment between the request and
    /// the answer, and this process knows only these two, so it counts from the request.
    asked: Moment,
    excused: u64,
}

/// A moment, by the clocks of this process.
#[derive(Debug, Clone, Copy)]
struct Moment {
    /// By the monotonic clock.
    at: Duration,
    /// How long the machine had slept by then.
    slept: Duration,
}

impl Moment {
    fn now(plan: &Plan) -> Self {
        Self { at: plan.clock.monotonic(), slept: plan.clock.machine().slept }
    }

    /// Tells whether a lease of work that was asked for then cannot have ended yet. The monotonic clock
    /// stands still while the machine sleeps, and the store of another machine does not.
    fn proves_lease(self, plan: &Plan) -> bool {
        self.elapsed(plan) < plan.work_proof()
    }

    /// Returns the time since then, with that for which the machine slept.
    fn elapsed(self, plan: &Plan) -> Duration {
        let now = Self::now(plan);
        let slept = now.slept.saturating_sub(self.slept);
        now.at.saturating_sub(self.at).saturating_add(slept)
    }
}

/// The fields of [`WorkItem::ActivityExecute`].
struct ScheduledActivity {
    instance: String,
    execution_id: u64,
    id: u64,
    name: String,
    input: String,
    session_id: Option<String>,
    tag: Option<String>,
}

impl ScheduledActivity {
    fn of(item: WorkItem) -> Option<Self> {
        let WorkItem::ActivityExecute { instance, execution_id, id, name, input, session_id, tag } = item
        else {
            return None;
        };
        Some(Self { instance, execution_id, id, name, input, session_id, tag })
    }

    fn row(&self) -> LeasedRow {
        let (instance, execution_id, id) = (self.instance.clone(), self.execution_id, self.id);
        LeasedRow::Work { instance, execution_id, id }
    }

    /// Makes the message that tells the orchestration the result of the activity.
    fn answer(&self, result: Result<String, ErrorDetails>) -> WorkItem {
        let (instance, execution_id, id) = (self.instance.clone(), self.execution_id, self.id);
        match result {
            Ok(result) => WorkItem::ActivityCompleted { instance, execution_id, id, result },
            Err(details) => WorkItem::ActivityFailed { instance, execution_id, id, details },
        }
    }
}

#[async_trait]
impl Lane for Activities {
    type Lease = FetchedWork;

    fn name(&self) -> &'static str {
        "activities"
    }

    async fn fetch(&self, slot: &LaneSlot) -> Result<Option<FetchedWork>, ProviderError> {
        let plan = &self.shared.plan;
        self.shared.worker_row.until_answered().await;
        loop {
            let (excused, asked) = (self.shared.owed.excused(), Moment::now(plan));
            let mut ask = self.shared.sessions.ask(plan.session_lease.lasts, plan.session_now());
            let poll = if ask.request.is_some() { plan.session_poll() } else { plan.poll };
            let request = WorkRequest {
                worker_id: self.shared.worker_id(slot.index),
                lock_timeout: plan.work_lease.lasts,
                poll_timeout: poll,
                tags: plan.tags.clone(),
                session: ask.request.clone(),
                worker: Some(self.shared.worker_row.id.clone()),
            };
            let fetch = self.shared.store.fetch_work(request);
            let lease = tokio::select! {
                biased;
                lease = fetch_in_time(&self.shared, "fetch_work", poll, fetch) => lease,
                // The fetch should ask for other sessions now. Dropping the waiting fetch leaves nothing in
                // the store.
                () = ask.is_outdated(plan) => continue,
            };
            let lease = match lease {
                // The store refuses the fetch because a newer process has started under this node's name.
                Err(error)
                    if error.kind == ProviderErrorKind::LeaseLost
                        && ask.request.is_some()
                        && session::is_replaced(&self.shared).await =>
                {
                    session::node_replaced(&self.shared, &error);
                    return Ok(None);
                }
                lease => lease?,
            };
            if lease.is_some() {
                self.shared.metrics().record_worker_dispatcher_items_fetched(1);
            }
            return Ok(lease.map(|lease| FetchedWork { lease, ask, asked, excused }));
        }
    }

    async fn process(&self, slot: &LaneSlot, leased: FetchedWork) {
        let FetchedWork { lease, ask, asked, excused } = leased;
        let _busy = self.shared.worker_row.busy_with_activity();
        let Some(scheduled) = ScheduledActivity::of(lease.item.clone()) else {
            tracing::error!(
                target: "steadfast::runtime",
                "a message stood among the work; it is given back"
            );
            return self.shared.abandon(&lease.token, Some(NOT_AN_ACTIVITY_DELAY)).await;
        };
        let row = scheduled.row();
        let _held = self.shared.held.enter(&lease.token, row.clone(), self.shared.plan.work_lease.lasts);
        let session_id = scheduled.session_id.as_deref();
        let on_session = match session::claim(&self.shared, &lease, session_id, ask) {
            WorkSession::None => None,
            WorkSession::Here(on_session) => Some(on_session),
            WorkSession::Refused => {
                return self.shared.abandon_uncounted(&lease.token, Some(REFUSED_SESSION_DELAY)).await;
            }
            WorkSession::Late => return self.shared.abandon_uncounted(&lease.token, None).await,
        };
        if let Some(on_session) = on_session.as_ref().filter(|on_session| on_session.is_doubtful)
            && session::detach_if_closed(&self.shared, on_session.session.reference()).await
        {
            return self.shared.abandon_uncounted(&lease.token, None).await;
        }
        let session = on_session.as_ref().map(|on_session| on_session.session.clone());
        let counted = CountedLease { token: &lease.token, row: &row, deliveries: lease.attempt, excused };
        if self.shared.abandons_miscounted(counted).await {
            // The next fetch is told the right count.
        } else if lease.attempt > self.most_deliveries(&lease) {
            self.poison(&lease, &scheduled).await;
        } else {
            match self.shared.activities.resolve_handler(&scheduled.name) {
                Some((_, handler)) => {
                    let worker_id = self.shared.worker_id(slot.index);
                    let run = ActivityRun::new(&self.shared, lease, scheduled, session, worker_id, asked);
                    run.run(handler).await;
                }
                None => self.unregistered(&lease, &scheduled, session.as_ref()).await,
            }
        }
        if let Some(on_session) = on_session {
            on_session.end(&self.shared);
        }
    }
}

impl Activities {
    /// Returns how often work may be delivered until it is poison. A store that does not keep tries counts
    /// each of them as a delivery, so there it may be delivered as often as its policy allows.
    fn most_deliveries(&self, lease: &WorkLease) -> u32 {
        let most = self.shared.plan.max_attempts;
        let policy = lease.call.as_ref().and_then(|call| call.policy.as_ref());
        match policy {
            Some(policy) if !self.shared.store.keeps_tries() => most.max(policy.max().unwrap_or(u32::MAX)),
            _ => most,
        }
    }

    /// Fails an activity that was delivered too often.
    async fn poison(&self, lease: &WorkLease, scheduled: &ScheduledActivity) {
        let details = ErrorDetails::Poison {
            attempt_count: lease.attempt,
            max_attempts: self.shared.plan.max_attempts,
            message_type: PoisonMessageType::Activity {
                instance: scheduled.instance.clone(),
                execution_id: scheduled.execution_id,
                activity_name: scheduled.name.clone(),
                activity_id: scheduled.id,
            },
            message: serde_json::to_string(&lease.item).unwrap_or_default(),
        };
        tracing::error!(
            target: "steadfast::runtime",
            details = %details.display_message(),
            "poison: the activity fails"
        );
        let outcome = Outcome::from(scheduled.answer(Err(details)));
        let lost = CancellationToken::new();
        let is_lost = lost.clone();
        let keeper = Keeper::start(
            &self.shared,
            lease.token.clone(),
            self.shared.plan.work_lease,
            Vec::new(),
            move |end| {
                if end.is_word_of_the_store() {
                    is_lost.cancel();
                }
            },
        );
        let word = Word::Finish(Box::new(outcome));
        if self.shared.hand_in(&lease.token, word, &lost).await == Handed::Taken {
            self.shared.metrics().record_activity_poison();
        }
        drop(keeper);
    }

    /// Refuses work whose handler is not registered here: a worker of a newer deployment may have it.
    async fn unregistered(
        &self,
        lease: &WorkLease,
        scheduled: &ScheduledActivity,
        session: Option<&Session>,
    ) {
        let deliveries = lease.attempt;
        let needed = self.shared.activities.needed(&scheduled.name, None);
        let missing = self.shared.refuse(&lease.token, needed, deliveries).await;
        if missing == Missing::Routed {
            tracing::debug!(
                target: "steadfast::runtime",
                instance = %scheduled.instance,
                activity = %scheduled.name,
                "activity not registered; it is left to a worker that has it"
            );
        } else {
            self.shared.metrics().record_activity_config_error();
            tracing::warn!(
                target: "steadfast::runtime",
                instance = %scheduled.instance,
                activity = %scheduled.name,
                "Activity not registered, {}; {}",
                missing.text(self.shared.plan.max_attempts, deliveries),
                self.shared.activities.instead_of(&scheduled.name),
            );
        }
        // A store without epochs cannot release a session: there the work is tried again here.
        if let (Some(session), Some(_)) = (session, &lease.session) {
            session::release_unregistered(&self.shared, session);
        }
    }
}

/// What the holder of a lease has to tell the store at the end of its run.
#[derive(Debug, Clone)]
enum Word {
    /// The outcome of the activity.
    Finish(Box<Outcome>),
    /// A try has failed, and another one follows.
    EndTry(EndedTry),
}

impl Word {
    /// Returns the name of the store's method that takes the word.
    fn call(&self) -> &'static str {
        match self {
            Self::Finish(_) => "finish_work",
            Self::EndTry(_) => "end_try",
        }
    }
}

/// What became of the word of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handed {
    /// The store has taken it.
    Taken,
    /// The activity was withdrawn meanwhile: its outcome is not wanted.
    Withdrawn,
    /// It could not be handed in. The activity runs again.
    Lost,
}

impl RuntimeShared {
    /// Hands in the outcome of an activity or of a try, and tries again for as long as the lease can be
    /// renewed (G39): until the store takes the outcome, or says that the lease is lost, here or to the
    /// keeper, which then cancels `lost`. A call that is not answered is made again: of two calls the store
    /// takes one.
    async fn hand_in(&self, token: &LeaseToken, word: Word, lost: &CancellationToken) -> Handed {
        let clock = &self.plan.clock;
        let began = clock.monotonic();
        let mut backoff = Backoff::new(self.seed);
        loop {
            let call = match word.clone() {
                Word::Finish(outcome) => self.store.finish_work(token, *outcome),
                Word::EndTry(ended) => self.store.end_try(token, ended),
            };
            let error = match in_time(self, word.call(), call).await {
                Ok(()) => return Handed::Taken,
                Err(error) => error,
            };
            if error.kind == ProviderErrorKind::Withdrawn {
                tracing::debug!(target: "steadfast::runtime", %error, "the activity was cancelled meanwhile");
                return Handed::Withdrawn;
            }
            if error.is_lease_lost() || lost.is_cancelled() {
                tracing::warn!(
                    target: "steadfast::runtime",
                    %error,
                    "the lease of the activity was lost before it ended; its result is not used"
                );
                self.lose(token);
                return Handed::Lost;
            }
            let tried = clock.monotonic().saturating_sub(began);
            if is_refused(&error, tried, self.plan.work_lease.lasts) {
                tracing::warn!(
                    target: "steadfast::runtime",
                    %error,
                    "the store refuses the result of an activity; it runs again"
                );
                self.abandon(token, Some(REFUSED_RESULT_DELAY)).await;
                return Handed::Lost;
            }
            if self.abort.is_cancelled() {
                tracing::warn!(
                    target: "steadfast::runtime",
                    %error,
                    "the time of the shutdown is up, and the store has not taken the result of an activity; \
                     it runs again"
                );
                self.abandon_uncounted(token, None).await;
                return Handed::Lost;
            }
            tracing::debug!(target: "steadfast::runtime", %error, "a result is handed in again");
            tokio::select! {
                biased;
                () = self.abort.cancelled() => {}
                () = lost.cancelled() => {}
                () = clock.sleep(backoff.next()) => {}
            }
        }
    }
}

/// Tells whether the store refuses an outcome for good. What a foreign provider calls permanent is tried for
/// as long as a lease lasts, because a result in hand is not thrown away for one answer (G8).
fn is_refused(error: &ProviderError, tried: Duration, lease: Duration) -> bool {
    match error.kind {
        ProviderErrorKind::Invalid | ProviderErrorKind::Conflict => true,
        ProviderErrorKind::Other => tried >= lease,
        ProviderErrorKind::Busy
        | ProviderErrorKind::Unavailable
        | ProviderErrorKind::Full
        | ProviderErrorKind::NotFound
        | ProviderErrorKind::Refused
        | ProviderErrorKind::Corrupt
        | ProviderErrorKind::Unsupported
        | ProviderErrorKind::LeaseLost
        | ProviderErrorKind::Withdrawn => false,
    }
}
