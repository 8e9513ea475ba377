//! Tracing spans of the test's own thread, and for each log line the spans around it.

use std::sync::{Arc, Mutex, PoisonError};

use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::Line;

/// Collects spans, and for each log line the spans around it. Clones share one collection.
#[derive(Debug, Clone, Default)]
pub struct Spans(Arc<Mutex<Traced>>);

#[derive(Debug, Default)]
struct Traced {
    opened: Vec<Span>,
    lines: Vec<(Line, Vec<Span>)>,
}

/// One span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The name of the span, as the code that opens it gives it.
    pub name: String,
    /// The target, level and fields that the span was opened with.
    pub line: Line,
}

impl Spans {
    /// Begins to collect what the current thread traces, until the guard is dropped.
    pub fn collect() -> (Self, tracing::subscriber::DefaultGuard) {
        let spans = Self::default();
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(spans.clone()));
        (spans, guard)
    }

    /// Returns the spans of a name, in the order in which they were opened.
    pub fn named(&self, name: &str) -> Vec<Span> {
        self.with(|state| state.opened.iter().filter(|span| span.name == name).cloned().collect())
    }

    /// Returns the spans around each line that contains a text, the innermost first.
    pub fn around(&self, text: &str) -> Vec<Vec<Span>> {
        self.with(|state| {
            let saying = state.lines.iter().filter(|(line, _)| line.says(text));
            saying.map(|(_, spans)| spans.clone()).collect()
        })
    }

    fn with<T>(&self, what: impl FnOnce(&mut Traced) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        let mut line = Line {
            target: metadata.target().to_owned(),
            level: metadata.level().to_string(),
            ..Line::default()
        };
        attributes.record(&mut line);
        let span = Span { name: metadata.name().to_owned(), line };
        if let Some(entry) = context.span(id) {
            entry.extensions_mut().insert(span.clone());
        }
        self.with(|state| state.opened.push(span));
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line = Line {
            target: metadata.target().to_owned(),
            level: metadata.level().to_string(),
            ..Line::default()
        };
        event.record(&mut line);
        let around = context.event_scope(event).into_iter().flatten();
        let around = around.filter_map(|span| span.extensions().get::<Span>().cloned()).collect();
        self.with(|state| state.lines.push((line, around)));
    }
}
