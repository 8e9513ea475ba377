//! Properties of the engine on random programs, arrivals and batches.
//!
//! `STEADFAST_CASES=100` runs a hundred times as many cases as an ordinary run does.

mod agreement;
mod chapter;
mod counterexamples;
mod feed;
mod invariants;
mod journal;
mod judge;
mod mismatch;
mod standstill;
