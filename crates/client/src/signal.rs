//! Sending to instances: events, queue messages, cancellations.

use serde::Serialize;
use steadfast_core::encode;

use crate::send::encoded;
use crate::{Client, ClientError};

impl Client {
    /// Raises an event. Only a wait that is open when the event arrives takes it; use
    /// [`enqueue_event`](Self::enqueue_event) for messages that must not be missed. An unknown instance is no
    /// error.
    ///
    /// # Errors
    /// `InvalidInput` for an id or name that is empty, longer than 1,024 bytes or contains NUL; `Provider` if
    /// the store fails.
    pub async fn raise_event(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.sender().raise_event(instance.into(), event_name.into(), data.into()).await
    }

    /// Raises an event with data encoded as JSON.
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event).
    ///
    /// # Panics
    /// If the data cannot be encoded. [`try_raise_event_typed`](Self::try_raise_event_typed) returns an error
    /// instead.
    pub async fn raise_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.raise_event(instance, event_name, must_encode(data)).await
    }

    /// Raises an event with data encoded as JSON.
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event), and `InvalidInput` for data that cannot be encoded.
    pub async fn try_raise_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.raise_event(instance, event_name, encoded(data)?).await
    }

    /// Sends a message to a queue of an instance, where it stays until the orchestration dequeues it. A
    /// message to an unknown instance is dropped, which is no error; use
    /// [`signal_with_start`](Self::signal_with_start) to start the instance first.
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

    /// Sends a message encoded as JSON to a queue of an instance.
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event).
    ///
    /// # Panics
    /// If the message cannot be encoded. [`try_enqueue_event_typed`](Self::try_enqueue_event_typed) returns
    /// an error instead.
    pub async fn enqueue_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.enqueue_event(instance, queue, must_encode(data)).await
    }

    /// Sends a message encoded as JSON to a queue of an instance.
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event), and `InvalidInput` for a message that cannot be encoded.
    pub async fn try_enqueue_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.enqueue_event(instance, queue, encoded(data)?).await
    }

    /// Sends a message to a queue: the old spelling of [`enqueue_event`](Self::enqueue_event).
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event).
    #[deprecated(note = "use enqueue_event")]
    pub async fn raise_event_persistent(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.enqueue_event(instance, queue, data).await
    }

    /// Cancels an instance: it fails with `canceled: <reason>` at its next turn, its code does not run again,
    /// and its open activities and children are cancelled. Of several cancellations the first reason counts.
    /// An instance that has ended or is unknown is no error.
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
}

#[allow(clippy::panic, reason = "the compatible API panics here; the try_ methods return an error")]
fn must_encode(data: &impl Serialize) -> String {
    encode(data).unwrap_or_else(|error| panic!("encode: {error}"))
}
