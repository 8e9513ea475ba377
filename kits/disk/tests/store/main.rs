//! The SQLite store on a disk that fails: what it acknowledged is there after every power failure, and every
//! failure of a call is an error value.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "what a test relies on, it panics without; figures are for people"
)]

mod chain;
mod commit;
mod faults;
mod lost_rows;
mod machine;
mod pages;
mod power;
mod processes;
mod read;
mod restored;
mod room;
