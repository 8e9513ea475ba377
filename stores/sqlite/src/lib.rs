//! The embedded store: one SQLite file, durable and fast.
//!
//! One thread owns the one writing connection and commits what is waiting together (group commit): each request
//! runs in its own savepoint, and all are answered after the commit. Reads have connections of their own. A fetch
//! that finds nothing waits until this process commits something for it, or until the next moment at which
//! something becomes runnable by itself; commits of other processes are noticed by watching the file.
//!
//! The clock of the store (S16) is that of the process: wall time when the store is opened, moved on by monotonic
//! time. Processes that share a file share a machine, and so its clock. What is acknowledged survives power loss
//! (`synchronous = FULL`); [`Durability`] offers less, explicitly.

mod admin;
mod connection;
mod db;
mod dump;
mod error;
mod history;
mod import;
mod instance;
mod kv;
mod log;
mod message;
mod migrate;
mod open;
mod options;
mod reader;
mod session;
mod set_aside;
#[cfg(test)]
mod statements;
mod store;
mod turn;
mod wait;
mod waiting;
mod watch;
mod work;
mod writer;

/// The page for users, whose blocks are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use open::OpenError;
pub use options::{Durability, SqliteOptions};
pub use store::SqliteProvider;
