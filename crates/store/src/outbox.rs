//! Sending as part of somebody else's transaction.

use async_trait::async_trait;

use crate::{Envelope, ProviderError, Started};

/// Takes messages to instances into a transaction of the caller's: they are sent when that is committed, and never were when it
/// is rolled back.
///
/// A store that shares its database with the application offers one; a client sends through it.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Starts an instance if there is none of that id, as [`Store::start`](crate::Store::start).
    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError>;

    /// Sends messages to instances, as [`Store::send`](crate::Store::send).
    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError>;
}
