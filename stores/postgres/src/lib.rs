//! The store for many machines: PostgreSQL.
//!
//! **Time** (S16): the database's clock decides, whatever the clocks of the machines say.
//! **Durability** (S19): what a call acknowledged is as safe as the server's `synchronous_commit` makes it; its default, `on`,
//! covers power loss.

#![allow(dead_code, unused_macros, unused_imports, reason = "the areas that use it follow")]

mod admin;
mod batch;
mod commit;
mod compat;
mod connect;
mod db;
mod error;
mod escape;
mod exception;
mod history;
mod instance;
mod kv;
mod message;
mod migrate;
mod open;
mod options;
mod param;
mod session;
mod set_aside;
mod store;
mod turn;
mod waiting;
mod wake;
mod work;

pub use open::OpenError;
pub use options::PostgresOptions;
pub use store::PostgresProvider;
