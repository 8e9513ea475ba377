//! Scheduling activities.

mod retry;
mod syscall;

use std::panic::Location;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{OrchestrationContext, result};
use crate::context::future::DurableFuture;
use crate::operation::Kind;
use crate::replay::ledger::Answer;
use crate::{decode_named, encode};

/// The arguments of a call that schedules an activity.
pub(crate) struct ActivityCall {
    pub(crate) name: String,
    pub(crate) input: String,
    pub(crate) session_id: Option<String>,
    /// The key of the first try, and the number of tries so far, if the orchestration calls the activity
    /// again because it failed.
    pub(crate) first_try: Option<(Arc<str>, u32)>,
}

impl ActivityCall {
    fn new(name: String, input: String, session_id: Option<String>) -> Self {
        Self { name, input, session_id, first_try: None }
    }
}

impl OrchestrationContext {
    /// Runs an activity on some worker and waits for its result.
    #[track_caller]
    pub fn schedule_activity(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        let call = ActivityCall::new(name.into(), input.into(), None);
        self.ask_activity(call, Location::caller())
    }

    /// Runs an activity whose input and output are encoded as JSON. If the input cannot be encoded, or the
    /// output cannot be decoded, the future resolves to an error.
    #[track_caller]
    pub fn schedule_activity_typed<In, Out>(
        &self,
        name: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>>
    where
        In: Serialize,
        Out: DeserializeOwned + Send + 'static,
    {
        self.ask_activity_typed(name.into(), encode(input), None, Location::caller())
    }

    /// Runs an activity on a session: on the worker that holds the in-memory state of the session.
    #[track_caller]
    pub fn schedule_activity_on_session(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        session_id: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        let call = ActivityCall::new(name.into(), input.into(), Some(session_id.into()));
        self.ask_activity(call, Location::caller())
    }

    /// Runs an activity on a session, with input and output encoded as JSON.
    #[track_caller]
    pub fn schedule_activity_on_session_typed<In, Out>(
        &self,
        name: impl Into<String>,
        input: &In,
        session_id: impl Into<String>,
    ) -> DurableFuture<Result<Out, String>>
    where
        In: Serialize,
        Out: DeserializeOwned + Send + 'static,
    {
        self.ask_activity_typed(name.into(), encode(input), Some(session_id.into()), Location::caller())
    }

    pub(super) fn ask_activity(
        &self,
        call: ActivityCall,
        at: &'static Location<'static>,
    ) -> DurableFuture<Result<String, String>> {
        self.ask_activity_and(call, at, result)
    }

    /// Schedules an activity, and reads its answer with `read`.
    pub(super) fn ask_activity_and<T>(
        &self,
        call: ActivityCall,
        at: &'static Location<'static>,
        read: impl FnOnce(Answer) -> T + Send + 'static,
    ) -> DurableFuture<T> {
        let Some(mut ledger) = self.scope.enter("schedule_activity", at) else {
            return DurableFuture::never();
        };
        let (token, key) = ledger.ask_activity(at, call);
        drop(ledger);
        DurableFuture::waiting(&self.scope, token, Kind::Activity, read).with_key(key)
    }

    fn ask_activity_typed<Out>(
        &self,
        name: String,
        input: Result<String, String>,
        session_id: Option<String>,
        at: &'static Location<'static>,
    ) -> DurableFuture<Result<Out, String>>
    where
        Out: DeserializeOwned + Send + 'static,
    {
        match input {
            Ok(input) => {
                let what = format!("output of activity '{name}'");
                self.ask_activity(ActivityCall::new(name, input, session_id), at)
                    .map(move |result| result.and_then(|output| decode_named(what, &output)))
            }
            Err(error) => DurableFuture::ready(Err(error)),
        }
    }
}
