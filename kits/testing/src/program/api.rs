//! The names of the library under test that the shared sources use.

pub use steadfast_core::{
    AppErrorKind, BackoffStrategy, ConfigErrorKind, DurableFuture, Either2, Either3, ErrorDetails, Event,
    EventKind, OrchestrationContext, PoisonMessageType, RetryPolicy, WorkItem,
};
