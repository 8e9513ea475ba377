//! One run of an activity: its code on a task of its own, while a keeper renews the lease.

use std::future::poll_fn;
use std::sync::Arc;

use steadfast_client::Client;
use steadfast_core::{AppErrorKind, ErrorDetails, is_session_lost};
use steadfast_store::{EndedTry, LeaseToken, Message, Outcome, WorkLease};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use super::context::{ActivityCancellation, ActivityContext, ActivityInfo, CancelReason};
use super::error::ActivityError;
use super::panic::Caught;
use super::rebuild::Ended;
use super::running::{RunHandle, RunningActivity};
use super::tries::{CallTries, OnFailedTry, kept_error};
use super::{Handed, Moment, ScheduledActivity, Word};
use crate::dispatch::in_time;
use crate::dispatch::lease::{Keeper, LeaseEnd};
use crate::handler::ActivityHandler;
use crate::observability::Affinity;
use crate::observe::span;
use crate::runtime::RuntimeShared;
use crate::session::{self, HeadOfLine, Rises, Session};

/// Leased work whose handler is known.
pub(super) struct ActivityRun<'a> {
    pub(super) shared: &'a Arc<RuntimeShared>,
    pub(super) token: LeaseToken,
    scheduled: ScheduledActivity,
    pub(super) tries: CallTries,
    /// When the lease was asked for.
    asked: Moment,
    pub(super) info: Arc<ActivityInfo>,
    pub(super) cancellation: ActivityCancellation,
    /// Cancelled when the store says that the lease is lost.
    pub(super) lost: CancellationToken,
}

/// Held while the activity may run: the renewal of its lease, and its entry among the running activities. The
/// renewal is dropped first.
struct Guards {
    _keeper: Keeper,
    _running: RunningActivity,
}

/// The task that runs the code. A panic is the outer error, with its text.
pub(super) type Invocation = AbortOnDropHandle<Result<Result<String, ActivityError>, String>>;

/// Why the wait for the code ended.
pub(super) enum RunEnd {
    /// The code returned, or panicked.
    Returned(Result<String, ActivityError>),
    Cancelled,
    Aborted,
}

impl<'a> ActivityRun<'a> {
    pub(super) fn new(
        shared: &'a Arc<RuntimeShared>,
        lease: WorkLease,
        scheduled: ScheduledActivity,
        session: Option<Session>,
        worker_id: String,
        asked: Moment,
    ) -> Self {
        let tries = CallTries::of(&lease, &shared.plan);
        let info = ActivityInfo {
            instance: scheduled.instance.clone(),
            execution_id: scheduled.execution_id,
            orchestration_name: lease.orchestration,
            orchestration_version: lease.orchestration_version,
            activity_name: scheduled.name.clone(),
            activity_id: scheduled.id,
            worker_id,
            session_id: scheduled.session_id.clone(),
            session,
            tag: scheduled.tag.clone(),
            attempt: tries.attempt(),
            delivery: lease.delivery,
            counted_deliveries: lease.attempt,
            key: lease.call.map(|call| call.key),
            traceparent: lease.traceparent,
            is_rebuild: false,
        };
        let (token, info) = (lease.token, Arc::new(info));
        let (cancellation, lost) = (ActivityCancellation::default(), CancellationToken::new());
        Self { shared, token, scheduled, tries, asked, info, cancellation, lost }
    }

    /// Runs the code and records its outcome, in the span of the activity.
    pub(super) async fn run(self, handler: Arc<dyn ActivityHandler>) {
        let span = span::of_activity(&self.info);
        self.run_in_span(handler).instrument(span).await;
    }

    async fn run_in_span(self, handler: Arc<dyn ActivityHandler>) {
        let guards = self.guard();
        if let Some(error) = self.tries.overdue() {
            self.give_up(error).await;
            return;
        }
        let head_of_line = if self.is_leased().await { self.until_may_begin().await } else { None };
        let Some(head_of_line) = head_of_line else {
            drop(guards);
            return self.shared.abandon_uncounted(&self.token, None).await;
        };
        let clock = Arc::clone(&self.shared.plan.clock);
        let began = clock.monotonic();
        let Ended { end, running } = self.run_in_time(&handler).await;
        let outcome = match end {
            RunEnd::Returned(result) => self.complete(result).await,
            RunEnd::Cancelled if self.has_timed_out() => self.end_timed_out(running).await,
            RunEnd::Cancelled => {
                self.stop(running).await;
                "cancelled"
            }
            // The time of a shutdown is up: the activity is stopped, and its work is abandoned at once,
            // uncounted.
            RunEnd::Aborted => {
                self.cancellation.cancel(CancelReason::Shutdown);
                drop(running);
                drop(guards);
                return self.shared.abandon_uncounted(&self.token, None).await;
            }
        };
        drop(guards);
        drop(head_of_line);
        let took = clock.monotonic().saturating_sub(began);
        let metrics = self.shared.metrics();
        let retries = self.info.delivery.saturating_sub(1);
        let affinity = Affinity { tag: self.scheduled.tag.as_deref(), session: self.info.session.is_some() };
        metrics.record_activity_run(&self.scheduled.name, outcome, took.as_secs_f64(), retries, affinity);
        metrics.record_worker_dispatcher_execution_duration(took.as_millis() as u64);
    }

    /// Makes sure that the lease has not ended while the answer to the fetch was on its way. Another process
    /// may have run the activity since, and one whose result is recorded does not run again (G85). An answer
    /// in good time proves the lease by itself; after a late one the store is asked. Returns `false` if the
    /// store does not say that the lease lives on, or the time of a shutdown is up.
    async fn is_leased(&self) -> bool {
        let (plan, mut asked) = (&self.shared.plan, self.asked);
        while !asked.proves_lease(plan) {
            // The answer to this call may be late too.
            asked = Moment::now(plan);
            let asked_at = self.shared.held.pulse().lived();
            let renewal = self.shared.store.renew(&self.token, plan.work_lease.lasts);
            let renewed = tokio::select! {
                biased;
                () = self.shared.abort.cancelled() => return false,
                renewed = in_time(self.shared, "renew", renewal) => renewed,
            };
            if let Err(error) = renewed {
                tracing::debug!(
                    target: "steadfast::runtime",
                    %error,
                    "the answer to a fetch came late, and its lease is not renewed: the activity does not \
                     begin here"
                );
                return false;
            }
            self.shared.held.renewed(&self.token, asked_at);
        }
        true
    }

    /// Waits until the activity may begin: activities of a serial session that came before have ended, and
    /// the session is attached. `None` if it may not begin here: its lease ended meanwhile, the process
    /// cannot prove that it holds the session, or the time of a shutdown is up.
    async fn until_may_begin(&self) -> Option<Option<HeadOfLine>> {
        let Some(session) = &self.info.session else { return Some(None) };
        let head_of_line = tokio::select! {
            biased;
            () = self.cancellation.token.cancelled() => return None,
            () = self.shared.abort.cancelled() => return None,
            head_of_line = session::stand_in_line(self.shared, session) => head_of_line,
        };
        let may_begin = session::attach(self.shared, session).await;
        (may_begin && !self.cancellation.token.is_cancelled()).then_some(Some(head_of_line))
    }

    /// Starts to renew the lease, and enters the activity among the running ones, where a turn can cancel it.
    fn guard(&self) -> Guards {
        let identity = (self.scheduled.instance.clone(), self.scheduled.execution_id, self.scheduled.id);
        let doubts = Rises::default();
        let early = self.info.session.iter().map(session::successors).chain([doubts.look()]).collect();
        let run = RunHandle { token: self.token.clone(), cancellation: self.cancellation.clone(), doubts };
        let running = self.shared.running_activities.enter(identity, run);
        let (cancellation, lost) = (self.cancellation.clone(), self.lost.clone());
        let keeper =
            Keeper::start(self.shared, self.token.clone(), self.shared.plan.work_lease, early, move |end| {
                if end.is_word_of_the_store() {
                    lost.cancel();
                }
                cancellation.cancel(match end {
                    LeaseEnd::Withdrawn => CancelReason::Withdrawn,
                    LeaseEnd::Lost | LeaseEnd::Unproven | LeaseEnd::Bound => CancelReason::LeaseLost,
                });
            });
        Guards { _keeper: keeper, _running: running }
    }

    /// Runs the code of a handler until it returns or is to stop.
    pub(super) async fn call(&self, handler: &Arc<dyn ActivityHandler>, info: &Arc<ActivityInfo>) -> Ended {
        let mut invocation = self.invoke(Arc::clone(handler), Arc::clone(info));
        let end = self.wait(&mut invocation).await;
        let running = (!matches!(end, RunEnd::Returned(_))).then_some(invocation);
        Ended { end, running }
    }

    fn invoke(&self, handler: Arc<dyn ActivityHandler>, info: Arc<ActivityInfo>) -> Invocation {
        let name = format!("{} ({})", info.activity_name, info.instance);
        let context = ActivityContext::new(info, self.cancellation.clone(), self.client());
        let input = self.scheduled.input.clone();
        let mut call = Box::pin(Caught::new(async move { handler.try_invoke(context, input).await }));
        let (held, token) = (Arc::clone(&self.shared.held), self.token.clone());
        let call = poll_fn(move |task| {
            let _running = held.run_code(&token);
            call.as_mut().poll(task)
        })
        .in_current_span();
        self.shared.invocations.spawn(name, call)
    }

    /// Makes the client of the activity. Its messages carry the trace context of the activity, unless the
    /// stored text is not a valid one.
    fn client(&self) -> Client {
        let client = &self.shared.client;
        let traced = self.info.traceparent.as_ref().map(|traceparent| client.with_traceparent(traceparent));
        traced.and_then(Result::ok).unwrap_or_else(|| client.clone())
    }

    async fn wait(&self, invocation: &mut Invocation) -> RunEnd {
        tokio::select! {
            biased;
            joined = invocation => match joined {
                Ok(caught) => {
                    RunEnd::Returned(caught.unwrap_or_else(|panic| Err(ActivityError::panicked(panic))))
                }
                // The task was aborted with the whole tokio runtime.
                Err(_) => RunEnd::Aborted,
            },
            () = self.cancellation.token.cancelled() => RunEnd::Cancelled,
            () = self.shared.abort.cancelled() => RunEnd::Aborted,
        }
    }

    /// Records the result, and returns the outcome under which the metrics count the run.
    async fn complete(&self, result: Result<String, ActivityError>) -> &'static str {
        let output = match result {
            Ok(output) => output,
            Err(error) => return self.fail(error).await,
        };
        if let Some(session) = &self.info.session {
            // Before the outcome is recorded: the orchestration may schedule the next activity at once.
            session.completed();
        }
        let word = Word::Finish(Box::new(Outcome::from(self.scheduled.answer(Ok(output)))));
        self.hand_in(word, "success").await
    }

    /// Fails the activity with its last error: its time was up before this try could begin.
    async fn give_up(&self, error: &str) {
        let (kind, message) = (AppErrorKind::ActivityFailed, error.to_owned());
        let details = ErrorDetails::Application { kind, message, retryable: true };
        let failure = Some(Box::new(self.tries.failed_before_this_try(&self.info.activity_name)));
        let answer = Message { failure, ..self.scheduled.answer(Err(details)).into() };
        let outcome = Box::new(Outcome { completion: Some(answer) });
        self.hand_in(Word::Finish(outcome), "app_error").await;
    }

    /// Records that this try failed: another one follows, or the error is the outcome of the activity.
    pub(super) async fn fail(&self, error: ActivityError) -> &'static str {
        match self.tries.after(&error, &self.shared.plan) {
            OnFailedTry::TryAgain(wait) => {
                tracing::warn!(
                    target: "steadfast::runtime",
                    instance = %self.scheduled.instance,
                    activity = %self.scheduled.name,
                    attempt = self.tries.attempt(),
                    max = self.tries.max(),
                    next_in_ms = wait.as_millis() as u64,
                    error = %kept_error(error.message()),
                    "a try of an activity failed; another one follows"
                );
                let ended = EndedTry { error: kept_error(error.message()), retry_after: wait };
                self.hand_in(Word::EndTry(ended), "retry").await
            }
            OnFailedTry::Fail(failure) => {
                // The wire says whether another try is worth it only for those who asked for tries.
                let retryable = self.tries.has_policy() && !error.is_terminal();
                let message = error.into_message();
                let kind = if is_session_lost(&message) {
                    AppErrorKind::SessionLost
                } else {
                    AppErrorKind::ActivityFailed
                };
                let details = ErrorDetails::Application { kind, message, retryable };
                let answer = Message { failure, ..self.scheduled.answer(Err(details)).into() };
                let outcome = Box::new(Outcome { completion: Some(answer) });
                self.hand_in(Word::Finish(outcome), "app_error").await
            }
        }
    }

    /// Hands in what the run led to, and returns the outcome under which the metrics count it: `taken` if the
    /// store has taken it.
    async fn hand_in(&self, word: Word, taken: &'static str) -> &'static str {
        match self.shared.hand_in(&self.token, word, &self.lost).await {
            Handed::Taken => taken,
            Handed::Withdrawn => "cancelled",
            Handed::Lost => "infra_error",
        }
    }

    /// Lets a cancelled activity stop by itself for `activity_cancellation_grace_period`, then aborts it, and
    /// gives its work back.
    async fn stop(&self, running: Option<Invocation>) {
        let grace = self.shared.plan.clock.sleep(self.shared.plan.grace);
        let stopped = match running {
            None => true,
            Some(mut invocation) => tokio::select! {
                biased;
                // The result is not used.
                _ = &mut invocation => true,
                () = grace => false,
                () = self.shared.abort.cancelled() => false,
            },
        };
        if !stopped {
            tracing::warn!(
                target: "steadfast::runtime",
                activity = %self.scheduled.name,
                "a cancelled activity did not stop in time and is aborted"
            );
        }
        // Work that was withdrawn is gone, and the store says so. If it is there, the lease lives on: the
        // store could not be reached, or this process was told something that is not true. Then the work is
        // not lost, it runs again (F7), and that does not count (G38). To finish it without a result would
        // leave its orchestration waiting for ever.
        self.shared.abandon_uncounted(&self.token, None).await;
    }
}
