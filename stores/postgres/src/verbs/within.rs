//! Sending as part of the application's own transaction: "insert the order and start its orchestration" is one thing.

use std::sync::Arc;

use async_trait::async_trait;
use steadfast_store::{Envelope, Outbox, ProviderError, Started, Woken};
use tokio_postgres::{Row, Transaction};

use crate::link::db::{Ask, in_schema};
use crate::link::error::provider_error;
use crate::link::statement::{Param, typed};
use crate::store::PostgresProvider;
use crate::verbs::message::{Letter, Start, send_messages, start_instances};
use crate::verbs::notify::payload;

/// Sends within a transaction of the application: when that is committed, and not at all when it is rolled back.
pub struct Within<'t> {
    transaction: &'t Transaction<'t>,
    schema: Arc<str>,
    now: Option<i64>,
}

impl PostgresProvider {
    /// Takes messages into a transaction of yours, on the database that the store is in.
    ///
    /// ```
    /// # async fn example(
    /// #     pool: deadpool_postgres::Pool,
    /// #     store: steadfast_postgres::PostgresProvider,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use steadfast_store::{Outbox, Envelope};
    ///
    /// let mut connection = pool.get().await?;
    /// let transaction = connection.transaction().await?;
    /// transaction.execute("INSERT INTO orders (id) VALUES ($1)", &[&"order-7"]).await?;
    /// // A client sends through it: client.through(&store.within(&transaction)).start_orchestration(..)
    /// let outbox = store.within(&transaction);
    /// # let start: Envelope = steadfast_core::WorkItem::CancelInstance { instance: String::new(), reason: String::new() }.into();
    /// outbox.send(vec![start]).await?;
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Each instance that is sent to is locked until the transaction ends: whoever else sends to it waits meanwhile. So send
    /// last, and commit soon. After an error the transaction can only be rolled back, as after any failed statement.
    pub fn within<'t>(&self, transaction: &'t Transaction<'t>) -> Within<'t> {
        Within { transaction, schema: self.db.schema(), now: self.db.now() }
    }
}

#[async_trait]
impl Ask for Within<'_> {
    async fn ask(
        &self,
        operation: &'static str,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, ProviderError> {
        let text = in_schema(sql, &self.schema);
        let answer = self.transaction.query_typed(&text, &typed(params)).await;
        answer.map_err(|error| provider_error(operation, error))
    }

    fn now(&self) -> Option<i64> {
        self.now
    }
}

#[async_trait]
impl Outbox for Within<'_> {
    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError> {
        let start = Start::new(start, also)?;
        let notify = everybody(start.count());
        start_instances(self, vec![start], notify, None)
            .await?
            .into_iter()
            .next()
            .unwrap_or_else(|| Err(ProviderError::permanent("start", "a start answered nothing")))
    }

    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError> {
        let letters =
            messages.into_iter().map(|sent| Letter::new("send", sent)).collect::<Result<Vec<_>, _>>()?;
        let notify = everybody(letters.len());
        send_messages(self, vec![letters], notify, None).await?.into_iter().collect()
    }
}

/// Tells everybody, this process too: it does not learn otherwise when the transaction is committed.
fn everybody(turns: usize) -> Option<String> {
    payload("", &Woken { turns, ..Woken::default() })
}

impl std::fmt::Debug for Within<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Within").field("schema", &self.schema).finish_non_exhaustive()
    }
}
