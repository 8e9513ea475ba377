//! The future of everything that an orchestration waits for.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::context::misuse::Misuse;
use crate::context::poll_scope::{PollScope, guarded};
use crate::operation::Kind;
use crate::replay::ledger::{Answer, Call, Polled, Released, Token};
use crate::{Action, CallFailure, CallTerms, Policy};

/// Waits for something that history records: an activity, a timer, an event, a child.
///
/// The call is made when the method that returned the future is called, not when the future is first polled.
/// The future keeps the waker that it was last polled with and wakes it when the answer is there, so it works
/// inside any combinator.
///
/// # Cancel safety
/// Dropping the future before it answered cancels the operation: an activity is withdrawn, a child is
/// cancelled, a wait takes no event, and a dequeue leaves its message to the next one. A timer still fires,
/// without effect.
#[must_use = "dropping a durable future cancels what it waits for"]
pub struct DurableFuture<T> {
    stage: Stage<T>,
    /// The idempotency key, of a call of an activity.
    key: Option<Arc<str>>,
}

enum Stage<T> {
    Waiting {
        handle: Handle,
        read: Read<T>,
    },
    Ready(T),
    /// The answer was read, or the call was refused: the future never resolves (again).
    Answered,
}

type Read<T> = Box<dyn FnOnce(Answer) -> T + Send>;

/// Ties a future to its entry in the ledger, and cancels it when it is dropped.
struct Handle {
    scope: Arc<PollScope>,
    token: Token,
    kind: Kind,
    answered: bool,
}

impl<T> DurableFuture<T> {
    pub(crate) fn waiting(
        scope: &Arc<PollScope>,
        token: Token,
        kind: Kind,
        read: impl FnOnce(Answer) -> T + Send + 'static,
    ) -> Self {
        let handle = Handle { scope: Arc::clone(scope), token, kind, answered: false };
        Self { stage: Stage::Waiting { handle, read: Box::new(read) }, key: None }
    }

    pub(crate) fn ready(value: T) -> Self {
        Self { stage: Stage::Ready(value), key: None }
    }

    /// Makes a future that never resolves, for a call that was refused: the refusal fails the orchestration.
    pub(crate) fn never() -> Self {
        Self { stage: Stage::Answered, key: None }
    }

    pub(crate) fn with_key(mut self, key: Arc<str>) -> Self {
        self.key = Some(key);
        self
    }

    /// Returns the key of a call of an activity; `None` for any other future.
    pub(crate) fn own_key(&self) -> Option<Arc<str>> {
        self.key.clone()
    }

    /// Returns the idempotency key of the activity that the future waits for: the text that
    /// `ActivityContext::idempotency_key` returns in every delivery and every try of this call. It is known
    /// before the activity is scheduled, so what undoes the call can be prepared first.
    ///
    /// If the future does not wait for an activity, the orchestration fails, and the text is empty. It is
    /// also empty if the call was not made because its input could not be encoded: the future is an error
    /// then.
    #[track_caller]
    pub fn key(&self) -> String {
        if let Some(key) = &self.key {
            return key.to_string();
        }
        if let Stage::Waiting { handle, .. } = &self.stage {
            handle.report(Misuse::Change { call: "key", why: NO_ACTIVITY, at: Location::caller() });
        }
        String::new()
    }
}

impl<T: Send + 'static> DurableFuture<T> {
    /// Applies a function to the value that the future resolves to. Dropping the result cancels the
    /// operation, and [`with_tag`](Self::with_tag) works on it, as on this future.
    pub fn map<U: Send + 'static>(self, f: impl FnOnce(T) -> U + Send + 'static) -> DurableFuture<U> {
        self.read_as(|answer, read| f(read(answer)))
    }

    /// Replaces the function that reads the answer; the new one is given the former one.
    fn read_as<U: Send + 'static>(
        mut self,
        f: impl FnOnce(Answer, Read<T>) -> U + Send + 'static,
    ) -> DurableFuture<U> {
        let stage = match std::mem::replace(&mut self.stage, Stage::Answered) {
            Stage::Waiting { handle, read } => {
                let read: Read<U> = Box::new(move |answer| f(answer, read));
                Stage::Waiting { handle, read }
            }
            // The value was not made from an answer of the engine, so any answer does.
            Stage::Ready(value) => Stage::Ready(f(Answer::Fired, Box::new(|_| value))),
            Stage::Answered => Stage::Answered,
        };
        DurableFuture { stage, key: self.key.take() }
    }

    /// Runs the activity on a worker that serves `tag`.
    ///
    /// # Panics
    /// If the future does not wait for an activity, or if it was polled before: the activity is scheduled
    /// then. [`try_with_tag`](Self::try_with_tag) returns an error instead.
    #[allow(clippy::panic, reason = "the compatible API panics here")]
    pub fn with_tag(self, tag: impl Into<String>) -> Self {
        match self.try_with_tag(tag) {
            Ok(tagged) => tagged,
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs the activity on a worker that serves `tag`.
    ///
    /// # Errors
    /// If the future does not wait for an activity, or if it was polled before. The future is dropped then,
    /// which cancels its operation.
    pub fn try_with_tag(self, tag: impl Into<String>) -> Result<Self, WithTagError> {
        let wanted = Some(tag.into());
        let change = |call: &mut Call| {
            if let Action::CallActivity { tag, .. } = &mut call.action {
                *tag = wanted;
            }
        };
        self.change_activity(change).map_err(|refusal| match refusal {
            Refusal::NoActivity(kind) => WithTagError::NotAnActivity { kind },
            Refusal::TooLate => WithTagError::TooLate,
        })
    }

    /// Runs the activity on a session: on the worker that holds the in-memory state of the session.
    ///
    /// A second call replaces the first. If the future does not wait for an activity, or was polled before,
    /// the orchestration fails.
    #[track_caller]
    pub fn on_session(self, session_id: impl Into<String>) -> Self {
        let wanted = Some(session_id.into());
        self.change_or_fail("on_session", Location::caller(), |call| {
            if let Action::CallActivity { session_id, .. } = &mut call.action {
                *session_id = wanted;
            }
        })
    }

    /// Tries the activity again when it fails, as `policy` says. The policy is recorded with the call and
    /// travels with its work: workers make the tries, and history gets one outcome. All tries share one
    /// idempotency key.
    ///
    /// Replay does not compare policies: a deployment may change one while instances run, and calls that are
    /// made afterwards have the new one.
    ///
    /// A second call replaces the first. If the future does not wait for an activity, or was polled before,
    /// the orchestration fails.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use steadfast_core::{OrchestrationContext, Policy};
    /// # async fn charge(ctx: OrchestrationContext) -> Result<String, String> {
    /// let policy = Policy::tries(5).timeout(Duration::from_secs(30));
    /// ctx.schedule_activity("Charge", "order-42").retry(policy).await
    /// # }
    /// ```
    #[track_caller]
    pub fn retry(self, policy: Policy) -> Self {
        self.change_or_fail("retry", Location::caller(), |call| {
            let terms = call.terms.get_or_insert_with(|| Box::new(CallTerms::of_key("")));
            terms.policy = Some(policy);
        })
    }

    fn change_or_fail(
        self,
        name: &'static str,
        at: &'static Location<'static>,
        change: impl FnOnce(&mut Call),
    ) -> Self {
        let scope = self.handle().map(|handle| Arc::clone(&handle.scope));
        match self.change_activity(change) {
            Ok(changed) => changed,
            Err(refusal) => {
                let why = match refusal {
                    Refusal::NoActivity(_) => NO_ACTIVITY,
                    Refusal::TooLate => "must be called before the activity future is first polled",
                };
                if let Some(mut ledger) = scope.as_ref().and_then(|scope| scope.enter(name, at)) {
                    ledger.report(Misuse::Change { call: name, why, at });
                }
                Self::never()
            }
        }
    }

    fn change_activity(self, change: impl FnOnce(&mut Call)) -> Result<Self, Refusal> {
        let Some(handle) = self.handle() else {
            // The call was refused, which fails the orchestration.
            return Ok(self);
        };
        if handle.kind != Kind::Activity {
            return Err(Refusal::NoActivity(handle.kind.rules().label()));
        }
        let mut ledger = handle.scope.lock();
        match ledger.fresh_call(handle.token) {
            Some(call) => change(call),
            None if handle.scope.has_ended() => {}
            None => return Err(Refusal::TooLate),
        }
        drop(ledger);
        Ok(self)
    }

    fn handle(&self) -> Option<&Handle> {
        match &self.stage {
            Stage::Waiting { handle, .. } => Some(handle),
            Stage::Ready(_) | Stage::Answered => None,
        }
    }
}

impl<T: Send + 'static> DurableFuture<Result<T, String>> {
    /// Resolves to an error that tells, beside its text, how the activity failed, after how many tries and
    /// how much time.
    ///
    /// ```
    /// # use steadfast_core::{OrchestrationContext, Policy};
    /// # async fn charge(ctx: OrchestrationContext) -> Result<String, String> {
    /// let call = ctx.schedule_activity("Charge", "order-42").retry(Policy::tries(5)).detailed();
    /// call.await.map_err(|failed| {
    ///     let tries = failed.failure.as_ref().map_or(1, |failure| failure.tries);
    ///     format!("given up after {tries} tries: {failed}")
    /// })
    /// # }
    /// ```
    pub fn detailed(self) -> DurableFuture<Result<T, CallFailure>> {
        self.read_as(|answer, read| {
            let failure = match &answer {
                Answer::Failed(failed) => failed.failure.clone(),
                Answer::Result(_)
                | Answer::Data(_)
                | Answer::Fired
                | Answer::Migration(_)
                | Answer::Closed(_) => None,
            };
            read(answer).map_err(|message| CallFailure { message, failure })
        })
    }
}

/// Why a method that changes a call of an activity is refused on another future.
const NO_ACTIVITY: &str = "can only be called on activity futures";

enum Refusal {
    NoActivity(&'static str),
    TooLate,
}

/// The reasons why a tag could not be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WithTagError {
    /// The future does not wait for an activity.
    NotAnActivity {
        /// The kind of operation that the future waits for.
        kind: &'static str,
    },
    /// The future was polled before, so that the activity is scheduled already.
    TooLate,
}

impl fmt::Display for WithTagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnActivity { kind } => {
                write!(f, "with_tag() can only be called on activity futures, got {kind}")
            }
            Self::TooLate => {
                write!(f, "with_tag() must be called before the activity future is first polled")
            }
        }
    }
}

impl std::error::Error for WithTagError {}

impl<T> Future for DurableFuture<T> {
    type Output = T;

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match std::mem::replace(&mut self.stage, Stage::Answered) {
            Stage::Waiting { mut handle, read } => match handle.poll(cx) {
                Some(answer) => Poll::Ready(read(answer)),
                None => {
                    self.stage = Stage::Waiting { handle, read };
                    Poll::Pending
                }
            },
            Stage::Ready(value) => Poll::Ready(value),
            Stage::Answered => Poll::Pending,
        }
    }
}

/// Nothing is pinned, because the value is made when the answer is read.
impl<T> Unpin for DurableFuture<T> {}

impl Handle {
    fn report(&self, misuse: Misuse) {
        if let Some(mut ledger) = self.scope.enter("a durable future's key", Location::caller()) {
            ledger.report(misuse);
        }
    }

    #[track_caller]
    fn poll(&mut self, cx: &Context<'_>) -> Option<Answer> {
        let mut ledger = self.scope.enter("a durable future's poll", Location::caller())?;
        let polled = ledger.poll(self.token, cx.waker());
        drop(ledger);
        match polled {
            Polled::Ready(answer, _entry) => {
                self.answered = true;
                Some(answer)
            }
            Polled::Pending(_stale) => None,
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.answered || self.scope.has_ended() {
            return;
        }
        let Some(mut ledger) = self.scope.enter("the drop of a durable future", Location::caller()) else {
            return;
        };
        let Released { entry, stale, heir } = ledger.drop_future(self.token);
        drop(ledger);
        // A waker may be user code, and this may run while a panic unwinds: a second panic that leaves a
        // destructor would abort the process.
        let woken = guarded(move || {
            drop((entry, stale));
            if let Some(heir) = heir {
                heir.wake();
            }
        });
        if let Err(text) = woken {
            self.scope.lock().report(Misuse::WakerPanicked { text });
        }
    }
}
