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
mod counts;
mod endings;
mod faults;
mod foreign;
mod future;
mod kind;
mod limits;
mod mismatch;
mod misuse;
mod poll_points;
mod replaying;
mod table;
mod traceparent;
mod verify;
