//! What a runtime shows of itself: metrics and log set-up, spans, and the timed store.

pub mod instrumented;
pub mod observability;
