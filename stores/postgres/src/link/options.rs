//! Options of the store, and the plan that they become.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast_clock::Clock;

use crate::link::open::OpenError;

/// Options of a [`PostgresProvider`](crate::PostgresProvider). Every field has a default.
///
/// # Through PgBouncer
///
/// The store works through a pooler that gives every transaction another connection (PgBouncer with
/// `pool_mode = transaction`). It keeps no state in a session, recognises a pooler by the startup parameters
/// that the pooler refuses or drops, and then prepares no statement. Two things are lost there:
///
/// * `LISTEN`, in session mode too. Commits of other processes are noticed every
///   [`poll_interval`](Self::poll_interval), so set it to the longest delay that you accept.
/// * The server's own statement timeout, because a pooler does not pass it on. This process still stops
///   waiting; the pooler's `query_timeout` bounds how long the statement runs on.
///
/// ```
/// use std::time::Duration;
/// # mod steadfast { pub mod providers { pub use steadfast_postgres as postgres; } }
/// use steadfast::providers::postgres::PostgresOptions;
///
/// let through_pgbouncer =
///     PostgresOptions { poll_interval: Duration::from_millis(200), ..PostgresOptions::default() };
/// # let _ = through_pgbouncer;
/// ```
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// The most connections of this process, without the one that listens. Default 10, from 1 to 10,000;
    /// unused with a pool of your own.
    ///
    /// All processes together must stay below the server's `max_connections`, or connecting fails. With 7 or
    /// more, the four calls of every step have six connections to themselves; with fewer, all statements
    /// share all connections and reads can delay the work.
    pub max_connections: usize,
    /// How long a connection may take to be made, or to become free in the pool. Default 10 s, from 1 ms to
    /// an hour; unused with a pool of your own.
    ///
    /// If it is too short, calls fail as `Busy` or `Unavailable` under load; if it is too long, a server that
    /// is away is noticed late.
    pub connect_timeout: Duration,
    /// How long a statement may take, at the server and in this process. Default 30 s, from 1 ms to a day.
    ///
    /// It also bounds how long a write waits for locks of other transactions. If it is too short, calls fail
    /// as `Busy` on a slow server; if it is too long, a call that hangs is noticed late.
    pub statement_timeout: Duration,
    /// How long opening may take to migrate the schema, with the wait for another process that migrates it.
    /// Default 5 minutes, from 1 ms to a day. A migration that takes longer is rolled back, and opening
    /// fails.
    pub migration_timeout: Duration,
    /// The most requests of one kind that become one call. Default 64, from 1 to 10,000.
    ///
    /// With 1, nothing is merged and each request costs a round trip and a commit. With very many, the first
    /// request of a call waits for the last.
    pub max_batch: usize,
    /// Whether a connection listens for the commits of other processes. Default true. Without it, their
    /// commits are noticed every `poll_interval`.
    pub listen: bool,
    /// How often a waiting fetch looks by itself, without a notification. Default 5 s, from 1 ms to an hour.
    ///
    /// A short interval costs statements while nothing happens. A long one delays work whose notification was
    /// lost, and all work of other processes if this process does not listen.
    pub poll_interval: Duration,
    /// A clock that replaces the database's, for tests. Default `None`: the database's clock.
    pub clock: Option<Arc<dyn Clock>>,
    /// Counters of the statements that the store sends, for tests and measurements. Default `None`: they are
    /// not counted.
    pub counts: Option<Arc<Counts>>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            max_connections: 10,
            connect_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
            migration_timeout: Duration::from_secs(300),
            max_batch: 64,
            listen: true,
            poll_interval: Duration::from_secs(5),
            clock: None,
            counts: None,
        }
    }
}

/// Counts the statements of a store.
#[derive(Debug, Default)]
pub struct Counts {
    /// Whether to count blocks too, which costs two more statements for each fetch.
    pub with_blocks: bool,
    /// The statements that were sent.
    pub sent: AtomicU64,
    /// The statements that were answered, or whose callers were dropped.
    pub answered: AtomicU64,
    /// The blocks of tables and indexes that fetches read.
    pub blocks: AtomicU64,
}

impl Counts {
    /// Tells whether every statement that was sent has been answered.
    pub fn is_quiet(&self) -> bool {
        let answered = self.answered.load(Ordering::Acquire);
        answered == self.sent.load(Ordering::Acquire)
    }

    pub(crate) fn send(self: &Arc<Self>) -> InFlight {
        self.sent.fetch_add(1, Ordering::AcqRel);
        InFlight(Arc::clone(self))
    }
}

/// A statement that was sent; it counts as answered when this is dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Counts>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.answered.fetch_add(1, Ordering::AcqRel);
    }
}

/// Options whose values are in range.
#[derive(Debug, Clone)]
pub(crate) struct PostgresPlan {
    pub(crate) max_connections: usize,
    pub(crate) connect_timeout: Duration,
    pub(crate) statement_timeout: Duration,
    pub(crate) migration_timeout: Duration,
    pub(crate) max_batch: usize,
    pub(crate) listen: bool,
    pub(crate) poll_interval: Duration,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) counts: Option<Arc<Counts>>,
}

/// A greater number makes no server faster, so it is taken for a mistake.
const COUNTS: RangeInclusive<usize> = 1..=10_000;
const SHORTEST: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
/// The server counts a timeout in milliseconds of 31 bits, which are 24 days.
const DAY: Duration = Duration::from_secs(24 * 3600);

impl TryFrom<PostgresOptions> for PostgresPlan {
    type Error = OpenError;

    fn try_from(options: PostgresOptions) -> Result<Self, OpenError> {
        let PostgresOptions {
            max_connections,
            connect_timeout,
            statement_timeout,
            migration_timeout,
            max_batch,
            listen,
            poll_interval,
            clock,
            counts,
        } = options;
        Ok(Self {
            max_connections: count("max_connections", max_connections)?,
            connect_timeout: duration("connect_timeout", connect_timeout, HOUR)?,
            statement_timeout: duration("statement_timeout", statement_timeout, DAY)?,
            migration_timeout: duration("migration_timeout", migration_timeout, DAY)?,
            max_batch: count("max_batch", max_batch)?,
            listen,
            poll_interval: duration("poll_interval", poll_interval, HOUR)?,
            clock,
            counts,
        })
    }
}

fn count(option: &'static str, value: usize) -> Result<usize, OpenError> {
    if COUNTS.contains(&value) {
        return Ok(value);
    }
    let why = format!("{value} is out of range; set it from {} to {}", COUNTS.start(), COUNTS.end());
    Err(OpenError::Option { option, why })
}

fn duration(option: &'static str, value: Duration, longest: Duration) -> Result<Duration, OpenError> {
    if (SHORTEST..=longest).contains(&value) {
        return Ok(value);
    }
    let why = format!("{value:?} is out of range; set it from {SHORTEST:?} to {longest:?}");
    Err(OpenError::Option { option, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(options: PostgresOptions) -> String {
        PostgresPlan::try_from(options).unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_make_a_plan() {
        assert!(PostgresPlan::try_from(PostgresOptions::default()).is_ok());
    }

    #[test]
    fn a_value_that_makes_no_sense_is_named_with_what_would() {
        let default = PostgresOptions::default;
        assert_eq!(
            refused(PostgresOptions { max_connections: 0, ..default() }),
            "option max_connections: 0 is out of range; set it from 1 to 10000"
        );
        assert_eq!(
            refused(PostgresOptions { max_batch: 20_000, ..default() }),
            "option max_batch: 20000 is out of range; set it from 1 to 10000"
        );
        assert_eq!(
            refused(PostgresOptions { statement_timeout: Duration::MAX, ..default() }),
            "option statement_timeout: 18446744073709551615.999999999s is out of range; set it from 1ms to \
             86400s"
        );
        assert_eq!(
            refused(PostgresOptions { poll_interval: Duration::ZERO, ..default() }),
            "option poll_interval: 0ns is out of range; set it from 1ms to 3600s"
        );
    }
}
