//! Ends a turn: what was dropped, how the execution stands, and, when it is over, everything that closes.
//!
//! Whatever ends an execution (a result, an error, a panic, a cancellation, a mismatch, a limit, poison), the
//! same steps follow: open waits are marked, one terminal event is written, running activities, children and
//! sessions are closed, and the parent is told.

use std::collections::{BTreeMap, BTreeSet};

use super::decide::{Asked, Draft};
use super::play::DROPPED_FUTURE;
use super::{
    CarryForwardOverflow, Effects, Execution, Identity, Notice, ParentLink, ParentNotice, QueuedWork,
    SessionChange, Turn, Verdict, application_error,
};
use crate::limits::{MAX_CARRY_FORWARD_EVENTS, WARN_HISTORY_EVENTS};
use crate::operation::{activity, child, detached, timer};
use crate::replay::ledger::DropGroup;
use crate::replay::mismatch::Mismatch;
use crate::replay::outline::Outline;
use crate::{Action, AppErrorKind, ErrorDetails, Event, EventKind, ScheduledActivityIdentifier, WorkItem};

impl Execution {
    pub(super) fn conclude(&mut self, mut draft: Draft) -> Turn {
        draft.go_on_after(self.outline.last_event_id);
        let mut ending = self.ending(&mut draft);
        let mut dropped_children = BTreeSet::new();
        if matches!(ending, Ending::Waiting | Ending::Completed(_) | Ending::Failed(Cause::Returned, _)) {
            dropped_children = self.record_dropped(&mut draft);
        }
        if !matches!(ending, Ending::Cancelled(_) | Ending::Failed(Cause::Engine, _))
            && let Err(broken) = self.check_events(&draft.events)
        {
            ending = Ending::Failed(Cause::Engine, broken);
        }
        let watched = self.shared.lock().migrations.take_asked();
        // A subscription ends with its execution, so an ended one asks for none.
        if matches!(ending, Ending::Waiting) {
            let key = |id: String| self.outline.sessions.key(&self.identity.instance, &id);
            draft.sessions.extend(watched.into_iter().map(|id| SessionChange::Watch { key: key(id) }));
        }
        let successor = match &ending {
            Ending::ContinuedAsNew { input, version } => self.successor(input, version.clone(), &mut draft),
            _ => Vec::new(),
        };
        let stuck = !self.shared.lock().can_be_answered();
        if stuck && !draft.was_stuck && matches!(ending, Ending::Waiting) {
            draft.notices.push(Notice::Stuck);
        }
        draft.notices.extend(self.invalid_stamp.clone());
        let closing =
            Closing { identity: &self.identity, outline: &mut self.outline, draft, dropped_children };
        closing.finish(ending, stuck, successor)
    }

    /// How the execution stands, the strongest reason first.
    fn ending(&mut self, draft: &mut Draft) -> Ending {
        if let Some(details) = self.failure.clone() {
            return Ending::Failed(Cause::Engine, details);
        }
        if let Some(reason) = &self.outline.cancel_reason {
            return Ending::Cancelled(reason.clone());
        }
        if let Some((input, version)) = draft.continue_as_new.take() {
            return Ending::ContinuedAsNew { input, version };
        }
        match self.output.take() {
            None => Ending::Waiting,
            Some(Ok(output)) => match self.check_payload("orchestration output", &output) {
                Ok(()) => Ending::Completed(output),
                Err(details) => Ending::Failed(Cause::Returned, details),
            },
            Some(Err(error)) => match self.check_payload("orchestration error", &error) {
                Ok(()) => Ending::Failed(Cause::Returned, application_error(error)),
                Err(details) => Ending::Failed(Cause::Returned, details),
            },
        }
    }

    /// Records the futures that the code dropped. Returns the children among them.
    fn record_dropped(&mut self, draft: &mut Draft) -> BTreeSet<u64> {
        let mut children = BTreeSet::new();
        for group in DropGroup::ALL {
            let unreported = std::mem::take(&mut self.shared.lock().dropped(group).unreported);
            for id in unreported {
                let reason = DROPPED_FUTURE.to_owned();
                let kind = match group {
                    DropGroup::Activities => {
                        draft.cancelled.insert(id);
                        EventKind::ActivityCancelRequested { reason }
                    }
                    DropGroup::Children => {
                        children.insert(id);
                        EventKind::SubOrchestrationCancelRequested { reason }
                    }
                    DropGroup::Signals => EventKind::ExternalSubscribedCancelled { reason },
                    DropGroup::Queues => EventKind::QueueSubscriptionCancelled { reason },
                };
                let event = draft.event(&self.identity, Some(id), kind);
                self.outline.observe(&event, &self.identity);
                draft.events.push(event);
            }
        }
        children
    }

    /// The messages that start the next execution.
    fn successor(&self, input: &str, version: Option<String>, draft: &mut Draft) -> Vec<WorkItem> {
        let mut ledger = self.shared.lock();
        let mut carried = ledger.queues.unread();
        let beyond = carried.split_off(carried.len().min(MAX_CARRY_FORWARD_EVENTS));
        let instance = &self.identity.instance;
        let (parent_instance, parent_id, parent_execution_id) = match &self.outline.parent {
            Some(parent) => (Some(parent.instance.clone()), Some(parent.id), parent.execution_id),
            None => (None, None, None),
        };
        let (instance_id, orchestration, input) =
            (instance.clone(), self.identity.name.clone(), input.to_owned());
        let (carry_forward_events, initial_custom_status) = (carried, ledger.custom_status.clone());
        let sessions = self.outline.sessions.carry_out();
        let start = if sessions.is_empty() {
            WorkItem::ContinueAsNew {
                instance: instance_id,
                orchestration,
                input,
                version,
                parent_instance,
                parent_id,
                parent_execution_id,
                carry_forward_events,
                initial_custom_status,
            }
        } else {
            WorkItem::ContinueAsNewWithSessions {
                instance: instance_id,
                orchestration,
                input,
                version,
                parent_instance,
                parent_id,
                parent_execution_id,
                carry_forward_events,
                initial_custom_status,
                sessions,
            }
        };
        let mut messages = vec![start];
        for (name, data) in beyond {
            match self.options.carry_forward_overflow {
                CarryForwardOverflow::Drop => draft.notices.push(Notice::CarryForwardDropped { name, data }),
                CarryForwardOverflow::Keep => {
                    messages.push(WorkItem::QueueMessage { instance: instance.clone(), name, data });
                }
            }
        }
        messages
    }
}

/// Fails an execution without running its code: its attempts are used up, or its code is gone.
///
/// Everything that its history leaves open is closed and the parent is told, as at any other end. A history
/// that has ended already is left as it is.
///
/// # Errors
/// Where `history` is no history. It can still be failed by hand: nothing is known of what it leaves open.
pub fn fail_without_code(
    identity: &Identity,
    history: &[Event],
    now_ms: u64,
    details: ErrorDetails,
) -> Result<Turn, Mismatch> {
    let mut outline = Outline::of(history, identity)?;
    if history.is_empty() {
        return Err(Mismatch::corrupted(1, "empty"));
    }
    if outline.is_terminal() {
        return Ok(Turn::ended());
    }
    let draft = Draft::new(now_ms, outline.next_event_id());
    let closing = Closing { identity, outline: &mut outline, draft, dropped_children: BTreeSet::new() };
    Ok(closing.finish(Ending::Failed(Cause::Engine, details), false, Vec::new()))
}

enum Ending {
    Waiting,
    Completed(String),
    Failed(Cause, ErrorDetails),
    Cancelled(String),
    ContinuedAsNew { input: String, version: Option<String> },
}

/// Did the code return the failure, or was it stopped?
#[derive(PartialEq, Eq)]
enum Cause {
    Returned,
    Engine,
}

/// The last step of a turn, which needs history but no code.
struct Closing<'a> {
    identity: &'a Identity,
    outline: &'a mut Outline,
    draft: Draft,
    dropped_children: BTreeSet<u64>,
}

impl Closing<'_> {
    fn finish(mut self, ending: Ending, stuck: bool, successor: Vec<WorkItem>) -> Turn {
        let before = self.outline.events.saturating_sub(self.draft.events.len());
        let (verdict, mut effects) = match ending {
            Ending::Waiting => (Verdict::Waiting { stuck }, self.go_on()),
            Ending::ContinuedAsNew { input, version } => {
                let event = EventKind::OrchestrationContinuedAsNew { input: input.clone() };
                let mut effects = self.end(event, "orchestration_terminal_continued_as_new");
                effects.messages.extend(successor);
                (Verdict::ContinuedAsNew { input, version }, effects)
            }
            Ending::Completed(output) => {
                let event = EventKind::OrchestrationCompleted { output: output.clone() };
                let mut effects = self.end(event, "orchestration_terminal_completed");
                self.close_family(&mut effects, "parent completed", Ok(output.clone()));
                (Verdict::Completed { output }, effects)
            }
            Ending::Failed(_, details) => self.fail(details, "parent failed"),
            Ending::Cancelled(reason) => {
                let kind = AppErrorKind::Cancelled { reason };
                let details = ErrorDetails::Application { kind, message: String::new(), retryable: false };
                self.fail(details, "parent canceled")
            }
        };
        if before < WARN_HISTORY_EVENTS && self.outline.events >= WARN_HISTORY_EVENTS {
            self.draft.notices.push(Notice::LongHistory { events: self.outline.events });
        }
        effects.cancelled_activities = self.cancelled_activities();
        effects.sessions = std::mem::take(&mut self.draft.sessions);
        let Draft { events, notices, answered, .. } = self.draft;
        Turn { events, effects, verdict, notices, answered }
    }

    /// Sends everything that the turn asked for.
    fn go_on(&mut self) -> Effects {
        let mut effects = Effects::default();
        let recorded_children = self.recorded_children();
        for asked in std::mem::take(&mut self.draft.asked) {
            self.send(asked, &recorded_children, &mut effects);
        }
        let cancels = self.cancel_dropped_children(u64::MAX);
        effects.messages.extend(cancels);
        effects
    }

    /// Writes the end of the execution. Of what the turn asked for only detached starts are sent.
    fn end(&mut self, terminal: EventKind, reason: &str) -> Effects {
        for wait in self.outline.unanswered_signals() {
            let reason = "orchestration_terminal".to_owned();
            self.push(Some(wait), EventKind::ExternalSubscribedCancelled { reason });
        }
        for wait in self.outline.unanswered_queues() {
            let reason = "orchestration_terminal".to_owned();
            self.push(Some(wait), EventKind::QueueSubscriptionCancelled { reason });
        }
        self.push(None, terminal);
        for running in self.outline.running_activities() {
            self.push(Some(running), EventKind::ActivityCancelRequested { reason: reason.to_owned() });
            self.draft.cancelled.insert(running);
        }
        let asked = std::mem::take(&mut self.draft.asked);
        let messages = asked.into_iter().filter_map(|asked| detached::start(asked.action)).collect();
        Effects { messages, ..Effects::default() }
    }

    fn fail(&mut self, details: ErrorDetails, to_children: &str) -> (Verdict, Effects) {
        let event = EventKind::OrchestrationFailed { details: details.clone() };
        let mut effects = self.end(event, "orchestration_terminal_failed");
        self.close_family(&mut effects, to_children, Err(details.clone()));
        (Verdict::Failed { details }, effects)
    }

    /// Stops the children, closes the sessions and tells the parent. A child that this turn scheduled was
    /// never started, so it gets no cancellation either.
    fn close_family(
        &mut self,
        effects: &mut Effects,
        to_children: &str,
        outcome: Result<String, ErrorDetails>,
    ) {
        let started = self.draft.first_event_id;
        effects.messages.extend(self.cancel_dropped_children(started));
        for (id, instance) in self.outline.running_children() {
            if id < started {
                effects.messages.push(WorkItem::CancelInstance { instance, reason: to_children.to_owned() });
            }
        }
        let open: Vec<String> = self.outline.sessions.ids().cloned().collect();
        self.draft.sessions.extend(open.into_iter().map(|session_id| SessionChange::Close { session_id }));
        let notice = |parent: &ParentLink| ParentNotice { parent: parent.clone(), outcome };
        effects.parent = self.outline.parent.as_ref().map(notice);
    }

    fn cancel_dropped_children(&self, scheduled_before: u64) -> Vec<WorkItem> {
        let cancel = |id: &u64| {
            let instance = self.outline.child_instance(*id)?.to_owned();
            Some(WorkItem::CancelInstance {
                instance,
                reason: "parent dropped sub-orchestration future".to_owned(),
            })
        };
        self.dropped_children.range(..scheduled_before).filter_map(cancel).collect()
    }

    fn send(&self, asked: Asked, recorded_children: &BTreeMap<u64, String>, effects: &mut Effects) {
        let Identity { instance, execution_id, .. } = self.identity;
        let Asked { action, session } = asked;
        match action {
            Action::CallActivity { .. } => {
                let item = activity::work(action, instance, *execution_id);
                effects.work.extend(item.map(|item| QueuedWork { item, session }));
            }
            Action::CreateTimer { scheduling_event_id, fire_at_ms } => {
                effects.messages.push(timer::message(
                    scheduling_event_id,
                    fire_at_ms,
                    instance,
                    *execution_id,
                ));
            }
            Action::StartSubOrchestration { scheduling_event_id, .. } => {
                let recorded = recorded_children.get(&scheduling_event_id);
                let start = recorded.and_then(|id| child::start(action, id, instance, *execution_id));
                effects.messages.extend(start);
            }
            Action::StartOrchestrationDetached { .. } => effects.messages.extend(detached::start(action)),
            Action::WaitExternal { .. }
            | Action::DequeueEvent { .. }
            | Action::ContinueAsNew { .. }
            | Action::UpdateCustomStatus { .. }
            | Action::SetKeyValue { .. }
            | Action::ClearKeyValue { .. }
            | Action::ClearKeyValues
            | Action::OpenSession { .. }
            | Action::CloseSession { .. } => {}
        }
    }

    /// The ids of the children that this turn scheduled, as history records them.
    fn recorded_children(&self) -> BTreeMap<u64, String> {
        let recorded = |event: &Event| match &event.kind {
            EventKind::SubOrchestrationScheduled { instance, .. } => Some((event.event_id, instance.clone())),
            _ => None,
        };
        self.draft.events.iter().filter_map(recorded).collect()
    }

    fn cancelled_activities(&mut self) -> Vec<ScheduledActivityIdentifier> {
        let identify = |activity_id| ScheduledActivityIdentifier {
            instance: self.identity.instance.clone(),
            execution_id: self.identity.execution_id,
            activity_id,
        };
        std::mem::take(&mut self.draft.cancelled).into_iter().map(identify).collect()
    }

    fn push(&mut self, source: Option<u64>, kind: EventKind) {
        let event = self.draft.event(self.identity, source, kind);
        self.outline.observe(&event, self.identity);
        self.draft.events.push(event);
    }
}
