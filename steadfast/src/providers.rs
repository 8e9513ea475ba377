//! Stores: the traits that they implement, and the data that they are given and give back.

pub use steadfast_core::limits::MAX_WORKER_TAGS;
pub use steadfast_core::{
    CarriedSession, DispatcherCapabilityFilter, ExecutionMetadata, InvalidTagFilter, KvEntry,
    ScheduledActivityIdentifier, SemverRange, SessionPool, SystemStats, TagFilter, WorkItem,
    current_build_version,
};
pub use steadfast_store::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, OrchestrationItem,
    Provider, ProviderAdmin, ProviderError, ProviderErrorKind, PruneOptions, PruneResult, QueueDepths,
    SessionFetchConfig, Store, SystemMetrics,
};

pub use steadfast_runtime::instrumented;

/// The errors of a store.
pub mod error {
    pub use steadfast_store::{ProviderError, ProviderErrorKind};
}

/// The trait to inspect instances and to delete those that have ended, with its data.
pub mod management {
    pub use steadfast_store::{
        DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, ProviderAdmin,
        PruneOptions, PruneResult, QueueDepths, SystemMetrics,
    };
}

/// The typed contract of stores: the trait [`Store`] and the data in its methods.
///
/// An application does not need these names: they are for a crate that implements or wraps a store.
pub mod store {
    pub use steadfast_store::{
        Abandon, Appetite, Attempt, Claim, ClaimedSession, Cold, Committed, EndedTry, Envelope, Gauges, Held,
        History, LeaseToken, ListedHandler, Message, NeededHandler, NewWork, NodeRegistration, NodeStart,
        OldestWaiting, Outcome, Owner, Queue, Refusal, Refused, RenewSessions, RunId, SessionRef,
        SessionRequest, SessionScope, SessionsRenewed, SetAside, Store, TurnCommit, TurnLease, TurnRequest,
        WITHDRAWN_KNOWN_FOR, WORKER_KEPT_FOR, WORKER_LIVE_FOR, WaitFor, Waited, Warm, WorkLease, WorkRequest,
        WorkerId, WorkerInfo, WorkerProcess, WorkerReport, WorkerSlots, store_of,
    };
}

/// The store in memory, for tests and for a first try: what it holds is lost when the process ends.
#[cfg(feature = "memory")]
pub mod memory {
    pub use steadfast_memory::{Damage, MemoryStore};
}

/// The store in one SQLite file.
#[cfg(feature = "sqlite")]
pub mod sqlite {
    #[doc(hidden)]
    pub use steadfast_sqlite::Threads;
    pub use steadfast_sqlite::{Durability, OpenError, SqliteOptions, SqliteProvider};
}

/// The store for many machines: PostgreSQL.
#[cfg(feature = "postgres")]
pub mod postgres {
    pub use steadfast_postgres::{
        Counts, FunctionChange, OpenError, PendingFunction, PendingMigration, PendingMigrations,
        PostgresOptions, PostgresProvider, Within,
    };
}
