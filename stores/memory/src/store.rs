//! The store trait. Each method is one transaction on the state; the transactions are in the files `turn`,
//! `work`, `session` and so on.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_core::{Event, SessionKey, SystemStats, TagFilter};
use steadfast_store::rules::{InstanceWait, check_work, no_such_lease};
use steadfast_store::{
    Abandon, Committed, DeleteInstanceResult, EndedTry, Envelope, Gauges, InstancePage, InstanceQuery,
    InstanceState, LeaseToken, MAX_PAGE, NewWork, NodeRegistration, NodeStart, OldestWaiting, Outcome, Owner,
    ProviderAdmin, ProviderError, Refusal, Refused, ReleaseReason, RenewSessions, SessionInfo, SessionRef,
    SessionTrailEntry, SessionsRenewed, SetAside, Started, Store, TurnCommit, TurnLease, TurnRequest,
    TurnState, WaitFor, Waited, WaitingStart, WorkLease, WorkRequest, WorkState, WorkerId, WorkerInfo,
    WorkerReport,
};

use crate::state::State;
use crate::{MemoryStore, millis};

#[async_trait]
impl Store for MemoryStore {
    fn name(&self) -> &str {
        "memory"
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
        self.until(request.poll_timeout, |state, now| Ok(state.fetch_turn(request, now))).await
    }

    async fn commit_turn(&self, lease: &LeaseToken, commit: TurnCommit) -> Result<Committed, ProviderError> {
        self.change(|state, now| state.commit_turn(lease.as_str(), commit, now))
    }

    async fn fetch_work(&self, request: WorkRequest) -> Result<Option<WorkLease>, ProviderError> {
        if request.tags == TagFilter::None {
            return Ok(None);
        }
        self.until(request.poll_timeout, |state, now| state.fetch_work(&request, now)).await
    }

    async fn finish_work(&self, lease: &LeaseToken, outcome: Outcome) -> Result<(), ProviderError> {
        self.change(|state, now| state.finish_work(lease.as_str(), outcome, now))
    }

    async fn renew(&self, lease: &LeaseToken, extend_for: Duration) -> Result<(), ProviderError> {
        self.change(|state, now| match lease {
            LeaseToken::Turn(token) => state.renew_turn(token, extend_for, now),
            LeaseToken::Work(token) => state.renew_work(token, extend_for, now),
        })
    }

    async fn abandon(&self, lease: &LeaseToken, how: Abandon) -> Result<(), ProviderError> {
        self.change(|state, now| match lease {
            LeaseToken::Turn(token) => state.abandon_turn(token, how, now),
            LeaseToken::Work(token) => state.abandon_work(token, how, now),
        })
    }

    fn keeps_tries(&self) -> bool {
        true
    }

    async fn end_try(&self, lease: &LeaseToken, ended: EndedTry) -> Result<(), ProviderError> {
        self.change(|state, now| match lease {
            LeaseToken::Turn(token) => Err(no_such_lease("end_try", token)),
            LeaseToken::Work(token) => state.end_try(token, ended, now),
        })
    }

    async fn excuse(&self, lease: &LeaseToken) -> Result<bool, ProviderError> {
        Ok(self.change(|state, now| state.excuse(lease, now)))
    }

    async fn refuse(&self, lease: &LeaseToken, refusal: Refusal) -> Result<Refused, ProviderError> {
        self.change(|state, now| state.refuse(lease, refusal, now))
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<(), ProviderError> {
        self.change(|state, now| state.report_worker(report, now));
        Ok(())
    }

    async fn workers(&self, after: Option<&WorkerId>) -> Result<Vec<WorkerInfo>, ProviderError> {
        let (state, now) = self.at_now();
        Ok(state.worker_page(after, now))
    }

    async fn delete_ended(
        &self,
        ended_for: Duration,
        limit: u32,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        Ok(self.change(|state, now| state.delete_ended(ended_for, limit, now)))
    }

    async fn gauges(&self) -> Result<Gauges, ProviderError> {
        Ok(self.read().gauges())
    }

    async fn register_node(&self, start: &NodeStart) -> Result<NodeRegistration, ProviderError> {
        Ok(self.change(|state, now| state.register_node(start, now)))
    }

    async fn renew_sessions(&self, request: RenewSessions) -> Result<SessionsRenewed, ProviderError> {
        self.change(|state, now| state.renew_sessions(&request, now))
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
        self.change(|state, now| state.release_sessions(owner, sessions, reason, now))
    }

    async fn cleanup_sessions(&self) -> Result<usize, ProviderError> {
        Ok(self.change(|state, now| state.cleanup_sessions(now)))
    }

    async fn sessions(&self, after: Option<&SessionKey>) -> Result<Vec<SessionInfo>, ProviderError> {
        Ok(self.read().session_page(after))
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<SessionInfo>, ProviderError> {
        Ok(self.read().session_info(key))
    }

    async fn session_trail(&self, key: &SessionKey) -> Result<Vec<SessionTrailEntry>, ProviderError> {
        let (state, now) = self.at_now();
        Ok(state.session_trail(key, now))
    }

    async fn cleanup_session_trails(&self, retention: Duration) -> Result<usize, ProviderError> {
        Ok(self.change(|state, now| state.cleanup_session_trails(millis(retention), now)))
    }

    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError> {
        self.change(|state, now| state.start(start, also, now))
    }

    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError> {
        self.change(|state, now| state.send(messages, now))
    }

    async fn enqueue_work(&self, work: NewWork) -> Result<(), ProviderError> {
        check_work("enqueue_work", &work.item)?;
        self.change(|state, now| state.push_work(work, now));
        Ok(())
    }

    async fn wait(&self, what: WaitFor<'_>, timeout: Duration) -> Result<Waited, ProviderError> {
        let woken = match what {
            WaitFor::Turn => {
                let ready = |state: &mut State, now| Ok(state.has_turn(now).then_some(Waited::Woken));
                self.until(timeout, ready).await?
            }
            WaitFor::Work => {
                let ready = |state: &mut State, now| Ok(state.has_work(now).then_some(Waited::Woken));
                self.until(timeout, ready).await?
            }
            WaitFor::Instance { instance, seen } => {
                self.watch(InstanceWait::for_change(instance, seen), timeout).await?
            }
            WaitFor::End { instance } => self.watch(InstanceWait::for_end(instance), timeout).await?,
        };
        Ok(woken.unwrap_or(Waited::TimedOut))
    }

    async fn state(&self, instance: &str) -> Result<Option<InstanceState>, ProviderError> {
        Ok(self.read().instance_state(instance))
    }

    async fn instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        self.read().instance_page(query)
    }

    async fn read_history(
        &self,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        let state = self.read();
        let execution = execution_id.unwrap_or_else(|| state.latest_execution(instance));
        state.history(instance, execution)
    }

    async fn append_history(
        &self,
        instance: &str,
        execution_id: u64,
        events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.change(|state, _| {
            state.check_append("append_history", instance, execution_id, &events)?;
            state.append(instance, execution_id, events);
            Ok(())
        })
    }

    async fn kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        Ok(self.read().kv.get(instance).and_then(|kv| kv.get(key)))
    }

    async fn kv_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        Ok(self.read().kv.get(instance).map(|kv| kv.values()).unwrap_or_default())
    }

    async fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        Ok(self.read().instance_stats(instance))
    }

    async fn set_aside(&self, after: Option<u64>) -> Result<Vec<SetAside>, ProviderError> {
        let state = self.read();
        let rows = state.set_aside.values().map(|aside| &aside.shown);
        let behind = rows.filter(|row| after.is_none_or(|after| row.id > after));
        Ok(behind.take(MAX_PAGE).cloned().collect())
    }

    async fn retry_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        self.change(|state, now| state.retry_set_aside(id, now))
    }

    async fn drop_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        self.change(|state, _| state.drop_set_aside(id))
    }

    async fn turn_of(&self, instance: &str) -> Result<Option<TurnState>, ProviderError> {
        let (state, now) = self.at_now();
        Ok(state.turn_of(instance, now))
    }

    async fn start_of(&self, instance: &str) -> Result<Option<WaitingStart>, ProviderError> {
        Ok(self.read().start_of(instance))
    }

    async fn work_of(&self, instance: &str, execution_id: u64) -> Result<Vec<WorkState>, ProviderError> {
        let (state, now) = self.at_now();
        Ok(state.work_of(instance, execution_id, now))
    }

    async fn oldest_waiting(&self) -> Result<OldestWaiting, ProviderError> {
        let (state, now) = self.at_now();
        Ok(state.oldest_waiting(now))
    }
}
