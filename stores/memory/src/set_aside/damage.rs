//! Damage on purpose, for tests with rows that cannot be read.

use super::read;
use crate::MemoryStore;
use crate::state::State;

/// The rows whose stored text [`MemoryStore::damage`] overwrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage<'a> {
    /// Every message to an instance that is in the queue, leased ones included.
    Messages {
        /// The id of the instance that the messages are for.
        instance: &'a str,
    },
    /// Every activity of an instance that is in the queue, leased ones included.
    Work {
        /// The id of the instance that scheduled the activities.
        instance: &'a str,
    },
    /// One event of a history; no row if there is no such event.
    Event {
        /// The id of the instance whose history is damaged.
        instance: &'a str,
        /// The number of the execution that the event belongs to, from 1.
        execution_id: u64,
        /// The id of the event to overwrite, from 1 in each execution.
        event_id: u64,
    },
}

impl MemoryStore {
    /// Overwrites the content of the selected rows with `text`, as a fault of the disk or a newer build
    /// might. Returns the number of rows, 0 if none matches. A `text` that is valid JSON of the right type
    /// leaves the rows readable.
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
