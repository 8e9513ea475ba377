//! Properties of the engine on random programs, arrivals and batches; and the walking skeleton, which shows
//! that engine and store fit.
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
mod skeleton;
mod standstill;
