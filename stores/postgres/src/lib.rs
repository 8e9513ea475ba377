//! The store for many machines: PostgreSQL.
//!
//! **Time** (S16): the database's clock decides, whatever the clocks of the machines say.
//! **Durability** (S19): what a call acknowledged is as safe as the server's `synchronous_commit` makes it; its default, `on`,
//! covers power loss.

#![allow(dead_code, unused_macros, unused_imports, reason = "the areas that use it follow")]

mod admin;
mod backoff;
mod batch;
mod compat;
mod connect;
mod db;
mod error;
mod escape;
mod history;
mod instance;
mod kv;
mod message;
mod migrate;
mod open;
mod options;
mod param;
mod pending;
mod session;
mod set_aside;
mod store;
#[cfg(test)]
mod tests;
mod tls;
mod turn;
mod url;
mod waiting;
mod wake;
mod work;

pub use open::OpenError;
pub use options::PostgresOptions;
pub use pending::{FunctionChange, PendingFunction, PendingMigration, PendingMigrations};
pub use store::PostgresProvider;
