//! What the tests of a store in trouble share: activities that note their runs, and orchestrations that wait
//! for one of everything.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast::OrchestrationContext;
use steadfast::providers::ProviderError;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast_behaviour::{activities, orchestrations};
use tokio::sync::Notify;

/// The wall time at which a stage begins.
pub(crate) const BEGIN_MS: u64 = 1_700_000_000_000;
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn down() -> ProviderError {
    ProviderError::retryable("test", "the store is away")
}

/// The runs of activities, by input.
pub(crate) type Runs = Arc<Mutex<Vec<String>>>;

/// Registers `Echo`, which notes that it ran, and `Slow`, which notes it and waits until the test says `go`.
pub(crate) fn noted(ran: &Runs, go: &Arc<Notify>) -> ActivityRegistryBuilder {
    let (echoed, slow, go) = (Arc::clone(ran), Arc::clone(ran), Arc::clone(go));
    let note = |ran: &Runs, input: &String| ran.lock().expect("nobody panicked").push(input.clone());
    activities()
        .register("Echo", move |_, input: String| {
            note(&echoed, &input);
            async move { Ok(input) }
        })
        .register("Slow", move |_, input: String| {
            note(&slow, &input);
            let go = Arc::clone(&go);
            async move {
                go.notified().await;
                Ok(input)
            }
        })
}

/// Registers an orchestration for each thing that can be under way when trouble comes.
pub(crate) fn flows() -> OrchestrationRegistryBuilder {
    orchestrations()
        .register("Plain", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Echo", input).await
        })
        .register("Slow", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Slow", input).await
        })
        .register("Timer", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_timer(MINUTE).await;
            ctx.schedule_activity("Echo", input).await
        })
        .register("Wait", |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("go").await) })
        .register("Parent", |ctx: OrchestrationContext, input: String| async move {
            let children = (0..3).map(|n| ctx.schedule_sub_orchestration("Timer", format!("{input}{n}")));
            let ended = ctx.join(children.collect()).await;
            ended.into_iter().collect::<Result<Vec<_>, _>>().map(|ended| ended.join(" "))
        })
}
