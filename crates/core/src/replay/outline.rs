//! The engine's side of an execution, made from its events alone: which operations were scheduled, which of
//! them are still open, and whether the execution has ended.
//!
//! Payloads are not kept. The outline decides which messages change something, and the end of an execution
//! closes the operations that the outline lists as open. It needs no user code, so an execution whose code is
//! missing can be failed by its outline alone.

use std::collections::BTreeMap;

use super::ledger::BYTES_PER_ENTRY;
use super::mismatch::Mismatch;
use super::{Identity, ParentLink};
use crate::operation::child::OpenChildren;
use crate::operation::queue::Queues;
use crate::operation::session::Sessions;
use crate::operation::signal::Signals;
use crate::operation::{CancelledAt, Kind, Role};
use crate::{Event, EventKind};

#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) last_event_id: u64,
    pub(crate) parent: Option<ParentLink>,
    pub(crate) cancel_reason: Option<String>,
    pub(crate) children: OpenChildren,
    pub(crate) queues: Queues,
    pub(crate) sessions: Sessions,
    pub(crate) signals: Signals,
    /// The open timers by the ids of their events, with the times at which they fire.
    pub(crate) timers: BTreeMap<u64, u64>,
    /// How many events the history has.
    pub(crate) events: usize,
    /// The name of the event that ended the execution.
    ended_by: Option<&'static str>,
    /// Every schedule that a message can answer, by rising id, answered ones included.
    schedules: Vec<(u64, Kind)>,
    open: BTreeMap<u64, OpenSchedule>,
}

/// A schedule that history did not answer yet.
#[derive(Debug)]
pub(crate) struct OpenSchedule {
    kind: Kind,
    /// Was the operation asked to stop? It may still answer.
    pub(crate) cancel_requested: bool,
}

impl Outline {
    /// Plays a whole history, without running any code.
    ///
    /// # Errors
    /// The first event that makes the history invalid; see [`check`](Self::check).
    pub(crate) fn of(history: &[Event], identity: &Identity) -> Result<Self, Mismatch> {
        let mut outline = Self::default();
        for event in history {
            outline.check(event)?;
            outline.play(event, identity);
        }
        Ok(outline)
    }

    /// Estimates the memory that the outline holds.
    pub(crate) fn estimated_bytes(&self) -> usize {
        let named = self.open.len() + self.timers.len() + self.signals.len() + self.queues.takers();
        self.schedules.capacity() * size_of::<(u64, Kind)>()
            + named * BYTES_PER_ENTRY
            + self.queues.estimated_bytes()
    }

    /// Checks that `event` may follow the events played so far: ids rise, exactly the first event starts the
    /// execution, and only cancellations follow its end.
    pub(crate) fn check(&self, event: &Event) -> Result<(), Mismatch> {
        let starts = matches!(event.kind, EventKind::OrchestrationStarted { .. });
        if self.events == 0 && !starts {
            let what = format!("first event must be OrchestrationStarted, found {}", event.kind.name());
            return Err(Mismatch::corrupted(event.event_id, what));
        }
        if self.events > 0 && starts {
            return Err(Mismatch::corrupted(event.event_id, "a second OrchestrationStarted"));
        }
        if event.event_id <= self.last_event_id {
            let what = format!("event ids must rise, found {} after {}", event.event_id, self.last_event_id);
            return Err(Mismatch::corrupted(event.event_id, what));
        }
        if event.event_id == u64::MAX {
            return Err(Mismatch::corrupted(event.event_id, "no event id is left after this one"));
        }
        match self.ended_by {
            Some(end) if !may_follow_end(event, end) => {
                let what = format!("{} after {end}", event.kind.name());
                Err(Mismatch::corrupted(event.event_id, what))
            }
            _ => Ok(()),
        }
    }

    /// Plays one event, recorded or new.
    pub(crate) fn play(&mut self, event: &Event, identity: &Identity) {
        self.last_event_id = self.last_event_id.max(event.event_id);
        self.events += 1;
        match event.kind.role() {
            Role::Begins => self.begin(&event.kind),
            Role::Records(kind) => kind.rules().open(event, identity, self),
            Role::Answers(kind) => kind.rules().close(event, self),
            Role::Cancels(kind) => kind.rules().cancel(event, self),
            Role::Carries => self.carry(&event.kind),
            Role::Ends => self.ended_by = Some(event.kind.name()),
        }
    }

    pub(crate) fn next_event_id(&self) -> u64 {
        self.last_event_id.saturating_add(1)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended_by.is_some()
    }

    /// Opens a schedule that a message may answer.
    pub(crate) fn schedule(&mut self, id: u64, kind: Kind) {
        self.schedules.push((id, kind));
        self.open.insert(id, OpenSchedule { kind, cancel_requested: false });
    }

    /// Closes a schedule, if it is open.
    pub(crate) fn close(&mut self, id: Option<u64>) {
        let Some(id) = id else { return };
        if let Some(schedule) = self.open.remove(&id) {
            schedule.kind.rules().closed(id, self);
        }
    }

    pub(crate) fn request_cancel(&mut self, id: Option<u64>) {
        if let Some(schedule) = id.and_then(|id| self.open.get_mut(&id)) {
            schedule.cancel_requested = true;
        }
    }

    /// The kind of a schedule, open or answered.
    pub(crate) fn kind_of(&self, schedule: u64) -> Option<Kind> {
        let found = self.schedules.binary_search_by_key(&schedule, |(id, _)| *id).ok()?;
        self.schedules.get(found).map(|(_, kind)| *kind)
    }

    pub(crate) fn is_open(&self, schedule: u64) -> bool {
        self.open.contains_key(&schedule)
    }

    pub(crate) fn open_schedule(&self, id: u64, kind: Kind) -> Option<&OpenSchedule> {
        self.open.get(&id).filter(|schedule| schedule.kind == kind)
    }

    pub(crate) fn is_cancel_requested(&self, schedule: u64) -> bool {
        self.open.get(&schedule).is_some_and(|schedule| schedule.cancel_requested)
    }

    /// The open schedules of a kind that were not asked to stop, by rising id.
    pub(crate) fn running(&self, kind: Kind) -> Vec<u64> {
        let running = |(_, open): &(&u64, &OpenSchedule)| open.kind == kind && !open.cancel_requested;
        self.open.iter().filter(running).map(|(id, _)| *id).collect()
    }

    fn begin(&mut self, kind: &EventKind) {
        let EventKind::OrchestrationStarted { parent_instance, parent_id, parent_execution_id, .. } = kind
        else {
            return;
        };
        self.parent = ParentLink::of(parent_instance.as_deref(), *parent_id, *parent_execution_id);
    }

    fn carry(&mut self, kind: &EventKind) {
        if let EventKind::SessionsCarried { sessions } = kind {
            self.sessions.carry_in(sessions);
        } else if let EventKind::OrchestrationCancelRequested { reason } = kind {
            self.cancel_reason.get_or_insert_with(|| reason.clone());
        }
    }
}

/// Does the event cancel an operation that was open when the execution ended? Such events are recorded after
/// the end.
pub(super) fn is_closing(event: &Event) -> bool {
    match event.kind.role() {
        Role::Cancels(kind) => kind.rules().cancelled_at() == CancelledAt::AfterEnd,
        Role::Begins | Role::Records(_) | Role::Answers(_) | Role::Carries | Role::Ends => false,
    }
}

/// May the event follow the event named `end`, which ended the execution? A failure right after a
/// continue-as-new is how older engines recorded that the successor could not start.
fn may_follow_end(event: &Event, end: &str) -> bool {
    let is_failure = matches!(event.kind, EventKind::OrchestrationFailed { .. });
    is_closing(event) || (is_failure && end == "OrchestrationContinuedAsNew")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(kinds: Vec<(Option<u64>, EventKind)>) -> Outline {
        let identity = Identity {
            instance: "order-1".into(),
            execution_id: 1,
            name: "Order".into(),
            version: "1.0.0".into(),
        };
        let mut outline = Outline::default();
        for (id, (source, kind)) in (1..).zip(kinds) {
            outline.play(&Event::at(0, id, "order-1", 1, source, kind), &identity);
        }
        outline
    }

    fn queue() -> (Option<u64>, EventKind) {
        (None, EventKind::QueueSubscribed { name: "q".into() })
    }

    fn message() -> (Option<u64>, EventKind) {
        (None, EventKind::QueueEventDelivered { name: "q".into(), data: "payload".into() })
    }

    fn activity() -> (Option<u64>, EventKind) {
        let (name, input) = ("a".into(), String::new());
        (None, EventKind::ActivityScheduled { name, input, session_id: None, tag: None })
    }

    #[test]
    fn dequeues_beyond_the_messages_are_unanswered_whatever_the_code_has_read() {
        let mut played = outline(vec![queue(), queue(), message()]);
        assert_eq!(played.queues.unanswered(), [2]);
        // The code dropped the first one and read through the second; history does not say so yet.
        played.queues.consume(2);
        assert_eq!(played.queues.unanswered(), [2]);
        played.queues.consume(1);
        assert_eq!(played.queues.unanswered(), [2]);
    }

    #[test]
    fn a_cancelled_dequeue_passes_its_message_on() {
        let cancelled = (Some(1), EventKind::QueueSubscriptionCancelled { reason: "dropped_future".into() });
        let played = outline(vec![queue(), queue(), queue(), message(), cancelled]);
        assert_eq!(played.queues.unanswered(), [3]);
    }

    #[test]
    fn raises_answer_the_oldest_wait_of_their_name() {
        let wait = || (None, EventKind::ExternalSubscribed { name: "go".into() });
        let raised = (None, EventKind::ExternalEvent { name: "go".into(), data: String::new() });
        assert_eq!(outline(vec![wait(), wait(), raised]).signals.unanswered(), [2]);
    }

    #[test]
    fn an_activity_runs_until_it_is_answered_or_asked_to_stop() {
        let stop = (Some(2), EventKind::ActivityCancelRequested { reason: "dropped_future".into() });
        let done = (Some(3), EventKind::ActivityCompleted { result: String::new() });
        let played = outline(vec![activity(), activity(), activity(), stop, done]);
        assert_eq!(played.running(Kind::Activity), [1]);
        assert!(played.is_open(2), "one that was asked to stop may still answer");
        assert!(!played.is_open(3));
        assert_eq!(played.kind_of(3), Some(Kind::Activity));
    }
}
