//! Starting orchestrations without waiting for their results.

use std::panic::Location;

use serde::Serialize;

use super::OrchestrationContext;
use crate::context::misuse::Misuse;
use crate::operation::detached::reserved_id_error;
use crate::{Action, encode, uses_reserved_marker};

impl OrchestrationContext {
    /// Starts another orchestration and does not wait for it. If the instance exists already, nothing
    /// happens.
    ///
    /// # Panics
    /// If the id looks like one that the engine makes for a child.
    /// [`try_schedule_orchestration`](Self::try_schedule_orchestration) returns an error instead.
    #[track_caller]
    pub fn schedule_orchestration(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) {
        self.start_detached(name.into(), None, instance.into(), input.into(), Location::caller());
    }

    /// Starts another orchestration with an input encoded as JSON. An input that cannot be encoded fails this
    /// orchestration.
    ///
    /// # Panics
    /// As [`schedule_orchestration`](Self::schedule_orchestration).
    #[track_caller]
    pub fn schedule_orchestration_typed<In: Serialize>(
        &self,
        name: impl Into<String>,
        instance: impl Into<String>,
        input: &In,
    ) {
        let at = Location::caller();
        self.start_detached_typed(name.into(), None, instance.into(), encode(input), at);
    }

    /// Starts another orchestration of a given version.
    ///
    /// # Panics
    /// As [`schedule_orchestration`](Self::schedule_orchestration).
    #[track_caller]
    pub fn schedule_orchestration_versioned(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) {
        self.start_detached(name.into(), version, instance.into(), input.into(), Location::caller());
    }

    /// Starts another orchestration of a given version with an input encoded as JSON.
    ///
    /// # Panics
    /// As [`schedule_orchestration`](Self::schedule_orchestration).
    #[track_caller]
    pub fn schedule_orchestration_versioned_typed<In: Serialize>(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: &In,
    ) {
        let at = Location::caller();
        self.start_detached_typed(name.into(), version, instance.into(), encode(input), at);
    }

    /// Starts another orchestration, of a given version if there is one, and does not wait for it.
    ///
    /// # Errors
    /// If the id looks like one that the engine makes for a child; nothing is started.
    #[track_caller]
    pub fn try_schedule_orchestration(
        &self,
        name: impl Into<String>,
        version: Option<String>,
        instance: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), String> {
        self.try_start_detached(name.into(), version, instance.into(), input.into(), Location::caller())
    }

    fn start_detached_typed(
        &self,
        name: String,
        version: Option<String>,
        instance: String,
        input: Result<String, String>,
        at: &'static Location<'static>,
    ) {
        match input {
            Ok(input) => self.start_detached(name, version, instance, input, at),
            Err(error) => {
                let misuse = Misuse::Encode { what: "the input of schedule_orchestration", error, at };
                self.report("schedule_orchestration", misuse, at);
            }
        }
    }

    #[allow(clippy::panic, reason = "the compatible API panics here")]
    fn start_detached(
        &self,
        name: String,
        version: Option<String>,
        instance: String,
        input: String,
        at: &'static Location<'static>,
    ) {
        if let Err(error) = self.try_start_detached(name, version, instance, input, at) {
            panic!("{error}");
        }
    }

    fn try_start_detached(
        &self,
        name: String,
        version: Option<String>,
        instance: String,
        input: String,
        at: &'static Location<'static>,
    ) -> Result<(), String> {
        if uses_reserved_marker(&instance) {
            return Err(reserved_id_error(&instance));
        }
        if let Some(mut ledger) = self.scope.enter("schedule_orchestration", at) {
            let scheduling_event_id = 0;
            ledger.call(
                at,
                Action::StartOrchestrationDetached { scheduling_event_id, name, version, instance, input },
            );
        }
        Ok(())
    }
}
