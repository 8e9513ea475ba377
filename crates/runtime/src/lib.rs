//! The runtime, which runs orchestrations and activities: loops, leases, sessions, shutdown.
//!
//! One loop (`dispatch`) serves two lanes, turns and activities. A slot of a lane fetches a lease, processes
//! it while a keeper renews it, and completes or abandons it. Pure functions decide: `turn/triage.rs` what to
//! do with a leased turn, the core what its code does, `session/local_session.rs` what happens to a session.
//! The other files carry data between them and the store. This crate knows no particular store.

mod activity;
mod dispatch;
mod handler;
mod invocations;
mod observe;
mod options;
mod plan;
pub mod registry;
mod runtime;
mod session;
mod shutdown;
mod turn;
mod upkeep;

pub use activity::{ActivityContext, ActivityError, CancelReason, MAX_ERROR_DATA_BYTES};
pub use handler::{ActivityHandler, FnActivity, FnOrchestration, OrchestrationHandler};
pub use observability::{LogFormat, ObservabilityConfig};
pub use observe::{instrumented, observability};
pub use options::{OnMissingHandler, RuntimeOptions, UnregisteredBackoffConfig};
pub use plan::OptionsError;
pub use registry::{OrchestrationRegistry, OrchestrationRegistryBuilder, VersionPolicy};
pub use runtime::{OrchestrationDescriptor, Runtime};
pub use session::{DetachReason, Session, SessionHooks, SessionRecoveryPolicy};
pub use steadfast_core::{OrchestrationStatus, kind_of, limits};
pub use upkeep::health::Health;
