//! The future of everything that an orchestration waits for.

use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::Action;
use crate::context::misuse::Misuse;
use crate::context::poll_scope::{PollScope, guarded};
use crate::operation::Kind;
use crate::replay::ledger::{Answer, Polled, Released, Token};

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
        Self { stage: Stage::Waiting { handle, read: Box::new(read) } }
    }

    pub(crate) fn ready(value: T) -> Self {
        Self { stage: Stage::Ready(value) }
    }

    /// Makes a future that never resolves, for a call that was refused: the refusal fails the orchestration.
    pub(crate) fn never() -> Self {
        Self { stage: Stage::Answered }
    }
}

impl<T: Send + 'static> DurableFuture<T> {
    /// Applies a function to the value that the future resolves to. Dropping the result cancels the
    /// operation, and [`with_tag`](Self::with_tag) works on it, as on this future.
    pub fn map<U: Send + 'static>(mut self, f: impl FnOnce(T) -> U + Send + 'static) -> DurableFuture<U> {
        match std::mem::replace(&mut self.stage, Stage::Answered) {
            Stage::Waiting { handle, read } => {
                let read: Read<U> = Box::new(move |answer| f(read(answer)));
                DurableFuture { stage: Stage::Waiting { handle, read } }
            }
            Stage::Ready(value) => DurableFuture::ready(f(value)),
            Stage::Answered => DurableFuture::never(),
        }
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
        self.change_activity(|_, tag| *tag = wanted).map_err(|refusal| match refusal {
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
        let at = Location::caller();
        let wanted = Some(session_id.into());
        let scope = self.handle().map(|handle| Arc::clone(&handle.scope));
        match self.change_activity(|session, _| *session = wanted) {
            Ok(changed) => changed,
            Err(refusal) => {
                let why = match refusal {
                    Refusal::NoActivity(_) => "can only be called on activity futures",
                    Refusal::TooLate => "must be called before the activity future is first polled",
                };
                if let Some(mut ledger) = scope.as_ref().and_then(|scope| scope.enter("on_session", at)) {
                    ledger.report(Misuse::OnSession { why, at });
                }
                Self::never()
            }
        }
    }

    fn change_activity(
        self,
        change: impl FnOnce(&mut Option<String>, &mut Option<String>),
    ) -> Result<Self, Refusal> {
        let Some(handle) = self.handle() else {
            // The call was refused, which fails the orchestration.
            return Ok(self);
        };
        if handle.kind != Kind::Activity {
            return Err(Refusal::NoActivity(handle.kind.rules().label()));
        }
        let mut ledger = handle.scope.lock();
        match ledger.fresh_call(handle.token) {
            Some(Action::CallActivity { session_id, tag, .. }) => change(session_id, tag),
            _ if handle.scope.has_ended() => {}
            _ => return Err(Refusal::TooLate),
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
