//! Calls about one instance.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast_core::OrchestrationStatus;

use crate::{Client, ClientError, Explanation};

/// Makes calls about one instance. Made by [`Client::instance`]; holds a clone of that client.
///
/// # Cancel safety
/// As [`Client`]: a dropped call that sends took effect or not, calls that read or wait change nothing.
#[derive(Debug, Clone)]
pub struct InstanceHandle {
    client: Client,
    id: String,
}

/// 136 years: a wait without an end that can still be added to a clock.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

impl InstanceHandle {
    pub(crate) fn new(client: Client, id: String) -> Self {
        Self { client, id }
    }

    /// Returns the id of the instance.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the status of the instance: running, completed, failed, or not found.
    ///
    /// # Errors
    /// As [`Client::get_orchestration_status`].
    pub async fn status(&self) -> Result<OrchestrationStatus, ClientError> {
        self.client.get_orchestration_status(&self.id).await
    }

    /// Tells what the instance waits for: events, timers, children, activities and their workers.
    ///
    /// # Errors
    /// As [`Client::explain`].
    pub async fn explain(&self) -> Result<Explanation, ClientError> {
        self.client.explain(&self.id).await
    }

    /// Waits until the instance has ended, without a time-out, and decodes its output. A failure is the inner
    /// error, as text.
    ///
    /// To wait for an instance that another process is about to start, call
    /// [`wait_for_start`](Self::wait_for_start) first.
    ///
    /// # Errors
    /// As [`Client::wait_for_orchestration_typed`], without `Timeout`, and `InstanceNotFound` at once if no
    /// instance has this id. A provider that has only the compatible methods cannot tell whether a start
    /// waits for its first turn: there the wait goes on.
    ///
    /// # Cancel safety
    /// Waits only: put a time-out around it, or use [`wait_for`](Self::wait_for).
    pub async fn wait<Out: DeserializeOwned>(&self) -> Result<Result<Out, String>, ClientError> {
        self.wait_for(FOR_EVER).await
    }

    /// Waits until the instance has ended, at most for `timeout`, and decodes its output. A failure is the
    /// inner error, as text.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and `Timeout`.
    pub async fn wait_for<Out: DeserializeOwned>(
        &self,
        timeout: Duration,
    ) -> Result<Result<Out, String>, ClientError> {
        let began = self.client.clock.monotonic();
        self.client.must_exist(&self.id).await?;
        let took = self.client.clock.monotonic().saturating_sub(began);
        self.client.wait_for_orchestration_typed(&self.id, timeout.saturating_sub(took)).await
    }

    /// Waits until the instance has begun, at most for `timeout`: for an id that another process is about to
    /// start. Returns at once if it has begun already.
    ///
    /// ```
    /// # async fn example(client: steadfast_client::Client) -> Result<(), steadfast_client::ClientError> {
    /// # use std::time::Duration;
    /// let order = client.instance("order-7");
    /// order.wait_for_start(Duration::from_secs(60)).await?;
    /// let receipt = order.wait::<String>().await?;
    /// # drop(receipt);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Timeout` if it has not begun within `timeout`, `Provider` if the store fails.
    ///
    /// # Cancel safety
    /// Waits only.
    pub async fn wait_for_start(&self, timeout: Duration) -> Result<(), ClientError> {
        self.client.wait_for_start(&self.id, timeout).await
    }

    /// Sends a message encoded as JSON to a queue of the instance.
    ///
    /// # Errors
    /// As [`Client::try_enqueue_event_typed`].
    pub async fn enqueue<T: Serialize>(&self, queue: impl Into<String>, data: &T) -> Result<(), ClientError> {
        self.client.try_enqueue_event_typed(&self.id, queue, data).await
    }

    /// Raises an event with data encoded as JSON.
    ///
    /// # Errors
    /// As [`Client::try_raise_event_typed`].
    pub async fn raise<T: Serialize>(
        &self,
        event_name: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.client.try_raise_event_typed(&self.id, event_name, data).await
    }

    /// Cancels the instance: it fails at its next turn.
    ///
    /// # Errors
    /// As [`Client::cancel_instance`].
    pub async fn cancel(&self, reason: impl Into<String>) -> Result<(), ClientError> {
        self.client.cancel_instance(&self.id, reason).await
    }
}
