//! Timers: a message to oneself that becomes visible at a given time.

use std::time::Duration;

use super::{AnswerLabels, Effect, Kind, Operation, Record, Site};
use crate::replay::Identity;
use crate::replay::admit::{Judgement, Reply};
use crate::replay::ledger::{Answer, Ledger};
use crate::replay::outline::Outline;
use crate::replay::play::Next;
use crate::{Action, Event, EventKind, OpenKind, WorkItem};

pub(crate) struct TimerRules;

impl Operation for TimerRules {
    fn label(&self) -> &'static str {
        "Timer"
    }

    fn record(&self, action: &Action, _event_id: u64, _identity: &Identity) -> Option<Record> {
        let Action::CreateTimer { fire_at_ms, .. } = action else { return None };
        Some(EventKind::TimerCreated { fire_at_ms: *fire_at_ms }.into())
    }

    fn send(&self, action: Action, event: &Event, site: &Site<'_>) -> Option<Effect> {
        let Action::CreateTimer { fire_at_ms, .. } = action else { return None };
        let Identity { instance, execution_id, .. } = site.identity;
        Some(Effect::Message(WorkItem::TimerFired {
            instance: instance.clone(),
            execution_id: *execution_id,
            id: event.event_id,
            fire_at_ms,
        }))
    }

    /// Timers match by position alone: the recorded time counts, whatever the code computes now.
    fn matches(&self, action: &Action, _event: &Event) -> bool {
        matches!(action, Action::CreateTimer { .. })
    }

    fn open(&self, event: &Event, _identity: &Identity, outline: &mut Outline) {
        outline.schedule(event.event_id, Kind::Timer);
    }

    fn admit(&self, message: WorkItem, site: &Site<'_>) -> Judgement {
        let WorkItem::TimerFired { execution_id, id, fire_at_ms, .. } = message else {
            return Judgement::misaddressed();
        };
        Reply { kind: Kind::Timer, execution_id, id }.judge(EventKind::TimerFired { fire_at_ms }, site)
    }

    fn answer_labels(&self) -> Option<AnswerLabels> {
        Some(AnswerLabels { schedule: "timer", unmatched: "timer" })
    }

    fn settle(&self, event: Event, ledger: &mut Ledger) -> Next {
        Next::settle(event.source_event_id, Answer::Fired, ledger)
    }

    fn close(&self, event: &Event, outline: &mut Outline) {
        outline.close(event.source_event_id);
    }

    /// History has no cancellation of a timer, so one that the code dropped is listed until it fires.
    fn explain(&self, event: &Event, _instance: &str, outline: &Outline) -> Option<OpenKind> {
        let EventKind::TimerCreated { fire_at_ms } = event.kind else { return None };
        outline.open_schedule(event.event_id, Kind::Timer)?;
        Some(OpenKind::Timer { fire_at_ms })
    }
}

/// The time at which a timer of `delay` fires; the sum saturates at `u64::MAX`.
pub(crate) fn fire_at_ms(now_ms: u64, delay: Duration) -> u64 {
    now_ms.saturating_add(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
}

/// The time that a message is due, if it is a timer's. A turn is never earlier than a timer that it consumes.
pub(crate) fn due_ms(message: &WorkItem) -> Option<u64> {
    let WorkItem::TimerFired { fire_at_ms, .. } = message else { return None };
    Some(*fire_at_ms)
}
