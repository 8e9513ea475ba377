//! A provider that forwards to another one, and measures how long calls take and how many fail.

mod store;

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_clock::{Clock, SystemClock};
use steadfast_core::{
    DispatcherCapabilityFilter, Event, ExecutionMetadata, ScheduledActivityIdentifier, SystemStats,
    TagFilter, WorkItem,
};
use steadfast_store::{
    OrchestrationItem, Provider, ProviderAdmin, ProviderError, ProviderErrorKind, SessionFetchConfig, Store,
};

use crate::observability::MetricsProvider;

/// Forwards every call to another provider, and measures the calls that fetch, commit, renew and send.
///
/// A runtime puts one around the store that it is given.
///
/// # Cancel safety
/// A dropped call has the effect that a dropped call of the inner provider has, and is not measured.
pub struct InstrumentedProvider {
    watched: Watched<dyn Provider>,
}

/// The inner provider or store, the metrics that record its calls, and the clock that times them.
struct Watched<S: ?Sized> {
    inner: Arc<S>,
    metrics: Option<Arc<MetricsProvider>>,
    clock: Arc<dyn Clock>,
}

impl InstrumentedProvider {
    /// Wraps a provider. Without metrics it only forwards.
    pub fn new(inner: Arc<dyn Provider>, metrics: Option<Arc<MetricsProvider>>) -> Self {
        Self { watched: Watched { inner, metrics, clock: Arc::new(SystemClock) } }
    }

    /// Measures calls by the given clock instead of the clock of the machine.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.watched.clock = clock;
        self
    }

    fn inner(&self) -> &dyn Provider {
        &*self.watched.inner
    }
}

impl<S: ?Sized> Watched<S> {
    /// Runs a call and records how long it took and whether it failed. A dropped call is not recorded.
    async fn timed<T>(
        &self,
        operation: &str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let Some(metrics) = &self.metrics else { return call.await };
        let began = self.clock.monotonic();
        let result = call.await;
        let seconds = self.clock.monotonic().saturating_sub(began).as_secs_f64();
        let status = if result.is_ok() { "success" } else { "error" };
        metrics.record_provider_operation(operation, seconds, status);
        self.told(operation, result)
    }

    /// Runs a call and records whether it failed, but not its time.
    async fn counted<T>(
        &self,
        operation: &str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        self.told(operation, call.await)
    }

    fn told<T>(&self, operation: &str, result: Result<T, ProviderError>) -> Result<T, ProviderError> {
        // A lost lease is an answer of the store and not an error of it: another process has the lease, or
        // the work was cancelled.
        if let (Some(metrics), Err(error)) = (&self.metrics, &result)
            && !error.is_lease_lost()
        {
            metrics.record_provider_error(operation, error_type(error));
        }
        result
    }
}

/// Returns the kind of an error in the words of the compatible metrics.
fn error_type(error: &ProviderError) -> &'static str {
    match error.kind {
        ProviderErrorKind::Busy => "deadlock",
        ProviderErrorKind::Unavailable if is_timeout(error) => "timeout",
        ProviderErrorKind::Unavailable => "connection",
        ProviderErrorKind::LeaseLost
        | ProviderErrorKind::Withdrawn
        | ProviderErrorKind::Conflict
        | ProviderErrorKind::NotFound
        | ProviderErrorKind::Refused
        | ProviderErrorKind::Full
        | ProviderErrorKind::Corrupt
        | ProviderErrorKind::Invalid
        | ProviderErrorKind::Unsupported
        | ProviderErrorKind::Other => "other",
    }
}

/// Looks for a time-out among the errors underneath.
fn is_timeout(error: &ProviderError) -> bool {
    let underneath = error.source.as_deref().map(|error| error as &(dyn Error + 'static));
    std::iter::successors(underneath, |error| (*error).source())
        .filter_map(|error| error.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::TimedOut)
}

#[async_trait]
impl Provider for InstrumentedProvider {
    fn name(&self) -> &str {
        self.inner().name()
    }

    fn version(&self) -> &str {
        self.inner().version()
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.inner().as_management_capability()
    }

    /// Returns the store of the wrapped provider, measured in the same way. `None` if that provider has only
    /// the compatible trait.
    fn into_store(self: Arc<Self>) -> Option<Arc<dyn Store>> {
        let Watched { inner, metrics, clock } = &self.watched;
        let inner = Arc::clone(inner).into_store()?;
        Some(Arc::new(Watched { inner, metrics: metrics.clone(), clock: Arc::clone(clock) }))
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let call = self.inner().fetch_orchestration_item(lock_timeout, poll_timeout, filter);
        self.watched.timed("fetch_orchestration_item", call).await
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let call = self.inner().ack_orchestration_item(
            lock_token,
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        );
        self.watched.timed("ack_orchestration_item", call).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let call = self.inner().abandon_orchestration_item(lock_token, delay, ignore_attempt);
        self.watched.counted("abandon_orchestration_item", call).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let call = self.inner().renew_orchestration_item_lock(token, extend_for);
        self.watched.counted("renew_orchestration_item_lock", call).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.watched.timed("read", self.inner().read(instance)).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.inner().read_with_execution(instance, execution_id).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.inner().append_with_execution(instance, execution_id, new_events).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.inner().enqueue_for_worker(item).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let call = self.inner().fetch_work_item(lock_timeout, poll_timeout, session, tag_filter);
        self.watched.timed("fetch_work_item", call).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        self.watched.timed("ack_work_item", self.inner().ack_work_item(token, completion)).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        let call = self.inner().renew_work_item_lock(token, extend_for);
        self.watched.counted("renew_work_item_lock", call).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let call = self.inner().abandon_work_item(token, delay, ignore_attempt);
        self.watched.counted("abandon_work_item", call).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let call = self.inner().renew_session_lock(owner_ids, extend_for, idle_timeout);
        self.watched.timed("renew_session_lock", call).await
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError> {
        let call = self.inner().cleanup_orphaned_sessions(idle_timeout);
        self.watched.timed("cleanup_orphaned_sessions", call).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.watched.timed("enqueue_orchestrator", self.inner().enqueue_for_orchestrator(item, delay)).await
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.inner().get_custom_status(instance, last_seen_version).await
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.inner().get_kv_value(instance, key).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.inner().get_kv_all_values(instance).await
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.inner().get_instance_stats(instance).await
    }
}
