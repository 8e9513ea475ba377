//! Timers: a message to oneself that becomes visible at a given time.

use std::time::Duration;

use crate::{Action, WorkItem};

/// When a timer of `delay` fires; a delay beyond the end of time means the end of time.
pub(crate) fn fire_at_ms(now_ms: u64, delay: Duration) -> u64 {
    now_ms.saturating_add(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
}

/// Timers are matched by position alone: the recorded time counts, whatever the code computes now.
pub(crate) fn matches(action: &Action) -> bool {
    matches!(action, Action::CreateTimer { .. })
}

pub(crate) fn message(event_id: u64, fire_at_ms: u64, instance: &str, execution_id: u64) -> WorkItem {
    WorkItem::TimerFired { instance: instance.to_owned(), execution_id, id: event_id, fire_at_ms }
}
