//! Durable execution for Rust, as a library.
//!
//! An orchestration is ordinary `async` code whose progress survives crashes: every decision it takes is
//! recorded in a history, and replaying that history brings it back to where it stood. Activities that share
//! in-memory state (a conversation, a loaded model, a child process) run on one worker as a *session*, and a
//! session is never silently lost when that worker dies.
//!
//! This crate is the one a user names. It re-exports the parts of the workspace and has no logic of its own.
//!
//! ```
//! # #[cfg(feature = "sqlite")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::{sync::Arc, time::Duration};
//! use steadfast::providers::sqlite::SqliteProvider;
//! use steadfast::runtime::{Runtime, registry::ActivityRegistry};
//! use steadfast::{Client, OrchestrationContext, OrchestrationRegistry};
//!
//! let activities = ActivityRegistry::builder()
//!     .register("Greet", |_, name| async move { Ok(format!("Hello, {name}!")) });
//! let orchestrations = OrchestrationRegistry::builder()
//!     .register("Hello", |ctx: OrchestrationContext, name| async move {
//!         ctx.schedule_activity("Greet", name).await
//!     });
//!
//! let store = Arc::new(SqliteProvider::new_in_memory().await?);
//! let runtime = Runtime::start_with_store(store.clone(), activities.build(), orchestrations.build()).await;
//! let client = Client::new(store);
//! client.start_orchestration("hello-1", "Hello", "Ada").await?;
//! let greeting = client.wait_for_orchestration_typed::<String>("hello-1", Duration::from_secs(10)).await?;
//! assert_eq!(greeting, Ok("Hello, Ada!".to_owned()));
//! runtime.shutdown(None).await;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sqlite"))]
//! # fn main() {}
//! ```
//!
//! # Activities run at least once
//!
//! A completed step is never repeated, but an activity whose worker dies before its result is recorded runs
//! again. An effect that must happen once goes to a service that accepts a key:
//! [`ActivityContext::idempotency_key`] is the same for every delivery and every try of one call and differs
//! for every other call.
//!
//! # Features
//!
//! - `sqlite` (default): the store in one SQLite file, `providers::sqlite`, and `Runtime::start` without a
//!   store.
//! - `memory` (default): the store in memory, `providers::memory`, for tests.
//! - `postgres`: the store for many machines, `providers::postgres`.
//! - `logging` (default): `runtime::observability::init_logging`, for applications without a tracing
//!   subscriber of their own.
//!
//! # Where things are
//!
//! - this module: what orchestrations and activities are written with;
//! - [`client`]: start, signal, wait, inspect, manage;
//! - [`runtime`]: run orchestrations and activities; registries, options, sessions, clocks;
//! - [`providers`]: the stores, and the traits to write one;
//! - [`replay`]: check new code against recorded histories.

pub mod client;
pub mod providers;
pub mod replay;
pub mod runtime;

pub use client::{Client, ClientError};
pub use providers::{
    DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, InstanceFilter, InstanceInfo,
    InstanceTree, ProviderAdmin, PruneOptions, PruneResult, QueueDepths, ScheduledActivityIdentifier,
    SemverRange, SessionFetchConfig, SystemMetrics, TagFilter, current_build_version,
};
pub use runtime::{
    OrchestrationDescriptor, OrchestrationHandler, OrchestrationRegistry, OrchestrationRegistryBuilder,
    OrchestrationStatus, RuntimeOptions,
};
pub use steadfast_core::{
    Action, AppErrorKind, BackoffStrategy, CallFailure, CallTerms, ConfigErrorKind, DurableFuture, Either2,
    Either3, ErrorDetails, Event, EventKind, Failure, FailureKind, INITIAL_EVENT_ID, INITIAL_EXECUTION_ID,
    InvalidRetryPolicy, OrchestrationContext, PoisonMessageType, Policy, Retry, RetryPolicy,
    SUB_ORCH_AUTO_PREFIX, ScheduleKind, Select2, Select3, SessionConcurrency, SessionKey, SessionMigration,
    SessionOptions, SystemStats, TypedDequeue, WithTagError, build_child_instance_id,
    is_auto_generated_sub_orch_id, is_session_lost,
};
pub use steadfast_runtime::{ActivityContext, ActivityError, CancelReason, MAX_ERROR_DATA_BYTES};

/// The code blocks of the README, under test.
#[cfg(all(doctest, feature = "postgres"))]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The code blocks of the guide, under test.
#[cfg(doctest)]
mod guide {
    macro_rules! pages {
        ($($page:literal $name:ident),* $(,)?) => {
            $(#[doc = include_str!(concat!("../../docs/guide/", $page, ".md"))] struct $name;)*
        };
    }

    pages! {
        "orchestrations" Orchestrations,
        "activities" Activities,
        "timers-and-events" TimersAndEvents,
        "errors" Errors,
        "retries" Retries,
        "children" Children,
        "sessions" Sessions,
        "continue-as-new" ContinueAsNew,
        "versioning" Versioning,
        "observability" Observability,
        "operations" Operations,
        "writing-a-store" WritingAStore,
        "coming-from-duroxide" ComingFromDuroxide,
    }

    #[cfg(feature = "postgres")]
    pages! {
        "postgres" Postgres,
    }
}

#[doc(hidden)]
pub use steadfast_core::CompletionResult;

/// A store, shared between runtimes and clients.
pub type ProviderRef = std::sync::Arc<dyn providers::Provider>;

/// The code of an orchestration, as a registry keeps it.
pub type OrchestrationHandlerRef = std::sync::Arc<dyn runtime::OrchestrationHandler>;
