//! Starting instances.

use serde::Serialize;
use steadfast_store::Started;

use crate::send::{NewInstance, encoded};
use crate::{Client, ClientError};

impl Client {
    /// Starts an instance. If the id exists, that instance stays as it is and the call succeeds; use
    /// [`start_if_new`](Self::start_if_new) to learn whether it is new.
    ///
    /// # Errors
    /// `InvalidInput` for an id or name that is empty, longer than 1,024 bytes, contains NUL, or has the form
    /// of an id that the engine makes; `Provider` if the store fails.
    pub async fn start_orchestration(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        let (instance, orchestration, input) = (instance.into(), orchestration.into(), input.into());
        self.sender().start(NewInstance { instance, orchestration, version: None, input }).await
    }

    /// Starts an instance of a given version of its orchestration, such as `"1.2.0"`.
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration). A version that no runtime has registered is no
    /// error here: the start waits for a runtime that has it.
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

    /// Starts an instance with an input encoded as JSON.
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
        let input = encoded(&input)?;
        self.start_orchestration(instance, orchestration, input).await
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
        self.start_orchestration_versioned(instance, orchestration, version, input).await
    }

    /// Starts an instance unless its id exists, and tells whether the instance is new. The store decides it
    /// in one transaction: of several callers at the same time, one gets [`Started::New`].
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

    /// Sends a message to a queue of an instance, and starts the instance first unless it exists. Both happen
    /// in one transaction, so the message cannot come before the start. An instance that has ended exists: it
    /// is not started again, and the message is dropped.
    ///
    /// # Errors
    /// As [`start_orchestration`](Self::start_orchestration), also for the name of the queue.
    pub async fn signal_with_start(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<Started, ClientError> {
        let (instance, orchestration, input) = (instance.into(), orchestration.into(), input.into());
        let new = NewInstance { instance, orchestration, version: None, input };
        self.sender().signal_with_start(new, queue.into(), data.into()).await
    }
}
