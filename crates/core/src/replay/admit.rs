//! Turns what arrived into events, and drops what changes nothing.

use super::decide::Draft;
use super::execution::Phase;
use super::{Execution, Notice};
use crate::replay::mismatch::nondeterminism;
use crate::replay::outline::ScheduleFamily;
use crate::{ErrorDetails, Event, EventKind, WorkItem, kind_of};

impl Execution {
    /// Records the start of a new execution. Returns the messages that its predecessor left unread.
    pub(super) fn begin(&mut self, draft: &mut Draft) -> Vec<WorkItem> {
        let Phase::Fresh(start) = std::mem::replace(&mut self.phase, Phase::Live) else { return Vec::new() };
        let carry_forward = start.carry_forward;
        let (parent_instance, parent_id, parent_execution_id) = match start.parent {
            Some(parent) => (Some(parent.instance), Some(parent.id), parent.execution_id),
            None => (None, None, None),
        };
        let started = EventKind::OrchestrationStarted {
            name: self.identity.name.clone(),
            version: self.identity.version.clone(),
            input: start.input,
            parent_instance,
            parent_id,
            parent_execution_id,
            carry_forward_events: (!carry_forward.is_empty()).then(|| carry_forward.clone()),
            initial_custom_status: start.custom_status,
        };
        let mut started = draft.event(&self.identity, None, started);
        started.traceparent = start.traceparent;
        self.record(started, draft);
        if !start.sessions.is_empty() {
            self.arrive(None, EventKind::SessionsCarried { sessions: start.sessions }, draft);
        }
        let instance = &self.identity.instance;
        let message = |(name, data)| WorkItem::QueueMessage { instance: instance.clone(), name, data };
        carry_forward.into_iter().map(message).collect()
    }

    /// Records each message that counts. Returns the failure that ends the execution before its code runs.
    pub(super) fn admit(
        &mut self,
        messages: impl Iterator<Item = WorkItem>,
        draft: &mut Draft,
    ) -> Option<ErrorDetails> {
        let mut aborted = None;
        for message in messages {
            let kind = kind_of(&message);
            match self.judge(message) {
                Judgement::Record { source, event, fatal } => {
                    self.arrive(source, event, draft);
                    aborted = aborted.or(fatal);
                }
                Judgement::Ignore(why) => draft.notices.push(Notice::Ignored { message: kind, why }),
                Judgement::Abort(text) => aborted = aborted.or_else(|| Some(nondeterminism(text))),
            }
        }
        aborted
    }

    fn arrive(&mut self, source: Option<u64>, kind: EventKind, draft: &mut Draft) {
        let event = draft.event(&self.identity, source, kind);
        self.record(event, draft);
    }

    fn record(&mut self, event: Event, draft: &mut Draft) {
        draft.answered.extend(self.outline.child_answered_by(&event));
        self.outline.observe(&event, &self.identity);
        draft.events.push(event);
        draft.arrived = draft.events.len();
    }

    fn judge(&self, message: WorkItem) -> Judgement {
        use ScheduleFamily::{Activity, Child, Timer};
        match message {
            WorkItem::ActivityCompleted { execution_id, id, result, .. } => {
                self.answer(execution_id, id, Activity, EventKind::ActivityCompleted { result })
            }
            WorkItem::ActivityFailed { execution_id, id, details, .. } => {
                self.answer(execution_id, id, Activity, EventKind::ActivityFailed { details })
            }
            WorkItem::TimerFired { execution_id, id, fire_at_ms, .. } => {
                self.answer(execution_id, id, Timer, EventKind::TimerFired { fire_at_ms })
            }
            WorkItem::SubOrchCompleted { parent_execution_id, parent_id, result, .. } => self.answer(
                parent_execution_id,
                parent_id,
                Child,
                EventKind::SubOrchestrationCompleted { result },
            ),
            WorkItem::SubOrchFailed { parent_execution_id, parent_id, details, .. } => self.answer(
                parent_execution_id,
                parent_id,
                Child,
                EventKind::SubOrchestrationFailed { details },
            ),
            WorkItem::ExternalRaised { name, data, .. } => {
                Judgement::record(EventKind::ExternalEvent { name, data })
            }
            WorkItem::QueueMessage { name, data, .. } => {
                Judgement::record(EventKind::QueueEventDelivered { name, data })
            }
            WorkItem::CancelInstance { reason, .. } if self.outline.cancel_reason.is_none() => {
                Judgement::record(EventKind::OrchestrationCancelRequested { reason })
            }
            WorkItem::CancelInstance { .. } => Judgement::Ignore("a cancellation was requested before"),
            WorkItem::SessionMigrated { execution_id, session_id, epoch, from, to, .. } => {
                if execution_id == self.identity.execution_id {
                    Judgement::record(EventKind::SessionMigrated { session_id, epoch, from, to })
                } else {
                    Judgement::Ignore(OTHER_EXECUTION)
                }
            }
            WorkItem::StartOrchestration { .. }
            | WorkItem::ContinueAsNew { .. }
            | WorkItem::ContinueAsNewWithSessions { .. } => Judgement::Ignore("the execution has started"),
            WorkItem::ActivityExecute { .. } => Judgement::Ignore("it is work, not a message"),
            WorkItem::TerminateInstance { .. } => {
                Judgement::Ignore("an execution that runs is not terminated by its code")
            }
            WorkItem::Nudge { .. } => Judgement::Ignore("it only asks for a turn"),
        }
    }

    /// Judges the answer to a schedule. The first answer in history wins; any later one changes nothing.
    fn answer(&self, execution_id: u64, id: u64, family: ScheduleFamily, event: EventKind) -> Judgement {
        if execution_id != self.identity.execution_id {
            return Judgement::Ignore(OTHER_EXECUTION);
        }
        match self.outline.family_of(id) {
            None => Judgement::Abort(format!("no matching schedule for {} id={id}", unmatched_label(family))),
            Some(scheduled) if scheduled != family => Judgement::Abort(format!(
                "completion kind mismatch for id={id}, expected '{}', got '{}'",
                scheduled.label(),
                family.label()
            )),
            Some(_) if !self.outline.is_open(id) => Judgement::Ignore("it was answered before"),
            Some(_) => Judgement::Record { source: Some(id), fatal: fatal(&event), event },
        }
    }
}

#[allow(
    clippy::large_enum_variant,
    reason = "one lives at a time, and a box would cost one allocation a message"
)]
enum Judgement {
    Record { source: Option<u64>, event: EventKind, fatal: Option<ErrorDetails> },
    Ignore(&'static str),
    Abort(String),
}

impl Judgement {
    fn record(event: EventKind) -> Self {
        Self::Record { source: None, event, fatal: None }
    }
}

const OTHER_EXECUTION: &str = "it belongs to another execution";

fn unmatched_label(family: ScheduleFamily) -> &'static str {
    match family {
        ScheduleFamily::Activity => "completion",
        ScheduleFamily::Timer => "timer",
        ScheduleFamily::Child => "sub-orchestration",
    }
}

/// A failure that is not the application's own ends the orchestration that waits for it.
pub(super) fn fatal(event: &EventKind) -> Option<ErrorDetails> {
    let (EventKind::ActivityFailed { details } | EventKind::SubOrchestrationFailed { details }) = event
    else {
        return None;
    };
    match details {
        ErrorDetails::Infrastructure { .. }
        | ErrorDetails::Configuration { .. }
        | ErrorDetails::Poison { .. } => Some(details.clone()),
        ErrorDetails::Application { .. } => None,
    }
}

/// The recorded form of [`fatal`], for histories that are checked after the fact.
pub(super) fn is_fatal(event: &Event) -> bool {
    fatal(&event.kind).is_some()
}
