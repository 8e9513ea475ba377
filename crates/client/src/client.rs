//! The client itself.

use std::sync::Arc;

use steadfast_clock::{Clock, SystemClock};
use steadfast_store::{Provider, ProviderAdmin, Store, store_of};

use crate::{ClientError, InstanceHandle};

/// Starts, signals, waits for, inspects and manages orchestrations. Cheap to clone.
///
/// ```
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use steadfast_client::Client;
/// use steadfast_memory::MemoryStore;
///
/// let client = Client::new(Arc::new(MemoryStore::new()));
/// client.start_orchestration("order-1", "Order", "{}").await?;
/// client.raise_event("order-1", "paid", "42").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Client {
    /// Makes a client over a store.
    pub fn new(store: Arc<dyn Provider>) -> Self {
        Self::with_clock(store, Arc::new(SystemClock))
    }

    /// Makes a client that waits by a clock of yours.
    pub fn with_clock(store: Arc<dyn Provider>, clock: Arc<dyn Clock>) -> Self {
        Self { store: store_of(store, Arc::clone(&clock)), clock }
    }

    /// Names one instance, for calls that are about it.
    pub fn instance(&self, id: impl Into<String>) -> InstanceHandle {
        InstanceHandle::new(self.clone(), id.into())
    }

    /// Tells whether the store can be managed.
    pub fn has_management_capability(&self) -> bool {
        self.store.admin().is_some()
    }

    pub(crate) fn admin(&self) -> Result<&dyn ProviderAdmin, ClientError> {
        self.store.admin().ok_or(ClientError::ManagementNotAvailable)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("store", &self.store.name()).finish_non_exhaustive()
    }
}
