//! A program written for the compatible crate, under its name: proof that one line of a `Cargo.toml` is enough.
//!
//! [`program`] holds the handlers, which use every method of both contexts and both registries; [`Plain`] is a
//! provider of the kind that applications write around another. The tests run the same scenarios on each store.

mod plain;
pub mod program;

pub use plain::{Plain, Trouble};
