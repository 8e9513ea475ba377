//! What each kind of event does to the code that waits.

use std::collections::BTreeSet;

use super::drive::is_exact;
use super::execution::{Due, Verifying};
use super::{Execution, Notice, admit};
use crate::operation::{self, activity, kv};
use crate::replay::ledger::{Answer, DropGroup, Token};
use crate::replay::mismatch::{Mismatch, bounded};
use crate::replay::outline::ScheduleFamily;
use crate::{Action, Event, EventKind, SessionMigration};

/// Does an event ask for a poll before the next one?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Poll,
    Go,
}

impl Execution {
    /// Repeats a recorded event: the code must have asked for it, or be waiting for it.
    pub(super) fn repeat(&mut self, event: Event, due: Due) -> Result<(), Mismatch> {
        let answers = self.check_answer(&event);
        let token = answers.and_then(|()| self.expected_call(&event));
        let orphans = self.orphans_of(&event);
        // Also where code and history part: the event stands, and what it leaves open is to be closed.
        self.outline.observe(&event, &self.identity);
        let token = token?;
        if self.verifying == Verifying::Yes && admit::is_fatal(&event) {
            // The turn that recorded this ended without running the code again.
            self.output.get_or_insert(Err(String::new()));
        }
        let next = match token {
            Some(token) => self.bind(&event, token, &orphans),
            None => self.apply(event)?,
        };
        if next == Next::Poll {
            self.due = Some(due);
        }
        Ok(())
    }

    /// Applies an event that no call of the code stands for.
    pub(super) fn apply(&mut self, event: Event) -> Result<Next, Mismatch> {
        let source = event.source_event_id;
        match event.kind {
            EventKind::OrchestrationStarted { .. } => Ok(Next::Poll),
            EventKind::ActivityCompleted { result } | EventKind::SubOrchestrationCompleted { result } => {
                Ok(self.settle(source, Answer::Result(Ok(result))))
            }
            EventKind::ActivityFailed { details } | EventKind::SubOrchestrationFailed { details } => {
                Ok(self.settle(source, Answer::Result(Err(details.display_message()))))
            }
            EventKind::TimerFired { .. } => Ok(self.settle(source, Answer::Fired)),
            EventKind::ExternalEvent { name, data } => Ok(self.raise(&name, data)),
            EventKind::QueueEventDelivered { name, data } => Ok(self.enqueue(&name, data)),
            EventKind::SessionMigrated { session_id, epoch, from, to } => {
                Ok(self.migrate(SessionMigration { id: session_id, epoch, from, to }))
            }
            EventKind::ActivityCancelRequested { ref reason } => {
                self.check_dropped(DropGroup::Activities, &event, reason)
            }
            EventKind::SubOrchestrationCancelRequested { ref reason } => {
                self.check_dropped(DropGroup::Children, &event, reason)
            }
            EventKind::ExternalSubscribedCancelled { ref reason } => {
                self.check_dropped(DropGroup::Signals, &event, reason)
            }
            EventKind::QueueSubscriptionCancelled { ref reason } => {
                self.check_dropped(DropGroup::Queues, &event, reason)
            }
            EventKind::ActivityScheduled { .. }
            | EventKind::TimerCreated { .. }
            | EventKind::ExternalSubscribed { .. }
            | EventKind::QueueSubscribed { .. }
            | EventKind::SubOrchestrationScheduled { .. }
            | EventKind::OrchestrationChained { .. }
            | EventKind::CustomStatusUpdated { .. }
            | EventKind::KeyValueSet { .. }
            | EventKind::KeyValueCleared { .. }
            | EventKind::KeyValuesCleared
            | EventKind::SessionOpened { .. }
            | EventKind::SessionClosed { .. }
            | EventKind::SessionsCarried { .. }
            | EventKind::OrchestrationCancelRequested { .. }
            | EventKind::OrchestrationCompleted { .. }
            | EventKind::OrchestrationFailed { .. }
            | EventKind::OrchestrationContinuedAsNew { .. } => Ok(Next::Go),
        }
    }

    /// Ties the call of `token` to the event that records it. `orphans` are the activities of a session that
    /// this event closes.
    pub(super) fn bind(&mut self, event: &Event, token: Token, orphans: &BTreeSet<u64>) -> Next {
        let id = event.event_id;
        let mut ledger = self.shared.lock();
        let alive = ledger.record(token, id);
        match &event.kind {
            // A wait that was dropped before its event takes nothing: its cancellation ends the same turn, and
            // no raise can come between the two.
            EventKind::ExternalSubscribed { name } if alive => ledger.signals.open(name, id),
            EventKind::QueueSubscribed { name } => {
                let served = alive && ledger.queues.join(name, id);
                let waker = if served { ledger.waker_of_recorded(id) } else { None };
                drop(ledger);
                self.shared.deliver(waker);
                return Next::Poll;
            }
            EventKind::KeyValueSet { key, last_updated_at_ms, .. } => {
                ledger.kv.restore_time(key, *last_updated_at_ms);
            }
            EventKind::SessionOpened { session_id, .. } => {
                let waker = ledger.settle(id, Answer::Result(Ok(session_id.clone())));
                drop(ledger);
                self.shared.deliver(waker);
                return Next::Poll;
            }
            EventKind::SessionClosed { session_id } => {
                let mut wakers = vec![ledger.settle(id, Answer::Result(Ok(String::new())))];
                for orphan in orphans {
                    let error = activity::session_closed_error(session_id);
                    wakers.push(ledger.settle(*orphan, Answer::Result(Err(error))));
                }
                drop(ledger);
                self.shared.deliver(wakers.into_iter().flatten());
                return Next::Poll;
            }
            _ => {}
        }
        Next::Go
    }

    /// The open activities of the session that `event` closes.
    pub(super) fn orphans_of(&mut self, event: &Event) -> BTreeSet<u64> {
        match &event.kind {
            EventKind::SessionClosed { session_id } => self.outline.sessions.activities(session_id),
            _ => BTreeSet::new(),
        }
    }

    /// Finds the call that `event` records, for the kinds that record one.
    fn expected_call(&mut self, event: &Event) -> Result<Option<Token>, Mismatch> {
        let Some(label) = call_label(&event.kind) else { return Ok(None) };
        let mut ledger = self.shared.lock();
        if self.verifying == Verifying::Yes {
            // A call after continue-as-new is recorded, continue-as-new itself is not.
            while matches!(ledger.peek_call().map(|call| &call.action), Some(Action::ContinueAsNew { .. })) {
                let skipped = ledger.next_call();
                self.continued = self.continued.take().or(skipped.map(|call| call.action));
            }
        }
        if let EventKind::KeyValueCleared { key } = &event.kind {
            let run = ledger.calls().take_while(|call| matches!(call.action, Action::ClearKeyValue { .. }));
            let found = run
                .enumerate()
                .find(|(_, call)| kv::clear_matches(&call.action, key))
                .map(|(index, _)| index);
            if let Some(call) = found.and_then(|index| ledger.remove_call(index)) {
                return Ok(Some(call.token));
            }
        }
        match ledger.peek_call() {
            Some(call) if operation::matches(&call.action, event) => {
                Ok(ledger.next_call().map(|call| call.token))
            }
            Some(call) => Err(Mismatch::between(label, call, event)),
            None if is_exact(&event.duroxide_version) || is_schedule(label) => Err(no_call(label, event)),
            // Older engines accepted status and key-value events that no call stands for.
            None => Ok(None),
        }
    }

    /// An answer needs an open schedule of its kind, also after the code returned.
    fn check_answer(&self, event: &Event) -> Result<(), Mismatch> {
        let (Some(family), Some(source)) = (answered_family(&event.kind), event.source_event_id) else {
            return Ok(());
        };
        match self.outline.family_of(source) {
            Some(scheduled) if self.outline.is_open(source) => {
                if scheduled == family {
                    return Ok(());
                }
                let (family, scheduled) = (family.label(), scheduled.label());
                let text = format!("completion kind mismatch: expected {family}, found {scheduled}");
                Err(Mismatch::at(event, text))
            }
            _ => Err(Mismatch::at(event, format!("completion without open schedule: id={source}"))),
        }
    }

    fn settle(&mut self, source: Option<u64>, answer: Answer) -> Next {
        let Some(source) = source else { return Next::Go };
        let waker = self.shared.lock().settle(source, answer);
        self.shared.deliver(waker);
        Next::Poll
    }

    fn raise(&mut self, name: &str, data: String) -> Next {
        let mut ledger = self.shared.lock();
        let Some(wait) = ledger.signals.accept(name) else { return Next::Go };
        let waker = ledger.settle(wait, Answer::Data(data));
        drop(ledger);
        self.shared.deliver(waker);
        Next::Poll
    }

    fn enqueue(&mut self, name: &str, data: String) -> Next {
        let mut ledger = self.shared.lock();
        let taker = ledger.queues.arrive(name, data);
        let waker = taker.and_then(|taker| ledger.waker_of_recorded(taker));
        drop(ledger);
        self.shared.deliver(waker);
        Next::Poll
    }

    fn migrate(&mut self, migration: SessionMigration) -> Next {
        let mut ledger = self.shared.lock();
        let waiting = ledger.migrations.arrive(migration);
        let wakers: Vec<_> = waiting.into_iter().filter_map(|token| ledger.waker_of(token)).collect();
        drop(ledger);
        self.shared.deliver(wakers);
        Next::Poll
    }

    /// History says that the code dropped a future: it must have done so again.
    fn check_dropped(&mut self, group: DropGroup, event: &Event, reason: &str) -> Result<Next, Mismatch> {
        let Some(source) = event.source_event_id else { return Ok(Next::Go) };
        let mut ledger = self.shared.lock();
        let dropped = ledger.dropped(group);
        dropped.unreported.remove(&source);
        dropped.marked.insert(source);
        if reason != DROPPED_FUTURE {
            return Ok(Next::Go);
        }
        dropped.recorded.insert(source);
        if dropped.all.contains(&source) {
            return Ok(Next::Go);
        }
        let text = format!(
            "cancellation mismatch ({}): baseline_dropped_future_cancel_requests={} \
             ctx_cancelled_in_replayed_segment={}",
            group.label(),
            bounded(&dropped.recorded),
            bounded(&dropped.all),
        );
        Err(Mismatch::at(event, text))
    }

    /// Tells of a raise that nobody waits for, without consuming it.
    pub(super) fn early_event(&self, event: &Event) -> Option<Notice> {
        match &event.kind {
            EventKind::ExternalEvent { name, .. } if !self.shared.lock().signals.is_awaited(name) => {
                Some(Notice::EarlyEvent { name: name.clone() })
            }
            _ => None,
        }
    }
}

/// The reason that is recorded for a future which the code dropped.
pub(super) const DROPPED_FUTURE: &str = "dropped_future";

const SCHEDULE: &str = "schedule mismatch";

fn is_schedule(label: &str) -> bool {
    label == SCHEDULE
}

/// What a disagreement about this kind of event is called; None for events that record no call.
fn call_label(kind: &EventKind) -> Option<&'static str> {
    match kind {
        EventKind::ActivityScheduled { .. }
        | EventKind::TimerCreated { .. }
        | EventKind::ExternalSubscribed { .. }
        | EventKind::QueueSubscribed { .. }
        | EventKind::SubOrchestrationScheduled { .. }
        | EventKind::OrchestrationChained { .. }
        | EventKind::SessionOpened { .. }
        | EventKind::SessionClosed { .. } => Some(SCHEDULE),
        EventKind::CustomStatusUpdated { .. } => Some("custom status mismatch"),
        EventKind::KeyValueSet { .. } => Some("kv set mismatch"),
        EventKind::KeyValueCleared { .. } => Some("kv clear mismatch"),
        EventKind::KeyValuesCleared => Some("kv clear_all mismatch"),
        EventKind::OrchestrationStarted { .. }
        | EventKind::OrchestrationCompleted { .. }
        | EventKind::OrchestrationFailed { .. }
        | EventKind::OrchestrationContinuedAsNew { .. }
        | EventKind::OrchestrationCancelRequested { .. }
        | EventKind::ActivityCompleted { .. }
        | EventKind::ActivityFailed { .. }
        | EventKind::ActivityCancelRequested { .. }
        | EventKind::TimerFired { .. }
        | EventKind::ExternalEvent { .. }
        | EventKind::ExternalSubscribedCancelled { .. }
        | EventKind::QueueEventDelivered { .. }
        | EventKind::QueueSubscriptionCancelled { .. }
        | EventKind::SubOrchestrationCompleted { .. }
        | EventKind::SubOrchestrationFailed { .. }
        | EventKind::SubOrchestrationCancelRequested { .. }
        | EventKind::SessionMigrated { .. }
        | EventKind::SessionsCarried { .. } => None,
    }
}

fn answered_family(kind: &EventKind) -> Option<ScheduleFamily> {
    match kind {
        EventKind::ActivityCompleted { .. } | EventKind::ActivityFailed { .. } => {
            Some(ScheduleFamily::Activity)
        }
        EventKind::TimerFired { .. } => Some(ScheduleFamily::Timer),
        EventKind::SubOrchestrationCompleted { .. } | EventKind::SubOrchestrationFailed { .. } => {
            Some(ScheduleFamily::Child)
        }
        _ => None,
    }
}

fn no_call(label: &str, event: &Event) -> Mismatch {
    let text = match (&event.kind, label) {
        (EventKind::OrchestrationChained { .. }, _) => {
            "history OrchestrationChained but no emitted action".to_owned()
        }
        (_, SCHEDULE) => "history schedule but no emitted action".to_owned(),
        _ => format!("{label}: history {} but no emitted action", event.kind.name()),
    };
    Mismatch::at(event, text)
}
