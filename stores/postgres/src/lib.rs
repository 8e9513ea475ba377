//! The store for many machines: PostgreSQL.
//!
//! **Time** (S16): the database's clock decides. The clocks of the machines that run workers do not matter.
//!
//! **Durability** (S19): an acknowledged call is as durable as the server's `synchronous_commit` makes it.
//! Its default, `on`, survives a power loss.
//!
//! The rooms: `link` talks to the server, `merge` makes one call of many requests, `verbs` holds what the
//! store contract asks for, `schema` holds migrations and functions.

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
