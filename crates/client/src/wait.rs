//! The status of an instance, and waiting for it: one row, never a history, and a wake-up instead of a poll.

use std::time::Duration;

use serde::de::DeserializeOwned;
use steadfast_core::{OrchestrationStatus, decode_named};
use steadfast_store::{ExecutionState, InstanceState, ProviderErrorKind, WaitFor, Waited};

use crate::{Client, ClientError};

impl Client {
    /// Returns the status of an instance: running, completed, failed, or not found.
    ///
    /// # Errors
    /// `Provider` if the store fails.
    pub async fn get_orchestration_status(&self, instance: &str) -> Result<OrchestrationStatus, ClientError> {
        Ok(self.store.state(instance).await?.map_or(OrchestrationStatus::NotFound, status_of))
    }

    /// Waits until an instance has ended, and returns how. The store reads the row of the instance at the
    /// beginning and at the end of the wait, not once per turn.
    ///
    /// # Errors
    /// `Timeout` if it has not ended within `timeout`, also if the instance does not exist: it may come.
    /// `InstanceNotFound` at once if it is deleted during the wait; `Provider` if the store fails.
    ///
    /// # Cancel safety
    /// Waits only.
    pub async fn wait_for_orchestration(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        self.wait_until(instance, timeout, |_| WaitFor::End { instance }, is_ended).await.map(status_of)
    }

    /// Waits until an instance has ended and decodes its output. A failure is the inner error, as text.
    ///
    /// # Errors
    /// As [`wait_for_orchestration`](Self::wait_for_orchestration), and `InvalidInput` if the output
    /// cannot be decoded as `Out`.
    pub async fn wait_for_orchestration_typed<Out: DeserializeOwned>(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<Result<Out, String>, ClientError> {
        match self.wait_for_orchestration(instance, timeout).await? {
            OrchestrationStatus::Completed { output, .. } => {
                decode_named(format_args!("output of instance '{instance}'"), &output)
                    .map(Ok)
                    .map_err(|error| ClientError::invalid(format!("decode failed: {error}")))
            }
            OrchestrationStatus::Failed { details, .. } => Ok(Err(details.display_message())),
            OrchestrationStatus::Running { .. } | OrchestrationStatus::NotFound => Err(ClientError::Timeout),
        }
    }

    /// Waits until the custom status of an instance has a higher version than `last_seen_version`, or the
    /// instance has ended. `poll_interval` is for compatibility and has no effect: the store wakes the wait.
    ///
    /// # Errors
    /// As [`wait_for_orchestration`](Self::wait_for_orchestration).
    pub async fn wait_for_status_change(
        &self,
        instance: &str,
        last_seen_version: u64,
        poll_interval: Duration,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        let _ = poll_interval;
        let news = |state: &InstanceState| state.custom_status_version > last_seen_version || is_ended(state);
        let change = |seen| WaitFor::Instance { instance, seen };
        self.wait_until(instance, timeout, change, news).await.map(status_of)
    }

    /// Waits until an instance has begun: its first turn is committed.
    pub(crate) async fn wait_for_start(&self, instance: &str, timeout: Duration) -> Result<(), ClientError> {
        let change = |seen| WaitFor::Instance { instance, seen };
        self.wait_until(instance, timeout, change, |_| true).await.map(drop)
    }

    /// Makes sure that an instance exists: it has begun, or its start waits for a first turn. A store that
    /// cannot tell which starts wait is not asked further.
    pub(crate) async fn must_exist(&self, instance: &str) -> Result<(), ClientError> {
        if self.store.state(instance).await?.is_some() {
            return Ok(());
        }
        match self.store.turn_of(instance).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(ClientError::not_found(instance)),
            Err(error) if error.kind == ProviderErrorKind::Unsupported => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the row of an instance satisfies `enough`. Each wait of the store begins with a read and
    /// returns the row, so the row is not read separately. `what` makes the wait of the store from the change
    /// number of the row that was seen last, 0 at first. An instance that is deleted meanwhile ends the wait.
    async fn wait_until<'i>(
        &self,
        instance: &str,
        timeout: Duration,
        what: impl Fn(u64) -> WaitFor<'i>,
        enough: impl Fn(&InstanceState) -> bool,
    ) -> Result<InstanceState, ClientError> {
        let deadline = self.clock.monotonic().saturating_add(timeout);
        let mut seen = 0;
        loop {
            let left = deadline.saturating_sub(self.clock.monotonic());
            match self.store.wait(what(seen), left).await? {
                Waited::Seen(Some(state)) if enough(&state) => return Ok(*state),
                Waited::Seen(Some(state)) => seen = state.change,
                // A store answers so only after it saw the instance, in this wait or in one before it.
                Waited::Seen(None) => return Err(ClientError::not_found(instance)),
                Waited::Woken | Waited::TimedOut => {}
            }
            if self.clock.monotonic() >= deadline {
                return Err(ClientError::Timeout);
            }
        }
    }
}

/// The change number of a row, 0 if there is no row.
pub(crate) fn change_of(state: Option<&InstanceState>) -> u64 {
    state.map_or(0, |state| state.change)
}

fn is_ended(state: &InstanceState) -> bool {
    state.status.is_ended()
}

/// Makes the public status of a row. Between two executions an instance is running: the start of the next one
/// is on its way.
pub(crate) fn status_of(state: InstanceState) -> OrchestrationStatus {
    let InstanceState { status, custom_status, custom_status_version, .. } = state;
    match status {
        ExecutionState::Running | ExecutionState::ContinuedAsNew => {
            OrchestrationStatus::Running { custom_status, custom_status_version }
        }
        ExecutionState::Completed(output) => {
            OrchestrationStatus::Completed { output, custom_status, custom_status_version }
        }
        ExecutionState::Failed(details) => {
            OrchestrationStatus::Failed { details, custom_status, custom_status_version }
        }
    }
}
