//! Activities that are tried again when they fail.

use std::panic::Location;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::{OrchestrationContext, result};
use super::ActivityCall;
use crate::context::future::DurableFuture;
use crate::replay::ledger::Answer;
use crate::{Either2, FailureKind, Retry, RetryPolicy, decode_named, encode};

/// The error of a try that took longer than the policy allows.
const TIMED_OUT: &str = "timeout: activity timed out";

/// The end of one try.
enum Tried {
    Ok(String),
    Failed(String),
    /// The session of the activity was closed: another try would fail the orchestration, or run on a session
    /// that was opened since.
    Closed(String),
    /// The activity said that its error is final.
    Final(String),
}

impl Tried {
    fn of(answer: Answer) -> Self {
        if let Answer::Closed(error) = answer {
            return Self::Closed(error);
        }
        if let Answer::Failed(failed) = &answer
            && failed.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Final)
        {
            return Self::Final(failed.message.clone());
        }
        match result(answer) {
            Ok(output) => Self::Ok(output),
            Err(error) => Self::Failed(error),
        }
    }
}

impl OrchestrationContext {
    /// Runs an activity and, when it fails, runs it again as `policy` says. A try that exceeds the timeout of
    /// the policy is not repeated, and neither is one whose session was closed.
    ///
    /// The orchestration makes the tries: each is an activity of its own in its history. They share one
    /// idempotency key, that of the first. [`retry`](crate::DurableFuture::retry) leaves the tries to the
    /// workers, which is shorter in history and goes on across deployments.
    #[track_caller]
    pub fn schedule_activity_with_retry(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: RetryPolicy,
    ) -> impl Future<Output = Result<String, String>> + Send {
        let at = Location::caller();
        self.clone().retry(name.into(), Ok(input.into()), Retry::from(policy), at)
    }

    /// Runs an activity and, when it fails, runs it again as `retry` says: which errors are worth it, on
    /// which session and tag, and how long all tries may take together. Each try is another activity in
    /// history; all of them share one idempotency key, that of the first.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use steadfast_core::{OrchestrationContext, Retry, RetryPolicy};
    /// # async fn charge(ctx: OrchestrationContext) -> Result<String, String> {
    /// let retry = Retry::from(RetryPolicy::new(5))
    ///     .retry_if(|error| !error.contains("card declined"))
    ///     .total_timeout(Duration::from_secs(60));
    /// ctx.schedule_activity_retrying("Charge", "order-42", retry).await
    /// # }
    /// ```
    #[track_caller]
    pub fn schedule_activity_retrying(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        retry: Retry,
    ) -> impl Future<Output = Result<String, String>> + Send {
        let at = Location::caller();
        self.clone().retry(name.into(), Ok(input.into()), retry, at)
    }

    /// Runs an activity with retries like [`schedule_activity_retrying`](Self::schedule_activity_retrying),
    /// with input and output encoded as JSON.
    #[track_caller]
    pub fn schedule_activity_retrying_typed<In, Out>(
        &self,
        name: impl Into<String>,
        input: &In,
        retry: Retry,
    ) -> impl Future<Output = Result<Out, String>> + Send
    where
        In: Serialize,
        Out: DeserializeOwned,
    {
        let at = Location::caller();
        let name = name.into();
        let what = format!("output of activity '{name}'");
        let result = self.clone().retry(name, encode(input), retry, at);
        async move { decode_named(what, &result.await?) }
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
        let name = name.into();
        let what = format!("output of activity '{name}'");
        let result = self.clone().retry(name, encode(input), Retry::from(policy), at);
        async move { decode_named(what, &result.await?) }
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
        self.clone().retry(name.into(), Ok(input.into()), Retry::from(policy).on_session(session_id), at)
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
        let retry = Retry::from(policy).on_session(session_id);
        let name = name.into();
        let what = format!("output of activity '{name}'");
        let result = self.clone().retry(name, encode(input), retry, at);
        async move { decode_named(what, &result.await?) }
    }

    async fn retry(
        self,
        name: String,
        input: Result<String, String>,
        retry: Retry,
        at: &'static Location<'static>,
    ) -> Result<String, String> {
        let input = input?;
        let Some(total) = retry.total_timeout else { return self.tries(&name, &input, &retry, at).await };
        let tries = self.tries(&name, &input, &retry, at);
        // The timer is created after the first activity, like the timer of each try.
        match self.select2(tries, async { self.ask_timer(total, at).await }).await {
            Either2::First(result) => result,
            Either2::Second(()) => {
                Err(format!("timeout: activity '{name}' did not succeed within {total:?}, retries included"))
            }
        }
    }

    async fn tries(
        &self,
        name: &str,
        input: &str,
        retry: &Retry,
        at: &'static Location<'static>,
    ) -> Result<String, String> {
        let Retry { policy, session_id, .. } = retry;
        let max = policy.max_attempts;
        let mut tries = 1;
        let mut first_key = None;
        loop {
            let first_try = first_key.clone().map(|key| (key, tries - 1));
            let activity = self.ask_try(name, input, retry, first_try, at);
            first_key = first_key.or_else(|| activity.own_key());
            let error = match self.try_once(activity, retry, at).await {
                Either2::First(Tried::Ok(output)) => return Ok(output),
                Either2::First(Tried::Failed(error)) => error,
                Either2::First(Tried::Closed(error) | Tried::Final(error)) => return Err(error),
                Either2::Second(()) => return Err(TIMED_OUT.to_owned()),
            };
            if tries >= max || !retry.is_worth(&error) {
                return Err(error);
            }
            let session = session_id.as_ref().map(|id| format!(" (session={id})")).unwrap_or_default();
            self.trace_warn(format!(
                "Activity '{name}'{session} attempt {tries}/{max} failed: {error}. Retrying..."
            ));
            let delay = policy.delay_for_attempt(tries);
            if !delay.is_zero() {
                self.ask_timer(delay, at).await;
            }
            tries += 1;
        }
    }

    /// Asks for a try. `first_try` is the key of the first one, and the number of tries so far.
    fn ask_try(
        &self,
        name: &str,
        input: &str,
        retry: &Retry,
        first_try: Option<(Arc<str>, u32)>,
        at: &'static Location<'static>,
    ) -> DurableFuture<Tried> {
        let session_id = retry.session_id.clone();
        let call = ActivityCall { name: name.to_owned(), input: input.to_owned(), session_id, first_try };
        let activity = self.ask_activity_and(call, at, Tried::of);
        match &retry.tag {
            Some(tag) => activity.with_tag(tag),
            None => activity,
        }
    }

    /// Waits for one try. Its timer is created after the activity, when the select is first polled.
    async fn try_once(
        &self,
        activity: DurableFuture<Tried>,
        retry: &Retry,
        at: &'static Location<'static>,
    ) -> Either2<Tried, ()> {
        match retry.policy.timeout {
            Some(timeout) => self.select2(activity, async { self.ask_timer(timeout, at).await }).await,
            None => Either2::First(activity.await),
        }
    }
}
