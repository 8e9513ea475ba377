//! The code behind a name.

use async_trait::async_trait;
use steadfast_core::OrchestrationContext;

use crate::ActivityContext;

/// Runs an orchestration.
#[async_trait]
pub trait OrchestrationHandler: Send + Sync {
    /// Runs it from the beginning; history makes it arrive where it stood.
    async fn invoke(&self, ctx: OrchestrationContext, input: String) -> Result<String, String>;
}

/// Runs an activity.
#[async_trait]
pub trait ActivityHandler: Send + Sync {
    /// Runs it once. It may run again after a crash: make it repeatable, or use the idempotency key.
    async fn invoke(&self, ctx: ActivityContext, input: String) -> Result<String, String>;
}

/// Makes a handler of a function.
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

/// Makes a handler of a function.
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
