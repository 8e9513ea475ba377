//! What happened, turn by turn, as plain data that both libraries can give.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;
use serde_json::Value;

/// Fields that depend on the time of the run or on the library's version, not on its decisions.
const CIRCUMSTANCE: &[&str] = &["timestamp_ms", "duroxide_version", "fire_at_ms", "last_updated_at_ms"];

/// One program on one library, from its start to where it rests.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The turns, in order.
    pub turns: Vec<Turn>,
    /// Why there is no further one.
    pub ending: Ending,
}

/// One committed turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The execution it belongs to.
    pub execution_id: u64,
    /// The messages it was given, as they were.
    pub arrivals: Vec<Value>,
    /// The events it added, as they were.
    pub history: Vec<Value>,
    /// The same events without circumstance, like the rest.
    pub events: Vec<Value>,
    /// What it put into the worker queue.
    pub work: Vec<Value>,
    /// What it put into the orchestrator queue.
    pub messages: Vec<Value>,
    /// The schedule ids of the activities it cancelled.
    pub cancelled: Vec<u64>,
    /// Whether the library repeats its own history up to here; unknown where the history has ended.
    pub replays: Option<bool>,
}

/// Why a run has no further turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Its last event says so.
    Terminal(String),
    /// The script has nothing more to say and the program waits.
    Quiet,
    /// The library refused the batch and gave it back.
    Abandoned,
    /// The library did not come back within the time of a test.
    Stuck,
}

/// Gives the JSON of each item.
///
/// # Errors
///
/// Gives the error of an item that cannot be written.
pub fn raw<T: Serialize>(items: &[T]) -> Result<Vec<Value>, serde_json::Error> {
    items.iter().map(serde_json::to_value).collect()
}

/// Gives the JSON of each item without circumstance.
///
/// # Errors
///
/// Gives the error of an item that cannot be written.
pub fn decisions<T: Serialize>(items: &[T]) -> Result<Vec<Value>, serde_json::Error> {
    let mut values = raw(items)?;
    values.iter_mut().for_each(strip);
    Ok(values)
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !CIRCUMSTANCE.contains(&key.as_str()));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl Display for Run {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, turn) in self.turns.iter().enumerate() {
            writeln!(f, "turn {index}, execution {}", turn.execution_id)?;
            turn.fmt(f)?;
        }
        writeln!(f, "then {:?}", self.ending)
    }
}

impl Display for Turn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        each(f, "  <- ", &self.arrivals)?;
        for event in &self.events {
            writeln!(f, "  {}", event_line(event))?;
        }
        each(f, "  => work ", &self.work)?;
        each(f, "  => message ", &self.messages)?;
        self.cancelled.iter().try_for_each(|id| writeln!(f, "  => cancel activity {id}"))
    }
}

fn each(f: &mut Formatter<'_>, prefix: &str, items: &[Value]) -> fmt::Result {
    items.iter().try_for_each(|item| writeln!(f, "{prefix}{item}"))
}

/// An event as `id ← source Kind {fields}`.
fn event_line(event: &Value) -> String {
    let Value::Object(mut fields) = event.clone() else { return event.to_string() };
    let id = fields.remove("event_id").unwrap_or_default();
    let source = match fields.remove("source_event_id") {
        Some(Value::Number(source)) => format!(" <- {source}"),
        _ => String::new(),
    };
    let kind = fields.remove("type").unwrap_or_default();
    fields.remove("instance_id");
    fields.remove("execution_id");
    format!("{id}{source} {} {}", kind.as_str().unwrap_or("?"), Value::Object(fields))
}
