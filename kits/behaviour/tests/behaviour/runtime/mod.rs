//! The life of a runtime: start, registries, health, upkeep, shutdown.

mod blocked;
mod health;
mod registry;
mod shutdown;
mod startup;
mod upkeep;
