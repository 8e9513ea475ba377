//! The full form of an instrumented provider.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_core::{Event, SessionKey, SystemStats};
use steadfast_store::{
    Abandon, Committed, Envelope, InstancePage, InstanceQuery, InstanceState, LeaseToken, NewWork,
    OldestWaiting, Outcome, Owner, ProviderAdmin, ProviderError, ProviderErrorKind, RenewSessions,
    SessionInfo, SessionRef, SessionsRenewed, SetAside, Started, Store, TurnCommit, TurnLease, TurnRequest,
    TurnState, WaitFor, Waited, WorkLease, WorkRequest, WorkState,
};

use super::Watched;

impl Watched {
    fn store(&self) -> Result<&dyn Store, ProviderError> {
        self.inner.as_store().ok_or_else(|| {
            let text = format!("provider '{}' has taken its store back", self.inner.name());
            ProviderError::new(ProviderErrorKind::Unsupported, "as_store", text)
        })
    }
}

#[async_trait]
impl Store for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn version(&self) -> &str {
        self.inner.version()
    }

    fn admin(&self) -> Option<&dyn ProviderAdmin> {
        self.inner.as_management_capability()
    }

    fn supports_owned_sessions(&self) -> bool {
        self.store().is_ok_and(Store::supports_owned_sessions)
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<TurnLease>, ProviderError> {
        self.timed("fetch_orchestration_item", self.store()?.fetch_turn(request)).await
    }

    async fn commit_turn(&self, lease: &LeaseToken, commit: TurnCommit) -> Result<Committed, ProviderError> {
        self.timed("ack_orchestration_item", self.store()?.commit_turn(lease, commit)).await
    }

    async fn fetch_work(&self, request: WorkRequest) -> Result<Option<WorkLease>, ProviderError> {
        self.timed("fetch_work_item", self.store()?.fetch_work(request)).await
    }

    async fn finish_work(&self, lease: &LeaseToken, outcome: Outcome) -> Result<(), ProviderError> {
        self.timed("ack_work_item", self.store()?.finish_work(lease, outcome)).await
    }

    async fn renew(&self, lease: &LeaseToken, extend_for: Duration) -> Result<(), ProviderError> {
        let operation = match lease {
            LeaseToken::Turn(_) => "renew_orchestration_item_lock",
            LeaseToken::Work(_) => "renew_work_item_lock",
        };
        self.counted(operation, self.store()?.renew(lease, extend_for)).await
    }

    async fn abandon(&self, lease: &LeaseToken, how: Abandon) -> Result<(), ProviderError> {
        let operation = match lease {
            LeaseToken::Turn(_) => "abandon_orchestration_item",
            LeaseToken::Work(_) => "abandon_work_item",
        };
        self.counted(operation, self.store()?.abandon(lease, how)).await
    }

    async fn register_node(&self, node_id: &str) -> Result<u64, ProviderError> {
        self.store()?.register_node(node_id).await
    }

    async fn renew_sessions(&self, request: RenewSessions) -> Result<SessionsRenewed, ProviderError> {
        self.timed("renew_session_lock", self.store()?.renew_sessions(request)).await
    }

    async fn release_sessions(
        &self,
        owner: &Owner,
        sessions: &[SessionRef],
    ) -> Result<Vec<SessionRef>, ProviderError> {
        self.store()?.release_sessions(owner, sessions).await
    }

    async fn cleanup_sessions(&self) -> Result<usize, ProviderError> {
        self.timed("cleanup_orphaned_sessions", self.store()?.cleanup_sessions()).await
    }

    async fn sessions(&self, after: Option<&SessionKey>) -> Result<Vec<SessionInfo>, ProviderError> {
        self.store()?.sessions(after).await
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<SessionInfo>, ProviderError> {
        self.store()?.session(key).await
    }

    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError> {
        self.timed("enqueue_orchestrator", self.store()?.start(start, also)).await
    }

    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError> {
        self.timed("enqueue_orchestrator", self.store()?.send(messages)).await
    }

    async fn enqueue_work(&self, work: NewWork) -> Result<(), ProviderError> {
        self.store()?.enqueue_work(work).await
    }

    async fn wait(&self, what: WaitFor<'_>, timeout: Duration) -> Result<Waited, ProviderError> {
        self.store()?.wait(what, timeout).await
    }

    async fn state(&self, instance: &str) -> Result<Option<InstanceState>, ProviderError> {
        self.store()?.state(instance).await
    }

    async fn instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        self.store()?.instances(query).await
    }

    async fn read_history(
        &self,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        self.timed("read", self.store()?.read_history(instance, execution_id)).await
    }

    async fn append_history(
        &self,
        instance: &str,
        execution_id: u64,
        events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.store()?.append_history(instance, execution_id, events).await
    }

    async fn kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.store()?.kv_value(instance, key).await
    }

    async fn kv_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.store()?.kv_values(instance).await
    }

    async fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.store()?.stats(instance).await
    }

    async fn set_aside(&self, after: Option<u64>) -> Result<Vec<SetAside>, ProviderError> {
        self.store()?.set_aside(after).await
    }

    async fn retry_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        self.store()?.retry_set_aside(id).await
    }

    async fn drop_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        self.store()?.drop_set_aside(id).await
    }

    async fn turn_of(&self, instance: &str) -> Result<Option<TurnState>, ProviderError> {
        self.store()?.turn_of(instance).await
    }

    async fn work_of(&self, instance: &str, execution_id: u64) -> Result<Vec<WorkState>, ProviderError> {
        self.store()?.work_of(instance, execution_id).await
    }

    async fn oldest_waiting(&self) -> Result<OldestWaiting, ProviderError> {
        self.store()?.oldest_waiting().await
    }
}
