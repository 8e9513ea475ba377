//! What runs orchestrations and activities: loops, leases, sessions, shutdown.
//!
//! One dispatch loop serves two lanes, turns and activities. A slot fetches an item, processes it while a
//! keeper renews its lease, and completes or abandons it. What to do with a leased instance is decided by a
//! pure function (`triage`) and by the core; this crate carries data between them and the store. It knows no
//! particular store.

mod activity;
mod dispatch;
mod handler;
mod observe;
mod options;
mod plan;
pub mod registry;
mod runtime;
mod session;
mod turn;
mod upkeep;

pub use activity::{ActivityContext, CancelReason};
pub use handler::{ActivityHandler, FnActivity, FnOrchestration, OrchestrationHandler};
pub use observability::{LogFormat, ObservabilityConfig};
pub use observe::{instrumented, observability};
pub use options::{RuntimeOptions, UnregisteredBackoffConfig};
pub use plan::OptionsError;
pub use registry::{OrchestrationRegistry, OrchestrationRegistryBuilder, VersionPolicy};
pub use runtime::{Health, OrchestrationDescriptor, Runtime};
pub use session::{DetachReason, Session, SessionHooks};
pub use steadfast_core::{OrchestrationStatus, kind_of, limits};
