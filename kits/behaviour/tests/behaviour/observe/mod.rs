//! What a runtime logs, counts and traces.

mod emission;
mod log;
mod metrics;
mod recorder;
mod span;
mod traceparent;
