//! Sending as part of the application's own transaction.

use serde::Serialize;
use steadfast_store::{Outbox, Started};

use crate::send::{NewInstance, Sender, Target, encoded};
use crate::{Client, ClientError};

/// Sends the messages of a client through an [`Outbox`], as part of the application's own transaction: they
/// are sent when the transaction is committed, and never if it is rolled back. Made by [`Client::through`].
///
/// # Cancel safety
/// A dropped call has written its message into the transaction or not. Roll the transaction back.
#[derive(Clone, Copy)]
pub struct Through<'a> {
    client: &'a Client,
    outbox: &'a dyn Outbox,
}

impl Client {
    /// Returns a sender that writes its messages into an outbox, such as a transaction of the application on
    /// the store's own database: "insert the order and start its orchestration" then happens as a whole or
    /// not at all.
    pub fn through<'a>(&'a self, outbox: &'a dyn Outbox) -> Through<'a> {
        Through { client: self, outbox }
    }
}

impl Through<'_> {
    /// Starts an instance, as [`Client::start_orchestration`] does.
    ///
    /// # Errors
    /// As [`Client::start_orchestration`]; then roll the transaction back.
    pub async fn start_orchestration(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        let (instance, orchestration, input) = (instance.into(), orchestration.into(), input.into());
        self.sender().start(NewInstance { instance, orchestration, version: None, input }).await
    }

    /// Starts an instance of a given version, as [`Client::start_orchestration_versioned`] does.
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
        let (instance, orchestration, input) = (instance.into(), orchestration.into(), input.into());
        let version = Some(version.into());
        self.sender().start(NewInstance { instance, orchestration, version, input }).await
    }

    /// Starts an instance with an input encoded as JSON, as [`Client::start_orchestration_typed`] does.
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration), and `InvalidInput` for an input that cannot be
    /// encoded.
    pub async fn start_orchestration_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: In,
    ) -> Result<(), ClientError> {
        self.start_orchestration(instance, orchestration, encoded(&input)?).await
    }

    /// Starts an instance unless its id exists, as [`Client::start_if_new`] does.
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration).
    pub async fn start_if_new(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<Started, ClientError> {
        let (instance, orchestration, input) = (instance.into(), orchestration.into(), input.into());
        self.sender().start_if_new(NewInstance { instance, orchestration, version: None, input }).await
    }

    /// Raises an event, as [`Client::raise_event`] does.
    ///
    /// # Errors
    /// As [`Client::raise_event`]; then roll the transaction back.
    pub async fn raise_event(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.sender().raise_event(instance.into(), event_name.into(), data.into()).await
    }

    /// Sends a message to a queue of an instance, as [`Client::enqueue_event`] does.
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event).
    pub async fn enqueue_event(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.sender().enqueue_event(instance.into(), queue.into(), data.into()).await
    }

    /// Cancels an instance, as [`Client::cancel_instance`] does.
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event).
    pub async fn cancel_instance(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.sender().cancel(instance.into(), reason.into()).await
    }

    fn sender(&self) -> Sender<'_> {
        self.client.sender_to(Target::Outbox(self.outbox))
    }
}

impl std::fmt::Debug for Through<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Through").field("client", self.client).finish_non_exhaustive()
    }
}
