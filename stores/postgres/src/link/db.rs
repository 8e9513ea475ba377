//! The database as the rest of the store sees it: statements in one schema, each a transaction of its own.

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
use crate::link::error::{NoAnswer, chain, is_cancelled, is_conflict, is_spent, pool_error, provider_error};
use crate::link::lanes::Lanes;
use crate::link::options::Counts;
use crate::link::statement::{Param, Statement, params, sql, typed};

/// Bounds how often a statement is sent again after its transaction lost against another one.
const MAX_CONFLICTS: usize = 10;

/// How long to wait before a statement that met a lock of another transaction is sent again.
pub(crate) const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Connections to one schema.
#[derive(Debug, Clone)]
pub(crate) struct Db {
    pub(crate) lanes: Lanes,
    schema: Arc<str>,
    clock: Option<StoreClock>,
    counts: Option<Arc<Counts>>,
    /// How long to wait for an answer.
    limit: Option<Duration>,
    /// Makes the connections of the pool; `None` for a pool of the application.
    connector: Option<Connector>,
    /// Whether a statement that meets a lock fails at once, so that its caller can repeat it.
    fails_on_locks: bool,
}

impl Db {
    /// Makes a database without a time limit for statements. `schema` is the quoted name of the schema.
    pub(crate) fn new(
        lanes: Lanes,
        schema: String,
        clock: Option<StoreClock>,
        counts: Option<Arc<Counts>>,
    ) -> Self {
        Self {
            lanes,
            schema: schema.into(),
            clock,
            counts,
            limit: None,
            connector: None,
            fails_on_locks: false,
        }
    }

    /// Bounds how long a statement may take, even if the server sets no bound.
    pub(crate) fn bounded(self, limit: Duration, connector: Option<Connector>) -> Self {
        Self { limit: Some(limit), connector, ..self }
    }

    /// Makes a statement fail as soon as it meets a lock of another transaction: a merged call asks for many
    /// requests, and only one of them may have to wait.
    pub(crate) fn failing_on_locks(self) -> Self {
        Self { fails_on_locks: true, ..self }
    }

    /// Returns the quoted name of the schema.
    pub(crate) fn schema(&self) -> Arc<str> {
        Arc::clone(&self.schema)
    }

    /// Returns the time to decide by if a test gave a clock; `None` stands for the database's clock.
    pub(crate) fn now(&self) -> Option<i64> {
        self.clock.as_ref().map(StoreClock::now_ms)
    }

    /// Runs a statement and returns its rows. A transaction that lost against another one is repeated.
    pub(crate) async fn rows(
        &self,
        operation: &'static str,
        statement: Statement<'_>,
    ) -> Result<Vec<Row>, ProviderError> {
        let pool = self.lanes.of(statement.lane);
        let text = in_schema(statement.text, &self.schema);
        let mut conflicts = 0;
        let deadline = SystemClock.monotonic().saturating_add(self.limit.unwrap_or_default());
        loop {
            let mut borrowed = Borrowed { connection: None, connector: self.connector.as_ref() };
            let had = pool.get().await.map_err(|error| pool_error(operation, &error))?;
            let connection = borrowed.connection.insert(had);
            let _sent = self.counts.as_ref().map(Counts::send);
            let sending = self.send(operation, connection, &text, &statement.params);
            let error = match within(self.limit, sending).await {
                Some(Ok(rows)) => {
                    borrowed.recycle();
                    return Ok(rows);
                }
                Some(Err(error)) => error,
                None => {
                    let text = NoAnswer.to_string();
                    let late = ProviderError::new(ProviderErrorKind::Unavailable, operation, text);
                    return Err(late.with_source(NoAnswer));
                }
            };
            if is_spent(&error) {
                borrowed.connection.take().map(Object::take);
                return Err(provider_error(operation, error));
            }
            // The server reports an error before it rolls back. Its locks are released when it answers again;
            // until then the next call, on another connection, would skip the rows.
            let _ = within(self.limit, connection.batch_execute("")).await;
            if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
                && !self.fails_on_locks
                && SystemClock.monotonic() < deadline
            {
                borrowed.recycle();
                SystemClock.sleep(LOCK_RETRY_PAUSE).await;
                continue;
            }
            if !is_conflict(&error) || conflicts == MAX_CONFLICTS {
                borrowed.recycle();
                return Err(provider_error(operation, error));
            }
            conflicts += 1;
            // The prepared statement itself may be out of date.
            connection.statement_cache.clear();
            borrowed.recycle();
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

    /// Tells whether statements are prepared once for each connection. Through a pooler they are not, because
    /// the next statement may reach another server; a pool of the application may lead to a pooler.
    fn prepares(&self) -> bool {
        self.connector.as_ref().is_some_and(|connector| !connector.is_pooled())
    }

    /// Runs a statement and counts the blocks that it reads. The server's counter runs on from earlier
    /// transactions, so the difference counts.
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

    /// Returns how long a statement may take if that is why a call has failed that began at `since`; `None`
    /// if it failed otherwise. A statement that a person cancelled had time left.
    pub(crate) async fn limit_met(
        &self,
        operation: &'static str,
        error: &ProviderError,
        since: Duration,
    ) -> Option<Duration> {
        if !is_cancelled(error) {
            return None;
        }
        let took = SystemClock.monotonic().saturating_sub(since);
        let asked = Statement::of(sql!("clock/statement_limit"), &[]);
        let row = self.one(operation, asked).await.ok()??;
        let limit = Duration::from_millis(unsigned(column(operation, &row, "limit_ms").ok()?));
        // The server counts from the arrival of the statement.
        (!limit.is_zero() && took.saturating_mul(10) >= limit.saturating_mul(9)).then_some(limit)
    }

    /// Runs a statement that gives at most one row.
    pub(crate) async fn one(
        &self,
        operation: &'static str,
        statement: Statement<'_>,
    ) -> Result<Option<Row>, ProviderError> {
        Ok(self.rows(operation, statement).await?.into_iter().next())
    }
}

/// A connection of a pool while a statement is under way. If the statement gives no answer in time, or its
/// caller is dropped, the next statement must not queue behind it: the connection leaves the pool, and the
/// server is asked to cancel.
struct Borrowed<'a> {
    connection: Option<Object>,
    connector: Option<&'a Connector>,
}

impl Borrowed<'_> {
    /// Returns the connection to its pool: the statement has been answered.
    fn recycle(mut self) {
        drop(self.connection.take());
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take().map(Object::take) else { return };
        if let (Some(connector), Ok(runtime)) =
            (self.connector.cloned(), tokio::runtime::Handle::try_current())
        {
            // The result of the cancellation does not matter.
            runtime.spawn(async move { connector.cancel(&connection).await });
        }
    }
}

/// Runs statements: each in a transaction of its own, or all in a transaction of the application.
#[async_trait]
pub(crate) trait Asker: Sync {
    /// Runs a statement and returns its rows.
    async fn ask(&self, operation: &'static str, statement: Statement<'_>)
    -> Result<Vec<Row>, ProviderError>;

    /// Returns the time to decide by if a test gave a clock; `None` stands for the database's clock.
    fn now(&self) -> Option<i64>;
}

#[async_trait]
impl Asker for Db {
    async fn ask(
        &self,
        operation: &'static str,
        statement: Statement<'_>,
    ) -> Result<Vec<Row>, ProviderError> {
        self.rows(operation, statement).await
    }

    fn now(&self) -> Option<i64> {
        Self::now(self)
    }
}

/// Tells whether an operation looks for runnable work. The blocks that it reads are counted, because its cost
/// must not depend on the number of other rows (S20).
fn is_look(operation: &str) -> bool {
    operation.starts_with("fetch_") || ["oldest_waiting", "gauges", "delete_ended"].contains(&operation)
}

/// Puts the quoted name of the schema into a text.
pub(crate) fn in_schema(text: &str, schema: &str) -> String {
    text.replace("{schema}", schema)
}

/// How much longer than its limit this process waits for a statement: the server ends the statement at the
/// limit, and this is its time to report that.
const GRACE: Duration = Duration::from_secs(2);

async fn within<T>(limit: Option<Duration>, answer: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit.saturating_add(GRACE), answer).await.ok(),
        None => Some(answer.await),
    }
}

/// Reads a column of a row.
///
/// # Errors
/// `Corrupt`, naming the column, if the column is missing or has another type: this build did not make the
/// schema.
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

/// Returns a number of the contract as the `BIGINT` that the database stores. A number beyond its range
/// becomes the greatest `BIGINT`.
pub(crate) fn time(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// Returns a duration in milliseconds, at most the greatest `BIGINT`.
pub(crate) fn millis(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a `BIGINT` of the database as a number of the contract; a negative one becomes 0.
pub(crate) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
