//! What a store keeps of one instance between two turns.

use std::collections::HashMap;

use duroxide::{
    Event, EventKind,
    providers::{KvEntry, OrchestrationItem, WorkItem},
};

use super::stage::Commit;

/// One instance: the history of its current execution, and its values.
pub(super) struct Instance {
    id: String,
    orchestration: String,
    execution_id: u64,
    history: Vec<Event>,
    /// The values as of the end of the previous execution: what a fetch hands out.
    committed: HashMap<String, KvEntry>,
    /// The values with the writes of this execution.
    current: HashMap<String, KvEntry>,
}

impl Instance {
    pub(super) fn new(id: &str, orchestration: &str) -> Self {
        Self {
            id: id.to_owned(),
            orchestration: orchestration.to_owned(),
            execution_id: 1,
            history: Vec::new(),
            committed: HashMap::new(),
            current: HashMap::new(),
        }
    }

    /// Gives what a fetch returns for these messages.
    pub(super) fn item(&self, messages: Vec<WorkItem>) -> OrchestrationItem {
        OrchestrationItem {
            instance: self.id.clone(),
            orchestration_name: self.orchestration.clone(),
            execution_id: self.execution_id,
            version: "1.0.0".to_owned(),
            history: self.history.clone(),
            messages,
            history_error: None,
            kv_snapshot: self.committed.clone(),
        }
    }

    /// Applies a committed turn.
    pub(super) fn apply(&mut self, commit: &Commit) {
        if commit.execution_id > self.execution_id {
            self.execution_id = commit.execution_id;
            self.history.clear();
        }
        for event in &commit.events {
            self.apply_value(&event.kind);
            self.history.push(event.clone());
        }
        if commit.events.iter().any(Event::is_terminal) {
            self.committed = self.current.clone();
        }
    }

    /// Gives the history of the current execution.
    pub(super) fn history(&self) -> &[Event] {
        &self.history
    }

    /// Gives the kind of the event that ended the instance, if one did. Continue-as-new does not.
    pub(super) fn ending(&self) -> Option<String> {
        self.history.iter().find_map(|event| match &event.kind {
            EventKind::OrchestrationCompleted { .. } => Some("Completed".to_owned()),
            EventKind::OrchestrationFailed { details } => Some(format!("Failed: {}", details.category())),
            _ => None,
        })
    }

    fn apply_value(&mut self, kind: &EventKind) {
        match kind {
            EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                let entry = KvEntry { value: value.clone(), last_updated_at_ms: *last_updated_at_ms };
                self.current.insert(key.clone(), entry);
            }
            EventKind::KeyValueCleared { key } => {
                self.current.remove(key);
            }
            EventKind::KeyValuesCleared => self.current.clear(),
            _ => {}
        }
    }
}
