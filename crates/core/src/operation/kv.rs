//! The key-value state that an orchestration sees.
//!
//! Calls change it at once, so that the code reads what it wrote. Each call is recorded; when history repeats
//! a write, the recorded time wins over the time of the replay (F17).

use std::collections::BTreeMap;

use crate::replay::ledger::BYTES_PER_ENTRY;
use crate::{Action, EventKind, KvEntry};

/// What the code sees: the committed state plus the calls of this execution.
#[derive(Debug, Default)]
pub(crate) struct Kv {
    entries: BTreeMap<String, KvEntry>,
}

impl Kv {
    pub(crate) fn seeded(entries: BTreeMap<String, KvEntry>) -> Self {
        Self { entries }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.entries.get(key).map(|entry| entry.value.as_str())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &KvEntry)> {
        self.entries.iter()
    }

    pub(crate) fn estimated_bytes(&self) -> usize {
        self.entries.iter().map(|(key, entry)| key.len() + entry.value.len() + BYTES_PER_ENTRY).sum()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn set(&mut self, key: String, value: String, last_updated_at_ms: u64) {
        self.entries.insert(key, KvEntry { value, last_updated_at_ms });
    }

    pub(crate) fn clear(&mut self, key: &str) {
        self.entries.remove(key);
    }

    pub(crate) fn clear_all(&mut self) {
        self.entries.clear();
    }

    /// The keys last written before `cutoff_ms`, in key order.
    pub(crate) fn older_than(&self, cutoff_ms: u64) -> Vec<String> {
        let old = self.entries.iter().filter(|(_, entry)| entry.last_updated_at_ms < cutoff_ms);
        old.map(|(key, _)| key.clone()).collect()
    }

    /// Takes over the recorded time of a write that the code repeats.
    pub(crate) fn restore_time(&mut self, key: &str, recorded_ms: u64) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.last_updated_at_ms = recorded_ms;
        }
    }
}

pub(crate) fn set_event(key: &str, value: &str, last_updated_at_ms: u64) -> EventKind {
    EventKind::KeyValueSet { key: key.to_owned(), value: value.to_owned(), last_updated_at_ms }
}

pub(crate) fn clear_event(key: &str) -> EventKind {
    EventKind::KeyValueCleared { key: key.to_owned() }
}

pub(crate) fn set_matches(action: &Action, recorded_key: &str, recorded_value: &str) -> bool {
    matches!(action, Action::SetKeyValue { key, value, .. } if key == recorded_key && value == recorded_value)
}

pub(crate) fn clear_matches(action: &Action, recorded_key: &str) -> bool {
    matches!(action, Action::ClearKeyValue { key } if key == recorded_key)
}

pub(crate) fn clear_all_matches(action: &Action) -> bool {
    matches!(action, Action::ClearKeyValues)
}
