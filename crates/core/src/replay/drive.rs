//! Polls the code, at the points that history gives.

use std::task::{Context, Poll};

use super::Execution;
use super::mismatch::{Mismatch, bounded};
use crate::context::misuse::Misuse;
use crate::context::poll_scope::guarded;
use crate::limits::MAX_POLLS_PER_POINT;
use crate::vocabulary::error::panicked;
use crate::vocabulary::version::records_everything;
use crate::{BUILD_VERSION, ErrorDetails};

impl Execution {
    /// Polls the root if the last event asked for it, and again while something woke it during the poll.
    pub(super) fn poll_due(&mut self) {
        let Some(due) = self.due.take() else { return };
        if self.output.is_some() || self.failure.is_some() {
            return;
        }
        {
            let mut ledger = self.scope.lock();
            ledger.now_ms = due.now_ms;
            ledger.replaying = due.replaying;
        }
        for _ in 0..MAX_POLLS_PER_POINT {
            match self.poll_root() {
                Ok(Poll::Ready(output)) => self.output = Some(output),
                Ok(Poll::Pending) if self.scope.was_woken() => {}
                Ok(Poll::Pending) => return,
                Err(details) => self.failure = Some(details),
            }
            if self.output.is_some() || self.failure.is_some() {
                return;
            }
        }
        self.failure = Some(never_settles(MAX_POLLS_PER_POINT));
    }

    fn poll_root(&mut self) -> Result<Poll<Result<String, String>>, ErrorDetails> {
        self.effort.root_polls += 1;
        let waker = self.scope.waker();
        let root = &mut self.root;
        let poll = || guarded(|| root.as_mut().poll(&mut Context::from_waker(&waker)));
        let polled = self.scope.polling(poll).map_err(panicked);
        let mut ledger = self.scope.lock();
        ledger.seal();
        for taker in ledger.take_read() {
            self.outline.queues.consume(taker);
        }
        match ledger.misuse() {
            Some(misuse) => polled.and(Err(Misuse::details(misuse))),
            None => polled,
        }
    }

    /// Checks that the code waits after the last recorded event. Code that makes one more call there, or
    /// returns, was changed since the turn that recorded the event.
    pub(super) fn check_stands_still(&mut self) {
        let position = self.outline.next_event_id();
        let mut mismatch = Mismatch {
            position,
            reason: String::new(),
            expected: Some("nothing more yet"),
            found: None,
            call: None,
            last_match: None,
        };
        if let Some(call) = self.scope.lock().peek_call() {
            mismatch.reason = format!("schedule mismatch: action={} vs no event", bounded(&call.action));
            mismatch = mismatch.with_call(call);
        } else if self.output.is_some() {
            mismatch.reason = "the orchestration returned while history says that it still waits".to_owned();
        } else {
            return;
        }
        self.part(mismatch);
    }
}

/// Tells whether the stamp is of an engine whose histories can be compared strictly: it polls at the same
/// points and records every argument of a call.
pub(super) fn is_exact(stamp: &str) -> bool {
    stamp == BUILD_VERSION || records_everything(stamp)
}

pub(super) fn never_settles(limit: usize) -> ErrorDetails {
    ErrorDetails::Infrastructure {
        operation: "quiescence_loop".to_owned(),
        message: format!(
            "quiescence loop exceeded {limit} iterations: the orchestration wakes itself again and again \
             without waiting for anything"
        ),
        retryable: false,
    }
}
