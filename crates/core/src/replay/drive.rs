//! Polls the code, at the points that history gives.

use std::task::{Context, Poll};

use super::execution::{Due, Verifying};
use super::turn::panicked;
use super::{Execution, Misuse};
use crate::context::poll_scope::guarded;
use crate::limits::MAX_POLLS_PER_POINT;
use crate::replay::mismatch::{LastMatch, Mismatch, bounded};
use crate::vocabulary::version::records_everything;
use crate::{BUILD_VERSION, ErrorDetails, Event, EventKind};

impl Execution {
    /// Repeats a recorded history in one pass.
    pub(super) fn visit_all(&mut self, history: Vec<Event>) {
        let mut stamp = String::new();
        for event in history {
            if event.duroxide_version != stamp {
                stamp.clone_from(&event.duroxide_version);
            }
            self.visit(event);
        }
        self.poll_due();
        if self.failure.is_none() && self.verifying == Verifying::No && is_exact(&stamp) {
            self.check_stands_still();
        }
    }

    /// Looks at a finished history without running the code: nothing can be decided any more, but a list that
    /// is no history is named.
    pub(super) fn fold(&mut self, history: &[Event]) {
        for event in history {
            self.effort.events_visited += 1;
            if let Err(corrupted) = self.outline.check(event) {
                self.part(corrupted);
            }
            self.outline.observe(event, &self.identity);
        }
    }

    fn visit(&mut self, event: Event) {
        self.effort.events_visited += 1;
        if let Err(corrupted) = self.outline.check(&event) {
            self.part(corrupted);
        }
        if self.failure.is_some() {
            // The code is lost, but what history leaves open must still be known, so that it can be closed.
            self.outline.observe(&event, &self.identity);
            return;
        }
        // The sessions that a continue-as-new carried are known before the code first runs.
        if !matches!(event.kind, EventKind::SessionsCarried { .. }) {
            self.poll_due();
        }
        let (id, kind) = (event.event_id, event.kind.name());
        let due = Due { now_ms: event.timestamp_ms, replaying: true };
        match self.repeat(event, due) {
            // Whether the code comes to the recorded end is judged when all of history is seen.
            Ok(()) if self.outline.is_terminal() => {}
            Ok(()) => self.last_match = Some(LastMatch { event_id: id, kind }),
            Err(mismatch) => self.part(mismatch),
        }
    }

    /// Polls the root if the last event asked for it, and again while something woke it during the poll.
    pub(super) fn poll_due(&mut self) {
        let Some(due) = self.due.take() else { return };
        if self.output.is_some() || self.failure.is_some() {
            return;
        }
        {
            let mut ledger = self.shared.lock();
            ledger.now_ms = due.now_ms;
            ledger.replaying = due.replaying;
        }
        for _ in 0..MAX_POLLS_PER_POINT {
            match self.poll_root() {
                Ok(Poll::Ready(output)) => self.output = Some(output),
                Ok(Poll::Pending) if self.shared.was_woken() => {}
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
        let waker = self.shared.waker();
        let root = &mut self.root;
        let poll = || guarded(|| root.as_mut().poll(&mut Context::from_waker(&waker)));
        let polled = self.shared.polling(poll).map_err(panicked);
        let mut ledger = self.shared.lock();
        ledger.seal();
        for taker in ledger.take_read() {
            self.outline.consume(taker);
        }
        match ledger.misuse() {
            Some(misuse) => polled.and(Err(Misuse::details(misuse))),
            None => polled,
        }
    }

    /// A recorded turn ends with nothing left to record: code that asks for more, or returns, was changed.
    fn check_stands_still(&mut self) {
        let position = self.outline.next_event_id();
        let mut mismatch = Mismatch {
            position,
            reason: String::new(),
            expected: Some("nothing more yet"),
            found: None,
            call: None,
            last_match: None,
        };
        if let Some(call) = self.shared.lock().peek_call() {
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

/// Is this the stamp of an engine that polls at the same points and records all that it compares?
pub(super) fn is_exact(stamp: &str) -> bool {
    stamp == BUILD_VERSION || records_everything(stamp)
}

pub(super) fn never_settles(limit: usize) -> ErrorDetails {
    ErrorDetails::Infrastructure {
        operation: "quiescence_loop".to_owned(),
        message: format!(
            "quiescence loop exceeded {limit} iterations: the orchestration wakes itself again and again without waiting \
             for anything"
        ),
        retryable: false,
    }
}
