//! Taking messages from queues.

use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde::de::DeserializeOwned;

use super::{OrchestrationContext, data};
use crate::context::future::DurableFuture;
use crate::{Action, decode};

impl OrchestrationContext {
    /// Takes the next message of a queue, or waits for it. Messages are kept until they are taken; a
    /// continue-as-new hands up to 100 unread ones to the next execution.
    #[track_caller]
    pub fn dequeue_event(&self, queue: impl Into<String>) -> DurableFuture<String> {
        self.ask_queue(queue.into(), Location::caller())
    }

    /// Takes the next message of a queue and decodes it.
    ///
    /// # Panics
    /// The future panics if the message cannot be decoded, which fails the orchestration.
    /// [`try_dequeue_event_typed`](Self::try_dequeue_event_typed) returns an error instead.
    #[track_caller]
    pub fn dequeue_event_typed<T: DeserializeOwned>(&self, queue: impl Into<String>) -> TypedDequeue<T> {
        TypedDequeue { message: self.ask_queue(queue.into(), Location::caller()), value: PhantomData }
    }

    /// Takes the next message of a queue and decodes it; a message that cannot be decoded is an error.
    #[track_caller]
    pub fn try_dequeue_event_typed<T>(&self, queue: impl Into<String>) -> DurableFuture<Result<T, String>>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.ask_queue(queue.into(), Location::caller()).map(|text| decode(&text))
    }

    /// Takes the next message of a queue: the old spelling of [`dequeue_event`](Self::dequeue_event).
    #[deprecated(note = "use dequeue_event")]
    #[track_caller]
    pub fn schedule_wait_persistent(&self, queue: impl Into<String>) -> DurableFuture<String> {
        self.dequeue_event(queue)
    }

    /// Takes and decodes the next message of a queue: the old spelling of
    /// [`dequeue_event_typed`](Self::dequeue_event_typed).
    #[deprecated(note = "use dequeue_event_typed")]
    #[track_caller]
    pub fn schedule_wait_persistent_typed<T: DeserializeOwned>(
        &self,
        queue: impl Into<String>,
    ) -> TypedDequeue<T> {
        self.dequeue_event_typed(queue)
    }

    fn ask_queue(&self, name: String, at: &'static Location<'static>) -> DurableFuture<String> {
        self.ask("dequeue_event", at, |_| Action::DequeueEvent { scheduling_event_id: 0, name }, data)
    }
}

/// Waits for a message of a queue and decodes it. Made by
/// [`dequeue_event_typed`](OrchestrationContext::dequeue_event_typed).
#[must_use = "dropping the future gives its place in the queue back"]
pub struct TypedDequeue<T> {
    message: DurableFuture<String>,
    value: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Future for TypedDequeue<T> {
    type Output = T;

    #[allow(clippy::panic, reason = "the compatible API panics here")]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match decode(&ready!(Pin::new(&mut self.message).poll(cx))) {
            Ok(value) => Poll::Ready(value),
            Err(error) => panic!("queue message cannot be decoded: {error}"),
        }
    }
}
