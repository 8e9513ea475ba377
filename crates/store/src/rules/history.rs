//! Which part of a history a lease brings (S2).

use steadfast_core::Event;

use crate::{Held, History, RunId};

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
