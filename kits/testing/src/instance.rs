//! What a store keeps of one instance between two turns, and what a batch of messages means to it.

use std::collections::BTreeMap;

use steadfast_core::{
    Event, EventKind, KvEntry, WorkItem,
    replay::{Identity, Options, Setup, Start, StartMessage, Turn},
};

/// The version of every handler; tests have one.
const VERSION: &str = "1.0.0";

/// One instance: the history of its current execution, and its values.
#[derive(Debug, Clone)]
pub struct Instance {
    identity: Identity,
    options: Options,
    history: Vec<Event>,
    /// The values that the previous execution left.
    inherited: BTreeMap<String, KvEntry>,
    /// The values with the writes of this execution.
    values: BTreeMap<String, KvEntry>,
}

/// What a batch asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The beginning of an execution, if the batch begins one.
    pub start: Option<Start>,
    /// The rest, in order.
    pub messages: Vec<WorkItem>,
}

/// An event that is not the same after it was written to JSON and read back.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// It cannot be written or read.
    #[error("no JSON of an event: {0}")]
    Json(#[from] serde_json::Error),
    /// It is another event then.
    #[error("event {0} changes on its way through JSON")]
    Changed(u64),
}

impl Instance {
    /// Makes an instance that has not begun.
    pub fn new(id: impl Into<String>, orchestration: impl Into<String>, options: Options) -> Self {
        let identity = Identity {
            instance: id.into(),
            execution_id: 0,
            name: orchestration.into(),
            version: VERSION.to_owned(),
        };
        let (history, inherited, values) = <_>::default();
        Self { identity, options, history, inherited, values }
    }

    /// Returns the history of the current execution.
    pub fn history(&self) -> &[Event] {
        &self.history
    }

    /// Returns identity, values and options of the current execution, as an engine needs them to start it.
    pub fn setup(&self) -> Setup {
        Setup { identity: self.identity.clone(), kv: self.inherited.clone(), options: self.options.clone() }
    }

    /// Tells a start from the messages beside it. A start that begins an execution makes room for it.
    pub fn triage(&mut self, batch: Vec<WorkItem>) -> Batch {
        let mut start = None;
        let mut messages = Vec::with_capacity(batch.len());
        for item in batch {
            match start_of(&item) {
                Some(begun) if start.is_none() => start = Some(begun),
                Some(_) => {}
                None => messages.push(item),
            }
        }
        if start.is_some() {
            self.identity.execution_id += 1;
            self.history.clear();
            self.inherited = self.values.clone();
        }
        Batch { start, messages }
    }

    /// Commits a turn. Each event is written to JSON and read back, as by a store.
    ///
    /// # Errors
    ///
    /// [`NotKept`] names an event that is another one after it was written to JSON and read back.
    pub fn commit(&mut self, turn: &Turn) -> Result<(), NotKept> {
        let mut events = Vec::with_capacity(turn.events.len());
        for event in &turn.events {
            let kept: Event = serde_json::from_str(&serde_json::to_string(event)?)?;
            if kept != *event {
                return Err(NotKept::Changed(event.event_id));
            }
            events.push(kept);
        }
        self.record(events);
        Ok(())
    }

    /// Appends events to the history without a look at the turn that decided them.
    pub fn record(&mut self, events: Vec<Event>) {
        for event in events {
            self.record_value(&event.kind);
            self.history.push(event);
        }
    }

    fn record_value(&mut self, kind: &EventKind) {
        match kind {
            EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                let entry = KvEntry { value: value.clone(), last_updated_at_ms: *last_updated_at_ms };
                self.values.insert(key.clone(), entry);
            }
            EventKind::KeyValueCleared { key } => drop(self.values.remove(key)),
            EventKind::KeyValuesCleared => self.values.clear(),
            _ => {}
        }
    }
}

fn start_of(item: &WorkItem) -> Option<Start> {
    StartMessage::read(item.clone()).ok().map(|message| message.start)
}
