//! Histories that this engine did not write, or that nothing can read.

mod damaged;
mod unreadable;
