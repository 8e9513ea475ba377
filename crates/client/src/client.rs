//! The client itself.

use std::sync::Arc;

use steadfast_clock::{Clock, SystemClock};
use steadfast_core::check_traceparent;
use steadfast_store::{Provider, ProviderAdmin, Store, store_of};

use crate::send::{Sender, Target};
use crate::{ClientError, InstanceHandle};

/// Starts, signals, waits for, inspects and manages orchestrations. Cheap to clone.
///
/// ```
/// # mod steadfast {
/// #     pub use steadfast_client::Client;
/// #     pub mod providers { pub use steadfast_memory as memory; }
/// # }
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use steadfast::{Client, providers::memory::MemoryStore};
///
/// let client = Client::new(Arc::new(MemoryStore::new()));
/// client.start_orchestration("order-1", "Order", "{}").await?;
/// client.raise_event("order-1", "paid", "42").await?;
/// # Ok(())
/// # }
/// ```
///
/// # Cancel safety
/// Every method that sends, deletes or releases changes the store in one call: if its future is dropped,
/// the call took effect as a whole or not at all, and the caller does not know which. Methods that read or
/// wait change nothing.
#[derive(Clone)]
pub struct Client {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The trace context that the messages of this client carry.
    traceparent: Option<Arc<str>>,
}

impl Client {
    /// Makes a client over a store, which measures its waits by the clock of the machine.
    pub fn new(store: Arc<dyn Provider>) -> Self {
        Self::with_clock(store, Arc::new(SystemClock))
    }

    /// Makes a client that measures its waits by the given clock, such as a `VirtualClock` in a test.
    pub fn with_clock(store: Arc<dyn Provider>, clock: Arc<dyn Clock>) -> Self {
        Self { store: store_of(store, Arc::clone(&clock)), clock, traceparent: None }
    }

    /// Makes a client whose starts, events, queue messages, cancellations and terminations carry a W3C trace
    /// context.
    ///
    /// An instance that such a client starts passes the context on: to its activities, its children, and its
    /// next execution. A provider that has only the compatible methods does not carry it.
    ///
    /// ```
    /// # async fn example(client: steadfast_client::Client) -> Result<(), steadfast_client::ClientError> {
    /// let traced = client.with_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")?;
    /// traced.start_orchestration("order-1", "Order", "{}").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a text that is not a valid `traceparent`; the message says why it is not valid.
    pub fn with_traceparent(&self, traceparent: impl AsRef<str>) -> Result<Self, ClientError> {
        let traceparent = traceparent.as_ref();
        check_traceparent(traceparent)
            .map_err(|error| ClientError::invalid(format!("traceparent is invalid: {error}")))?;
        Ok(Self { traceparent: Some(traceparent.into()), ..self.clone() })
    }

    /// Returns a handle for calls about one instance. Nothing is sent: the instance need not exist.
    pub fn instance(&self, id: impl Into<String>) -> InstanceHandle {
        InstanceHandle::new(self.clone(), id.into())
    }

    /// Tells whether the store has the management interface. Without it, methods that list or delete
    /// instances and executions return `ManagementNotAvailable`.
    pub fn has_management_capability(&self) -> bool {
        self.store.admin().is_some()
    }

    pub(crate) fn admin(&self) -> Result<&dyn ProviderAdmin, ClientError> {
        self.store.admin().ok_or(ClientError::ManagementNotAvailable)
    }

    /// Returns a sender that sends each message to the store at once.
    pub(crate) fn sender(&self) -> Sender<'_> {
        self.sender_to(Target::Store(&*self.store))
    }

    /// Returns a sender that sends to the given target, with this client's trace context.
    pub(crate) fn sender_to<'a>(&'a self, target: Target<'a>) -> Sender<'a> {
        Sender { target, traceparent: self.traceparent.as_deref() }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("store", &self.store.name()).finish_non_exhaustive()
    }
}
