//! Checks new code against recorded histories, before it replays the instances that are running.
//!
//! Read a history with [`Client::read_execution_history`](crate::Client::read_execution_history), or from a
//! file in which you keep it as JSON, and pass it to [`verify`] with the code that is about to be deployed:
//!
//! ```
//! use steadfast::replay::{Identity, Setup, verify};
//! use steadfast::{Event, OrchestrationContext};
//!
//! async fn order(ctx: OrchestrationContext, order: String) -> Result<String, String> {
//!     ctx.schedule_activity("Charge", order).await
//! }
//!
//! fn check(history: Vec<Event>) -> Result<(), String> {
//!     let identity = Identity {
//!         instance: "order-7".into(), execution_id: 1, name: "Order".into(), version: "1.0.0".into(),
//!     };
//!     verify(Setup::new(identity), history, order).map_err(|mismatch| mismatch.to_string())
//! }
//! # let _ = check;
//! ```

pub use steadfast_core::replay::{CarryForwardOverflow, Identity, Options, Setup, verify};
pub use steadfast_core::{CallSite, LastMatch, Mismatch};
