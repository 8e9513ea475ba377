//! The compatible store trait: what applications wrap and implement.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_clock::Clock;
use steadfast_core::{
    DispatcherCapabilityFilter, Event, ExecutionMetadata, ScheduledActivityIdentifier, SystemStats,
    TagFilter, WorkItem,
};

use crate::{Adapter, OrchestrationItem, ProviderAdmin, ProviderError, SessionFetchConfig, Store};

/// Keeps histories, queues, leases, sessions and key-value state, in the compatible form.
///
/// The promises are in `CONTRACT.md`; methods name the clauses. A store of your own implements the required
/// methods, or implements [`Store`] and gets this trait for free. The runtime uses the store that
/// [`into_store`](Self::into_store) returns, and these methods if it returns `None`: a wrapper that forwards
/// only the required methods sees every fetch, ack, renewal and abandon.
///
/// # Cancel safety
/// Each method is one transaction: a future that is dropped before it returned has had all of its effect or
/// none. A dropped fetch leaves no lease and counts no attempt.
#[async_trait]
pub trait Provider: Any + Send + Sync {
    /// Returns a name for the kind of store, for logs; `unknown` by default.
    fn name(&self) -> &str {
        "unknown"
    }

    /// Returns the version of the store's code, for logs; `0.0.0` by default.
    fn version(&self) -> &str {
        "0.0.0"
    }

    /// Leases the instance with the oldest visible message (S1, S2, S5, S9, S15, S17, S18). Returns it with
    /// its lock token and the highest attempt count of its messages. Waits at most `poll_timeout`; zero means
    /// not at all.
    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError>;

    /// Commits a turn and ends its lease (S3, S4, S7, S8, S10, S12).
    #[allow(
        clippy::too_many_arguments,
        reason = "the compatible signature; Store::commit_turn takes a value"
    )]
    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError>;

    /// Abandons the lease of an instance: its messages can be fetched again, after `delay` if there is one.
    /// With `ignore_attempt` the fetch does not count (S4, S6).
    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError>;

    /// Extends the lease of an instance: it ends `extend_for` from now (S4).
    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError>;

    /// Reads the events of the latest execution; empty for an unknown instance.
    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError>;

    /// Reads the events of one execution (S10).
    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError>;

    /// Appends events without a lease; no row but the history changes (S8).
    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError>;

    /// Queues an activity that no turn scheduled.
    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError>;

    /// Leases the oldest activity that the caller may run (S5, S9, S13, S14, S15, S18). Returns it with its
    /// lock token and its attempt count.
    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError>;

    /// Removes an activity and sends its completion, in one transaction (S4, S11).
    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError>;

    /// Extends the lease of an activity: it ends `extend_for` from now (S4, S12).
    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError>;

    /// Abandons the lease of an activity: it can be fetched again, after `delay` if there is one. With
    /// `ignore_attempt` the fetch does not count (S4, S6).
    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError>;

    /// Extends the leases of the sessions that these owners hold and that are not idle; returns how many
    /// there were (S13).
    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError>;

    /// Removes sessions whose lease has ended and that have no work, if they are shared or their instance
    /// does not exist. Returns the number of removed sessions (S13). A store that keeps trails of sessions
    /// removes their entries that are older than [`TRAIL_KEPT_FOR`](crate::TRAIL_KEPT_FOR) too.
    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError>;

    /// Sends a message to an instance, now or after `delay` (S7, S9, S17).
    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError>;

    /// Returns the management interface; `None` by default, and listing and deleting then answer an error.
    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        None
    }

    /// Returns the custom status and its version, if the version is above `last_seen_version`.
    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError>;

    /// Reads the value of one key of an instance; `None` if it is not set.
    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError>;

    /// Reads all keys of an instance with their values.
    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError>;

    /// Returns the sizes of an instance's history, queues and key-value state; `None` if there is no such
    /// instance.
    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError>;

    /// Returns the store in its full form, if the provider has one; the runtime and the client then use that.
    ///
    /// A [`Store`] answers with itself. A decorator that keeps the full form asks the provider that it
    /// decorates and puts its own decorator around the answer (see [`forward_store!`](crate::forward_store)).
    /// The default is `None`: everything then goes through the compatible methods, more slowly and with the
    /// limits that `CONTRACT.md` lists.
    fn into_store(self: Arc<Self>) -> Option<Arc<dyn Store>> {
        None
    }
}

/// Makes a store of a provider: the provider's own where it has one ([`Provider::into_store`]), else an
/// [`Adapter`] over its compatible methods. The clock is for the adapter, which has no time of its own.
pub fn store_of(provider: Arc<dyn Provider>, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
    let store = Arc::clone(&provider).into_store();
    store.unwrap_or_else(|| Arc::new(Adapter::new(provider, clock)))
}
