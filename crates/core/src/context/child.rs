//! Starting children and waiting for their results.

use std::panic::Location;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{OrchestrationContext, result};
use crate::context::future::DurableFuture;
use crate::operation::Kind;
use crate::operation::child::{PENDING_PREFIX, reserved_id_error};
use crate::{Action, decode_named, encode, is_auto_generated_sub_orch_id};

/// The arguments of a call that starts a child.
struct ChildCall {
    name: String,
    version: Option<String>,
    /// `None` leaves the id to the engine.
    instance: Option<String>,
    input: String,
}

impl OrchestrationContext {
    /// Starts a child and waits for its result. The engine makes the id of the child: the id of this
    /// instance, `::sub::` and a number.
    #[track_caller]
    pub fn schedule_sub_orchestration(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        let call = ChildCall { name: name.into(), version: None, instance: None, input: input.into() };
        self.ask_child(call, Location::caller())
    }

    /// Starts a child with an id of your own and waits for its result. An id that begins with `sub::` is
    /// reserved for the engine: the future resolves to an error at once.
    #[track_caller]
    pub fn schedule_sub_orchestration_with_id(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        let call = ChildCall {
            name: name.into(),
            version: None,
            instance: Some(instance.into()),
            input: input.into(),
        };
        self.ask_child(call, Location::caller())
    }

    /// Starts a child of a given version and waits for its result.
    #[track_caller]
    pub fn schedule_sub_orchestration_versioned(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        let call = ChildCall { name: name.into(), version, instance: None, input: input.into() };
        self.ask_child(call, Location::caller())
    }

    /// Starts a child of a given version with an id of your own and waits for its result.
    #[track_caller]
    pub fn schedule_sub_orchestration_versioned_with_id(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        let call =
            ChildCall { name: name.into(), version, instance: Some(instance.into()), input: input.into() };
        self.ask_child(call, Location::caller())
    }

    /// Starts a child whose input and output are encoded as JSON.
    #[track_caller]
    pub fn schedule_sub_orchestration_typed<In, Out>(
        &self,
        name: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>>
    where
        In: Serialize,
        Out: DeserializeOwned + Send + 'static,
    {
        self.ask_child_typed(name.into(), None, encode(input), Location::caller())
    }

    /// Starts a child with an id of your own, with input and output encoded as JSON.
    #[track_caller]
    pub fn schedule_sub_orchestration_with_id_typed<In, Out>(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>>
    where
        In: Serialize,
        Out: DeserializeOwned + Send + 'static,
    {
        self.ask_child_typed(name.into(), Some(instance.into()), encode(input), Location::caller())
    }

    fn ask_child_typed<Out>(
        &self,
        name: String,
        instance: Option<String>,
        input: Result<String, String>,
        at: &'static Location<'static>,
    ) -> DurableFuture<Result<Out, String>>
    where
        Out: DeserializeOwned + Send + 'static,
    {
        match input {
            Ok(input) => {
                let what = format!("output of orchestration '{name}'");
                self.ask_child(ChildCall { name, version: None, instance, input }, at)
                    .map(move |result| result.and_then(|output| decode_named(what, &output)))
            }
            Err(error) => DurableFuture::ready(Err(error)),
        }
    }

    fn ask_child(
        &self,
        call: ChildCall,
        at: &'static Location<'static>,
    ) -> DurableFuture<Result<String, String>> {
        let Some(mut ledger) = self.scope.enter("schedule_sub_orchestration", at) else {
            return DurableFuture::never();
        };
        let ChildCall { name, version, instance, input } = call;
        let instance = match instance {
            Some(id) if is_auto_generated_sub_orch_id(&id) => {
                ledger.take_token();
                return DurableFuture::ready(Err(reserved_id_error(&id)));
            }
            Some(id) => id,
            None => format!("{PENDING_PREFIX}{}", ledger.peek_token().0),
        };
        let action = Action::StartSubOrchestration { scheduling_event_id: 0, name, version, instance, input };
        let token = ledger.ask(at, action);
        drop(ledger);
        DurableFuture::waiting(&self.scope, token, Kind::Child, result)
    }
}
