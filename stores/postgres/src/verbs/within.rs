//! Sending inside a transaction of the application: inserting an order and starting its orchestration commit
//! together.

use std::sync::Arc;

use async_trait::async_trait;
use steadfast_store::{Envelope, Outbox, ProviderError, Started, Woken};
use tokio_postgres::{Row, Transaction};

use crate::link::db::{Asker, in_schema};
use crate::link::error::provider_error;
use crate::link::statement::{Statement, typed};
use crate::provider::PostgresProvider;
use crate::verbs::message::{StoredMessage, StoredStart, send_messages, start_instances};
use crate::verbs::notify::payload;

/// Sends messages inside a transaction of the application: they are sent when it commits, and not at all if
/// it is rolled back.
///
/// # Cancel safety
/// If a call is dropped before it returns, the message may be part of the transaction or not: roll the
/// transaction back.
pub struct Within<'t> {
    transaction: &'t Transaction<'t>,
    schema: Arc<str>,
    now: Option<i64>,
}

impl PostgresProvider {
    /// Sends messages inside a transaction of yours, on the database that holds the store.
    ///
    /// ```
    /// # mod steadfast { pub use steadfast_store as client; }
    /// # async fn example(
    /// #     pool: deadpool_postgres::Pool,
    /// #     store: steadfast_postgres::PostgresProvider,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use steadfast::client::{Envelope, Outbox};
    ///
    /// let mut connection = pool.get().await?;
    /// let transaction = connection.transaction().await?;
    /// transaction.execute("INSERT INTO orders (id) VALUES ($1)", &[&"order-7"]).await?;
    /// // A client sends through it: client.through(&store.within(&transaction)).start_orchestration(..)
    /// let outbox = store.within(&transaction);
    /// # let (instance, reason) = (String::new(), String::new());
    /// # let start: Envelope = steadfast_core::WorkItem::CancelInstance { instance, reason }.into();
    /// outbox.send(vec![start]).await?;
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Each instance that gets a message is locked until the transaction ends, and other senders to it wait.
    /// So send last, and commit soon. After an error the transaction can only be rolled back, as after any
    /// failed statement.
    pub fn within<'t>(&self, transaction: &'t Transaction<'t>) -> Within<'t> {
        Within { transaction, schema: self.backend.db.schema(), now: self.backend.db.now() }
    }
}

#[async_trait]
impl Asker for Within<'_> {
    async fn ask(
        &self,
        operation: &'static str,
        statement: Statement<'_>,
    ) -> Result<Vec<Row>, ProviderError> {
        let text = in_schema(statement.text, &self.schema);
        let answer = self.transaction.query_typed(&text, &typed(&statement.params)).await;
        answer.map_err(|error| provider_error(operation, error))
    }

    fn now(&self) -> Option<i64> {
        self.now
    }
}

#[async_trait]
impl Outbox for Within<'_> {
    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError> {
        let start = StoredStart::new(start, also)?;
        let notify = notify_all(start.count());
        start_instances(self, vec![start], notify, None)
            .await?
            .into_iter()
            .next()
            .unwrap_or_else(|| Err(ProviderError::permanent("start", "a start answered nothing")))
    }

    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError> {
        let stored = |sent| StoredMessage::new("send", sent);
        let messages = messages.into_iter().map(stored).collect::<Result<Vec<_>, _>>()?;
        let notify = notify_all(messages.len());
        send_messages(self, vec![messages], notify, None).await?.into_iter().collect()
    }
}

/// Makes a notification for all processes. This process is one of them: only so does it learn that the
/// transaction committed.
fn notify_all(turns: usize) -> Option<String> {
    payload("", &Woken { turns, ..Woken::default() })
}

impl std::fmt::Debug for Within<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Within").field("schema", &self.schema).finish_non_exhaustive()
    }
}
