//! The store for many machines: PostgreSQL.
//!
//! **Time** (S16): the database's clock decides, whatever the clocks of the machines say.
//! **Durability** (S19): what a call acknowledged is as safe as the server's `synchronous_commit` makes it; its default, `on`,
//! covers power loss.

mod link;
mod merge;
mod provider;
mod schema;
mod store;
#[cfg(test)]
mod tests;
mod verbs;

pub use link::open::OpenError;
pub use link::options::{Counts, PostgresOptions};
pub use provider::PostgresProvider;
pub use schema::migrations_pending::{FunctionChange, PendingFunction, PendingMigration, PendingMigrations};
pub use verbs::within::Within;
