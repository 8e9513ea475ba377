//! Between the two traits: every [`Store`] is a [`Provider`], because each compatible method is one call of
//! the typed one; and the [`Adapter`] makes a store of a provider that has the compatible methods only.

mod adapter;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_core::{
    CallTerms, DispatcherCapabilityFilter, Event, ExecutionMetadata, ScheduledActivityIdentifier,
    SystemStats, TagFilter, WorkItem,
};

use crate::{
    Abandon, Appetite, Attempt, Cold, Envelope, History, LeaseToken, NewWork, OrchestrationItem, Outcome,
    Owner, Provider, ProviderAdmin, ProviderError, ProviderErrorKind, RenewSessions, SessionFetchConfig,
    SessionRequest, SessionScope, Store, TRAIL_KEPT_FOR, TurnCommit, TurnLease, TurnRequest, WorkRequest,
};

pub use adapter::Adapter;

/// Bounds the steps in which one compatible clean-up removes old entries of trails: together they look at as
/// many entries as trails keep, and what is left is removed by the next clean-up.
const TRAIL_STEPS: usize = 100;

#[async_trait]
impl<S: Store> Provider for S {
    fn name(&self) -> &str {
        Store::name(self)
    }

    fn version(&self) -> &str {
        Store::version(self)
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.admin()
    }

    fn into_store(self: Arc<Self>) -> Option<Arc<dyn Store>> {
        Some(self)
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let request = TurnRequest { lock_timeout, poll_timeout, filter, warm: &Cold, worker: None };
        Ok(self.fetch_turn(request).await?.map(compatible_item))
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
        // The terms of a call are beside its work here, and the compatible form has them in its event only.
        let work = worker_items
            .into_iter()
            .map(|item| NewWork { call: terms_of(&item, &history_delta), ..item.into() });
        let work = work.collect();
        let commit = TurnCommit {
            execution_id,
            events: history_delta,
            work,
            messages: orchestrator_items.into_iter().map(Into::into).collect(),
            metadata,
            cancelled: cancelled_activities,
            watched: Vec::new(),
            dropped_timers: Vec::new(),
        };
        self.commit_turn(&LeaseToken::Turn(lock_token.to_owned()), commit).await.map(drop)
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.abandon(&LeaseToken::Turn(lock_token.to_owned()), abandon(delay, ignore_attempt)).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.renew(&LeaseToken::Turn(token.to_owned()), extend_for).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.read_history(instance, None).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.read_history(instance, Some(execution_id)).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.append_history(instance, execution_id, new_events).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.enqueue_work(item.into()).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let session = session.map(|config| SessionRequest {
            owner: Owner::unnamed(&config.owner_id),
            lock_timeout: config.lock_timeout,
            scope: SessionScope::Claim,
            leave_out: Vec::new(),
        });
        let worker_id = session.as_ref().map(|request| request.owner.id.clone()).unwrap_or_default();
        let request = WorkRequest {
            worker_id,
            lock_timeout,
            poll_timeout,
            tags: tag_filter.clone(),
            session,
            worker: None,
        };
        let lease = self.fetch_work(request).await?;
        Ok(lease.map(|lease| (lease.item, lease.token.as_str().to_owned(), lease.attempt)))
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        let outcome = Outcome { completion: completion.map(Into::into) };
        self.finish_work(&LeaseToken::Work(token.to_owned()), outcome).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        self.renew(&LeaseToken::Work(token.to_owned()), extend_for).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.abandon(&LeaseToken::Work(token.to_owned()), abandon(delay, ignore_attempt)).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let mut renewed = 0;
        // An owner that is named twice has its sessions counted once.
        for owner in owner_ids.iter().copied().collect::<BTreeSet<_>>() {
            let request = RenewSessions {
                owner: Owner::unnamed(owner),
                extend_for,
                idle_timeout,
                // The compatible call has no limit for untaken work: it never ends a lease.
                untaken_after: Duration::MAX,
                tags: TagFilter::Any,
                appetite: Appetite::Hungry,
                held: Vec::new(),
                worker: None,
            };
            renewed += self.renew_sessions(request).await?.renewed.len();
        }
        Ok(renewed)
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Result<usize, ProviderError> {
        let count = self.cleanup_sessions().await?;
        clean_up_trails(self).await?;
        Ok(count)
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.send(vec![Envelope { message: item.into(), delay }]).await
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        let state = self.state(instance).await?;
        let status = state.map(|state| (state.custom_status, state.custom_status_version));
        Ok(status.filter(|(_, version)| *version > last_seen_version))
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.kv_value(instance, key).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.kv_values(instance).await
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.stats(instance).await
    }
}

/// Removes old entries of the trails of a store that keeps trails.
async fn clean_up_trails(store: &impl Store) -> Result<(), ProviderError> {
    for _ in 0..TRAIL_STEPS {
        match store.cleanup_session_trails(TRAIL_KEPT_FOR).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind == ProviderErrorKind::Unsupported => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn compatible_item(lease: TurnLease) -> (OrchestrationItem, String, u32) {
    let (history, history_error) = match lease.history {
        History::Whole(events) | History::Tail { events, .. } => (events, None),
        History::Unreadable(error) | History::Damaged(error) => (Vec::new(), Some(error)),
    };
    let item = OrchestrationItem {
        instance: lease.instance,
        orchestration_name: lease.name,
        execution_id: lease.execution_id,
        version: lease.version,
        history,
        messages: lease.messages.into_iter().map(|message| message.item).collect(),
        history_error,
        kv_snapshot: lease.kv,
    };
    (item, lease.token.as_str().to_owned(), lease.attempt)
}

fn abandon(delay: Option<Duration>, ignore_attempt: bool) -> Abandon {
    let attempt = if ignore_attempt { Attempt::Uncounted } else { Attempt::Counts };
    Abandon { retry_after: delay, attempt }
}

/// Returns the terms of the call that an activity belongs to, from the event that schedules it.
fn terms_of(item: &WorkItem, events: &[Event]) -> Option<Box<CallTerms>> {
    let WorkItem::ActivityExecute { id, .. } = item else { return None };
    events.iter().find(|event| event.event_id == *id)?.call.clone()
}
