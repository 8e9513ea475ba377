//! The store for many machines: PostgreSQL.
//!
//! **Time** (S16): the database's clock decides, whatever the clocks of the machines say.
//! **Durability** (S19): what a call acknowledged is as safe as the server's `synchronous_commit` makes it; its default, `on`,
//! covers power loss.

mod admin;
mod backoff;
mod batch;
mod calls;
mod commit;
mod compat;
mod connect;
mod db;
mod encrypted;
mod error;
mod escape;
mod exception;
mod floor;
mod giving_back;
mod history;
mod instance;
mod kv;
mod lanes;
mod listen;
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
mod wait;
mod waiting;
mod wake;
mod within;
mod work;

pub use open::OpenError;
pub use options::{Counts, PostgresOptions};
pub use pending::{FunctionChange, PendingFunction, PendingMigration, PendingMigrations};
pub use store::PostgresProvider;
pub use within::Within;
