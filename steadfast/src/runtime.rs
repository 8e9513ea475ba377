//! The runtime, which runs orchestrations and activities, its options, and the registries of code.

pub use steadfast_clock::{
    BootId, Clock, MachineTime, Random, SeededRandom, Sleep, SystemClock, SystemRandom, VirtualClock,
};
pub use steadfast_core::replay::CarryForwardOverflow;
pub use steadfast_runtime::{
    ActivityHandler, DetachReason, FnActivity, FnOrchestration, Health, LogFormat, ObservabilityConfig,
    OnMissingHandler, OptionsError, OrchestrationDescriptor, OrchestrationHandler, OrchestrationRegistry,
    OrchestrationRegistryBuilder, OrchestrationStatus, Runtime, RuntimeOptions, Session, SessionHooks,
    SessionRecoveryPolicy, UnregisteredBackoffConfig, VersionPolicy, kind_of, limits, observability,
    registry,
};
