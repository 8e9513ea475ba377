//! The engine that runs in a world. `kits/mutations` builds this library with a package of the same name that
//! has mutants in it.

pub use steadfast_runtime::{
    ActivityContext, OnMissingHandler, Runtime, RuntimeOptions,
    registry::{ActivityRegistry, OrchestrationRegistry},
};
