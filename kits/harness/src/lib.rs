//! Real processes under load. [`crash`] kills them, pauses them and takes the store away, and asks the
//! auditor what became of the promises. [`soak`] does nothing to them for hours, and looks for a trend in
//! what they use.
//!
//! Both are one program, `steadfast-harness`: the driver, which starts itself again as [`worker`] and as
//! [`holder`]. `docs/internals/harness.md` says how to run them and how to read what they print.

#![allow(clippy::print_stdout, reason = "a command line tool speaks to its terminal")]

pub mod address;
pub mod code;
pub mod crash;
pub mod crew;
pub mod holder;
pub mod notes;
pub mod place;
pub mod soak;
pub mod tally;
pub mod worker;
