//! Damage on purpose, for tests of what a store does with rows that cannot be read.

use crate::MemoryStore;
use crate::set_aside::read;
use crate::state::State;

/// The rows to overwrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage<'a> {
    /// Every message to an instance.
    Messages {
        /// The id of the instance.
        instance: &'a str,
    },
    /// Every queued activity of an instance.
    Work {
        /// The id of the instance.
        instance: &'a str,
    },
    /// One event.
    Event {
        /// The id of the instance.
        instance: &'a str,
        /// The number of the execution.
        execution_id: u64,
        /// The id of the event.
        event_id: u64,
    },
}

impl MemoryStore {
    /// Overwrites rows with `text`, as a fault of the disk or a newer build might, and returns how many there
    /// were.
    pub fn damage(&self, what: Damage<'_>, text: &str) -> usize {
        self.change(|state, _| state.damage(what, text))
    }
}

impl State {
    fn damage(&mut self, what: Damage<'_>, text: &str) -> usize {
        match what {
            Damage::Messages { instance } => {
                let rows = self.messages.values_mut().filter(|row| row.instance == instance);
                rows.map(|row| row.item = read(text.to_owned())).count()
            }
            Damage::Work { instance } => {
                let rows = self.work.values_mut().filter(|row| row.identity.instance == instance);
                rows.map(|row| row.item = read(text.to_owned())).count()
            }
            Damage::Event { instance, execution_id, event_id } => {
                let history = self.histories.get_mut(&(instance.to_owned(), execution_id));
                let row = history.and_then(|events| events.get_mut(&event_id));
                row.map(|row| *row = read(text.to_owned())).map_or(0, |()| 1)
            }
        }
    }
}
