//! Long trials of the whole: real processes in trouble, full stores, and simulated worlds.

pub(crate) mod harness;
pub(crate) mod scale;
pub(crate) mod sim;
