//! Sending to instances: events, queue messages, cancellations.

use serde::Serialize;
use steadfast_core::{WorkItem, encode};

use crate::start::check_id;
use crate::{Client, ClientError};

impl Client {
    /// Raises an event. Only a wait that is open when it arrives takes it; use
    /// [`enqueue_event`](Self::enqueue_event) for messages that must not be missed. An unknown instance is no error.
    ///
    /// # Errors
    /// `InvalidInput` for an id or name that cannot be one, `Provider` when the store fails.
    pub async fn raise_event(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send_to(event_of(instance.into(), event_name.into(), data.into())?).await
    }

    /// Raises an event with data encoded as JSON.
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event).
    ///
    /// # Panics
    /// When the data cannot be encoded. [`try_raise_event_typed`](Self::try_raise_event_typed) returns an error
    /// instead.
    pub async fn raise_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.raise_event(instance, event_name, must_encode(data)).await
    }

    /// Raises an event with data encoded as JSON; data that cannot be encoded is an error.
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event).
    pub async fn try_raise_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        let data = encode(data).map_err(|error| ClientError::invalid(format!("encode: {error}")))?;
        self.raise_event(instance, event_name, data).await
    }

    /// Sends a message to a queue of an instance, where it is kept until it is taken. An unknown instance is no error,
    /// and the message is dropped; use [`signal_with_start`](Self::signal_with_start) to start it first.
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event).
    pub async fn enqueue_event(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send_to(message_of(instance.into(), queue.into(), data.into())?).await
    }

    /// Sends a message encoded as JSON to a queue of an instance.
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event).
    ///
    /// # Panics
    /// When the message cannot be encoded. [`try_enqueue_event_typed`](Self::try_enqueue_event_typed) returns an error
    /// instead.
    pub async fn enqueue_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.enqueue_event(instance, queue, must_encode(data)).await
    }

    /// Sends a message encoded as JSON to a queue of an instance; one that cannot be encoded is an error.
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event).
    pub async fn try_enqueue_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        let data = encode(data).map_err(|error| ClientError::invalid(format!("encode: {error}")))?;
        self.enqueue_event(instance, queue, data).await
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

    /// Asks an instance to stop. The first reason counts; a finished or unknown instance is no error.
    ///
    /// # Errors
    /// As [`raise_event`](Self::raise_event).
    pub async fn cancel_instance(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send_to(WorkItem::CancelInstance { instance: instance.into(), reason: reason.into() }).await
    }

    pub(crate) async fn send_to(&self, item: WorkItem) -> Result<(), ClientError> {
        check_id("instance id", item.instance())?;
        Ok(self.store.send(vec![self.sent(item)]).await?)
    }
}

pub(crate) fn event_of(instance: String, name: String, data: String) -> Result<WorkItem, ClientError> {
    check_id("event name", &name)?;
    Ok(WorkItem::ExternalRaised { instance, name, data })
}

pub(crate) fn message_of(instance: String, name: String, data: String) -> Result<WorkItem, ClientError> {
    check_id("queue name", &name)?;
    Ok(WorkItem::QueueMessage { instance, name, data })
}

#[allow(clippy::panic, reason = "the compatible API panics here; the try_ methods return an error")]
fn must_encode(data: &impl Serialize) -> String {
    encode(data).unwrap_or_else(|error| panic!("encode: {error}"))
}
