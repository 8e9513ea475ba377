//! What a user observes, rule by rule. `docs/contract/behaviour.md` says which test shows which rule.
//!
//! One binary, because each one links everything.

#![allow(
    deprecated,
    clippy::expect_used,
    clippy::panic,
    reason = "what a test relies on, it panics without; the old spellings are part of the API"
)]

mod between_executions;
mod cancellation;
mod carrying;
mod children;
mod client;
mod codec;
mod collisions;
mod commits;
mod continuing;
mod conversations;
mod custom_status;
mod damaged;
mod deletion;
mod detached;
mod drops;
mod endings;
mod explain;
mod fetching;
mod health;
mod kv;
mod leases;
mod limits;
mod list;
mod logs;
mod management;
mod metrics;
mod nondeterminism;
mod poison;
mod polls;
mod queues;
mod recorders;
mod registry;
mod replay;
mod replaying;
mod reruns;
mod retries;
mod session_bench;
mod session_checkpoints;
mod session_moves;
mod session_scenarios;
mod sessions;
mod set_aside;
mod shutdown;
mod signals;
mod spans;
mod startup;
mod terminate;
mod traceparent;
mod turns;
mod unreadable;
mod upkeep;
mod waits;
mod warm;
mod workbench;
mod worker_leases;
mod worker_sessions;
mod workers;
