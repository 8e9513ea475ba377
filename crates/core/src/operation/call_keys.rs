//! The idempotency keys of the calls of activities, which exist before the calls are recorded.

use std::collections::BTreeMap;

use crate::replay::Identity;
use crate::vocabulary::call::{KeyedCall, random_of};
use crate::{Event, EventKind, SYSCALL_PREFIX, unrecorded_key};

/// Makes the keys of an execution, in the order of its calls.
#[derive(Debug, Default)]
pub(crate) struct CallKeys {
    /// The random number of the execution.
    random: u64,
    /// The number of calls of activities so far.
    calls: u64,
    /// The calls that an engine before 0.3.0 recorded, without a key: their places among the calls of
    /// activities, and the ids of their events. Calls are recorded in the order in which they are made.
    unrecorded: BTreeMap<u64, u64>,
}

impl CallKeys {
    /// Makes the keys of an execution that is to be replayed.
    pub(crate) fn of(history: &[Event]) -> Self {
        let scheduled = history.iter().filter(|event| is_keyed(event));
        let unrecorded = (1..).zip(scheduled).filter(|(_, event)| event.call.is_none());
        Self {
            random: history.first().map_or(0, random_of),
            calls: 0,
            unrecorded: unrecorded.map(|(place, event)| (place, event.event_id)).collect(),
        }
    }

    /// Makes the keys of an execution that begins with this event.
    pub(crate) fn begin(&mut self, start: &Event) {
        self.random = random_of(start);
    }

    /// Returns the key of the next call of an activity; empty for an activity of the engine itself.
    pub(crate) fn next(&mut self, identity: &Identity, name: &str, input: &str) -> String {
        if name.starts_with(SYSCALL_PREFIX) {
            return String::new();
        }
        self.calls += 1;
        let (instance, count) = (identity.instance.as_str(), self.calls);
        match self.unrecorded.remove(&count) {
            Some(event_id) => unrecorded_key(instance, identity.execution_id, event_id),
            None => KeyedCall { instance, random: self.random, name, count, input }.key(),
        }
    }
}

/// Tells whether the event schedules an activity that has a key. The engine's own activities have none,
/// because nothing outside sees them.
fn is_keyed(event: &Event) -> bool {
    matches!(&event.kind, EventKind::ActivityScheduled { name, .. } if !name.starts_with(SYSCALL_PREFIX))
}
