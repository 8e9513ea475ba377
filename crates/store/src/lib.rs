//! What a store promises.
//!
//! A store keeps everything that must survive: histories, queues, leases, sessions, key-value state. There are
//! two traits. [`Store`] is typed and complete; the runtime and the client use it. [`Provider`] is the
//! compatible one; every `Store` is a `Provider`, and [`store_of`] makes a `Store` of any `Provider`. The
//! promises are in `CONTRACT.md`, as numbered clauses, and `steadfast-conformance` proves them.

mod adapter;
mod admin;
mod compat;
mod error;
mod forward;
mod instance;
mod lease;
mod outbox;
mod provider;
mod session;
mod set_aside;
mod store;
mod store_clock;
mod stray;
mod turn;
mod waiters;
mod waiting;
mod work;

pub use adapter::Adapter;
pub use admin::{
    DEFAULT_BULK_LIMIT, DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree,
    ProviderAdmin, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};
pub use error::{ProviderError, ProviderErrorKind};
pub use forward::{StoreCall, forwarded};
pub use instance::{
    Cursor, DEFAULT_PAGE, Envelope, ExecutionState, InstancePage, InstanceQuery, InstanceState, InstanceWait,
    MAX_PAGE, Started, WaitFor, Waited,
};
pub use lease::{Abandon, Attempt, LeaseToken};
pub use outbox::Outbox;
pub use provider::{Provider, store_of};
pub use session::{Appetite, RenewSessions, SessionInfo, SessionRef, SessionsRenewed};
pub use set_aside::{MAX_UNREADABLE_ATTEMPTS, Queue, SetAside, UNREADABLE_RETRY};
pub use store::{Store, check_message};
pub use store_clock::StoreClock;
pub use stray::tell_of_strays;
pub use turn::{
    Cold, Committed, Held, History, MAX_TURN_MESSAGES, Message, NewWork, OrchestrationItem, RunId,
    TurnCommit, TurnLease, TurnRequest, Warm,
};
pub use waiters::{Interest, Looking, Waiter, Waiters, Woken};
pub use waiting::{OldestWaiting, TurnState, WorkPhase, WorkState};
pub use work::{
    Claim, ClaimedSession, Outcome, Owner, SessionFetchConfig, SessionRequest, SessionScope, WorkLease,
    WorkRequest,
};
