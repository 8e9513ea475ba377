//! Activities that are tried again when they fail.

use std::panic::Location;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::OrchestrationContext;
use super::activity::Asked;
use crate::{Either2, RetryPolicy, decode, encode};

/// The error of an attempt that took longer than the policy allows.
const TIMED_OUT: &str = "timeout: activity timed out";

impl OrchestrationContext {
    /// Runs an activity and, when it fails, runs it again as `policy` says. An attempt that times out is not
    /// repeated.
    #[track_caller]
    pub fn schedule_activity_with_retry(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: RetryPolicy,
    ) -> impl Future<Output = Result<String, String>> + Send {
        let at = Location::caller();
        self.clone().retry(name.into(), Ok(input.into()), policy, None, at)
    }

    /// Runs an activity with retries, with input and output encoded as JSON.
    #[track_caller]
    pub fn schedule_activity_with_retry_typed<In, Out>(
        &self,
        name: impl Into<String>,
        input: &In,
        policy: RetryPolicy,
    ) -> impl Future<Output = Result<Out, String>> + Send
    where
        In: Serialize,
        Out: DeserializeOwned,
    {
        let at = Location::caller();
        let result = self.clone().retry(name.into(), encode(input), policy, None, at);
        async move { decode(&result.await?) }
    }

    /// Runs an activity on a session with retries.
    #[track_caller]
    pub fn schedule_activity_with_retry_on_session(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: RetryPolicy,
        session_id: impl Into<String>,
    ) -> impl Future<Output = Result<String, String>> + Send {
        let at = Location::caller();
        self.clone().retry(name.into(), Ok(input.into()), policy, Some(session_id.into()), at)
    }

    /// Runs an activity on a session with retries, with input and output encoded as JSON.
    #[track_caller]
    pub fn schedule_activity_with_retry_on_session_typed<In, Out>(
        &self,
        name: impl Into<String>,
        input: &In,
        policy: RetryPolicy,
        session_id: impl Into<String>,
    ) -> impl Future<Output = Result<Out, String>> + Send
    where
        In: Serialize,
        Out: DeserializeOwned,
    {
        let at = Location::caller();
        let result = self.clone().retry(name.into(), encode(input), policy, Some(session_id.into()), at);
        async move { decode(&result.await?) }
    }

    async fn retry(
        self,
        name: String,
        input: Result<String, String>,
        policy: RetryPolicy,
        session_id: Option<String>,
        at: &'static Location<'static>,
    ) -> Result<String, String> {
        let input = input?;
        let max = policy.max_attempts;
        let mut attempt = 1;
        loop {
            let asked = Asked { name: name.clone(), input: input.clone(), session_id: session_id.clone() };
            let error = match self.attempt(asked, &policy, at).await {
                Either2::First(Ok(output)) => return Ok(output),
                Either2::First(Err(error)) => error,
                Either2::Second(()) => return Err(TIMED_OUT.to_owned()),
            };
            if attempt >= max {
                return Err(error);
            }
            let session = session_id.as_ref().map(|id| format!(" (session={id})")).unwrap_or_default();
            self.trace_warn(format!(
                "Activity '{name}'{session} attempt {attempt}/{max} failed: {error}. Retrying..."
            ));
            let delay = policy.delay_for_attempt(attempt);
            if !delay.is_zero() {
                self.ask_timer(delay, at).await;
            }
            attempt += 1;
        }
    }

    /// One attempt. Its timer is asked for after the activity, when the race is first polled.
    async fn attempt(
        &self,
        asked: Asked,
        policy: &RetryPolicy,
        at: &'static Location<'static>,
    ) -> Either2<Result<String, String>, ()> {
        let activity = self.ask_activity(asked, at);
        match policy.timeout {
            Some(timeout) => self.select2(activity, async { self.ask_timer(timeout, at).await }).await,
            None => Either2::First(activity.await),
        }
    }
}
