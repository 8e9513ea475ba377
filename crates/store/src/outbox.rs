//! Sending as part of a transaction of the application.

use async_trait::async_trait;

use crate::{Envelope, ProviderError, Started};

/// Sends messages to instances as part of a transaction of the caller: they are delivered after the caller
/// commits it, and never if the caller rolls it back.
///
/// A store that shares its database with the application offers an outbox, and a client sends through it.
///
/// # Cancel safety
/// A future that is dropped before it returned may have had its effect within the transaction; roll it back.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Starts an instance unless one of that id exists, as [`Store::start`](crate::Store::start).
    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError>;

    /// Sends messages to instances, as [`Store::send`](crate::Store::send).
    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError>;
}
