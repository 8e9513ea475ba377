//! What runs orchestrations, as far as it exists: limits, states, and the check of a history against code.

pub use steadfast_core::limits;
pub use steadfast_core::{OrchestrationStatus, kind_of};
