//! The database as the rest of the store sees it: statements by name, in one schema, each a transaction of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Object;
use steadfast_clock::{Clock, SystemClock};
use steadfast_store::{ProviderError, ProviderErrorKind, StoreClock};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use crate::link::connect::Connector;
use crate::link::error::{chain, is_conflict, is_spent, pool_error, provider_error};
use crate::link::options::Counts;
use crate::link::statement::{Param, params, typed};
use crate::merge::lanes::{Lane, Lanes};

/// Returns the text of a statement, which has a file of its own.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $name, ".sql"))
    };
}
pub(crate) use sql;

/// A function of the database, which has a file of its own.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

/// Names functions by their files; each file makes the function of its name.
macro_rules! functions {
    ($($name:literal),* $(,)?) => {
        &[$($crate::link::db::Function {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/functions/", $name, ".sql")),
        }),*]
    };
}
pub(crate) use functions;

/// Bounds how often a statement is sent again whose transaction lost against another one.
const MAX_CONFLICTS: usize = 10;

/// Connections to one schema.
#[derive(Debug, Clone)]
pub(crate) struct Db {
    pub(crate) lanes: Lanes,
    schema: Arc<str>,
    clock: Option<StoreClock>,
    counts: Option<Arc<Counts>>,
    /// How long to wait for an answer.
    limit: Option<Duration>,
    /// How the pool connects, if it is ours.
    connector: Option<Connector>,
    /// Says at once that somebody holds what a call needs: others are asked for with it.
    hurries: bool,
}

/// A pause before what another transaction holds is asked for again.
pub(crate) const HELD_PAUSE: Duration = Duration::from_millis(100);

impl Db {
    /// `schema` is the quoted name.
    pub(crate) fn new(
        lanes: Lanes,
        schema: String,
        clock: Option<StoreClock>,
        counts: Option<Arc<Counts>>,
    ) -> Self {
        Self { lanes, schema: schema.into(), clock, counts, limit: None, connector: None, hurries: false }
    }

    /// Bounds how long a statement may take, also where the server does not.
    pub(crate) fn bounded(self, limit: Duration, connector: Option<Connector>) -> Self {
        Self { limit: Some(limit), connector, ..self }
    }

    /// Leaves it to the caller to ask again for what another transaction holds.
    pub(crate) fn hurried(self) -> Self {
        Self { hurries: true, ..self }
    }

    /// The quoted name of the schema.
    pub(crate) fn schema(&self) -> Arc<str> {
        Arc::clone(&self.schema)
    }

    /// The time to decide by: the database's, unless a test gave a clock.
    pub(crate) fn now(&self) -> Option<i64> {
        self.clock.as_ref().map(StoreClock::now_ms)
    }

    /// Runs a statement that gives rows.
    pub(crate) async fn rows(
        &self,
        operation: &'static str,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, ProviderError> {
        self.rows_of(Lane::Other, operation, sql, params).await
    }

    /// Runs a statement that gives rows, on a connection for calls of its kind.
    pub(crate) async fn rows_of(
        &self,
        lane: Lane,
        operation: &'static str,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, ProviderError> {
        let pool = self.lanes.of(lane);
        let text = in_schema(sql, &self.schema);
        let mut conflicts = 0;
        let deadline = SystemClock.monotonic().saturating_add(self.limit.unwrap_or_default());
        loop {
            let mut lent = Lent { connection: None, connector: self.connector.as_ref() };
            let had = pool.get().await.map_err(|error| pool_error(operation, &error))?;
            let connection = lent.connection.insert(had);
            let _sent = self.counts.as_ref().map(Counts::send);
            let error = match within(self.limit, self.send(operation, connection, &text, params)).await {
                Some(Ok(rows)) => {
                    lent.give_back();
                    return Ok(rows);
                }
                Some(Err(error)) => error,
                None => {
                    let text = "no answer in time; what was asked may have happened or not";
                    return Err(ProviderError::new(ProviderErrorKind::Unavailable, operation, text));
                }
            };
            if is_spent(&error) {
                lent.connection.take().map(Object::take);
                return Err(provider_error(operation, error));
            }
            // The server says what is wrong before it rolls back: only when it answers again are the locks gone, which the next
            // call, on another connection, would step over.
            let _ = within(self.limit, connection.batch_execute("")).await;
            if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
                && !self.hurries
                && SystemClock.monotonic() < deadline
            {
                lent.give_back();
                SystemClock.sleep(HELD_PAUSE).await;
                continue;
            }
            if !is_conflict(&error) || conflicts == MAX_CONFLICTS {
                lent.give_back();
                return Err(provider_error(operation, error));
            }
            conflicts += 1;
            // What was prepared may be what is out of date.
            connection.statement_cache.clear();
            lent.give_back();
        }
    }

    async fn send(
        &self,
        operation: &'static str,
        connection: &mut Object,
        text: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match &self.counts {
            Some(counts) if counts.with_blocks && is_look(operation) => {
                self.counted(connection, text, params, &counts.blocks).await
            }
            _ if self.prepares() => {
                let (values, types): (Vec<_>, Vec<_>) = typed(params).into_iter().unzip();
                let prepared = connection.prepare_typed_cached(text, &types).await?;
                connection.query(&prepared, &values).await
            }
            _ => connection.query_typed(text, &typed(params)).await,
        }
    }

    /// Are statements prepared once for each connection? Not through a pooler, where the next one may reach another server, and
    /// not with a pool of somebody else, which may lead to one.
    fn prepares(&self) -> bool {
        self.connector.as_ref().is_some_and(|connector| !connector.is_pooled())
    }

    /// Runs a statement and counts the blocks that it looked at. The server counts on until it tells its statistics, not only
    /// within a transaction: what it had counted before does not count.
    async fn counted(
        &self,
        connection: &mut Object,
        text: &str,
        params: &[Param<'_>],
        blocks: &AtomicU64,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let transaction = connection.transaction().await?;
        let before = self.blocks(&transaction).await?;
        let rows = transaction.query_typed(text, &typed(params)).await?;
        let after = self.blocks(&transaction).await?;
        transaction.commit().await?;
        blocks.fetch_add(unsigned(after - before), Ordering::Relaxed);
        Ok(rows)
    }

    async fn blocks(
        &self,
        transaction: &deadpool_postgres::Transaction<'_>,
    ) -> Result<i64, tokio_postgres::Error> {
        let counted = transaction.query_typed(sql!("schema/blocks"), &typed(params![&*self.schema])).await?;
        Ok(counted.first().map_or(0, |row| row.get(0)))
    }

    /// Runs a statement that gives at most one row.
    pub(crate) async fn one(
        &self,
        operation: &'static str,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Option<Row>, ProviderError> {
        Ok(self.rows(operation, sql, params).await?.into_iter().next())
    }
}

/// A connection of a pool while a statement is under way. When that gives no answer in time, or nobody waits for it any more, the
/// next one must not get behind it: the connection leaves the pool, and the server is asked to stop.
struct Lent<'a> {
    connection: Option<Object>,
    connector: Option<&'a Connector>,
}

impl Lent<'_> {
    /// The statement has been answered.
    fn give_back(mut self) {
        drop(self.connection.take());
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take().map(Object::take) else { return };
        if let (Some(connector), Ok(runtime)) =
            (self.connector.cloned(), tokio::runtime::Handle::try_current())
        {
            // Nobody waits for it.
            runtime.spawn(async move { connector.cancel(&connection).await });
        }
    }
}

/// Runs statements: in transactions of their own, or in one of somebody else's.
#[async_trait]
pub(crate) trait Ask: Sync {
    /// Runs a statement that gives rows.
    async fn ask(
        &self,
        operation: &'static str,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, ProviderError>;

    /// The time to decide by: the database's, unless a test gave a clock.
    fn now(&self) -> Option<i64>;
}

#[async_trait]
impl Ask for Db {
    async fn ask(
        &self,
        operation: &'static str,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, ProviderError> {
        self.rows(operation, sql, params).await
    }

    fn now(&self) -> Option<i64> {
        Self::now(self)
    }
}

/// Is it a look for something to do? What that costs is counted: it must not depend on what else there is (S20).
fn is_look(operation: &str) -> bool {
    operation.starts_with("fetch_") || operation == "oldest_waiting"
}

/// Puts the schema into a text.
pub(crate) fn in_schema(text: &str, schema: &str) -> String {
    text.replace("{schema}", schema)
}

/// The server ends a statement by itself when it takes too long; it is given a moment to say so.
const GRACE: Duration = Duration::from_secs(2);

async fn within<T>(limit: Option<Duration>, answer: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit.saturating_add(GRACE), answer).await.ok(),
        None => Some(answer.await),
    }
}

/// Reads a column.
///
/// # Errors
/// `Corrupt`, naming the column: the schema is not the one that this build made.
pub(crate) fn column<'r, T: tokio_postgres::types::FromSql<'r>>(
    operation: &'static str,
    row: &'r Row,
    name: &str,
) -> Result<T, ProviderError> {
    row.try_get(name).map_err(|error| {
        let text = format!("column '{name}' cannot be read: {}", chain(&error));
        ProviderError::new(ProviderErrorKind::Corrupt, operation, text)
    })
}

/// Times beyond what the database can say are as good as for ever.
pub(crate) fn time(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// A duration in milliseconds, as far as the database can say it.
pub(crate) fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
