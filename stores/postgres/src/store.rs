//! The store contract: each method polls, merges, or goes straight to its verb.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_core::{Event, SessionKey, SystemStats, TagFilter};
use steadfast_store::rules::no_such_lease;
use steadfast_store::{
    Abandon, Committed, DeleteInstanceResult, EndedTry, Envelope, Gauges, InstancePage, InstanceQuery,
    InstanceState, InstanceWait, Interest, LeaseToken, NewWork, NodeRegistration, NodeStart, OldestWaiting,
    Outcome, Owner, ProviderAdmin, ProviderError, Refusal, Refused, ReleaseReason, RenewSessions,
    SessionInfo, SessionRef, SessionTrailEntry, SessionsRenewed, SetAside, Started, Store, TurnCommit,
    TurnLease, TurnRequest, TurnState, WaitFor, Waited, WaitingStart, WorkLease, WorkRequest, WorkState,
    WorkerId, WorkerInfo, WorkerReport,
};

use crate::merge::calls::{LeaseAbandon, LeaseRenewal};
use crate::provider::PostgresProvider;
use crate::verbs::history::StoredEvents;
use crate::verbs::message::{StoredMessage, StoredStart};
use crate::verbs::turn::TurnFetch;
use crate::verbs::turn::commit::PreparedCommit;
use crate::verbs::work::WorkFetch;
use crate::verbs::work::finish::WorkEnd;
use crate::verbs::work::tries::TryEnd;

#[async_trait]
impl Store for PostgresProvider {
    fn name(&self) -> &str {
        "postgres"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn admin(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    fn supports_owned_sessions(&self) -> bool {
        true
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<TurnLease>, ProviderError> {
        let fetch = TurnFetch {
            lock_timeout: request.lock_timeout,
            filter: request.filter.cloned(),
            worker: request.worker.cloned(),
        };
        let fetch = || self.merged.turn_fetches.ask(fetch.clone());
        let Some(fetched) = self.poll(request.poll_timeout, Interest::Turn, request.worker, fetch).await?
        else {
            return Ok(None);
        };
        let (leased, guard) = fetched.into_parts();
        let lease = self.db().complete(leased, request.warm).await?;
        guard.delivered();
        Ok(Some(lease))
    }

    async fn commit_turn(&self, lease: &LeaseToken, commit: TurnCommit) -> Result<Committed, ProviderError> {
        self.merged.turn_commits.ask(PreparedCommit::new(lease, commit)?).await
    }

    async fn fetch_work(&self, request: WorkRequest) -> Result<Option<WorkLease>, ProviderError> {
        if request.tags == TagFilter::None {
            return Ok(None);
        }
        let interest = Interest::Work { tags: request.tags.clone(), sessions: request.session.is_some() };
        let fetch = WorkFetch::of(&request);
        let fetch = || self.merged.work_fetches.ask(fetch.clone());
        let fetched = self.poll(request.poll_timeout, interest, request.worker.as_ref(), fetch).await?;
        Ok(fetched.map(|fetched| {
            let (lease, guard) = fetched.into_parts();
            guard.delivered();
            lease
        }))
    }

    async fn finish_work(&self, lease: &LeaseToken, outcome: Outcome) -> Result<(), ProviderError> {
        self.merged.work_ends.ask(WorkEnd::new(lease, outcome)?).await
    }

    async fn renew(&self, lease: &LeaseToken, extend_for: Duration) -> Result<(), ProviderError> {
        let renewal = LeaseRenewal { token: lease.as_str().to_owned(), extend_for };
        match lease {
            LeaseToken::Turn(_) => self.merged.turn_renewals.ask(renewal).await,
            LeaseToken::Work(_) => self.merged.work_renewals.ask(renewal).await,
        }
    }

    async fn abandon(&self, lease: &LeaseToken, how: Abandon) -> Result<(), ProviderError> {
        let abandon = LeaseAbandon { token: lease.as_str().to_owned(), how };
        match lease {
            LeaseToken::Turn(_) => self.merged.turn_abandons.ask(abandon).await,
            LeaseToken::Work(_) => self.merged.work_abandons.ask(abandon).await,
        }
    }

    fn keeps_tries(&self) -> bool {
        true
    }

    async fn end_try(&self, lease: &LeaseToken, ended: EndedTry) -> Result<(), ProviderError> {
        match lease {
            LeaseToken::Turn(token) => Err(no_such_lease("end_try", token)),
            LeaseToken::Work(token) => self.merged.tries.ask(TryEnd::new(token, ended)).await,
        }
    }

    async fn excuse(&self, lease: &LeaseToken) -> Result<bool, ProviderError> {
        self.db().excuse(lease).await
    }

    async fn refuse(&self, lease: &LeaseToken, refusal: Refusal) -> Result<Refused, ProviderError> {
        self.backend.refuse(lease, refusal).await
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<(), ProviderError> {
        self.backend.report_worker(report).await
    }

    async fn workers(&self, after: Option<&WorkerId>) -> Result<Vec<WorkerInfo>, ProviderError> {
        self.db().workers(after).await
    }

    async fn delete_ended(
        &self,
        ended_for: Duration,
        limit: u32,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.backend.delete_ended(ended_for, limit).await
    }

    async fn gauges(&self) -> Result<Gauges, ProviderError> {
        self.backend.gauges().await
    }

    async fn register_node(&self, start: &NodeStart) -> Result<NodeRegistration, ProviderError> {
        self.backend.register_node(start).await
    }

    async fn renew_sessions(&self, request: RenewSessions) -> Result<SessionsRenewed, ProviderError> {
        self.backend.renew_sessions(&request).await
    }

    async fn release_sessions(
        &self,
        owner: &Owner,
        sessions: &[SessionRef],
    ) -> Result<Vec<SessionRef>, ProviderError> {
        self.release_sessions_because(owner, sessions, ReleaseReason::Unstated).await
    }

    async fn release_sessions_because(
        &self,
        owner: &Owner,
        sessions: &[SessionRef],
        reason: ReleaseReason,
    ) -> Result<Vec<SessionRef>, ProviderError> {
        self.backend.release_sessions(owner, sessions, reason).await
    }

    async fn cleanup_sessions(&self) -> Result<usize, ProviderError> {
        self.db().cleanup_sessions().await
    }

    async fn sessions(&self, after: Option<&SessionKey>) -> Result<Vec<SessionInfo>, ProviderError> {
        self.db().sessions(after).await
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<SessionInfo>, ProviderError> {
        self.db().session(key).await
    }

    async fn session_trail(&self, key: &SessionKey) -> Result<Vec<SessionTrailEntry>, ProviderError> {
        self.db().session_trail(key).await
    }

    async fn cleanup_session_trails(&self, retention: Duration) -> Result<usize, ProviderError> {
        self.db().cleanup_session_trails(retention).await
    }

    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError> {
        self.merged.starts.ask(StoredStart::new(start, also)?).await
    }

    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError> {
        let stored = |sent| StoredMessage::new("send", sent);
        self.merged.sends.ask(messages.into_iter().map(stored).collect::<Result<_, _>>()?).await
    }

    async fn enqueue_work(&self, work: NewWork) -> Result<(), ProviderError> {
        self.backend.enqueue_work(&work).await
    }

    async fn wait(&self, what: WaitFor<'_>, timeout: Duration) -> Result<Waited, ProviderError> {
        let found = match what {
            WaitFor::Turn => self.poll(timeout, Interest::Turn, None, || self.db().look_for_turns()).await?,
            WaitFor::Work => {
                self.poll(timeout, Interest::AnyWork, None, || self.db().look_for_work()).await?
            }
            WaitFor::Instance { instance, seen } => {
                return self.watch(InstanceWait::for_change(instance, seen), timeout).await;
            }
            WaitFor::End { instance } => return self.watch(InstanceWait::for_end(instance), timeout).await,
        };
        Ok(if found.is_some() { Waited::Woken } else { Waited::TimedOut })
    }

    async fn state(&self, instance: &str) -> Result<Option<InstanceState>, ProviderError> {
        self.db().state(instance).await
    }

    async fn instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        self.db().instances(query).await
    }

    async fn read_history(
        &self,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        self.db().read_history(instance, execution_id).await
    }

    async fn append_history(
        &self,
        instance: &str,
        execution_id: u64,
        events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let events = StoredEvents::new("append_history", &events)?;
        self.db().append_history(instance, execution_id, events).await
    }

    async fn kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.db().kv_value(instance, key).await
    }

    async fn kv_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.db().kv_values(instance).await
    }

    async fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.db().stats(instance).await
    }

    async fn set_aside(&self, after: Option<u64>) -> Result<Vec<SetAside>, ProviderError> {
        self.db().set_aside(after).await
    }

    async fn retry_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        self.backend.retry_set_aside(id).await
    }

    async fn drop_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        self.db().drop_set_aside(id).await
    }

    async fn turn_of(&self, instance: &str) -> Result<Option<TurnState>, ProviderError> {
        self.db().turn_of(instance).await
    }

    async fn start_of(&self, instance: &str) -> Result<Option<WaitingStart>, ProviderError> {
        self.db().start_of(instance).await
    }

    async fn work_of(&self, instance: &str, execution_id: u64) -> Result<Vec<WorkState>, ProviderError> {
        self.db().work_of(instance, execution_id).await
    }

    async fn oldest_waiting(&self) -> Result<OldestWaiting, ProviderError> {
        self.db().oldest_waiting().await
    }
}
