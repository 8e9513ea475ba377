//! The lane of activities: fetch, run, hand the outcome back.

pub(crate) mod builtin;
mod context;
pub(crate) mod running;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_client::Client;
use steadfast_core::{AppErrorKind, ErrorDetails, PoisonMessageType, SESSION_LOST, SessionKey, WorkItem};
use steadfast_store::{
    Attempt, LeaseToken, Outcome, ProviderError, ProviderErrorKind, SessionRef, WorkLease, WorkRequest,
};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

pub use context::{ActivityContext, CancelReason};
pub(crate) use context::{Cancellation, Particulars};

use crate::dispatch::keeper::Keeper;
use crate::dispatch::{Lane, Slot, until_stopped};
use crate::handler::ActivityHandler;
use crate::observability::{self, Affinity};
use crate::runtime::Shared;
use crate::session::{self, Arrival, Asking, Served, Session};

/// How long work is held back that came although it could not be taken: a store that cannot be told brings it again.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs activities.
pub(crate) struct Activities {
    pub(crate) shared: Arc<Shared>,
}

/// A leased activity, with the room that was reserved for its session.
pub(crate) struct Fetched {
    lease: WorkLease,
    asking: Asking,
}

/// An activity, taken apart.
struct Scheduled {
    instance: String,
    execution_id: u64,
    id: u64,
    name: String,
    input: String,
    session_id: Option<String>,
    tag: Option<String>,
}

impl Scheduled {
    fn of(item: WorkItem) -> Option<Self> {
        let WorkItem::ActivityExecute { instance, execution_id, id, name, input, session_id, tag } = item
        else {
            return None;
        };
        Some(Self { instance, execution_id, id, name, input, session_id, tag })
    }

    fn completed(&self, result: Result<String, ErrorDetails>) -> WorkItem {
        let (instance, execution_id, id) = (self.instance.clone(), self.execution_id, self.id);
        match result {
            Ok(result) => WorkItem::ActivityCompleted { instance, execution_id, id, result },
            Err(details) => WorkItem::ActivityFailed { instance, execution_id, id, details },
        }
    }
}

#[async_trait]
impl Lane for Activities {
    type Lease = Fetched;

    fn name(&self) -> &'static str {
        "activities"
    }

    async fn fetch(&self, slot: &Slot) -> Result<Option<Fetched>, ProviderError> {
        let plan = &self.shared.plan;
        loop {
            let mut asking = self.shared.sessions.ask(plan.session_lease.lasts, plan.clock.monotonic());
            let request = WorkRequest {
                worker_id: self.shared.worker_id(slot.index),
                lock_timeout: plan.work_lease.lasts,
                poll_timeout: plan.poll,
                tags: plan.tags.clone(),
                session: asking.request.clone(),
            };
            let lease = tokio::select! {
                biased;
                lease = self.shared.store.fetch_work(request) => lease,
                // What this slot may take has changed: the parked call is dropped, which leaves nothing, and made anew.
                () = asking.is_outdated(&*plan.clock) => continue,
            };
            let lease = match lease {
                // Only a newer start of this node refuses a fetch so. Other work can still be taken.
                Err(error) if error.kind == ProviderErrorKind::LeaseLost && asking.request.is_some() => {
                    session::give_up_node(&self.shared, &error);
                    continue;
                }
                lease => lease?,
            };
            if lease.is_some() {
                self.shared.metrics().record_worker_dispatcher_items_fetched(1);
            }
            return Ok(lease.map(|lease| Fetched { lease, asking }));
        }
    }

    async fn process(&self, slot: &Slot, fetched: Fetched) {
        let Fetched { lease, asking } = fetched;
        let token = lease.token.clone();
        let message = serde_json::to_string(&lease.item).unwrap_or_default();
        let Some(scheduled) = Scheduled::of(lease.item.clone()) else {
            tracing::error!(target: "steadfast::runtime", "a message stood among the work; it is given back");
            return self.shared.abandon(&token, Some(Duration::from_secs(60)), Attempt::Counts).await;
        };
        let (served, session) = match self.serve(&lease, &scheduled, asking) {
            Ok(served) => served.unzip(),
            // One session too many, because another slot was faster, or one that is being detached. Not an attempt.
            Err(()) => return self.shared.abandon(&token, Some(PAUSE), Attempt::Uncounted).await,
        };
        if lease.attempt > self.shared.plan.max_attempts {
            self.poison(&token, &scheduled, lease.attempt, message).await;
        } else {
            match self.shared.activities.resolve_handler(&scheduled.name) {
                Some((_, handler)) => self.run(slot, lease, scheduled, session.clone(), handler).await,
                None => self.unregistered(&lease, &scheduled, session.as_ref()).await,
            }
        }
        if let Some(session) = session {
            self.shared.sessions.used(&session, self.shared.plan.clock.monotonic());
            drop(served);
            session::tidy(&self.shared);
        }
    }
}

impl Activities {
    /// Enters an activity of a session. An error says that it must be given back.
    fn serve(
        &self,
        lease: &WorkLease,
        scheduled: &Scheduled,
        asking: Asking,
    ) -> Result<Option<(Served, Session)>, ()> {
        let attached = lease.session.as_ref();
        let attached =
            attached.map(|attached| SessionRef { key: attached.key.clone(), epoch: attached.epoch });
        // A store that counts no attachments knows the session by its id alone.
        let named =
            || scheduled.session_id.as_ref().map(|id| SessionRef { key: SessionKey::shared(id), epoch: 0 });
        let Some(attached) = attached.or_else(named) else { return Ok(None) };
        let now = self.shared.plan.clock.monotonic();
        let deadline = now.saturating_add(self.shared.plan.session_proof());
        let arrival = self.shared.sessions.enter(attached, asking, now, deadline).ok_or(())?;
        session::tell_arrival(&self.shared, lease);
        let Arrival { served, session, replaced } = arrival;
        session::lost(&self.shared, replaced.into_iter().collect());
        session::tidy(&self.shared);
        Ok(Some((served, session)))
    }

    async fn run(
        &self,
        slot: &Slot,
        lease: WorkLease,
        scheduled: Scheduled,
        session: Option<Session>,
        handler: Arc<dyn ActivityHandler>,
    ) {
        let particulars = Particulars {
            instance: scheduled.instance.clone(),
            execution_id: scheduled.execution_id,
            orchestration_name: lease.orchestration,
            orchestration_version: lease.orchestration_version,
            activity_name: scheduled.name.clone(),
            activity_id: scheduled.id,
            worker_id: self.shared.worker_id(slot.index),
            session_id: scheduled.session_id.clone(),
            session,
            tag: scheduled.tag.clone(),
            attempt: lease.attempt,
            traceparent: lease.traceparent,
        };
        let span = observability::of_activity(&particulars);
        self.carry_out(lease.token, scheduled, particulars, handler).instrument(span).await;
    }

    /// A client whose calls belong to the trace that the activity belongs to.
    fn client_of(&self, particulars: &Particulars) -> Client {
        let traced = particulars.traceparent.as_ref().map(|of| self.shared.client.with_traceparent(of));
        // What stands in the store may be no trace context; then the client carries none.
        traced.and_then(Result::ok).unwrap_or_else(|| self.shared.client.clone())
    }

    /// Runs the code beside a keeper of its lease, and hands the outcome back.
    async fn carry_out(
        &self,
        token: LeaseToken,
        scheduled: Scheduled,
        particulars: Particulars,
        handler: Arc<dyn ActivityHandler>,
    ) {
        let attempt = particulars.attempt;
        let cancellation = Cancellation::default();
        let identity = (scheduled.instance.clone(), scheduled.execution_id, scheduled.id);
        let entry = self.shared.running.enter(identity, cancellation.clone());
        let told = cancellation.clone();
        let keeper = Keeper::start(&self.shared, token.clone(), self.shared.plan.work_lease, move || {
            told.cancel(CancelReason::LeaseLost);
        });
        let session = particulars.session.clone();
        if let Some(session) = &session
            && !self.is_ready(session).await
        {
            drop(keeper);
            drop(entry);
            return self.shared.abandon(&token, None, Attempt::Uncounted).await;
        }
        let client = self.client_of(&particulars);
        let context = ActivityContext::new(particulars, cancellation.clone(), client);
        let input = scheduled.input.clone();
        let clock = Arc::clone(&self.shared.plan.clock);
        let began = clock.monotonic();
        let invoked =
            self.shared.tasks.spawn(async move { handler.invoke(context, input).await }.in_current_span());
        let mut invoked = AbortOnDropHandle::new(invoked);
        let outcome = tokio::select! {
            joined = &mut invoked => Some(joined),
            () = cancellation.token.cancelled() => None,
            () = self.shared.abort.cancelled() => {
                // A forced shutdown: the activity is stopped and given back at once, not counted.
                cancellation.cancel(CancelReason::Shutdown);
                drop(invoked);
                drop(keeper);
                drop(entry);
                return self.shared.abandon(&token, None, Attempt::Uncounted).await;
            }
        };
        let outcome = match outcome {
            Some(joined) => {
                let result = match joined {
                    Ok(Ok(result)) => Ok(result),
                    Ok(Err(error)) => Err(error),
                    Err(error) => Err(panic_text(error)),
                };
                if let (Ok(_), Some(session)) = (&result, &session) {
                    // Before the outcome is known to others, who may send the next activity at once.
                    session.completed();
                }
                self.finish(&token, &scheduled, result).await
            }
            None => {
                self.stop(&token, &scheduled, invoked, cancellation.is_withdrawn()).await;
                "cancelled"
            }
        };
        drop(keeper);
        drop(entry);
        let took = clock.monotonic().saturating_sub(began);
        let metrics = self.shared.metrics();
        let retries = attempt.saturating_sub(1);
        let affinity = Affinity { tag: scheduled.tag.as_deref(), session: session.is_some() };
        metrics.record_activity_run(&scheduled.name, outcome, took.as_secs_f64(), retries, affinity);
        metrics.record_worker_dispatcher_execution_duration(took.as_millis() as u64);
    }

    /// Lets the application greet a session, and tells whether an activity of it may still begin here: its lease must be
    /// provable now.
    async fn is_ready(&self, session: &Session) -> bool {
        tokio::select! {
            biased;
            () = session::greet(&self.shared, session) => {}
            () = self.shared.abort.cancelled() => return false,
        }
        self.shared.sessions.holds(session, self.shared.plan.clock.monotonic())
    }

    /// Hands the result back, and says how that is counted.
    async fn finish(
        &self,
        token: &LeaseToken,
        scheduled: &Scheduled,
        result: Result<String, String>,
    ) -> &'static str {
        let succeeded = result.is_ok();
        let result = result.map_err(|message| {
            let lost = message.starts_with(SESSION_LOST);
            let kind = if lost { AppErrorKind::SessionLost } else { AppErrorKind::ActivityFailed };
            ErrorDetails::Application { kind, message, retryable: false }
        });
        match self.hand_back(token, Outcome::from(scheduled.completed(result))).await {
            true if succeeded => "success",
            true => "app_error",
            false => "infra_error",
        }
    }

    /// Hands an outcome back, trying again while the lease lasts. False when it was lost.
    async fn hand_back(&self, token: &LeaseToken, outcome: Outcome) -> bool {
        let clock = &self.shared.plan.clock;
        let ends = clock.monotonic().saturating_add(self.shared.plan.work_lease.lasts);
        let mut backoff = crate::dispatch::backoff::Backoff::new(self.shared.seed);
        loop {
            let error = match self.shared.store.finish_work(token, outcome.clone()).await {
                Ok(()) => return true,
                Err(error) => error,
            };
            if error.is_lease_lost() {
                tracing::warn!(target: "steadfast::runtime", %error, "the activity was somebody else's by the time it ended; its result is not used");
                return false;
            }
            let wait = backoff.next();
            let hurries = self.shared.abort.is_cancelled();
            if hurries || !error.is_retryable() || clock.monotonic().saturating_add(wait) >= ends {
                tracing::warn!(target: "steadfast::runtime", %error, "the result of an activity could not be handed back; it runs again");
                self.shared.abandon(token, Some(Duration::from_millis(100)), Attempt::Counts).await;
                return false;
            }
            until_stopped(&self.shared.abort, clock.sleep(wait)).await;
        }
    }

    /// Lets a cancelled activity stop by itself for a while, then stops it.
    async fn stop(
        &self,
        token: &LeaseToken,
        scheduled: &Scheduled,
        mut invoked: AbortOnDropHandle<Result<String, String>>,
        withdrawn: bool,
    ) {
        let grace = self.shared.plan.clock.sleep(self.shared.plan.grace);
        let stopped = tokio::select! {
            joined = &mut invoked => {
                // Its result is not used, but how it is dropped matters.
                drop(joined.map_err(panic_text));
                true
            }
            () = grace => false,
            () = self.shared.abort.cancelled() => false,
        };
        if !stopped {
            tracing::warn!(target: "steadfast::runtime", activity = %scheduled.name, "a cancelled activity did not stop in time and is aborted");
        }
        drop(invoked);
        if !withdrawn {
            // The lease may live on in a store that could not be reached: nothing is lost, it runs again (F7).
            return self.shared.abandon(token, None, Attempt::Counts).await;
        }
        if let Err(error) = self.shared.store.finish_work(token, Outcome::default()).await {
            tracing::debug!(target: "steadfast::runtime", %error, "a cancelled activity was gone already");
        }
    }

    async fn poison(&self, token: &LeaseToken, scheduled: &Scheduled, attempt: u32, message: String) {
        let details = ErrorDetails::Poison {
            attempt_count: attempt,
            max_attempts: self.shared.plan.max_attempts,
            message_type: PoisonMessageType::Activity {
                instance: scheduled.instance.clone(),
                execution_id: scheduled.execution_id,
                activity_name: scheduled.name.clone(),
                activity_id: scheduled.id,
            },
            message,
        };
        tracing::error!(target: "steadfast::runtime", details = %details.display_message(), "poison: the activity fails");
        if self.hand_back(token, Outcome::from(scheduled.completed(Err(details)))).await {
            self.shared.metrics().record_activity_poison();
        }
    }

    async fn unregistered(&self, lease: &WorkLease, scheduled: &Scheduled, session: Option<&Session>) {
        let attempt = lease.attempt;
        let delay = self.shared.plan.unregistered.delay(attempt);
        let left = (u64::from(self.shared.plan.max_attempts) + 1).saturating_sub(u64::from(attempt));
        self.shared.metrics().record_activity_config_error();
        tracing::warn!(
            target: "steadfast::runtime",
            instance = %scheduled.instance,
            activity = %scheduled.name,
            "Activity not registered, abandoning with {:.1}s backoff (will poison in {left} more attempts); {}",
            delay.as_secs_f64(),
            self.shared.activities.instead_of(&scheduled.name),
        );
        self.shared.abandon(&lease.token, Some(delay), Attempt::Counts).await;
        // A store without epochs cannot be told to release: there it is tried again here.
        if let (Some(session), Some(_)) = (session, &lease.session) {
            session::release_for_want_of_handler(&self.shared, session);
        }
    }
}

/// Says how an activity panicked. What it panicked with is the user's: dropping it may panic again, and must not take
/// the slot along.
fn panic_text(error: tokio::task::JoinError) -> String {
    let text = error.to_string();
    if let Err(again) = catch_unwind(AssertUnwindSafe(move || drop(error))) {
        std::mem::forget(again);
    }
    text
}
