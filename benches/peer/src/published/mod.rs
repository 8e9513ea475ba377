//! The published crate on its own runtime, one scripted turn at a time.

mod instance;
mod stage;
mod theatre;

pub use theatre::{NotPlayed, Theatre};
