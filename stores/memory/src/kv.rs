//! Key-value state: what earlier executions left, and what the current one has changed since.

use std::collections::{BTreeMap, HashMap};

use steadfast_core::{Event, EventKind, KvEntry};

#[derive(Debug, Default)]
pub(crate) struct Kv {
    /// What earlier executions left: the snapshot that a replay starts from.
    committed: BTreeMap<String, KvEntry>,
    /// What the current execution has set, or cleared (`None`).
    overlay: BTreeMap<String, Option<KvEntry>>,
}

impl Kv {
    pub(crate) fn apply(&mut self, events: &[Event]) {
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

    /// The execution is over: its changes become what the next one starts from.
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
