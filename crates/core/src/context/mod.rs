//! The methods and futures that the code of an orchestration uses, one file for each kind of operation.

pub(crate) mod activity;
mod child;
pub(crate) mod combine;
mod continue_as_new;
mod custom_status;
mod detached;
pub(crate) mod future;
mod kv;
pub(crate) mod misuse;
pub(crate) mod poll_scope;
mod queue;
mod session;
mod signal;
mod timer;
mod trace;

use std::panic::Location;
use std::sync::Arc;

pub use queue::TypedDequeue;

use crate::context::future::DurableFuture;
use crate::context::misuse::Misuse;
use crate::context::poll_scope::PollScope;
use crate::replay::Identity;
use crate::replay::ledger::{Answer, Ledger};
use crate::{Action, Event};

/// Connects the code of an orchestration with the engine: activities, timers, events, children, sessions,
/// key-value state and logging are methods of this type.
///
/// An orchestration must make the same calls in the same order whenever it is run with the same history.
/// What comes from the context is recorded and therefore safe: activities, timers, events, children,
/// key-value state, the time and random ids. Clones share one state. A call from outside the orchestration's
/// own code, such as a spawned task, cannot be repeated and fails the orchestration.
///
/// # Cancel safety
/// Dropping a future of the context before it has answered cancels its operation, and the drop is recorded:
/// an activity or a child is asked to stop, a wait ends. A dropped future with retries makes no further try.
#[derive(Clone)]
pub struct OrchestrationContext {
    scope: Arc<PollScope>,
}

impl OrchestrationContext {
    /// Makes a context without an engine, for tests of code that only needs a value of this type. Its futures
    /// never resolve. `history` and `worker_id` are ignored.
    pub fn new(
        history: Vec<Event>,
        execution_id: u64,
        instance_id: String,
        orchestration_name: String,
        orchestration_version: String,
        worker_id: Option<String>,
    ) -> Self {
        drop((history, worker_id));
        let identity = Identity {
            instance: instance_id,
            execution_id,
            name: orchestration_name,
            version: orchestration_version,
        };
        Self { scope: PollScope::standalone(Ledger::new(identity)) }
    }

    pub(crate) fn within(scope: Arc<PollScope>) -> Self {
        Self { scope }
    }

    /// Returns the id of the instance.
    pub fn instance_id(&self) -> String {
        self.scope.lock().identity.instance.clone()
    }

    /// Returns the number of this execution: 1, and one more after each continue-as-new.
    pub fn execution_id(&self) -> u64 {
        self.scope.lock().identity.execution_id
    }

    /// Returns the name that the orchestration is registered under.
    pub fn orchestration_name(&self) -> String {
        self.scope.lock().identity.name.clone()
    }

    /// Returns the version of the handler that runs this execution.
    pub fn orchestration_version(&self) -> String {
        self.scope.lock().identity.version.clone()
    }

    /// Returns the W3C trace context that the execution was started with. Recorded with its start, so the
    /// same on every replay; a continue-as-new hands it on.
    pub fn traceparent(&self) -> Option<String> {
        self.scope.lock().traceparent.clone()
    }

    /// Tells whether the code only repeats decisions of an earlier turn at this point. Do not branch on it:
    /// the calls would differ between the first run and its replay.
    pub fn is_replaying(&self) -> bool {
        self.scope.lock().replaying
    }

    /// Returns false; kept for compatibility.
    #[doc(hidden)]
    pub fn is_logging_enabled(&self) -> bool {
        false
    }

    /// Makes a call whose answer the returned future waits for.
    fn ask<T>(
        &self,
        call: &'static str,
        at: &'static Location<'static>,
        action: impl FnOnce(&Ledger) -> Action,
        read: impl FnOnce(Answer) -> T + Send + 'static,
    ) -> DurableFuture<T> {
        let Some(mut ledger) = self.scope.enter(call, at) else { return DurableFuture::never() };
        let action = action(&ledger);
        let kind = action.kind();
        let token = ledger.ask(at, action);
        drop(ledger);
        DurableFuture::waiting(&self.scope, token, kind, read)
    }

    fn report(&self, call: &'static str, misuse: Misuse, at: &'static Location<'static>) {
        if let Some(mut ledger) = self.scope.enter(call, at) {
            ledger.report(misuse);
        }
    }
}

/// Reads the answer of an operation that succeeds or fails.
fn result(answer: Answer) -> Result<String, String> {
    match answer {
        Answer::Result(result) => result,
        Answer::Data(data) => Ok(data),
        Answer::Failed(failed) => Err(failed.message),
        Answer::Closed(error) => Err(error),
        Answer::Fired | Answer::Migration(_) => Ok(String::new()),
    }
}

/// Reads the answer of an operation that brings data.
fn data(answer: Answer) -> String {
    match result(answer) {
        Ok(text) | Err(text) => text,
    }
}
