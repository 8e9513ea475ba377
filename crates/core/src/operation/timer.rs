//! Timers: a message to oneself that becomes visible at a given time.

use std::time::Duration;

use super::{AnswerLabels, Effect, Kind, Operation, Record, Site};
use crate::replay::Identity;
use crate::replay::admit::{Judgement, Reply};
use crate::replay::decide::Draft;
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
        Some(Effect::Message(message(site.identity, event.event_id, fire_at_ms)))
    }

    /// Timers match by position alone: the recorded time counts, whatever the code computes now.
    fn matches(&self, action: &Action, _event: &Event) -> bool {
        matches!(action, Action::CreateTimer { .. })
    }

    fn open(&self, event: &Event, _identity: &Identity, outline: &mut Outline) {
        outline.schedule(event.event_id, Kind::Timer);
        if let EventKind::TimerCreated { fire_at_ms } = event.kind {
            outline.timers.insert(event.event_id, fire_at_ms);
        }
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

    fn closed(&self, id: u64, outline: &mut Outline) {
        outline.timers.remove(&id);
    }

    fn note_drop(&self, id: u64, site: &Site<'_>, draft: &mut Draft) {
        let fire_at_ms = site.outline.timers.get(&id);
        draft.dropped_timers.extend(fire_at_ms.map(|fire_at_ms| message(site.identity, id, *fire_at_ms)));
    }

    /// The timers of this turn are left out: the end of an execution sends none of them.
    fn leave_behind(&self, site: &Site<'_>, draft: &mut Draft) {
        let sent = site.outline.timers.range(..draft.first_event_id);
        draft.dropped_timers =
            sent.map(|(id, fire_at_ms)| message(site.identity, *id, *fire_at_ms)).collect();
    }

    /// History has no cancellation of a timer, so one that the code dropped is among the open ones until it
    /// fires. The store knows which ones those are.
    fn explain(&self, event: &Event, _instance: &str, outline: &Outline) -> Option<OpenKind> {
        let EventKind::TimerCreated { fire_at_ms } = event.kind else { return None };
        outline.open_schedule(event.event_id, Kind::Timer)?;
        Some(OpenKind::Timer { fire_at_ms })
    }
}

/// The message that a timer sends to its own instance when it fires.
fn message(identity: &Identity, id: u64, fire_at_ms: u64) -> WorkItem {
    let Identity { instance, execution_id, .. } = identity;
    WorkItem::TimerFired { instance: instance.clone(), execution_id: *execution_id, id, fire_at_ms }
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
