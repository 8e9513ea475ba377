//! Key-value state: the state at the end of the previous execution, and the changes of the current one.

use std::collections::{BTreeMap, HashMap};

use steadfast_core::{Event, EventKind, KvEntry};

#[derive(Debug, Default)]
pub(crate) struct Kv {
    /// The state at the end of the previous execution: the snapshot that a replay starts from.
    committed: BTreeMap<String, KvEntry>,
    /// The keys that the current execution has set, or cleared (`None`).
    overlay: BTreeMap<String, Option<KvEntry>>,
}

impl Kv {
    /// Applies the keys that the events of a commit set and clear to the changes of the current execution.
    pub(crate) fn record(&mut self, events: &[Event]) {
        for event in events {
            match &event.kind {
                EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                    let entry = KvEntry { value: value.clone(), last_updated_at_ms: *last_updated_at_ms };
                    self.overlay.insert(key.clone(), Some(entry));
                }
                EventKind::KeyValueCleared { key } => _ = self.overlay.insert(key.clone(), None),
                EventKind::KeyValuesCleared => {
                    let keys: Vec<String> =
                        self.committed.keys().chain(self.overlay.keys()).cloned().collect();
                    self.overlay.extend(keys.into_iter().map(|key| (key, None)));
                }
                _ => {}
            }
        }
    }

    /// Makes the changes of an execution that ended the state that the next execution starts from.
    pub(crate) fn merge(&mut self) {
        for (key, change) in std::mem::take(&mut self.overlay) {
            match change {
                Some(entry) => _ = self.committed.insert(key, entry),
                None => _ = self.committed.remove(&key),
            }
        }
    }

    pub(crate) fn snapshot(&self) -> HashMap<String, KvEntry> {
        self.committed.iter().map(|(key, entry)| (key.clone(), entry.clone())).collect()
    }

    pub(crate) fn get(&self, key: &str) -> Option<String> {
        let entry = match self.overlay.get(key) {
            Some(change) => change.as_ref(),
            None => self.committed.get(key),
        };
        entry.map(|entry| entry.value.clone())
    }

    pub(crate) fn values(&self) -> HashMap<String, String> {
        let keys = self.committed.keys().chain(self.overlay.keys());
        keys.filter_map(|key| self.get(key).map(|value| (key.clone(), value))).collect()
    }
}
