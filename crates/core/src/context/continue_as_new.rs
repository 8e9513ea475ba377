//! Continuing in a new execution, with a fresh history.

use std::panic::Location;

use serde::Serialize;

use super::OrchestrationContext;
use crate::context::future::DurableFuture;
use crate::{Action, encode};

impl OrchestrationContext {
    /// Ends this execution and starts the next one with `input`. The future never resolves:
    /// `return ctx.continue_as_new(input).await`.
    #[track_caller]
    pub fn continue_as_new(&self, input: impl Into<String>) -> DurableFuture<Result<String, String>> {
        self.call_continue(input.into(), None, Location::caller())
    }

    /// Ends this execution and starts the next one with an input encoded as JSON. When the input cannot be
    /// encoded, the future resolves to the error and this execution goes on.
    #[track_caller]
    pub fn continue_as_new_typed<In: Serialize>(&self, input: &In) -> DurableFuture<Result<String, String>> {
        match encode(input) {
            Ok(input) => self.call_continue(input, None, Location::caller()),
            Err(error) => DurableFuture::ready(Err(error)),
        }
    }

    /// Ends this execution and starts the next one with another version of the handler.
    #[track_caller]
    pub fn continue_as_new_versioned(
        &self,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.call_continue(input.into(), Some(version.into()), Location::caller())
    }

    fn call_continue(
        &self,
        input: String,
        version: Option<String>,
        at: &'static Location<'static>,
    ) -> DurableFuture<Result<String, String>> {
        if let Some(mut ledger) = self.scope.enter("continue_as_new", at) {
            ledger.call(at, Action::ContinueAsNew { input, version });
        }
        DurableFuture::never()
    }
}
