//! What a store on a file promises beyond the contract: it survives its process, shares its file, groups its
//! commits, runs no statements while it is idle, and costs the same whatever else is stored.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "what a test relies on, it panics without; figures are for people"
)]

mod busy;
mod chain;
mod clock;
mod cost;
mod crash;
/// Faults of our own, each named after what must hold.
mod faults {
    mod former;
    mod others;
    mod retention;
    mod routed;
    mod torn;
}
mod full;
mod group;
mod idle;
mod log;
mod power;
mod process;
mod processes;
mod stage;
mod waits;
