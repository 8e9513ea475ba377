//! Observing a runtime: metrics, log set-up, spans, and the store that times and counts its calls.

pub mod instrumented;
pub mod observability;
pub(crate) mod span;
