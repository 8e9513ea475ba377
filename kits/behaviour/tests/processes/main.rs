//! Real processes on one file or on one server: stopped, killed, started again, with wrong clocks.
//!
//! These tests go by real time, because no test can move the clock of another process. Each module has an
//! ignored test `another_process`: it is the program that the other processes run.

#![allow(clippy::expect_used, clippy::panic, reason = "what a test relies on, it panics without")]

mod clock;
mod file;
mod fleet;
mod outlived;
mod server;
mod session;
