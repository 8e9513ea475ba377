//! Waiting for events that are raised from outside.

use std::panic::Location;

use serde::de::DeserializeOwned;

use super::{OrchestrationContext, data};
use crate::context::future::DurableFuture;
use crate::{Action, decode};

impl OrchestrationContext {
    /// Waits for the next event of this name. An event that is raised while no wait for its name is open is
    /// not delivered; use [`dequeue_event`](Self::dequeue_event) for messages that must not be missed.
    #[track_caller]
    pub fn schedule_wait(&self, name: impl Into<String>) -> DurableFuture<String> {
        self.ask_signal(name.into(), Location::caller())
    }

    /// Waits for the next event of this name and decodes its data.
    ///
    /// # Panics
    /// The future panics if the data cannot be decoded, which fails the orchestration.
    /// [`try_schedule_wait_typed`](Self::try_schedule_wait_typed) returns an error instead.
    #[track_caller]
    #[allow(clippy::panic, reason = "the compatible API panics here")]
    pub fn schedule_wait_typed<T>(&self, name: impl Into<String>) -> DurableFuture<T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.ask_signal(name.into(), Location::caller()).map(|text| match decode(&text) {
            Ok(value) => value,
            Err(error) => panic!("event data cannot be decoded: {error}"),
        })
    }

    /// Waits for the next event of this name and decodes its data; data that cannot be decoded is an error.
    #[track_caller]
    pub fn try_schedule_wait_typed<T>(&self, name: impl Into<String>) -> DurableFuture<Result<T, String>>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.ask_signal(name.into(), Location::caller()).map(|text| decode(&text))
    }

    fn ask_signal(&self, name: String, at: &'static Location<'static>) -> DurableFuture<String> {
        self.ask("schedule_wait", at, |_| Action::WaitExternal { scheduling_event_id: 0, name }, data)
    }
}
