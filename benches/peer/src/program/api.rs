//! The names of the published crate that the shared sources use.

pub use duroxide::{
    AppErrorKind, BackoffStrategy, ConfigErrorKind, DurableFuture, Either2, Either3, ErrorDetails, Event,
    EventKind, OrchestrationContext, PoisonMessageType, RetryPolicy, providers::WorkItem,
};
