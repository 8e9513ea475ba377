//! Sending as part of the application's own transaction.

use serde::Serialize;
use steadfast_core::WorkItem;
use steadfast_store::{Outbox, Started};

use crate::signal::{event_of, message_of};
use crate::start::{check_id, encoded, start_of};
use crate::{Client, ClientError};

/// Sends what a client sends through an [`Outbox`]: when the transaction behind it is committed, and not at all when it is
/// rolled back.
#[derive(Clone, Copy)]
pub struct Through<'a> {
    client: &'a Client,
    outbox: &'a dyn Outbox,
}

impl Client {
    /// Sends through an outbox, such as a transaction of the application on the store's own database: "insert the order and
    /// start its orchestration" then happens as a whole or not at all.
    pub fn through<'a>(&'a self, outbox: &'a dyn Outbox) -> Through<'a> {
        Through { client: self, outbox }
    }
}

impl Through<'_> {
    /// Starts an instance, as [`Client::start_orchestration`].
    ///
    /// # Errors
    /// `InvalidInput` for an id that cannot be one, `Provider` when the store fails; then roll the transaction back.
    pub async fn start_orchestration(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send(start_of(instance.into(), orchestration.into(), None, input.into())?).await
    }

    /// Starts an instance of a given version, as [`Client::start_orchestration_versioned`].
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration).
    pub async fn start_orchestration_versioned(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        let version = Some(version.into());
        self.send(start_of(instance.into(), orchestration.into(), version, input.into())?).await
    }

    /// Starts an instance with an input encoded as JSON, as [`Client::start_orchestration_typed`].
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration), and `InvalidInput` for an input that cannot be encoded.
    pub async fn start_orchestration_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: In,
    ) -> Result<(), ClientError> {
        self.start_orchestration(instance, orchestration, encoded(&input)?).await
    }

    /// Starts an instance unless there is one of that id, as [`Client::start_if_new`].
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration).
    pub async fn start_if_new(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<Started, ClientError> {
        let start = start_of(instance.into(), orchestration.into(), None, input.into())?;
        Ok(self.outbox.start(self.client.sent(start), Vec::new()).await?)
    }

    /// Raises an event, as [`Client::raise_event`].
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration).
    pub async fn raise_event(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send(event_of(instance.into(), event_name.into(), data.into())?).await
    }

    /// Sends a message to a queue of an instance, as [`Client::enqueue_event`].
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration).
    pub async fn enqueue_event(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send(message_of(instance.into(), queue.into(), data.into())?).await
    }

    /// Asks an instance to stop, as [`Client::cancel_instance`].
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration).
    pub async fn cancel_instance(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send(WorkItem::CancelInstance { instance: instance.into(), reason: reason.into() }).await
    }

    async fn send(&self, item: WorkItem) -> Result<(), ClientError> {
        check_id("instance id", item.instance())?;
        Ok(self.outbox.send(vec![self.client.sent(item)]).await?)
    }
}

impl std::fmt::Debug for Through<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Through").field("client", self.client).finish_non_exhaustive()
    }
}
