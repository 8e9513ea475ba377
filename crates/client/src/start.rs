//! Starting instances.

use serde::Serialize;
use steadfast_core::{INITIAL_EXECUTION_ID, WorkItem, encode, limits::MAX_NAME_BYTES, uses_reserved_marker};
use steadfast_store::Started;

use crate::signal::message_of;
use crate::{Client, ClientError};

impl Client {
    /// Starts an instance. An id that exists already is left as it is, and nothing is said about it; use
    /// [`start_if_new`](Self::start_if_new) to know.
    ///
    /// # Errors
    /// `InvalidInput` for an id that cannot be one, `Provider` when the store fails.
    pub async fn start_orchestration(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.enqueue_start(instance.into(), orchestration.into(), None, input.into()).await
    }

    /// Starts an instance of a given version.
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
        self.enqueue_start(instance.into(), orchestration.into(), Some(version.into()), input.into()).await
    }

    /// Starts an instance with an input encoded as JSON.
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration), and `InvalidInput` for an input that cannot be encoded.
    pub async fn start_orchestration_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: In,
    ) -> Result<(), ClientError> {
        let input = encoded(&input)?;
        self.enqueue_start(instance.into(), orchestration.into(), None, input).await
    }

    /// Starts an instance of a given version with an input encoded as JSON.
    ///
    /// # Errors
    /// As [`start_orchestration_typed`](Self::start_orchestration_typed).
    pub async fn start_orchestration_versioned_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: In,
    ) -> Result<(), ClientError> {
        let input = encoded(&input)?;
        self.enqueue_start(instance.into(), orchestration.into(), Some(version.into()), input).await
    }

    /// Starts an instance unless there is one of that id, and says which of the two it was. The store decides it in
    /// one transaction.
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
        Ok(self.store.start(self.sent(start), Vec::new()).await?)
    }

    /// Sends a message to a queue of an instance, and starts the instance first unless it exists: one transaction, so
    /// that the message cannot come too early.
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration).
    pub async fn signal_with_start(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<Started, ClientError> {
        let instance = instance.into();
        let message = message_of(instance.clone(), queue.into(), data.into())?;
        let start = start_of(instance, orchestration.into(), None, input.into())?;
        Ok(self.store.start(self.sent(start), vec![self.sent(message)]).await?)
    }

    async fn enqueue_start(
        &self,
        instance: String,
        orchestration: String,
        version: Option<String>,
        input: String,
    ) -> Result<(), ClientError> {
        let start = start_of(instance, orchestration, version, input)?;
        Ok(self.store.send(vec![self.sent(start)]).await?)
    }
}

pub(crate) fn start_of(
    instance: String,
    orchestration: String,
    version: Option<String>,
    input: String,
) -> Result<WorkItem, ClientError> {
    check_id("instance id", &instance)?;
    check_id("orchestration name", &orchestration)?;
    if uses_reserved_marker(&instance) {
        let message = format!("instance id '{instance}' uses the reserved sub-orchestration marker 'sub::'");
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

/// Refuses ids that no store can keep.
pub(crate) fn check_id(what: &str, id: &str) -> Result<(), ClientError> {
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

pub(crate) fn encoded(value: &impl Serialize) -> Result<String, ClientError> {
    encode(value).map_err(|error| ClientError::invalid(format!("encode: {error}")))
}
