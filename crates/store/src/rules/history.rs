//! Histories: which part a lease brings (S2), how stored events are read, and which events are refused.

use steadfast_core::Event;

use super::unreadable::{UnreadableText, read_text};
use crate::{Held, History, ProviderError, ProviderErrorKind, RunId};

/// Tells whether a caller holds the current run in memory, up to an event that the store has: then the lease
/// brings only the later events.
pub fn holds_run(held: &Held, run: Option<RunId>, last_event_id: u64) -> bool {
    Some(held.run) == run && held.last_event_id <= last_event_id
}

/// Makes the history of a lease: `events` are those after `known`, the last event that the caller holds, or
/// all events. Events that cannot be read are reported with the reason and are no error (S15).
pub fn history_after<E: ToString>(events: Result<Vec<Event>, E>, known: Option<u64>) -> History {
    match (events, known) {
        (Ok(events), Some(after)) => History::Tail { after, events },
        (Ok(events), None) => History::Whole(events),
        (Err(reason), _) => History::Unreadable(reason.to_string()),
    }
}

/// Reads events from their stored texts.
///
/// # Errors
/// Why the first text that is no event cannot be read.
pub fn events_of(texts: &[String]) -> Result<Vec<Event>, UnreadableText> {
    texts.iter().map(|text| read_text(text)).collect()
}

/// Answers a reader of a history that has an event which cannot be read: `Corrupt`, with the error as its
/// source.
pub fn unreadable_history(instance: &str, error: UnreadableText) -> ProviderError {
    let text = format!("the history of '{instance}' cannot be read: {error}");
    ProviderError::new(ProviderErrorKind::Corrupt, "read_history", text).with_source(error)
}

/// Refuses an event whose id is 0 or larger than a database can store: `Invalid`.
pub fn unstorable_event(operation: &str, event_id: u64) -> ProviderError {
    let text = format!("event id {event_id} is none that can be stored: ids begin with 1");
    ProviderError::new(ProviderErrorKind::Invalid, operation, text)
}
