//! Which message each call sends, decided once for both senders: [`Client`](crate::Client) sends to the store
//! at once, [`Through`](crate::Through) into a transaction of the application.

use serde::Serialize;
use steadfast_core::{INITIAL_EXECUTION_ID, WorkItem, encode, limits::MAX_NAME_BYTES, uses_reserved_marker};
use steadfast_store::{Envelope, Message, Outbox, ProviderError, Started, Store};

use crate::ClientError;

/// Checks the ids of a call, makes its message, and sends the message with the trace context of a client.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) traceparent: Option<&'a str>,
}

/// Where messages are sent to.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    Store(&'a dyn Store),
    Outbox(&'a dyn Outbox),
}

/// An instance to start.
pub(crate) struct NewInstance {
    pub(crate) instance: String,
    pub(crate) orchestration: String,
    /// `None` leaves the version to the registry of the runtime.
    pub(crate) version: Option<String>,
    pub(crate) input: String,
}

impl Sender<'_> {
    /// Starts an instance. The store ignores the start of an id that exists.
    pub(crate) async fn start(self, new: NewInstance) -> Result<(), ClientError> {
        let start = new.into_message()?;
        Ok(self.target.send(self.envelope(start)).await?)
    }

    /// Starts an instance unless its id exists, and tells whether the instance is new.
    pub(crate) async fn start_if_new(self, new: NewInstance) -> Result<Started, ClientError> {
        let start = new.into_message()?;
        Ok(self.target.start(self.envelope(start), Vec::new()).await?)
    }

    /// Starts an instance unless its id exists, and sends a message to one of its queues, in one transaction.
    pub(crate) async fn signal_with_start(
        self,
        new: NewInstance,
        queue: String,
        data: String,
    ) -> Result<Started, ClientError> {
        let message = queue_message(new.instance.clone(), queue, data)?;
        let start = new.into_message()?;
        Ok(self.target.start(self.envelope(start), vec![self.envelope(message)]).await?)
    }

    pub(crate) async fn raise_event(
        self,
        instance: String,
        name: String,
        data: String,
    ) -> Result<(), ClientError> {
        check_id("event name", &name)?;
        self.send(WorkItem::ExternalRaised { instance, name, data }).await
    }

    pub(crate) async fn enqueue_event(
        self,
        instance: String,
        queue: String,
        data: String,
    ) -> Result<(), ClientError> {
        self.send(queue_message(instance, queue, data)?).await
    }

    pub(crate) async fn cancel(self, instance: String, reason: String) -> Result<(), ClientError> {
        self.send(WorkItem::CancelInstance { instance, reason }).await
    }

    pub(crate) async fn terminate(self, instance: String, reason: String) -> Result<(), ClientError> {
        self.send(WorkItem::TerminateInstance { instance, reason }).await
    }

    async fn send(self, message: WorkItem) -> Result<(), ClientError> {
        check_id("instance id", message.instance())?;
        Ok(self.target.send(self.envelope(message)).await?)
    }

    fn envelope(self, item: WorkItem) -> Envelope {
        let traceparent = self.traceparent.map(str::to_owned);
        Envelope { message: Message { traceparent, ..item.into() }, delay: None }
    }
}

impl Target<'_> {
    async fn start(self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError> {
        match self {
            Self::Store(store) => store.start(start, also).await,
            Self::Outbox(outbox) => outbox.start(start, also).await,
        }
    }

    async fn send(self, message: Envelope) -> Result<(), ProviderError> {
        match self {
            Self::Store(store) => store.send(vec![message]).await,
            Self::Outbox(outbox) => outbox.send(vec![message]).await,
        }
    }
}

impl NewInstance {
    fn into_message(self) -> Result<WorkItem, ClientError> {
        let Self { instance, orchestration, version, input } = self;
        check_id("instance id", &instance)?;
        check_id("orchestration name", &orchestration)?;
        if uses_reserved_marker(&instance) {
            let message =
                format!("instance id '{instance}' uses the reserved sub-orchestration marker 'sub::'");
            return Err(ClientError::invalid(message));
        }
        Ok(WorkItem::StartOrchestration {
            instance,
            orchestration,
            input,
            version,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: INITIAL_EXECUTION_ID,
        })
    }
}

fn queue_message(instance: String, name: String, data: String) -> Result<WorkItem, ClientError> {
    check_id("queue name", &name)?;
    Ok(WorkItem::QueueMessage { instance, name, data })
}

/// Refuses ids that no store can keep.
fn check_id(what: &str, id: &str) -> Result<(), ClientError> {
    if id.is_empty() {
        return Err(ClientError::invalid(format!("{what} is empty")));
    }
    if id.len() > MAX_NAME_BYTES {
        let message = format!("{what} size ({} bytes) exceeds limit ({MAX_NAME_BYTES} bytes)", id.len());
        return Err(ClientError::invalid(message));
    }
    if id.contains('\0') {
        return Err(ClientError::invalid(format!("{what} {id:?} contains a NUL character, which no id may")));
    }
    Ok(())
}

/// Encodes a value as JSON.
pub(crate) fn encoded(value: &impl Serialize) -> Result<String, ClientError> {
    encode(value).map_err(|error| ClientError::invalid(format!("encode: {error}")))
}
