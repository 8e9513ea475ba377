//! Options of the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast_clock::Clock;

/// Says how a database is used. Every field has a sensible default.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Bounds the connections of this process, the one that listens apart.
    pub max_connections: usize,
    /// Bounds how long a connection may take to be made, or to become free.
    pub connect_timeout: Duration,
    /// Bounds how long a statement may take.
    pub statement_timeout: Duration,
    /// Bounds how many requests of one kind become one call.
    pub max_batch: usize,
    /// Listens for what other processes commit. Without it, and through a pooler that gives every transaction another
    /// connection, they are noticed every `poll_interval`.
    pub listen: bool,
    /// Says how often a waiting fetch looks although nobody told it to.
    pub poll_interval: Duration,
    /// Gives the store a clock instead of the database's: for tests.
    pub clock: Option<Arc<dyn Clock>>,
    /// Counts what is asked of the database: for tests and measurements.
    pub counts: Option<Arc<Counts>>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            max_connections: 10,
            connect_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
            max_batch: 64,
            listen: true,
            poll_interval: Duration::from_secs(5),
            clock: None,
            counts: None,
        }
    }
}

/// Counts what a store asks of its database.
#[derive(Debug, Default)]
pub struct Counts {
    /// Says whether to count blocks too, which costs a statement each.
    pub with_blocks: bool,
    /// Counts the statements that were sent.
    pub sent: AtomicU64,
    /// Counts the statements that were answered, or whose answer nobody waits for.
    pub answered: AtomicU64,
    /// Counts the blocks of tables and indexes that statements looked at.
    pub blocks: AtomicU64,
}

impl Counts {
    /// Tells whether every statement that was sent has been answered.
    pub fn is_quiet(&self) -> bool {
        let answered = self.answered.load(Ordering::Acquire);
        answered == self.sent.load(Ordering::Acquire)
    }

    pub(crate) fn send(self: &Arc<Self>) -> Sent {
        self.sent.fetch_add(1, Ordering::AcqRel);
        Sent(Arc::clone(self))
    }
}

/// A statement under way.
#[derive(Debug)]
pub(crate) struct Sent(Arc<Counts>);

impl Drop for Sent {
    fn drop(&mut self) {
        self.0.answered.fetch_add(1, Ordering::AcqRel);
    }
}
