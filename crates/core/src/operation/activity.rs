//! Activities: work that runs outside the orchestration, possibly on a session.

use super::bounds::{check_name, check_payload, check_size};
use super::{AnswerLabels, Cancellation, CancelledAt, Effect, Kind, Operation, Record, Site};
use crate::limits::MAX_TAG_NAME_BYTES;
use crate::replay::admit::{Judgement, Reply};
use crate::replay::decide::Draft;
use crate::replay::ledger::{Answer, Ledger};
use crate::replay::outline::Outline;
use crate::replay::play::Next;
use crate::replay::{Identity, QueuedWork};
use crate::vocabulary::error::application_error;
use crate::{Action, CallFailure, ErrorDetails, Event, EventKind, OpenKind, SessionKey, WorkItem};

pub(crate) struct ActivityRules;

impl Operation for ActivityRules {
    fn label(&self) -> &'static str {
        "Activity"
    }

    fn refuse(&self, action: &Action, _event_id: u64, site: &Site<'_>) -> Result<(), ErrorDetails> {
        let Action::CallActivity { name, input, session_id, tag, .. } = action else { return Ok(()) };
        check_name("activity name", name)?;
        check_payload("activity input", input, site.options)?;
        if tag.as_deref().is_some_and(|tag| tag.contains('\0')) {
            return Err(application_error(format!("the tag of activity '{name}' contains a NUL character")));
        }
        match session_id {
            Some(id) => site.outline.sessions.check_schedule(id, tag.as_deref(), site.options),
            None => Ok(()),
        }
    }

    fn record(&self, action: &Action, _event_id: u64, _identity: &Identity) -> Option<Record> {
        let Action::CallActivity { name, input, session_id, tag, .. } = action else { return None };
        let kind = EventKind::ActivityScheduled {
            name: name.clone(),
            input: input.clone(),
            session_id: session_id.clone(),
            tag: tag.clone(),
        };
        Some(kind.into())
    }

    fn send(&self, action: Action, event: &Event, site: &Site<'_>) -> Option<Effect> {
        let Action::CallActivity { name, input, session_id, tag, .. } = action else { return None };
        let Identity { instance, execution_id, .. } = site.identity;
        let session = session_id.as_deref().map(|id| site.outline.sessions.key(instance, id));
        let item = WorkItem::ActivityExecute {
            instance: instance.clone(),
            execution_id: *execution_id,
            id: event.event_id,
            name,
            input,
            session_id,
            tag,
        };
        Some(Effect::Work(QueuedWork { item, session, call: event.call.clone() }))
    }

    fn check_events(&self, events: &[Event]) -> Result<(), ErrorDetails> {
        for event in events {
            if let EventKind::ActivityScheduled { name, tag: Some(tag), .. } = &event.kind {
                check_size(&format!("Activity '{name}' tag"), tag.len(), MAX_TAG_NAME_BYTES)?;
            }
        }
        Ok(())
    }

    fn matches(&self, action: &Action, event: &Event) -> bool {
        let EventKind::ActivityScheduled { name, input, session_id, tag } = &event.kind else { return false };
        let Action::CallActivity { name: called, input: given, session_id: session, tag: wanted, .. } =
            action
        else {
            return false;
        };
        called == name && given == input && session == session_id && wanted == tag
    }

    fn open(&self, event: &Event, _identity: &Identity, outline: &mut Outline) {
        let EventKind::ActivityScheduled { session_id, tag, .. } = &event.kind else { return };
        outline.schedule(event.event_id, Kind::Activity);
        if let Some(session) = session_id {
            outline.sessions.begin_activity(session, tag.as_deref(), event.event_id);
        }
    }

    fn admit(&self, message: WorkItem, site: &Site<'_>) -> Judgement {
        let (execution_id, id, event) =
            if let WorkItem::ActivityCompleted { execution_id, id, result, .. } = message {
                (execution_id, id, EventKind::ActivityCompleted { result })
            } else if let WorkItem::ActivityFailed { execution_id, id, details, .. } = message {
                (execution_id, id, EventKind::ActivityFailed { details })
            } else {
                return Judgement::misaddressed();
            };
        Reply { kind: Kind::Activity, execution_id, id }.judge(event, site)
    }

    fn answer_labels(&self) -> Option<AnswerLabels> {
        Some(AnswerLabels { schedule: "activity", unmatched: "completion" })
    }

    fn failure<'a>(&self, event: &'a EventKind) -> Option<&'a ErrorDetails> {
        let EventKind::ActivityFailed { details } = event else { return None };
        Some(details)
    }

    fn settle(&self, event: Event, ledger: &mut Ledger) -> Next {
        let answer = if let EventKind::ActivityCompleted { result } = event.kind {
            Answer::Result(Ok(result))
        } else if let Some(details) = self.failure(&event.kind) {
            let (message, failure) = (details.display_message(), event.failure.map(|failure| *failure));
            Answer::Failed(Box::new(CallFailure { message, failure }))
        } else {
            return Next::Go;
        };
        Next::settle(event.source_event_id, answer, ledger)
    }

    fn close(&self, event: &Event, outline: &mut Outline) {
        outline.close(event.source_event_id);
    }

    fn closed(&self, id: u64, outline: &mut Outline) {
        outline.sessions.end_activity(id);
    }

    fn cancellation(&self) -> Option<Cancellation> {
        Some(Cancellation {
            label: "activities",
            event: |reason| EventKind::ActivityCancelRequested { reason },
        })
    }

    fn cancel(&self, event: &Event, outline: &mut Outline) {
        outline.request_cancel(event.source_event_id);
    }

    fn stop(&self, id: u64, _site: &Site<'_>, draft: &mut Draft) {
        draft.withdrawn.insert(id);
    }

    fn cancelled_at(&self) -> CancelledAt {
        CancelledAt::AfterEnd
    }

    fn unanswered(&self, outline: &Outline) -> Vec<u64> {
        outline.running(Kind::Activity)
    }

    fn explain(&self, event: &Event, instance: &str, outline: &Outline) -> Option<OpenKind> {
        let EventKind::ActivityScheduled { name, tag, session_id, .. } = &event.kind else { return None };
        if outline.open_schedule(event.event_id, Kind::Activity)?.cancel_requested {
            return None;
        }
        let owned = outline.sessions.session_of(event.event_id).map(|id| SessionKey::owned(instance, id));
        let session = owned.or_else(|| session_id.as_ref().map(SessionKey::shared));
        Some(OpenKind::Activity { name: name.clone(), tag: tag.clone(), session })
    }
}
