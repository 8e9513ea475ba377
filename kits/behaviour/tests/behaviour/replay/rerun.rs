//! Stopping an orchestration somewhere in its history, and sending it what a store would.

use steadfast::providers::WorkItem;
use steadfast::runtime::registry::{ActivityRegistryBuilder, OrchestrationRegistryBuilder};
use steadfast_behaviour::{Stage, activities};

pub(crate) fn echo() -> ActivityRegistryBuilder {
    activities().register("Echo", |_, input: String| async move { Ok(input) })
}

/// Runs `Flow` as `a` until history has some events of a kind, and stops the runtime.
pub(crate) async fn stop_at(stage: &Stage, flow: OrchestrationRegistryBuilder, kind: &str, count: usize) {
    stage.run(echo(), flow).await;
    stage.start("a", "Flow", "").await;
    stage.has("a", kind, count).await;
    stage.stop().await;
}

pub(crate) async fn send(stage: &Stage, items: impl IntoIterator<Item = WorkItem>) {
    for item in items {
        stage.inner().enqueue_for_orchestrator(item, None).await.expect("is sent");
    }
}

pub(crate) fn completed(id: u64, result: &str) -> WorkItem {
    WorkItem::ActivityCompleted { instance: "a".to_owned(), execution_id: 1, id, result: result.to_owned() }
}
