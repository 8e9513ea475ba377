//! Closes a turn: the effects of an execution that goes on, and everything that the end of one closes.
//!
//! Whatever ends an execution (a result, an error, a panic, a cancellation, a mismatch, a limit, poison), the
//! same steps follow: open waits are cancelled, one event ends the history, running activities, children and
//! sessions are closed, and the parent is told. None of this needs user code.

use super::decide::{Draft, DraftEffect};
use super::mismatch::Mismatch;
use super::outline::Outline;
use super::{Effects, Identity, Notice, Options, ParentLink, ParentNotice, Turn, Verdict};
use crate::limits::WARN_HISTORY_EVENTS;
use crate::operation::continue_as_new::Continuation;
use crate::operation::{CancelledAt, Effect, InstanceEnd, Kind, Site};
use crate::{AppErrorKind, ErrorDetails, Event, EventKind, ScheduledActivityIdentifier, WorkItem};

/// Fails an execution without running its code, because it was tried too often or its code is missing.
///
/// Everything that its history leaves open is closed and the parent is told, as at any other end. For a
/// history that has ended already the verdict is [`Verdict::Ended`] and nothing is decided.
///
/// # Errors
/// The first event that makes `history` invalid. The caller can still record a failure of such an execution,
/// but its open operations are not known.
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
    if outline.has_ended() {
        return Ok(Turn::ended());
    }
    let draft = Draft::new(now_ms, outline.next_event_id());
    let closing = Closing { identity, outline: &mut outline, draft };
    Ok(closing.close(Ending::Failed(Cause::Engine, details), Vec::new()))
}

/// How an execution stands at the end of a turn.
pub(super) enum Ending {
    Waiting { stuck: bool },
    Completed(String),
    Failed(Cause, ErrorDetails),
    Cancelled(String),
    ContinuedAsNew(Continuation),
}

/// The side that decided a failure: the code returned it, or the engine found it.
pub(super) enum Cause {
    Returned,
    Engine,
}

/// The last step of a turn, which needs history but no code.
pub(super) struct Closing<'a> {
    pub(super) identity: &'a Identity,
    pub(super) outline: &'a mut Outline,
    pub(super) draft: Draft,
}

impl Closing<'_> {
    /// Makes the turn. `successor` are the messages that start the next execution of a continue-as-new.
    pub(super) fn close(mut self, ending: Ending, successor: Vec<WorkItem>) -> Turn {
        let before = self.outline.events.saturating_sub(self.draft.events.len());
        let (verdict, mut effects) = match ending {
            Ending::Waiting { stuck } => (Verdict::Waiting { stuck }, self.effects(|_| true)),
            Ending::ContinuedAsNew(Continuation { input, version }) => {
                let event = EventKind::OrchestrationContinuedAsNew { input: input.clone() };
                let mut effects = self.end(event, "orchestration_terminal_continued_as_new");
                effects.messages.extend(successor);
                (Verdict::ContinuedAsNew { input, version }, effects)
            }
            Ending::Completed(output) => {
                let event = EventKind::OrchestrationCompleted { output: output.clone() };
                let mut effects = self.end(event, "orchestration_terminal_completed");
                self.end_instance(&mut effects, "parent completed", Ok(output.clone()));
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
        let Draft { events, notices, answered, dropped_timers, .. } = self.draft;
        effects.dropped_timers = dropped_timers;
        Turn { events, effects, verdict, notices, answered }
    }

    fn fail(&mut self, details: ErrorDetails, to_children: &str) -> (Verdict, Effects) {
        let event = EventKind::OrchestrationFailed { details: details.clone() };
        let mut effects = self.end(event, "orchestration_terminal_failed");
        self.end_instance(&mut effects, to_children, Err(details.clone()));
        (Verdict::Failed { details }, effects)
    }

    /// Records the event that ends the execution, and the cancellations before and after it. `reason` is
    /// recorded for the activities that still run.
    fn end(&mut self, end: EventKind, reason: &str) -> Effects {
        self.cancel_unanswered(CancelledAt::BeforeEnd, "orchestration_terminal");
        self.push(None, end);
        self.cancel_unanswered(CancelledAt::AfterEnd, reason);
        self.effects(|draft| draft.is_sent_at_end)
    }

    fn cancel_unanswered(&mut self, when: CancelledAt, reason: &str) {
        for kind in Kind::ALL {
            let rules = kind.rules();
            let Some(cancellation) = rules.cancellation().filter(|_| rules.cancelled_at() == when) else {
                continue;
            };
            for id in rules.unanswered(self.outline) {
                self.push(Some(id), (cancellation.event)(reason.to_owned()));
                // The options bound calls of the code, and no code runs here.
                let options = Options::default();
                let site = Site { identity: self.identity, options: &options, outline: self.outline };
                rules.stop(id, &site, &mut self.draft);
            }
        }
    }

    /// Takes the effects of the turn out of the draft: all session changes, and the work and messages for
    /// which `is_sent` returns true.
    fn effects(&mut self, is_sent: impl Fn(&DraftEffect) -> bool) -> Effects {
        let sessions = std::mem::take(&mut self.draft.sessions);
        let mut effects = Effects { sessions, ..Effects::default() };
        for draft in std::mem::take(&mut self.draft.effects) {
            if !is_sent(&draft) {
                continue;
            }
            match draft.effect {
                Effect::Work(work) => effects.work.push(work),
                Effect::Message(message) => effects.messages.push(message),
                Effect::Session(change) => effects.sessions.push(change),
            }
        }
        effects
    }

    /// Stops the children, closes the sessions and tells the parent.
    fn end_instance(&self, effects: &mut Effects, reason: &str, outcome: Result<String, ErrorDetails>) {
        let end = InstanceEnd { first_event_id: self.draft.first_event_id, reason };
        for kind in Kind::ALL {
            kind.rules().end_instance(&end, self.outline, effects);
        }
        let notice = |parent: &ParentLink| ParentNotice { parent: parent.clone(), outcome };
        effects.parent = self.outline.parent.as_ref().map(notice);
    }

    fn cancelled_activities(&mut self) -> Vec<ScheduledActivityIdentifier> {
        let identify = |activity_id| ScheduledActivityIdentifier {
            instance: self.identity.instance.clone(),
            execution_id: self.identity.execution_id,
            activity_id,
        };
        std::mem::take(&mut self.draft.withdrawn).into_iter().map(identify).collect()
    }

    fn push(&mut self, source: Option<u64>, kind: EventKind) {
        let event = self.draft.event(self.identity, source, kind);
        self.outline.play(&event, self.identity);
        self.draft.events.push(event);
    }
}
