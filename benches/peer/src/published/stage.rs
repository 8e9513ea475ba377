//! A store without a will of its own: it hands out what it is offered, once, and reports what comes back.

use std::{collections::HashMap, time::Duration};

use async_trait::async_trait;
use duroxide::{
    Event, ScheduledActivityIdentifier, SessionFetchConfig, SystemStats, TagFilter,
    providers::{
        DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderError, WorkItem,
    },
};
use tokio::sync::{Mutex, mpsc};

/// What the runtime did with an offered turn.
#[derive(Debug)]
pub(super) enum Verdict {
    Committed(Commit),
    Abandoned,
}

/// A committed turn.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) execution_id: u64,
    pub(super) events: Vec<Event>,
    pub(super) work: Vec<WorkItem>,
    pub(super) messages: Vec<WorkItem>,
    pub(super) cancelled: Vec<ScheduledActivityIdentifier>,
}

/// The store's side of the conversation with the driver.
pub(super) struct Stage {
    offers: Mutex<mpsc::UnboundedReceiver<OrchestrationItem>>,
    verdicts: mpsc::UnboundedSender<Verdict>,
}

impl Stage {
    pub(super) fn new(
        offers: mpsc::UnboundedReceiver<OrchestrationItem>,
        verdicts: mpsc::UnboundedSender<Verdict>,
    ) -> Self {
        Self { offers: Mutex::new(offers), verdicts }
    }

    fn report(&self, operation: &str, verdict: Verdict) -> Result<(), ProviderError> {
        self.verdicts.send(verdict).map_err(|_| ProviderError::permanent(operation, "the driver is gone"))
    }
}

/// What a comparison of turns never needs.
fn unused(operation: &str) -> ProviderError {
    ProviderError::permanent(operation, "the stage has no such part")
}

#[async_trait]
impl Provider for Stage {
    fn name(&self) -> &str {
        "stage"
    }

    async fn fetch_orchestration_item(
        &self,
        _: Duration,
        _: Duration,
        _: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        match self.offers.lock().await.recv().await {
            Some(item) => Ok(Some((item, "lease".to_owned(), 1))),
            // The driver is done: park until the runtime is shut down.
            None => std::future::pending().await,
        }
    }

    async fn ack_orchestration_item(
        &self,
        _: &str,
        execution_id: u64,
        events: Vec<Event>,
        work: Vec<WorkItem>,
        messages: Vec<WorkItem>,
        _: ExecutionMetadata,
        cancelled: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        self.report("ack", Verdict::Committed(Commit { execution_id, events, work, messages, cancelled }))
    }

    async fn abandon_orchestration_item(
        &self,
        _: &str,
        _: Option<Duration>,
        _: bool,
    ) -> Result<(), ProviderError> {
        self.report("abandon", Verdict::Abandoned)
    }

    async fn renew_orchestration_item_lock(&self, _: &str, _: Duration) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn read(&self, _: &str) -> Result<Vec<Event>, ProviderError> {
        Err(unused("read"))
    }

    async fn read_with_execution(&self, _: &str, _: u64) -> Result<Vec<Event>, ProviderError> {
        Err(unused("read_with_execution"))
    }

    async fn append_with_execution(&self, _: &str, _: u64, _: Vec<Event>) -> Result<(), ProviderError> {
        Err(unused("append_with_execution"))
    }

    async fn enqueue_for_worker(&self, _: WorkItem) -> Result<(), ProviderError> {
        Err(unused("enqueue_for_worker"))
    }

    async fn fetch_work_item(
        &self,
        _: Duration,
        _: Duration,
        _: Option<&SessionFetchConfig>,
        _: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        Err(unused("fetch_work_item"))
    }

    async fn ack_work_item(&self, _: &str, _: Option<WorkItem>) -> Result<(), ProviderError> {
        Err(unused("ack_work_item"))
    }

    async fn renew_work_item_lock(&self, _: &str, _: Duration) -> Result<(), ProviderError> {
        Err(unused("renew_work_item_lock"))
    }

    async fn abandon_work_item(&self, _: &str, _: Option<Duration>, _: bool) -> Result<(), ProviderError> {
        Err(unused("abandon_work_item"))
    }

    async fn renew_session_lock(&self, _: &[&str], _: Duration, _: Duration) -> Result<usize, ProviderError> {
        Ok(0)
    }

    async fn cleanup_orphaned_sessions(&self, _: Duration) -> Result<usize, ProviderError> {
        Ok(0)
    }

    async fn enqueue_for_orchestrator(&self, _: WorkItem, _: Option<Duration>) -> Result<(), ProviderError> {
        Err(unused("enqueue_for_orchestrator"))
    }

    async fn get_custom_status(
        &self,
        _: &str,
        _: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        Err(unused("get_custom_status"))
    }

    async fn get_kv_value(&self, _: &str, _: &str) -> Result<Option<String>, ProviderError> {
        Err(unused("get_kv_value"))
    }

    async fn get_kv_all_values(&self, _: &str) -> Result<HashMap<String, String>, ProviderError> {
        Err(unused("get_kv_all_values"))
    }

    async fn get_instance_stats(&self, _: &str) -> Result<Option<SystemStats>, ProviderError> {
        Err(unused("get_instance_stats"))
    }
}
