//! Plays events to the code: recorded ones, which the code must repeat, and answers, which it may wait for.

use std::collections::BTreeSet;
use std::task::Waker;

use super::Execution;
use super::admit::is_fatal;
use super::drive::is_exact;
use super::execution::{Due, Verifying};
use super::ledger::{Answer, Ledger, Token};
use super::mismatch::{LastMatch, Mismatch, bounded};
use crate::operation::continue_as_new::Continuation;
use crate::operation::{Kind, Recorded, Role};
use crate::{Event, EventKind};

/// What happens after an event was played.
pub(crate) enum Next {
    /// The next event is played at once.
    Go,
    /// These wakers are called, and the root is polled before the next event is played.
    Poll(Vec<Waker>),
}

impl Next {
    pub(crate) fn poll(waker: Option<Waker>) -> Self {
        Self::Poll(waker.into_iter().collect())
    }

    /// Answers the future of the call that event `id` recorded. The root is polled even if that future was
    /// dropped.
    pub(crate) fn settle(id: Option<u64>, answer: Answer, ledger: &mut Ledger) -> Self {
        match id {
            Some(id) => Self::poll(ledger.settle(id, answer)),
            None => Self::Go,
        }
    }
}

impl Execution {
    /// Plays a recorded history in one pass.
    pub(super) fn play_all(&mut self, history: Vec<Event>) {
        let mut stamp = String::new();
        for event in history {
            if event.duroxide_version != stamp {
                stamp.clone_from(&event.duroxide_version);
            }
            self.play(event);
        }
        self.poll_due();
        if self.failure.is_none() && self.verifying == Verifying::No && is_exact(&stamp) {
            self.check_stands_still();
        }
    }

    /// Plays a history that has ended to the outline only and does not run the code, which can decide nothing
    /// any more. An invalid history is still reported.
    pub(super) fn play_ended(&mut self, history: &[Event]) {
        for event in history {
            self.effort.events_visited += 1;
            if let Err(corrupted) = self.outline.check(event) {
                self.part(corrupted);
            }
            self.outline.play(event, &self.identity);
        }
    }

    fn play(&mut self, event: Event) {
        self.effort.events_visited += 1;
        if let Err(corrupted) = self.outline.check(&event) {
            self.part(corrupted);
        }
        if self.failure.is_some() {
            // The code cannot go on, but what history leaves open must still be known, so that it can be
            // closed.
            self.outline.play(&event, &self.identity);
            return;
        }
        self.poll_before(&event);
        let (id, kind) = (event.event_id, event.kind.name());
        let due = Due { now_ms: event.timestamp_ms, replaying: true };
        match self.play_recorded(event, due) {
            // Whether the code comes to the recorded end is judged when all of history has been played.
            Ok(()) if self.outline.has_ended() => {}
            Ok(()) => self.last_match = Some(LastMatch { event_id: id, kind }),
            Err(mismatch) => self.part(mismatch),
        }
    }

    /// Runs the poll that an earlier event asked for, before `event` is played. A `SessionsCarried` event,
    /// which follows the start, is played before that poll: the code knows its open sessions from its first
    /// run on.
    pub(super) fn poll_before(&mut self, event: &Event) {
        if !matches!(event.kind, EventKind::SessionsCarried { .. }) {
            self.poll_due();
        }
    }

    /// Plays a recorded event: the code must have made the call, or be waiting for the answer.
    fn play_recorded(&mut self, event: Event, due: Due) -> Result<(), Mismatch> {
        let role = event.kind.role();
        let call = self.check_answer(&event, role).and_then(|()| self.find_call(&event, role));
        let orphans = self.orphans_of(&event, role);
        // The outline plays the event even if the code does not match it: the operations that history leaves
        // open must be closed.
        self.outline.play(&event, &self.identity);
        let call = call?;
        if self.verifying == Verifying::Yes && is_fatal(&event) {
            // The turn that recorded this ended without running the code again.
            self.output.get_or_insert(Err(String::new()));
        }
        match call {
            Some((kind, token)) => self.play_call(&event, kind, token, &orphans, due),
            None => self.play_arrival(event, due)?,
        }
        Ok(())
    }

    /// Plays an event that records no call of the code: the start, an answer, a cancellation, the end.
    pub(super) fn play_arrival(&mut self, event: Event, due: Due) -> Result<(), Mismatch> {
        let next = match event.kind.role() {
            Role::Begins => Next::Poll(Vec::new()),
            Role::Answers(kind) => kind.rules().settle(event, &mut self.scope.lock()),
            Role::Cancels(kind) => {
                self.check_dropped(kind, &event)?;
                Next::Go
            }
            Role::Records(_) | Role::Carries | Role::Ends => Next::Go,
        };
        self.go_on(next, due);
        Ok(())
    }

    /// Plays the event that records the call of `token`.
    pub(super) fn play_call(
        &mut self,
        event: &Event,
        kind: Kind,
        token: Token,
        orphans: &BTreeSet<u64>,
        due: Due,
    ) {
        let mut ledger = self.scope.lock();
        let is_alive = ledger.record(token, event.event_id);
        let next = kind.rules().recorded(&Recorded { event, is_alive, orphans }, &mut ledger);
        drop(ledger);
        self.go_on(next, due);
    }

    fn go_on(&mut self, next: Next, due: Due) {
        if let Next::Poll(wakers) = next {
            self.scope.deliver(wakers);
            self.due = Some(due);
        }
    }

    /// The open operations that end because of `event`; see
    /// [`Operation::orphans`](crate::operation::Operation::orphans).
    pub(super) fn orphans_of(&self, event: &Event, role: Role) -> BTreeSet<u64> {
        match role {
            Role::Records(kind) => kind.rules().orphans(event, &self.outline),
            Role::Begins | Role::Answers(_) | Role::Cancels(_) | Role::Carries | Role::Ends => {
                BTreeSet::new()
            }
        }
    }

    /// Takes out the call that `event` records; `None` for events that record no call.
    fn find_call(&mut self, event: &Event, role: Role) -> Result<Option<(Kind, Token)>, Mismatch> {
        let Role::Records(kind) = role else { return Ok(None) };
        let mut ledger = self.scope.lock();
        if self.verifying == Verifying::Yes {
            // A call after continue-as-new is recorded, continue-as-new itself is not.
            while ledger.peek_call().is_some_and(|call| call.action.kind() == Kind::ContinueAsNew) {
                let skipped = ledger.next_call().and_then(|call| Continuation::of(call.action));
                self.continued = self.continued.take().or(skipped);
            }
        }
        let rules = kind.rules();
        if let Some(call) = rules.find_call(event, &ledger).and_then(|index| ledger.remove_call(index)) {
            return Ok(Some((kind, call.token)));
        }
        match ledger.peek_call() {
            Some(call) => Err(Mismatch::between(rules.mismatch_label(&event.kind), call, event)),
            None if rules.may_lack_call() && !is_exact(&event.duroxide_version) => Ok(None),
            None => Err(Mismatch::at(event, rules.missing_call(&event.kind))),
        }
    }

    /// Checks that an answer names an open schedule of its kind. This holds even after the code has returned.
    fn check_answer(&self, event: &Event, role: Role) -> Result<(), Mismatch> {
        let (Role::Answers(kind), Some(source)) = (role, event.source_event_id) else { return Ok(()) };
        let Some(labels) = kind.rules().answer_labels() else { return Ok(()) };
        match self.outline.kind_of(source) {
            Some(scheduled) if self.outline.is_open(source) => {
                if scheduled == kind {
                    return Ok(());
                }
                let found = scheduled.rules().answer_labels().map_or("", |labels| labels.schedule);
                let expected = labels.schedule;
                let text = format!("completion kind mismatch: expected {expected}, found {found}");
                Err(Mismatch::at(event, text))
            }
            _ => Err(Mismatch::at(event, format!("completion without open schedule: id={source}"))),
        }
    }

    /// Checks that the code dropped the future again whose drop history records here.
    fn check_dropped(&mut self, kind: Kind, event: &Event) -> Result<(), Mismatch> {
        let (Some(source), Some(cancellation)) = (event.source_event_id, kind.rules().cancellation()) else {
            return Ok(());
        };
        let mut ledger = self.scope.lock();
        let dropped = ledger.dropped(kind);
        dropped.unreported.remove(&source);
        dropped.marked.insert(source);
        if event.kind != (cancellation.event)(DROPPED_FUTURE.to_owned()) {
            return Ok(());
        }
        dropped.recorded.insert(source);
        if dropped.all.contains(&source) {
            return Ok(());
        }
        let text = format!(
            "cancellation mismatch ({}): baseline_dropped_future_cancel_requests={} \
             ctx_cancelled_in_replayed_segment={}",
            cancellation.label,
            bounded(&dropped.recorded),
            bounded(&dropped.all),
        );
        Err(Mismatch::at(event, text))
    }
}

/// The reason that is recorded for a future which the code dropped.
pub(crate) const DROPPED_FUTURE: &str = "dropped_future";
