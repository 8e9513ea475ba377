//! The traits of a store, and the promises that every store keeps.
//!
//! A store keeps everything that must survive: histories, queues, leases, sessions, key-value state. There
//! are two traits. [`Store`] is typed and complete; the runtime and the client use it. [`Provider`] is the
//! compatible one; every `Store` is a `Provider`, and [`store_of`] makes a `Store` of any `Provider`. The
//! promises are in `CONTRACT.md`, as numbered clauses, and `steadfast-conformance` proves them.
//!
//! For authors of a store: [`rules`] holds the rules that are the same in every store, [`Waiters`] wakes the
//! fetches that wait, [`StoreClock`] tells the time, and [`forward_store!`] generates a decorator.

mod admin;
mod compat;
mod error;
mod forward;
mod notify;
mod outbox;
mod provider;
pub mod rules;
mod store;
mod store_clock;
mod throttle;
mod vocabulary;

pub use admin::{
    DEFAULT_BULK_LIMIT, DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree,
    ProviderAdmin, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};
pub use compat::Adapter;
pub use error::{ProviderError, ProviderErrorKind};
pub use forward::{StoreCall, forwarded};
pub use notify::{Interest, Looking, Waiter, Waiters, Woken};
pub use outbox::Outbox;
pub use provider::{Provider, store_of};
pub use rules::{InstanceWait, check_message, tell_of_strays};
pub use store::Store;
pub use store_clock::StoreClock;
pub use throttle::LineThrottle;
pub use vocabulary::*;
