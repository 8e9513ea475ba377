//! Messages: which ones can be sent, and which ones start an execution.

use std::collections::BTreeSet;

use serde::Serialize;
use steadfast_core::{WorkItem, kind_of};

use crate::{Message, ProviderError, ProviderErrorKind};

/// Stands for the name or the version of an orchestration that no row, event or message holds.
pub const UNKNOWN: &str = "unknown";

/// Refuses messages that cannot be sent: an activity is work and has its own queue.
///
/// # Errors
/// `Invalid`, naming the operation.
pub fn check_message(operation: &str, item: &WorkItem) -> Result<(), ProviderError> {
    match item {
        WorkItem::ActivityExecute { name, .. } => Err(ProviderError::new(
            ProviderErrorKind::Invalid,
            operation,
            format!("activity '{name}' is work for a worker, not a message to an instance"),
        )),
        _ => Ok(()),
    }
}

/// Refuses to start an instance with anything but a `StartOrchestration`.
///
/// # Errors
/// `Invalid`.
pub fn check_start(item: &WorkItem) -> Result<(), ProviderError> {
    match item {
        WorkItem::StartOrchestration { .. } => Ok(()),
        other => {
            let text = format!("a start is a StartOrchestration, not {}", kind_of(other));
            Err(ProviderError::new(ProviderErrorKind::Invalid, "start", text))
        }
    }
}

/// Refuses a message of a dropped timer that is not a `TimerFired`.
///
/// # Errors
/// `Invalid`, naming the operation.
pub fn check_timer(operation: &str, item: &WorkItem) -> Result<(), ProviderError> {
    match item {
        WorkItem::TimerFired { .. } => Ok(()),
        other => {
            let text = format!("{} is not the message of a timer", kind_of(other));
            Err(ProviderError::new(ProviderErrorKind::Invalid, operation, text))
        }
    }
}

/// Returns the ids of the timers of an execution whose messages these are, by rising id.
pub fn timers_of(execution_id: u64, items: impl IntoIterator<Item = WorkItem>) -> Vec<u64> {
    let own = items.into_iter().filter_map(|item| match item {
        WorkItem::TimerFired { execution_id: execution, id, .. } if execution == execution_id => Some(id),
        _ => None,
    });
    let ids: BTreeSet<u64> = own.collect();
    ids.into_iter().collect()
}

/// Tells whether a message starts an execution. A start is part of the next turn even if more messages than
/// [`MAX_TURN_MESSAGES`](crate::MAX_TURN_MESSAGES) arrived before it, and messages that arrived before it
/// wait for it (S2).
pub fn is_start(item: &WorkItem) -> bool {
    started(item).is_some()
}

/// Tells whether the turn that processes a message runs no code of the instance: any worker can take it, also
/// one that lacks the handler (S21).
pub fn needs_no_code(item: &WorkItem) -> bool {
    matches!(item, WorkItem::TerminateInstance { .. })
}

/// Returns the name and version of the orchestration in the first start among the messages; [`UNKNOWN`] for
/// each that no start holds.
pub fn started_by(messages: &[Message]) -> (String, String) {
    let start = messages.iter().find_map(|message| started(&message.item));
    let (name, version) = start.unwrap_or((UNKNOWN, None));
    (name.to_owned(), version.unwrap_or(UNKNOWN).to_owned())
}

fn started(item: &WorkItem) -> Option<(&str, Option<&str>)> {
    match item {
        WorkItem::StartOrchestration { orchestration, version, .. }
        | WorkItem::ContinueAsNew { orchestration, version, .. }
        | WorkItem::ContinueAsNewWithSessions { orchestration, version, .. } => {
            Some((orchestration, version.as_deref()))
        }
        _ => None,
    }
}

/// Returns when a committed message becomes visible, in milliseconds since the Unix epoch: a timer at its
/// time; `None` for any other message, which is visible at once (S9).
pub fn fires_at_ms(item: &WorkItem) -> Option<u64> {
    match item {
        WorkItem::TimerFired { fire_at_ms, .. } => Some(*fire_at_ms),
        _ => None,
    }
}

/// Writes a message, an activity or an event in its stored form.
///
/// # Errors
/// `Invalid`, naming the operation, if JSON cannot say it.
pub fn to_json(operation: &str, item: &impl Serialize) -> Result<String, ProviderError> {
    serde_json::to_string(item).map_err(|error| {
        let text = format!("it cannot be written as JSON: {error}");
        ProviderError::new(ProviderErrorKind::Invalid, operation, text)
    })
}
