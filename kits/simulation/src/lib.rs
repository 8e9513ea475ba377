//! Simulation: runtimes, clients and a store in one thread, with virtual time and seeded faults.
//!
//! A [`world`] has hosts with clocks that disagree ([`time`]), processes that die at any await and come back
//! ([`process`]), and a store that they reach over a wire with faults ([`wire`]). The engine in it is the
//! real one. All that happens is a function of a [`story`], which is made from a seed, told in plain words,
//! and shortened when it fails.

pub mod audit;
pub mod client;
pub mod code;
pub mod engine;
pub mod ground;
pub mod journal;
pub mod kept;
pub mod process;
pub mod shrink;
pub mod story;
pub mod time;
pub mod wire;
pub mod world;
