//! Options of the store, and the plan that they become.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use steadfast_clock::Clock;

use crate::link::open::OpenError;

/// Says how a database is used. Every field has a sensible default.
///
/// # Through PgBouncer
///
/// The store works through a pooler that gives every transaction another connection (PgBouncer with `pool_mode =
/// transaction`): it keeps no state in a session, and notices a pooler by the startup parameters that it refuses or drops, and
/// then prepares no statement. Lost there are
///
/// * `LISTEN`, in session mode too: what other processes commit is noticed every [`poll_interval`](Self::poll_interval)
///   only, so set it to what you can wait;
/// * the server's own statement timeout, which a pooler does not pass on: this process still stops waiting, and the pooler's
///   `query_timeout` bounds how long the statement runs on.
///
/// ```
/// use std::time::Duration;
/// use steadfast_postgres::PostgresOptions;
///
/// let through_pgbouncer =
///     PostgresOptions { poll_interval: Duration::from_millis(200), ..PostgresOptions::default() };
/// # let _ = through_pgbouncer;
/// ```
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Bounds the connections of this process, the one that listens apart. All processes together must stay below the
    /// server's `max_connections`. From 7 on, the calls of every step have six of them to themselves. From 1 to 10,000; unused
    /// with a pool of your own.
    pub max_connections: usize,
    /// Bounds how long a connection may take to be made, or to become free. From 1 ms to an hour; unused with a pool of
    /// your own.
    pub connect_timeout: Duration,
    /// Bounds how long a statement may take, at the server and here. From 1 ms to a day.
    pub statement_timeout: Duration,
    /// Bounds how long a migration may take, with the wait for another process that migrates the same schema. From 1 ms
    /// to a day.
    pub migration_timeout: Duration,
    /// Bounds how many requests of one kind become one call. From 1 to 10,000.
    pub max_batch: usize,
    /// Listens for what other processes commit. Without it they are noticed every `poll_interval`.
    pub listen: bool,
    /// Says how often a waiting fetch looks although nobody told it to. From 1 ms to an hour.
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
            migration_timeout: Duration::from_secs(300),
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

    pub(crate) fn send(self: &Arc<Self>) -> InFlight {
        self.sent.fetch_add(1, Ordering::AcqRel);
        InFlight(Arc::clone(self))
    }
}

/// A statement under way.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Counts>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.answered.fetch_add(1, Ordering::AcqRel);
    }
}

/// Options whose values make sense.
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

/// More make no server faster; a value beyond is a mistake.
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
            "option statement_timeout: 18446744073709551615.999999999s is out of range; set it from 1ms to 86400s"
        );
        assert_eq!(
            refused(PostgresOptions { poll_interval: Duration::ZERO, ..default() }),
            "option poll_interval: 0ns is out of range; set it from 1ms to 3600s"
        );
    }
}
