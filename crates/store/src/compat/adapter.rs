//! A store made of the compatible methods alone, for providers that have no other methods.
//!
//! `CONTRACT.md` lists what such a store lacks: epochs and incarnations, capacity at the session limit,
//! wake-ups, tails of histories, starts that are decided in one transaction.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_clock::Clock;
use steadfast_core::{CallTerms, Event, EventKind, SessionKey, SystemStats, WorkItem};

use crate::rules::UNKNOWN;
use crate::{
    Abandon, Attempt, Committed, Cursor, DeleteInstanceResult, Envelope, ExecutionState, Gauges, History,
    InstanceFilter, InstancePage, InstanceQuery, InstanceState, InstanceWait, LeaseToken, Message, NewWork,
    NodeRegistration, NodeStart, Outcome, Owner, Provider, ProviderAdmin, ProviderError, ProviderErrorKind,
    RenewSessions, SessionFetchConfig, SessionInfo, SessionRef, SessionScope, SessionTrailEntry,
    SessionsRenewed, SetAside, Started, Store, Tries, TurnCommit, TurnLease, TurnRequest, WaitFor, Waited,
    WorkLease, WorkRequest,
};

/// Makes a [`Store`] of any [`Provider`], using its compatible methods only.
///
/// Where the compatible methods cannot answer, its methods answer `Unsupported` or do less, as their docs
/// say.
pub struct Adapter {
    provider: Arc<dyn Provider>,
    clock: Arc<dyn Clock>,
}

/// What a history says about one of its activities.
#[derive(Default)]
struct Scheduled {
    /// The name and the version of the orchestration that scheduled it.
    orchestration: Option<(String, String)>,
    /// The key and the policy of its call.
    call: Option<Box<CallTerms>>,
}

/// Bounds the pause between two looks at an instance; pauses double from [`FIRST_PAUSE`] up to it.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The pause after the first look at an instance, and after a look that found a change.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

impl Adapter {
    /// Wraps a provider. The clock stands in for the store's own, which the compatible methods do not tell.
    pub fn new(provider: Arc<dyn Provider>, clock: Arc<dyn Clock>) -> Self {
        Self { provider, clock }
    }

    /// Returns what the history of its instance says about an activity.
    async fn scheduled(&self, item: &WorkItem) -> Result<Scheduled, ProviderError> {
        let WorkItem::ActivityExecute { instance, execution_id, id, .. } = item else {
            return Ok(Scheduled::default());
        };
        let mut events = self.provider.read(instance).await?;
        if events.first().is_some_and(|event| event.execution_id != *execution_id) {
            events = self.provider.read_with_execution(instance, *execution_id).await?;
        }
        let mut scheduled = Scheduled::default();
        for event in events {
            match event.kind {
                EventKind::OrchestrationStarted { name, version, .. } => {
                    scheduled.orchestration = Some((name, version));
                }
                EventKind::ActivityScheduled { .. } if event.event_id == *id => scheduled.call = event.call,
                _ => {}
            }
        }
        Ok(scheduled)
    }

    fn unsupported(&self, operation: &str) -> ProviderError {
        let text = format!("provider '{}' implements the compatible methods only", self.provider.name());
        ProviderError::new(ProviderErrorKind::Unsupported, operation, text)
    }

    async fn look_until(
        &self,
        mut wait: InstanceWait<'_>,
        timeout: Duration,
    ) -> Result<Waited, ProviderError> {
        let deadline = self.clock.monotonic().saturating_add(timeout);
        let (mut pause, mut known) = (FIRST_PAUSE, None);
        loop {
            let state = self.state(wait.instance()).await?;
            // An instance that has just changed may soon change again.
            let change = state.as_ref().map(|state| state.change);
            if std::mem::replace(&mut known, change) != change {
                pause = FIRST_PAUSE;
            }
            if let Some(waited) = wait.saw(state) {
                return Ok(waited);
            }
            let left = deadline.saturating_sub(self.clock.monotonic());
            if left.is_zero() {
                return Ok(Waited::TimedOut);
            }
            self.clock.sleep(pause.min(left)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

#[async_trait]
impl Store for Adapter {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn version(&self) -> &str {
        self.provider.version()
    }

    fn admin(&self) -> Option<&dyn ProviderAdmin> {
        self.provider.as_management_capability()
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<TurnLease>, ProviderError> {
        let TurnRequest { lock_timeout, poll_timeout, filter, .. } = request;
        let fetched = self.provider.fetch_orchestration_item(lock_timeout, poll_timeout, filter).await?;
        let Some((item, token, attempt)) = fetched else { return Ok(None) };
        Ok(Some(TurnLease {
            token: LeaseToken::Turn(token),
            instance: item.instance,
            name: item.orchestration_name,
            version: item.version,
            execution_id: item.execution_id,
            run: None,
            last_event_id: item.history.last().map_or(0, Event::event_id),
            history: item.history_error.map_or(History::Whole(item.history), History::Unreadable),
            messages: item.messages.into_iter().map(Message::from).collect(),
            rival_starts: Vec::new(),
            attempt,
            kv: item.kv_snapshot,
            now_ms: self.clock.now_ms(),
        }))
    }

    async fn commit_turn(&self, lease: &LeaseToken, commit: TurnCommit) -> Result<Committed, ProviderError> {
        let TurnCommit { execution_id, events, work, messages, metadata, cancelled, .. } = commit;
        let work = work.into_iter().map(|work| work.item).collect();
        let messages = messages.into_iter().map(|message| message.item).collect();
        let token = lease.as_str();
        self.provider
            .ack_orchestration_item(token, execution_id, events, work, messages, metadata, cancelled)
            .await?;
        Ok(Committed { run: None })
    }

    async fn fetch_work(&self, request: WorkRequest) -> Result<Option<WorkLease>, ProviderError> {
        let WorkRequest { lock_timeout, poll_timeout, tags, session, .. } = request;
        // A worker that may serve no further session asks for none: the compatible fetch cannot name
        // sessions.
        let config = session.as_ref().filter(|session| session.scope == SessionScope::Claim);
        let config = config.map(|session| SessionFetchConfig {
            owner_id: session.owner.id.clone(),
            lock_timeout: session.lock_timeout,
        });
        let fetched =
            self.provider.fetch_work_item(lock_timeout, poll_timeout, config.as_ref(), &tags).await?;
        let Some((item, token, attempt)) = fetched else { return Ok(None) };
        let Scheduled { orchestration, call } = self.scheduled(&item).await?;
        let unknown = || (UNKNOWN.to_owned(), UNKNOWN.to_owned());
        let (orchestration, orchestration_version) = orchestration.unwrap_or_else(unknown);
        // Without a count of tries, each delivery is one.
        let has_policy = call.as_ref().is_some_and(|call| call.policy.is_some());
        let ended = if has_policy { attempt.saturating_sub(1) } else { 0 };
        Ok(Some(WorkLease {
            token: LeaseToken::Work(token),
            item,
            attempt,
            delivery: attempt,
            call,
            tries: Tries { ended, ..Tries::default() },
            orchestration,
            orchestration_version,
            traceparent: None,
            session: None,
            waiting_since_ms: None,
            now_ms: self.clock.now_ms(),
        }))
    }

    async fn finish_work(&self, lease: &LeaseToken, outcome: Outcome) -> Result<(), ProviderError> {
        let completion = outcome.completion.map(|message| message.item);
        self.provider.ack_work_item(lease.as_str(), completion).await
    }

    async fn renew(&self, lease: &LeaseToken, extend_for: Duration) -> Result<(), ProviderError> {
        match lease {
            LeaseToken::Turn(token) => self.provider.renew_orchestration_item_lock(token, extend_for).await,
            LeaseToken::Work(token) => self.provider.renew_work_item_lock(token, extend_for).await,
        }
    }

    async fn abandon(&self, lease: &LeaseToken, how: Abandon) -> Result<(), ProviderError> {
        let uncounted = how.attempt == Attempt::Uncounted;
        match lease {
            LeaseToken::Turn(token) => {
                self.provider.abandon_orchestration_item(token, how.retry_after, uncounted).await
            }
            LeaseToken::Work(token) => {
                self.provider.abandon_work_item(token, how.retry_after, uncounted).await
            }
        }
    }

    /// Deletes by the clock of this process, which stands in for the store's.
    async fn delete_ended(
        &self,
        ended_for: Duration,
        limit: u32,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let admin = self.admin().ok_or_else(|| self.unsupported("delete_ended"))?;
        let age = u64::try_from(ended_for.as_millis()).unwrap_or(u64::MAX);
        let Some(latest) = self.clock.now_ms().checked_sub(age) else {
            return Ok(DeleteInstanceResult::default());
        };
        // The compatible filter excludes the moment that it names.
        let completed_before = Some(latest.saturating_add(1));
        let filter = InstanceFilter { instance_ids: None, completed_before, limit: Some(limit) };
        admin.delete_instance_bulk(filter).await
    }

    /// Counts with the compatible methods: they may read everything, and leave leased rows out.
    async fn gauges(&self) -> Result<Gauges, ProviderError> {
        let admin = self.admin().ok_or_else(|| self.unsupported("gauges"))?;
        let metrics = admin.get_system_metrics().await?;
        let depths = admin.get_queue_depths().await?;
        Ok(Gauges {
            running_instances: metrics.running_instances,
            messages: depths.orchestrator_queue.saturating_add(depths.timer_queue) as u64,
            work: depths.worker_queue as u64,
        })
    }

    async fn register_node(&self, _start: &NodeStart) -> Result<NodeRegistration, ProviderError> {
        Err(self.unsupported("register_node"))
    }

    /// Renews by owner id. The compatible answer is a count without names, so no session is reported as lost.
    async fn renew_sessions(&self, request: RenewSessions) -> Result<SessionsRenewed, ProviderError> {
        let owners = [request.owner.id.as_str()];
        self.provider.renew_session_lock(&owners, request.extend_for, request.idle_timeout).await?;
        Ok(SessionsRenewed::default())
    }

    /// Releases no session: there is no compatible method for it, and the leases end by themselves.
    async fn release_sessions(
        &self,
        _owner: &Owner,
        _sessions: &[SessionRef],
    ) -> Result<Vec<SessionRef>, ProviderError> {
        Ok(Vec::new())
    }

    async fn cleanup_sessions(&self) -> Result<usize, ProviderError> {
        self.provider.cleanup_orphaned_sessions(Duration::ZERO).await
    }

    async fn sessions(&self, _after: Option<&SessionKey>) -> Result<Vec<SessionInfo>, ProviderError> {
        Err(self.unsupported("sessions"))
    }

    async fn session(&self, _key: &SessionKey) -> Result<Option<SessionInfo>, ProviderError> {
        Err(self.unsupported("session"))
    }

    async fn session_trail(&self, _key: &SessionKey) -> Result<Vec<SessionTrailEntry>, ProviderError> {
        Err(self.unsupported("session_trail"))
    }

    async fn cleanup_session_trails(&self, _retention: Duration) -> Result<usize, ProviderError> {
        Err(self.unsupported("cleanup_session_trails"))
    }

    /// Looks first and sends then: of two starts at the same time, both may be told that theirs is new.
    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError> {
        let known = !self.provider.read(start.message.item.instance()).await?.is_empty();
        let messages = if known { also } else { std::iter::once(start).chain(also).collect() };
        self.send(messages).await?;
        Ok(if known { Started::Existing } else { Started::New })
    }

    /// Sends the messages one by one: after an error, the messages before the failed one are sent.
    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError> {
        for Envelope { message, delay } in messages {
            self.provider.enqueue_for_orchestrator(message.item, delay).await?;
        }
        Ok(())
    }

    async fn enqueue_work(&self, work: NewWork) -> Result<(), ProviderError> {
        self.provider.enqueue_for_worker(work.item).await
    }

    /// Polls, because there are no wake-ups: looks at an instance again and again, and answers a wait for a
    /// turn or for work after a pause, saying that there may be some.
    async fn wait(&self, what: WaitFor<'_>, timeout: Duration) -> Result<Waited, ProviderError> {
        match what {
            WaitFor::Turn | WaitFor::Work => {
                self.clock.sleep(timeout.min(LONGEST_PAUSE)).await;
                Ok(Waited::Woken)
            }
            WaitFor::Instance { instance, seen } => {
                self.look_until(InstanceWait::for_change(instance, seen), timeout).await
            }
            WaitFor::End { instance } => self.look_until(InstanceWait::for_end(instance), timeout).await,
        }
    }

    async fn state(&self, instance: &str) -> Result<Option<InstanceState>, ProviderError> {
        let events = self.provider.read(instance).await?;
        let Some(mut state) = state_from(instance, &events) else { return Ok(None) };
        // A custom status that cannot be read does not hide the rest, as in the compatible client.
        if let Ok(Some((status, version))) = self.provider.get_custom_status(instance, 0).await {
            (state.custom_status, state.custom_status_version) = (status, version);
        }
        Ok(Some(state))
    }

    async fn instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        let admin = self.admin().ok_or_else(|| self.unsupported("instances"))?;
        let ids = match &query.status {
            Some(status) => admin.list_instances_by_status(status).await?,
            None => admin.list_instances().await?,
        };
        let mut page = InstancePage::default();
        let after = query.after.as_ref();
        let rest = ids.iter().skip_while(|id| after.is_some_and(|cursor| cursor.0 != **id));
        for id in rest.skip(usize::from(after.is_some())) {
            if query.id_prefix.as_ref().is_some_and(|prefix| !id.starts_with(prefix.as_str())) {
                continue;
            }
            let Some(state) = self.state(id).await? else { continue };
            if !selects(query, &state) {
                continue;
            }
            if page.instances.len() == query.page_size() {
                page.next = page.instances.last().map(|last| Cursor(last.instance.clone()));
                return Ok(page);
            }
            page.instances.push(state);
        }
        Ok(page)
    }

    async fn read_history(
        &self,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        match execution_id {
            Some(execution_id) => self.provider.read_with_execution(instance, execution_id).await,
            None => self.provider.read(instance).await,
        }
    }

    async fn append_history(
        &self,
        instance: &str,
        execution_id: u64,
        events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.provider.append_with_execution(instance, execution_id, events).await
    }

    async fn kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.provider.get_kv_value(instance, key).await
    }

    async fn kv_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.provider.get_kv_all_values(instance).await
    }

    async fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.provider.get_instance_stats(instance).await
    }

    /// Lists no rows: there is no compatible method for rows that were set aside.
    async fn set_aside(&self, _after: Option<u64>) -> Result<Vec<SetAside>, ProviderError> {
        Ok(Vec::new())
    }

    async fn retry_set_aside(&self, _id: u64) -> Result<(), ProviderError> {
        Err(self.unsupported("retry_set_aside"))
    }

    async fn drop_set_aside(&self, _id: u64) -> Result<(), ProviderError> {
        Err(self.unsupported("drop_set_aside"))
    }
}

fn state_from(instance: &str, events: &[Event]) -> Option<InstanceState> {
    let first = events.first()?;
    let last = events.last()?;
    let started = events.iter().find_map(|event| match &event.kind {
        EventKind::OrchestrationStarted { name, version, parent_instance, .. } => {
            Some((name.clone(), version.clone(), parent_instance.clone()))
        }
        _ => None,
    });
    let ended = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::OrchestrationCompleted { output } => Some(ExecutionState::Completed(output.clone())),
        EventKind::OrchestrationFailed { details } => Some(ExecutionState::Failed(details.clone())),
        EventKind::OrchestrationContinuedAsNew { .. } => Some(ExecutionState::ContinuedAsNew),
        _ => None,
    });
    if started.is_none() && ended.is_none() {
        return None;
    }
    // A history without its first event can still have an end.
    let (orchestration, version, parent) = started.unwrap_or_default();
    Some(InstanceState {
        instance: instance.to_owned(),
        orchestration,
        version,
        execution_id: last.execution_id,
        status: ended.unwrap_or(ExecutionState::Running),
        custom_status: None,
        custom_status_version: 0,
        parent,
        created_at_ms: first.timestamp_ms,
        updated_at_ms: last.timestamp_ms,
        // Rises with each event, and with each execution by more than the length of any history.
        change: (last.execution_id << 32).saturating_add(last.event_id),
    })
}

fn selects(query: &InstanceQuery, state: &InstanceState) -> bool {
    query.orchestration.as_ref().is_none_or(|name| *name == state.orchestration)
        && query.parent.as_ref().is_none_or(|parent| Some(parent) == state.parent.as_ref())
        && !(query.roots_only && state.parent.is_some())
}
