//! The fold of a recorded history: what was scheduled, what is still open, how it stands.
//!
//! Payloads are not kept. The outline is what arriving messages are judged by, what a terminal state closes,
//! and, since it needs no user code, also what an execution is failed by when its code is missing or its
//! attempts are used up.

use std::collections::BTreeMap;

use crate::operation::queue::Queues;
use crate::operation::session::Sessions;
use crate::operation::signal::Signals;
use crate::replay::ledger::BYTES_PER_ENTRY;
use crate::replay::mismatch::Mismatch;
use crate::replay::{AnsweredChild, Identity, ParentLink};
use crate::{Event, EventKind, build_child_instance_id};

/// The kinds of schedule that a message may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScheduleFamily {
    Activity,
    Timer,
    Child,
}

impl ScheduleFamily {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Activity => "activity",
            Self::Timer => "timer",
            Self::Child => "suborchestration",
        }
    }
}

/// An operation that history scheduled and did not yet answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Open {
    Activity { owned_session: Option<String>, cancel_requested: bool },
    Timer,
    Child { name: String, instance: String, since_ms: u64, cancel_requested: bool },
}

#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) last_event_id: u64,
    pub(crate) parent: Option<ParentLink>,
    pub(crate) cancel_reason: Option<String>,
    pub(crate) sessions: Sessions,
    /// How many events the history has.
    pub(crate) events: usize,
    terminal: Option<&'static str>,
    /// Every schedule that can be answered, by rising id: the memory of the ones that were.
    schedules: Vec<(u64, ScheduleFamily)>,
    open: BTreeMap<u64, Open>,
    signals: Signals,
    signal_names: BTreeMap<u64, String>,
    queues: Queues,
    queue_names: BTreeMap<u64, String>,
}

impl Outline {
    /// Folds a whole history, without running any code.
    ///
    /// # Errors
    /// The first event at which the list is no history.
    pub(crate) fn of(history: &[Event], identity: &Identity) -> Result<Self, Mismatch> {
        let mut outline = Self::default();
        for event in history {
            outline.check(event)?;
            outline.observe(event, identity);
        }
        Ok(outline)
    }

    /// Estimates the memory that the outline holds.
    pub(crate) fn estimated_bytes(&self) -> usize {
        let named = self.open.len() + self.signal_names.len() + self.queue_names.len();
        self.schedules.capacity() * size_of::<(u64, ScheduleFamily)>()
            + named * BYTES_PER_ENTRY
            + self.queues.estimated_bytes()
    }

    /// Can `event` stand after the events seen so far?
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
        match self.terminal {
            Some(terminal) if decides_after_terminal(event, terminal) => {
                let what = format!("{} after {terminal}", event.kind.name());
                Err(Mismatch::corrupted(event.event_id, what))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn observe(&mut self, event: &Event, identity: &Identity) {
        self.last_event_id = self.last_event_id.max(event.event_id);
        self.events += 1;
        let id = event.event_id;
        match &event.kind {
            EventKind::OrchestrationStarted { parent_instance, parent_id, parent_execution_id, .. } => {
                self.parent = ParentLink::of(parent_instance.as_deref(), *parent_id, *parent_execution_id);
            }
            EventKind::SessionsCarried { sessions } => self.sessions.carry_in(sessions),
            EventKind::ActivityScheduled { session_id, tag, .. } => {
                self.schedule_activity(id, session_id.as_deref(), tag.as_deref());
            }
            EventKind::TimerCreated { .. } => self.schedule(id, ScheduleFamily::Timer, Open::Timer),
            EventKind::SubOrchestrationScheduled { name, instance, .. } => {
                let (name, since_ms) = (name.clone(), event.timestamp_ms);
                let instance = build_child_instance_id(&identity.instance, instance);
                let open = Open::Child { name, instance, since_ms, cancel_requested: false };
                self.schedule(id, ScheduleFamily::Child, open);
            }
            EventKind::ActivityCompleted { .. }
            | EventKind::ActivityFailed { .. }
            | EventKind::TimerFired { .. }
            | EventKind::SubOrchestrationCompleted { .. }
            | EventKind::SubOrchestrationFailed { .. } => self.answer(event.source_event_id),
            EventKind::ActivityCancelRequested { .. } | EventKind::SubOrchestrationCancelRequested { .. } => {
                self.request_cancel(event.source_event_id);
            }
            EventKind::ExternalSubscribed { name } => {
                self.signals.open(name, id);
                self.signal_names.insert(id, name.clone());
            }
            EventKind::ExternalEvent { name, .. } => {
                if let Some(wait) = self.signals.accept(name) {
                    self.signal_names.remove(&wait);
                }
            }
            EventKind::ExternalSubscribedCancelled { .. } => {
                if let Some((wait, name)) =
                    event.source_event_id.and_then(|id| self.signal_names.remove_entry(&id))
                {
                    self.signals.cancel(&name, wait);
                }
            }
            EventKind::QueueSubscribed { name } => {
                self.queues.join(name, id);
                self.queue_names.insert(id, name.clone());
            }
            EventKind::QueueEventDelivered { name, .. } => {
                self.queues.arrive(name, String::new());
            }
            EventKind::QueueSubscriptionCancelled { .. } => {
                if let Some((taker, name)) =
                    event.source_event_id.and_then(|id| self.queue_names.remove_entry(&id))
                {
                    self.queues.cancel(&name, taker);
                }
            }
            EventKind::SessionOpened { session_id, idle_timeout_ms, concurrency } => {
                self.sessions.open(session_id, *idle_timeout_ms, *concurrency);
            }
            EventKind::SessionClosed { session_id } => self.close_session(session_id),
            EventKind::OrchestrationCancelRequested { reason } => {
                self.cancel_reason.get_or_insert_with(|| reason.clone());
            }
            EventKind::OrchestrationCompleted { .. }
            | EventKind::OrchestrationFailed { .. }
            | EventKind::OrchestrationContinuedAsNew { .. } => self.terminal = Some(event.kind.name()),
            EventKind::OrchestrationChained { .. }
            | EventKind::CustomStatusUpdated { .. }
            | EventKind::KeyValueSet { .. }
            | EventKind::KeyValueCleared { .. }
            | EventKind::KeyValuesCleared
            | EventKind::SessionMigrated { .. } => {}
        }
    }

    pub(crate) fn next_event_id(&self) -> u64 {
        self.last_event_id.saturating_add(1)
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal.is_some()
    }

    pub(crate) fn family_of(&self, schedule: u64) -> Option<ScheduleFamily> {
        let found = self.schedules.binary_search_by_key(&schedule, |(id, _)| *id).ok()?;
        self.schedules.get(found).map(|(_, family)| *family)
    }

    pub(crate) fn is_open(&self, schedule: u64) -> bool {
        self.open.contains_key(&schedule)
    }

    pub(crate) fn open_at(&self, schedule: u64) -> Option<&Open> {
        self.open.get(&schedule)
    }

    /// Was the open activity or child asked to stop?
    pub(crate) fn is_cancel_requested(&self, schedule: u64) -> bool {
        matches!(
            self.open.get(&schedule),
            Some(Open::Activity { cancel_requested: true, .. } | Open::Child { cancel_requested: true, .. })
        )
    }

    /// Activities that nobody has answered or asked to stop, by rising id.
    pub(crate) fn running_activities(&self) -> Vec<u64> {
        let running = |(id, open): (&u64, &Open)| match open {
            Open::Activity { cancel_requested: false, .. } => Some(*id),
            _ => None,
        };
        self.open.iter().filter_map(running).collect()
    }

    /// Children that nobody has answered or asked to stop, by rising id, with their instances.
    pub(crate) fn running_children(&self) -> Vec<(u64, String)> {
        let running = |(id, open): (&u64, &Open)| match open {
            Open::Child { instance, cancel_requested: false, .. } => Some((*id, instance.clone())),
            _ => None,
        };
        self.open.iter().filter_map(running).collect()
    }

    pub(crate) fn child_instance(&self, schedule: u64) -> Option<&str> {
        match self.open.get(&schedule) {
            Some(Open::Child { instance, .. }) => Some(instance),
            _ => None,
        }
    }

    /// The open child that `event` answers, if it answers one.
    pub(crate) fn child_answered_by(&self, event: &Event) -> Option<AnsweredChild> {
        let succeeded = match event.kind {
            EventKind::SubOrchestrationCompleted { .. } => true,
            EventKind::SubOrchestrationFailed { .. } => false,
            _ => return None,
        };
        match self.open.get(&event.source_event_id?) {
            Some(Open::Child { name, since_ms, .. }) => {
                let took_ms = event.timestamp_ms.saturating_sub(*since_ms);
                Some(AnsweredChild { name: name.clone(), took_ms, succeeded })
            }
            _ => None,
        }
    }

    /// The code has read the message that the dequeue `taker` waited for.
    pub(crate) fn consume(&mut self, taker: u64) {
        if let Some(name) = self.queue_names.get(&taker)
            && self.queues.consume(name, taker)
        {
            self.queue_names.remove(&taker);
        }
    }

    pub(crate) fn unanswered_signals(&self) -> Vec<u64> {
        self.signals.unanswered()
    }

    pub(crate) fn unanswered_queues(&self) -> Vec<u64> {
        self.queues.unanswered()
    }

    fn schedule(&mut self, id: u64, family: ScheduleFamily, open: Open) {
        self.schedules.push((id, family));
        self.open.insert(id, open);
    }

    fn schedule_activity(&mut self, id: u64, session_id: Option<&str>, tag: Option<&str>) {
        let owned = session_id.filter(|session| self.sessions.is_open(session));
        if let Some(session) = owned {
            self.sessions.begin_activity(session, tag, id);
        }
        let open = Open::Activity { owned_session: owned.map(str::to_owned), cancel_requested: false };
        self.schedule(id, ScheduleFamily::Activity, open);
    }

    fn answer(&mut self, source: Option<u64>) {
        let Some(id) = source else { return };
        if let Some(Open::Activity { owned_session: Some(session), .. }) = self.open.remove(&id) {
            self.sessions.end_activity(&session, id);
        }
    }

    fn request_cancel(&mut self, source: Option<u64>) {
        match source.and_then(|id| self.open.get_mut(&id)) {
            Some(Open::Activity { cancel_requested, .. } | Open::Child { cancel_requested, .. }) => {
                *cancel_requested = true;
            }
            Some(Open::Timer) | None => {}
        }
    }

    fn close_session(&mut self, session_id: &str) {
        for activity in self.sessions.close(session_id) {
            self.open.remove(&activity);
        }
    }
}

/// After the terminal event only requests to stop what was open may follow. A failure right after a
/// continue-as-new is how older engines recorded that the successor could not start.
fn decides_after_terminal(event: &Event, terminal: &str) -> bool {
    match event.kind {
        EventKind::ActivityCancelRequested { .. } => false,
        EventKind::OrchestrationFailed { .. } => terminal != "OrchestrationContinuedAsNew",
        _ => true,
    }
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
            outline.observe(&Event::at(0, id, "order-1", 1, source, kind), &identity);
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
        let mut folded = outline(vec![queue(), queue(), message()]);
        assert_eq!(folded.unanswered_queues(), [2]);
        // The code dropped the first one and read through the second; history does not say so yet.
        folded.consume(2);
        assert_eq!(folded.unanswered_queues(), [2]);
        folded.consume(1);
        assert_eq!(folded.unanswered_queues(), [2]);
    }

    #[test]
    fn a_cancelled_dequeue_passes_its_message_on() {
        let cancelled = (Some(1), EventKind::QueueSubscriptionCancelled { reason: "dropped_future".into() });
        let folded = outline(vec![queue(), queue(), queue(), message(), cancelled]);
        assert_eq!(folded.unanswered_queues(), [3]);
    }

    #[test]
    fn raises_answer_the_oldest_wait_of_their_name() {
        let wait = || (None, EventKind::ExternalSubscribed { name: "go".into() });
        let raised = (None, EventKind::ExternalEvent { name: "go".into(), data: String::new() });
        assert_eq!(outline(vec![wait(), wait(), raised]).unanswered_signals(), [2]);
    }

    #[test]
    fn an_activity_runs_until_it_is_answered_or_asked_to_stop() {
        let stop = (Some(2), EventKind::ActivityCancelRequested { reason: "dropped_future".into() });
        let done = (Some(3), EventKind::ActivityCompleted { result: String::new() });
        let folded = outline(vec![activity(), activity(), activity(), stop, done]);
        assert_eq!(folded.running_activities(), [1]);
        assert!(folded.is_open(2), "one that was asked to stop may still answer");
        assert!(!folded.is_open(3));
        assert_eq!(folded.family_of(3), Some(ScheduleFamily::Activity));
    }

    #[test]
    fn children_are_known_by_their_full_ids() {
        let made = EventKind::SubOrchestrationScheduled {
            name: "c".into(),
            instance: "sub::1".into(),
            input: String::new(),
        };
        assert_eq!(outline(vec![(None, made)]).running_children(), [(1, "order-1::sub::1".to_owned())]);
    }
}
