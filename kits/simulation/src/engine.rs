//! The engine that runs in a world: the real one, or a copy of it with mutants in it.

#[cfg(not(feature = "mutations"))]
pub use steadfast::{
    ActivityContext,
    runtime::{
        OnMissingHandler, Runtime, RuntimeOptions,
        registry::{ActivityRegistry, OrchestrationRegistry},
    },
};
#[cfg(feature = "mutations")]
pub use steadfast_broken::{
    ActivityContext, OnMissingHandler, Runtime, RuntimeOptions,
    registry::{ActivityRegistry, OrchestrationRegistry},
};
