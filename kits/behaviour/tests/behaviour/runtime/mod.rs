//! The life of a runtime: start, registries, workers and their fleets, health, upkeep, shutdown.

mod blocked;
mod fleet;
mod health;
mod registry;
mod retention;
mod shutdown;
mod startup;
mod upkeep;
mod worker;
