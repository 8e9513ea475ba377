//! Durable execution for Rust, as a library.
//!
//! An orchestration is ordinary `async` code whose progress survives crashes: every decision it takes is
//! recorded in a history, and replaying that history brings it back to where it stood. Activities that share
//! in-memory state (a conversation, a loaded model, a child process) run on one worker as a *session*, and a
//! session is never silently lost when that worker dies.
//!
//! This crate is the one a user names. It re-exports the parts of the workspace and has no logic of its own.

pub mod providers;
pub mod runtime;

pub use steadfast_core::{
    Action, AppErrorKind, BackoffStrategy, ConfigErrorKind, DispatcherCapabilityFilter, DurableFuture,
    Either2, Either3, ErrorDetails, Event, EventKind, INITIAL_EVENT_ID, INITIAL_EXECUTION_ID,
    OrchestrationContext, OrchestrationStatus, PoisonMessageType, RetryPolicy, SUB_ORCH_AUTO_PREFIX,
    ScheduleKind, ScheduledActivityIdentifier, SemverRange, SessionConcurrency, SessionKey, SessionMigration,
    SessionOptions, SystemStats, TagFilter, build_child_instance_id, current_build_version,
    is_auto_generated_sub_orch_id, is_session_lost,
};

pub use providers::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, ProviderAdmin,
    PruneOptions, PruneResult, QueueDepths, SessionFetchConfig, SystemMetrics,
};

#[doc(hidden)]
pub use steadfast_core::CompletionResult;

/// Shares a store between the runtime and its clients.
pub type ProviderRef = std::sync::Arc<dyn providers::Provider>;
