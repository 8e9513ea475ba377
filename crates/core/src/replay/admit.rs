//! Turns the messages that arrived into events, and drops messages that change nothing.

use super::decide::Draft;
use super::execution::Phase;
use super::{Arrival, Execution, Notice, ParentLink, Start};
use crate::operation::{Addressee, Kind, Role, Site, child};
use crate::vocabulary::error::nondeterminism;
use crate::{ErrorDetails, Event, EventKind, WorkItem, kind_of};

impl Execution {
    /// Records the start of a new execution. Returns the messages that its predecessor left unread.
    pub(super) fn begin(&mut self, draft: &mut Draft) -> Vec<WorkItem> {
        let Phase::Fresh(start) = std::mem::replace(&mut self.phase, Phase::Live) else { return Vec::new() };
        let Start { input, parent, carry_forward, custom_status, sessions, traceparent, random } = start;
        let (parent_instance, parent_id, parent_execution_id) = ParentLink::fields(parent);
        let started = EventKind::OrchestrationStarted {
            name: self.identity.name.clone(),
            version: self.identity.version.clone(),
            input,
            parent_instance,
            parent_id,
            parent_execution_id,
            carry_forward_events: (!carry_forward.is_empty()).then(|| carry_forward.clone()),
            initial_custom_status: custom_status,
        };
        let mut started = draft.event(&self.identity, None, started);
        started.traceparent = traceparent;
        started.random = random;
        self.scope.lock().keys.begin(&started);
        self.record_arrival(started, draft);
        if !sessions.is_empty() {
            let carried = draft.event(&self.identity, None, EventKind::SessionsCarried { sessions });
            self.record_arrival(carried, draft);
        }
        let instance = &self.identity.instance;
        let message = |(name, data)| WorkItem::QueueMessage { instance: instance.clone(), name, data };
        carry_forward.into_iter().map(message).collect()
    }

    /// Records an event for each message that changes something. Returns the failure that ends the execution
    /// without running its code; `None` if the code is to run.
    pub(super) fn admit(
        &mut self,
        arrivals: impl Iterator<Item = Arrival>,
        draft: &mut Draft,
    ) -> Option<ErrorDetails> {
        let mut aborted = None;
        for Arrival { item: message, failure } in arrivals {
            let name = kind_of(&message);
            match self.judge(message) {
                Judgement::Record { source, event } => {
                    aborted = aborted.or_else(|| fatal(&event).cloned());
                    let mut event = draft.event(&self.identity, source, event);
                    event.failure = failure;
                    self.record_arrival(event, draft);
                }
                Judgement::Ignore(why) => draft.notices.push(Notice::Ignored { message: name, why }),
                Judgement::Abort(text) => aborted = aborted.or_else(|| Some(nondeterminism(text))),
            }
        }
        aborted
    }

    fn record_arrival(&mut self, event: Event, draft: &mut Draft) {
        draft.answered.extend(child::answered_by(&event, &self.outline));
        self.outline.play(&event, &self.identity);
        draft.events.push(event);
        draft.arrived = draft.events.len();
    }

    fn judge(&self, message: WorkItem) -> Judgement {
        match message.addressee() {
            Addressee::Operation(kind) => kind.rules().admit(message, &self.site()),
            Addressee::Execution => self.judge_cancellation(message),
            Addressee::Nothing(why) => Judgement::Ignore(why),
        }
    }

    fn judge_cancellation(&self, message: WorkItem) -> Judgement {
        let WorkItem::CancelInstance { reason, .. } = message else { return Judgement::misaddressed() };
        match self.outline.cancel_reason {
            None => Judgement::record(EventKind::OrchestrationCancelRequested { reason }),
            Some(_) => Judgement::Ignore("a cancellation was requested before"),
        }
    }

    pub(super) fn site(&self) -> Site<'_> {
        Site { identity: &self.identity, options: &self.options, outline: &self.outline }
    }
}

/// The decision about a message that arrived.
#[allow(
    clippy::large_enum_variant,
    reason = "one lives at a time, and a box would cost one allocation a message"
)]
pub(crate) enum Judgement {
    /// The message is recorded as this event; `source` is the schedule that the event answers.
    Record { source: Option<u64>, event: EventKind },
    /// The message changes nothing; the text says why.
    Ignore(&'static str),
    /// History and message contradict each other, which ends the execution; the text says how.
    Abort(String),
}

impl Judgement {
    pub(crate) fn record(event: EventKind) -> Self {
        Self::Record { source: None, event }
    }

    /// The judgement of a message that belongs to another kind. The engine gives each kind only its own
    /// messages, so this is never used in practice.
    pub(crate) fn misaddressed() -> Self {
        Self::Ignore("it is for another kind of operation")
    }
}

pub(crate) const OTHER_EXECUTION: &str = "it belongs to another execution";

/// A message that answers schedule `id` of an execution.
pub(crate) struct Reply {
    pub(crate) kind: Kind,
    pub(crate) execution_id: u64,
    pub(crate) id: u64,
}

impl Reply {
    /// Judges the answer to a schedule. The first answer in history wins; any later one changes nothing.
    pub(crate) fn judge(self, event: EventKind, site: &Site<'_>) -> Judgement {
        let Self { kind, execution_id, id } = self;
        if execution_id != site.identity.execution_id {
            return Judgement::Ignore(OTHER_EXECUTION);
        }
        let labels = |kind: Kind| kind.rules().answer_labels();
        match site.outline.kind_of(id) {
            None => {
                let label = labels(kind).map_or("", |labels| labels.unmatched);
                Judgement::Abort(format!("no matching schedule for {label} id={id}"))
            }
            Some(scheduled) if scheduled != kind => Judgement::Abort(format!(
                "completion kind mismatch for id={id}, expected '{}', got '{}'",
                labels(scheduled).map_or("", |labels| labels.schedule),
                labels(kind).map_or("", |labels| labels.schedule)
            )),
            Some(_) if !site.outline.is_open(id) => Judgement::Ignore("it was answered before"),
            Some(_) => Judgement::Record { source: Some(id), event },
        }
    }
}

/// The failure in an answer, if a store, the deployment or poison caused it and not the application. Such a
/// failure ends the orchestration that receives the answer.
fn fatal(event: &EventKind) -> Option<&ErrorDetails> {
    let Role::Answers(kind) = event.role() else { return None };
    let details = kind.rules().failure(event)?;
    match details {
        ErrorDetails::Infrastructure { .. }
        | ErrorDetails::Configuration { .. }
        | ErrorDetails::Poison { .. } => Some(details),
        ErrorDetails::Application { .. } => None,
    }
}

/// Tells whether the event is an answer whose failure ends the orchestration (see [`fatal`]).
pub(super) fn is_fatal(event: &Event) -> bool {
    fatal(&event.kind).is_some()
}
