//! What a user observes, as tests at the public API: one for each rule, on every store.
//!
//! A test takes a [`Stage`]: a store, a clock that moves when told, and a client. [`on_every_store`] runs it
//! in memory, in a SQLite file, on a PostgreSQL server, and through a wrapper that forwards only what a
//! provider must have. `docs/contract/behaviour.md` says which test shows which rule.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a stage is for tests, which panic when what they rely on does not hold"
)]

mod damage;
mod emitted;
mod faults;
mod lines;
mod spans;
mod stage;

pub use emitted::Emitted;
pub use faults::{Faults, Faulty};
pub use lines::{Line, Lines};
pub use spans::{Span, Spans};
pub use stage::{SOON, Stage, StoreKind, activities, orchestrations};

/// Runs a claim on every store: `async fn the_claim(stage) { … }` becomes a module with a test for each.
#[macro_export]
macro_rules! on_every_store {
    ($($(#[$meta:meta])* async fn $name:ident($stage:ident) $body:block)+) => {$(
        mod $name {
            #[allow(unused_imports, reason = "not every claim uses what its file imports")]
            use super::*;

            $(#[$meta])*
            async fn claim($stage: $crate::Stage) $body

            #[tokio::test]
            async fn memory() {
                $crate::Stage::run_on($crate::StoreKind::Memory, claim).await;
            }

            #[tokio::test]
            async fn sqlite() {
                $crate::Stage::run_on($crate::StoreKind::Sqlite, claim).await;
            }

            #[tokio::test]
            async fn postgres() {
                $crate::Stage::run_on($crate::StoreKind::Postgres, claim).await;
            }

            #[tokio::test]
            async fn wrapped() {
                $crate::Stage::run_on($crate::StoreKind::Wrapped, claim).await;
            }
        }
    )+};
}

/// Runs a claim that needs more than a wrapper of the required methods has (management, sessions, typed
/// waits).
#[macro_export]
macro_rules! on_every_full_store {
    ($($(#[$meta:meta])* async fn $name:ident($stage:ident) $body:block)+) => {$(
        mod $name {
            #[allow(unused_imports, reason = "not every claim uses what its file imports")]
            use super::*;

            $(#[$meta])*
            async fn claim($stage: $crate::Stage) $body

            #[tokio::test]
            async fn memory() {
                $crate::Stage::run_on($crate::StoreKind::Memory, claim).await;
            }

            #[tokio::test]
            async fn sqlite() {
                $crate::Stage::run_on($crate::StoreKind::Sqlite, claim).await;
            }

            #[tokio::test]
            async fn postgres() {
                $crate::Stage::run_on($crate::StoreKind::Postgres, claim).await;
            }
        }
    )+};
}
