//! What a user observes, rule by rule. `docs/contract/behaviour.md` says which test shows which rule.
//!
//! One binary, because each one links everything.

#![allow(
    deprecated,
    clippy::expect_used,
    clippy::panic,
    reason = "what a test relies on, it panics without; the old spellings are part of the API"
)]

mod activity;
mod child;
mod client;
mod codec;
mod continue_as_new;
mod custom_status;
mod detached;
mod execution;
mod history;
mod input;
mod instance;
mod kv;
mod lease;
mod load;
mod observe;
mod pages;
mod queue;
mod replay;
mod runtime;
mod session;
mod signal;
mod timer;
mod trouble;
mod turn;
mod workbench;
