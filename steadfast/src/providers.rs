//! Stores: the traits they implement, and what they are given and give back.

pub use steadfast_core::limits::MAX_WORKER_TAGS;
pub use steadfast_core::{
    DispatcherCapabilityFilter, ExecutionMetadata, KvEntry, ScheduledActivityIdentifier, SemverRange,
    SystemStats, TagFilter, WorkItem, current_build_version,
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

/// Looking at instances and removing what has ended.
pub mod management {
    pub use steadfast_store::{
        DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, ProviderAdmin,
        PruneOptions, PruneResult, QueueDepths, SystemMetrics,
    };
}

/// The store in one SQLite file.
#[cfg(feature = "sqlite")]
pub mod sqlite {
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
