//! The key-value state that an orchestration sees.
//!
//! Calls change the state at once, so that the code reads its own writes. Each call is recorded. When a write
//! is replayed, its key gets the recorded time, not the time of the replay (F17).

use std::collections::BTreeMap;

use super::bounds::check_name;
use super::{Operation, Record, Recorded, Site};
use crate::limits::{MAX_KV_KEYS, MAX_KV_VALUE_BYTES};
use crate::replay::Identity;
use crate::replay::ledger::{BYTES_PER_ENTRY, Ledger};
use crate::replay::play::Next;
use crate::vocabulary::error::application_error;
use crate::{Action, ErrorDetails, Event, EventKind, KvEntry};

pub(crate) struct KvRules;

impl Operation for KvRules {
    fn label(&self) -> &'static str {
        "KeyValue"
    }

    fn refuse(&self, action: &Action, _event_id: u64, _site: &Site<'_>) -> Result<(), ErrorDetails> {
        let (Action::SetKeyValue { key, .. } | Action::ClearKeyValue { key }) = action else { return Ok(()) };
        check_name("KV key", key)
    }

    fn record(&self, action: &Action, _event_id: u64, _identity: &Identity) -> Option<Record> {
        let kind = if let Action::SetKeyValue { key, value, last_updated_at_ms } = action {
            let (key, value) = (key.clone(), value.clone());
            EventKind::KeyValueSet { key, value, last_updated_at_ms: *last_updated_at_ms }
        } else if let Action::ClearKeyValue { key } = action {
            EventKind::KeyValueCleared { key: key.clone() }
        } else if let Action::ClearKeyValues = action {
            EventKind::KeyValuesCleared
        } else {
            return None;
        };
        Some(kind.into())
    }

    /// The sizes of values are checked at the end of a turn, as in the compatible API.
    fn check_events(&self, events: &[Event]) -> Result<(), ErrorDetails> {
        for event in events {
            let EventKind::KeyValueSet { key, value, .. } = &event.kind else { continue };
            let (size, max) = (value.len(), MAX_KV_VALUE_BYTES);
            if size > max {
                let text = format!("KV value for key '{key}' ({size} bytes) exceeds limit ({max} bytes)");
                return Err(application_error(text));
            }
        }
        Ok(())
    }

    fn matches(&self, action: &Action, event: &Event) -> bool {
        if let EventKind::KeyValueSet { key, value, .. } = &event.kind {
            matches!(action, Action::SetKeyValue { key: written, value: given, .. }
                if written == key && given == value)
        } else if let EventKind::KeyValueCleared { key } = &event.kind {
            matches!(action, Action::ClearKeyValue { key: cleared } if cleared == key)
        } else {
            matches!(action, Action::ClearKeyValues)
        }
    }

    /// The calls of one prune may be recorded in any order: a clear is found anywhere in the run of clears.
    fn find_call(&self, event: &Event, ledger: &Ledger) -> Option<usize> {
        let matches = |action: &Action| self.matches(action, event);
        if matches!(event.kind, EventKind::KeyValueCleared { .. }) {
            let run = ledger.calls().take_while(|call| matches!(call.action, Action::ClearKeyValue { .. }));
            return run.enumerate().find(|(_, call)| matches(&call.action)).map(|(index, _)| index);
        }
        ledger.peek_call().filter(|call| matches(&call.action)).map(|_| 0)
    }

    fn mismatch_label(&self, event: &EventKind) -> &'static str {
        if let EventKind::KeyValueSet { .. } = event {
            "kv set mismatch"
        } else if let EventKind::KeyValueCleared { .. } = event {
            "kv clear mismatch"
        } else {
            "kv clear_all mismatch"
        }
    }

    fn missing_call(&self, event: &EventKind) -> String {
        format!("{}: history {} but no emitted action", self.mismatch_label(event), event.name())
    }

    fn may_lack_call(&self) -> bool {
        true
    }

    fn recorded(&self, recorded: &Recorded<'_>, ledger: &mut Ledger) -> Next {
        if let EventKind::KeyValueSet { key, last_updated_at_ms, .. } = &recorded.event.kind {
            ledger.kv.restore_time(key, *last_updated_at_ms);
        }
        Next::Go
    }
}

/// The key-value state that the code sees: the committed state plus the calls of this execution.
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

    /// Sets the time of a key to the recorded one, when the code repeats a recorded write.
    pub(crate) fn restore_time(&mut self, key: &str, recorded_ms: u64) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.last_updated_at_ms = recorded_ms;
        }
    }

    /// Fails if the instance has more than [`MAX_KV_KEYS`] keys. Keys of earlier turns and executions count
    /// too (F21).
    pub(crate) fn check_keys(&self) -> Result<(), ErrorDetails> {
        let keys = self.len();
        if keys > MAX_KV_KEYS {
            return Err(application_error(format!("KV key count ({keys}) exceeds limit ({MAX_KV_KEYS})")));
        }
        Ok(())
    }
}

/// Does a turn with these events set a key?
pub(crate) fn sets_key(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event.kind, EventKind::KeyValueSet { .. }))
}
