//! Replay: what repeated code sees, when it is polled, and what happens if it does not fit its history.

mod drops;
mod is_replaying;
mod mismatch;
mod order;
mod poll;
mod rerun;
