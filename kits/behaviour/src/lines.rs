//! Log lines of the tasks on the test's own thread.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// Collects log lines. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<Line>>>);

/// One log line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The target of the line: the module or the name that it is logged under.
    pub target: String,
    /// The level in capitals: `INFO`, `WARN`, …
    pub level: String,
    /// The fields by name, `message` among them.
    pub fields: BTreeMap<String, String>,
}

impl Lines {
    /// Begins to collect what the current thread logs, until the guard is dropped.
    pub fn collect() -> (Self, tracing::subscriber::DefaultGuard) {
        let lines = Self::default();
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
        (lines, guard)
    }

    /// Returns all lines so far.
    pub fn all(&self) -> Vec<Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the lines under a target.
    pub fn of(&self, target: &str) -> Vec<Line> {
        self.all().into_iter().filter(|line| line.target == target).collect()
    }

    /// Returns the lines of a level whose message contains a text.
    pub fn saying(&self, level: &str, text: &str) -> Vec<Line> {
        self.all().into_iter().filter(|line| line.level == level && line.says(text)).collect()
    }
}

impl Line {
    /// Tells whether the message contains a text.
    pub fn says(&self, text: &str) -> bool {
        self.fields.get("message").is_some_and(|message| message.contains(text))
    }

    /// Returns the value of a field, empty when it has none.
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// Returns the names of the fields, sorted.
    pub fn names(&self) -> Vec<&str> {
        self.fields.keys().map(String::as_str).collect()
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line = Line {
            target: metadata.target().to_owned(),
            level: metadata.level().to_string(),
            fields: BTreeMap::new(),
        };
        event.record(&mut line);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}
