//! The engine at its public interface: history and arrivals in; events, effects and a verdict out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

#[path = "../strategies/mod.rs"]
mod strategies;
mod support;

mod bad_input;
mod child;
mod combinators;
mod counts;
mod drops;
mod endings;
mod faults;
mod foreign;
mod kv;
mod limits;
mod mismatch;
mod misuse;
mod poll_points;
mod queue;
mod replaying;
mod retry;
mod session;
mod signal;
mod table;
mod traceparent;
mod verify;
