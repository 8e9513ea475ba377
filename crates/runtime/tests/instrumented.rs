//! The provider that counts: it forwards both forms of a store and counts the errors of both.

#![allow(clippy::expect_used, reason = "what a test relies on, it panics without")]

use std::sync::Arc;

use steadfast_core::WorkItem;
use steadfast_memory::MemoryStore;
use steadfast_runtime::instrumented::InstrumentedProvider;
use steadfast_runtime::observability::MetricsProvider;
use steadfast_store::{LeaseToken, Outcome, Provider};

#[tokio::test]
async fn errors_of_both_forms_are_counted() {
    let metrics = Arc::new(MetricsProvider::default());
    let inner: Arc<dyn Provider> = Arc::new(MemoryStore::new());
    let provider = Arc::new(InstrumentedProvider::new(Arc::clone(&inner), Some(Arc::clone(&metrics))));
    assert_eq!((provider.name(), provider.version()), (inner.name(), inner.version()));
    assert!(provider.as_management_capability().is_some());
    let store = Arc::clone(&provider).into_store().expect("the memory store has the full form");

    let start = WorkItem::StartOrchestration {
        instance: "i".to_owned(),
        orchestration: "O".to_owned(),
        input: String::new(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    provider.enqueue_for_orchestrator(start, None).await.expect("is sent");
    let depths = store.admin().expect("is there").get_queue_depths().await.expect("counts");
    assert_eq!(depths.orchestrator_queue, 1, "both forms are one store");
    assert_eq!(metrics.snapshot().provider_errors, 0);

    let activity = WorkItem::ActivityExecute {
        instance: "i".to_owned(),
        execution_id: 1,
        id: 2,
        name: "A".to_owned(),
        input: String::new(),
        session_id: None,
        tag: None,
    };
    provider.enqueue_for_orchestrator(activity.clone(), None).await.expect_err("is no message");
    assert_eq!(metrics.snapshot().provider_errors, 1);
    store.send(vec![activity.into()]).await.expect_err("is no message");
    assert_eq!(metrics.snapshot().provider_errors, 2);

    let token = LeaseToken::Work("nobody's".to_owned());
    provider.ack_work_item("nobody's", None).await.expect_err("has no such lease");
    store.finish_work(&token, Outcome::default()).await.expect_err("has no such lease");
    assert_eq!(metrics.snapshot().provider_errors, 2, "a lost lease is an answer");
}
