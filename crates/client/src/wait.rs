//! Asking how an instance stands, and waiting for it: one row, never a history, and a wake-up instead of a poll.

use std::time::Duration;

use serde::de::DeserializeOwned;
use steadfast_core::{OrchestrationStatus, decode};
use steadfast_store::{ExecutionState, InstanceState, WaitFor};

use crate::{Client, ClientError};

impl Client {
    /// Tells how an instance stands.
    ///
    /// # Errors
    /// `Provider` when the store fails.
    pub async fn get_orchestration_status(&self, instance: &str) -> Result<OrchestrationStatus, ClientError> {
        Ok(self.store.state(instance).await?.map_or(OrchestrationStatus::NotFound, status_of))
    }

    /// Waits until an instance has ended.
    ///
    /// # Errors
    /// `Timeout` when it has not in time, also when there is none; `Provider` when the store fails.
    ///
    /// # Cancel safety
    /// Nothing changes by waiting.
    pub async fn wait_for_orchestration(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        self.wait_until(instance, timeout, is_ended).await.map(status_of)
    }

    /// Waits until an instance has ended and decodes its output. A failure is the inner error, as text.
    ///
    /// # Errors
    /// As [`wait_for_orchestration`](Self::wait_for_orchestration), and `InvalidInput` when the output is no such
    /// value.
    pub async fn wait_for_orchestration_typed<Out: DeserializeOwned>(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<Result<Out, String>, ClientError> {
        match self.wait_for_orchestration(instance, timeout).await? {
            OrchestrationStatus::Completed { output, .. } => decode(&output)
                .map(Ok)
                .map_err(|error| ClientError::invalid(format!("decode failed: {error}"))),
            OrchestrationStatus::Failed { details, .. } => Ok(Err(details.display_message())),
            OrchestrationStatus::Running { .. } | OrchestrationStatus::NotFound => Err(ClientError::Timeout),
        }
    }

    /// Waits until the custom status of an instance is newer than the version that the caller knows, or the instance
    /// has ended. `poll_interval` is for compatibility: the store wakes the wait.
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
        self.wait_until(instance, timeout, news).await.map(status_of)
    }

    /// Waits until an instance stands as asked for.
    pub(crate) async fn wait_until(
        &self,
        instance: &str,
        timeout: Duration,
        enough: impl Fn(&InstanceState) -> bool,
    ) -> Result<InstanceState, ClientError> {
        let deadline = self.clock.monotonic().saturating_add(timeout);
        loop {
            let state = self.store.state(instance).await?;
            let seen = state.as_ref().map_or(0, |state| state.change);
            if let Some(state) = state
                && enough(&state)
            {
                return Ok(state);
            }
            let left = deadline.saturating_sub(self.clock.monotonic());
            if left.is_zero() {
                return Err(ClientError::Timeout);
            }
            self.store.wait(WaitFor::Instance { instance, seen }, left).await?;
        }
    }
}

fn is_ended(state: &InstanceState) -> bool {
    matches!(state.status, ExecutionState::Completed(_) | ExecutionState::Failed(_))
}

/// Between two executions an instance is running: the next one is on its way.
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
