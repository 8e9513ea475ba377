//! The embedded store: one SQLite file, durable and fast.
//!
//! One thread owns the one writing connection and commits the requests that wait together (group commit):
//! each request runs in its own savepoint, and all are answered after the commit. Reads have connections of
//! their own. A fetch that finds nothing waits until this process commits a row for it, or until the next
//! moment at which a row becomes runnable by time; commits of other processes are noticed by looking at the
//! file.
//!
//! The clock of the store (S16) is that of the file: a time in the file, moved on by the time of the machine,
//! which all processes on it read alike. The first process to open the file sets it to its wall clock, never
//! back; those that join take it over. A sleep of the machine counts, and extends the live leases by as much.
//!
//! Acknowledged commits survive power loss (`synchronous = FULL`); [`Durability`] offers less, explicitly.
//!
//! The modules: `link` has the connections and transactions, `merge` the writer that runs requests together,
//! `schema` the tables and their migrations, and `verbs` the operations of the store, one file for each
//! subject. The store trait is implemented in `store.rs`.

mod link;
mod merge;
mod schema;
mod store;
mod verbs;

/// The page for users, whose blocks are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use link::open::OpenError;
#[doc(hidden)]
pub use link::options::Threads;
pub use link::options::{Durability, SqliteOptions};
pub use store::SqliteProvider;
