//! Handlers: the code of orchestrations and activities, as traits and as functions.

use async_trait::async_trait;
use steadfast_core::OrchestrationContext;

use crate::{ActivityContext, ActivityError};

/// Runs the code of an orchestration.
///
/// # Cancel safety
/// The runtime drops the future when the execution is evicted from memory, and a later turn runs the code
/// from the beginning. So the future must own no resource that the context did not give it.
#[async_trait]
pub trait OrchestrationHandler: Send + Sync {
    /// Runs the code from its beginning. While it replays, the context answers from the history.
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String>;
}

/// Runs the code of an activity.
///
/// # Cancel safety
/// The runtime drops the future when a cancelled activity does not stop in time, and when a shutdown stops
/// it.
#[async_trait]
pub trait ActivityHandler: Send + Sync {
    /// Runs the activity. After a crash it runs again, so make it repeatable, or use
    /// [`idempotency_key`](ActivityContext::idempotency_key).
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String>;

    /// Runs the activity like [`invoke`](Self::invoke), and says of an error whether it is worth another try.
    /// The runtime calls this method. By default every error is.
    async fn try_invoke(&self, ctx: ActivityContext, input: String) -> Result<String, ActivityError> {
        self.invoke(ctx, input).await.map_err(ActivityError::from)
    }
}

/// Makes an [`OrchestrationHandler`] of an `async` function or closure.
pub struct FnOrchestration<F, Fut>(pub F)
where
    F: Fn(OrchestrationContext, String) -> Fut;

#[async_trait]
impl<F, Fut> OrchestrationHandler for FnOrchestration<F, Fut>
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String> {
        (self.0)(ctx, input).await
    }
}

/// Makes an [`ActivityHandler`] of an `async` function or closure.
pub struct FnActivity<F, Fut>(pub F)
where
    F: Fn(ActivityContext, String) -> Fut;

#[async_trait]
impl<F, Fut> ActivityHandler for FnActivity<F, Fut>
where
    F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        (self.0)(ctx, input).await
    }
}

/// Makes an [`ActivityHandler`] of an `async` function or closure that says of its errors whether they are
/// worth another try.
pub(crate) struct FnActivityWithErrors<F>(pub(crate) F);

#[async_trait]
impl<F, Fut, E> ActivityHandler for FnActivityWithErrors<F>
where
    F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, E>> + Send + 'static,
    E: Into<ActivityError> + 'static,
{
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String> {
        self.try_invoke(ctx, input).await.map_err(|error| error.message().to_owned())
    }

    async fn try_invoke(&self, ctx: ActivityContext, input: String) -> Result<String, ActivityError> {
        (self.0)(ctx, input).await.map_err(Into::into)
    }
}
