//! A watch over a store: every call is compared with what the earlier ones allow, while it happens.
//!
//! What a store holds at the end does not tell how it came there: an instance that was leased twice at a time
//! may end well by luck. [`WatchedStore`] stands around a store and keeps a shadow of what it was told: who
//! holds which lease until when, which messages are under way, which history was committed, who claimed which
//! session. An answer that does not follow from the shadow breaks a promise.
//!
//! The watch is exact if calls do not overlap: in a simulation, where an answer is seen before another call
//! has an effect. An answer that leaves open whether the call had an effect ends the watch: what was seen
//! until then counts.

mod fair;
mod lease;
mod sessions;
mod turns;
mod work;

#[cfg(test)]
pub(crate) mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use steadfast_clock::{Clock, MachineTime};
use steadfast_core::{Event, SessionKey, SystemStats};
use steadfast_store::{
    Abandon, Attempt, Claim, ClaimedSession, Committed, DeleteInstanceResult, EndedTry, Envelope, Gauges,
    InstancePage, InstanceQuery, InstanceState, LeaseToken, MAX_PAGE, NewWork, NodeRegistration, NodeStart,
    OldestWaiting, Outcome, Owner, ProviderAdmin, ProviderError, ProviderErrorKind, Refusal, Refused,
    ReleaseReason, RenewSessions, SessionInfo, SessionRef, SessionTrailEntry, SessionsRenewed, SetAside,
    Started, Store, TurnCommit, TurnLease, TurnRequest, TurnState, WaitFor, Waited, WaitingStart, WorkLease,
    WorkRequest, WorkState, WorkerId, WorkerInfo, WorkerReport,
};

use crate::{Evidence, Fact, Records, Told, Violation};
use sessions::SessionShadow;
use turns::TurnShadow;
use work::WorkShadow;

/// A store that is watched.
pub struct WatchedStore {
    inner: Arc<dyn Store>,
    watch: Watch,
    /// Tells whether an error leaves open what the store holds: it does in a process that lives.
    is_alive: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Whether two reads with nothing between them see the same.
    is_exact: bool,
}

/// What a watch has seen. Clones share it.
#[derive(Clone)]
pub struct Watch {
    clock: Arc<dyn Clock>,
    /// The store's time and the machine's time when the watch began.
    began: (u64, Duration),
    shadow: Arc<Mutex<Shadow>>,
}

/// What the store must hold, as far as the watch can tell.
#[derive(Default)]
struct Shadow {
    turns: TurnShadow,
    work: WorkShadow,
    sessions: SessionShadow,
    found: Found,
    /// Whether the watch has ended.
    is_blind: bool,
    /// Whether fetches may have been dropped inside the store, after they were granted something and before
    /// the watch saw it.
    has_drops: bool,
}

/// What was found so far.
#[derive(Default)]
struct Found {
    violations: Vec<Violation>,
    /// Violations unless an instance was deleted: the watch does not see which rows go with it.
    unless_deleted: Vec<Violation>,
}

impl Found {
    fn add(&mut self, rule: &'static str, text: String) {
        self.violations.push(Violation { rule, text });
    }

    fn add_unless_deleted(&mut self, rule: &'static str, text: String) {
        self.unless_deleted.push(Violation { rule, text });
    }
}

/// How long an instance with a visible message waited for a turn, by the store's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnWait {
    /// The instance.
    pub instance: String,
    /// Since when it could have been leased.
    pub since_ms: u64,
    /// When it was.
    pub until_ms: u64,
}

/// A claim whose lease expired although the session was in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredClaim {
    /// The session.
    pub key: SessionKey,
    /// The number of the claim.
    pub epoch: u64,
    /// When the lease expired, by the store's time.
    pub since_ms: u64,
    /// When the session was claimed anew.
    pub until_ms: u64,
}

/// An instance that was found to be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedInstance {
    /// The instance.
    pub instance: String,
    /// When it was found to be gone, by the store's time.
    pub at_ms: u64,
    /// When it ended; `None` if it had not.
    pub ended_ms: Option<u64>,
    /// Whether another instance started it and waited for it.
    pub is_child: bool,
}

impl WatchedStore {
    /// Watches a store that was opened just now with this clock, and is empty.
    pub fn new(inner: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let began = (clock.now_ms(), passed(&*clock));
        let watch = Watch { clock, began, shadow: Arc::default() };
        Self { inner, watch, is_alive: Arc::new(|| true), is_exact: true }
    }

    /// Watches a store that another process has opened too, with the same watch. An error of a call ends the
    /// watch if it leaves open what the store holds, unless this process is dead by then.
    pub fn beside(
        inner: Arc<dyn Store>,
        watch: &Watch,
        is_alive: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { inner, watch: watch.clone(), is_alive: Arc::new(is_alive), is_exact: false }
    }

    /// Does what a store does with a fetch whose caller was dropped before it was answered: it takes the
    /// lease back uncounted (S5), and the claim of a session with it, unless other work was given under that
    /// claim (S13).
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn take_back(
        &self,
        token: &LeaseToken,
        claimed: Option<&ClaimedSession>,
    ) -> Result<(), ProviderError> {
        let how = Abandon { retry_after: None, attempt: Attempt::Uncounted };
        self.abandon(token, how).await?;
        let claim = claimed.filter(|claimed| claimed.claim != Claim::Held);
        let claim = claim.map(|claimed| SessionRef { key: claimed.key.clone(), epoch: claimed.epoch });
        if let Some(claim) = claim
            && let Some(owner) = self.watch.fresh_owner(&claim)
        {
            self.release_sessions(&owner, &[claim]).await?;
        }
        Ok(())
    }

    /// Tells the watch that a fetch will be dropped, perhaps after the store has granted it something. What
    /// such a fetch was given for a moment is not seen.
    pub fn expect_drops(&self) {
        self.see(|shadow, _| shadow.expect_drops());
    }

    /// Looks at which instances are gone after a deletion. Call this before anything else happens; it does
    /// nothing where other calls could be under way.
    pub async fn look_for_deleted(&self) {
        if !self.is_exact {
            return;
        }
        let mut kept = BTreeSet::new();
        let mut query = InstanceQuery { limit: MAX_PAGE, ..InstanceQuery::default() };
        // A store that cannot be read now is looked at after the next deletion.
        while let Ok(page) = self.inner.instances(&query).await {
            kept.extend(page.instances.into_iter().map(|state| state.instance));
            query.after = page.next;
            if query.after.is_none() {
                return self.see(|shadow, now| shadow.turns.deleted_but(&kept, now));
            }
        }
    }

    /// Returns what the watch has seen, which goes on.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Looks at an answer with the shadow.
    fn see(&self, look: impl FnOnce(&mut Shadow, u64)) {
        let now = self.watch.now_ms();
        let mut shadow = self.watch.lock();
        if !shadow.is_blind {
            look(&mut shadow, now);
        }
    }

    /// Makes a call that changes the store. The watch ends if it cannot be told whether it did: the call is
    /// dropped, or its error leaves that open.
    async fn change<T>(
        &self,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let mut open = OpenCall { store: self, is_open: true };
        let answer = call.await;
        open.is_open = matches!(&answer, Err(error) if leaves_open(error.kind));
        drop(open);
        answer
    }

    /// Makes a fetch, which leaves nothing if it is dropped (S5).
    async fn fetch<T>(
        &self,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let answer = call.await;
        if matches!(&answer, Err(error) if leaves_open(error.kind)) {
            drop(OpenCall { store: self, is_open: true });
        }
        answer
    }

    /// Lists the sessions of the store.
    async fn all_sessions(&self) -> Result<BTreeMap<SessionKey, SessionInfo>, ProviderError> {
        let mut all: BTreeMap<SessionKey, SessionInfo> = BTreeMap::new();
        while let page = self.inner.sessions(all.keys().next_back()).await?
            && !page.is_empty()
        {
            all.extend(page.into_iter().map(|info| (info.key.clone(), info)));
        }
        Ok(all)
    }
}

/// A call whose effect is not known yet.
struct OpenCall<'a> {
    store: &'a WatchedStore,
    is_open: bool,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        if self.is_open && !self.store.is_exact && (self.store.is_alive)() {
            self.store.watch.lose_sight();
        }
    }
}

/// Tells whether a call that failed so may have had its effect.
fn leaves_open(kind: ProviderErrorKind) -> bool {
    matches!(kind, ProviderErrorKind::Unavailable | ProviderErrorKind::Corrupt | ProviderErrorKind::Other)
}

/// Returns the time that has passed on a machine, sleeps included.
fn passed(clock: &dyn Clock) -> Duration {
    let MachineTime { awake, slept, .. } = clock.machine();
    awake.saturating_add(slept)
}

impl Watch {
    /// Begins a watch over a store that will be opened with this clock, and is empty.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let began = (clock.now_ms(), passed(&*clock));
        Self { clock, began, shadow: Arc::default() }
    }

    /// Ends the watch: from here on it cannot be told what the store holds.
    pub fn lose_sight(&self) {
        self.lock().is_blind = true;
    }

    /// Tells whether the watch has lasted until now.
    pub fn has_sight(&self) -> bool {
        !self.lock().is_blind
    }

    /// Returns the promises that were broken while the store was watched, and those that the records at the
    /// end break. Workers may have deleted what ended, if they have a retention.
    pub fn violations(
        &self,
        records: &Records,
        evidence: &Evidence,
        retention: Option<Duration>,
    ) -> Vec<Violation> {
        let mut shadow = self.lock();
        let Shadow { turns, found, is_blind, .. } = &mut *shadow;
        if !*is_blind {
            let asked = evidence.entries().iter().filter_map(|entry| match &entry.fact {
                Fact::Asked(Told::Pruned(instance)) => Some(instance.as_str()),
                _ => None,
            });
            turns.compare(records, &asked.collect(), found);
        }
        let mut all = std::mem::take(&mut found.violations);
        let unsure = std::mem::take(&mut found.unless_deleted);
        let is_deletion = |fact: &Fact| matches!(fact, Fact::Asked(Told::Deleted(_)));
        if retention.is_none() && !evidence.entries().iter().any(|entry| is_deletion(&entry.fact)) {
            all.extend(unsure);
        }
        all
    }

    /// Returns the waits of instances for their turns.
    pub fn turn_waits(&self) -> Vec<TurnWait> {
        self.lock().turns.waits.clone()
    }

    /// Returns the instances that were found to be gone.
    pub fn deleted(&self) -> Vec<DeletedInstance> {
        self.lock().turns.deleted.clone()
    }

    /// Returns the end of the lease of a claim, by the store's time, unless it was released before; `None`
    /// for a claim that no fetch made.
    pub fn claim_until_ms(&self, key: &SessionKey, epoch: u64) -> Option<u64> {
        self.lock().sessions.claim_until_ms(key, epoch)
    }

    /// Returns when a claim ended or will end, by expiry or release; `None` for a claim that no fetch made.
    pub fn claim_end_ms(&self, key: &SessionKey, epoch: u64) -> Option<u64> {
        self.lock().sessions.claim_end_ms(key, epoch)
    }

    /// Returns the claims whose leases expired although the session was in use.
    pub fn expired_claims(&self) -> Vec<ExpiredClaim> {
        self.lock().sessions.expired.clone()
    }

    /// Names the turns and activities whose holders let the lease expire and never excused that.
    pub fn outlived(&self) -> Vec<String> {
        let (now, shadow) = (self.now_ms(), self.lock());
        shadow.turns.outlived(now).into_iter().chain(shadow.work.outlived(now)).collect()
    }

    /// Returns the owner of a claim under which only one fetch was given work.
    fn fresh_owner(&self, claim: &SessionRef) -> Option<Owner> {
        self.lock().sessions.fresh_owner(claim)
    }

    fn now_ms(&self) -> u64 {
        let passed = passed(&*self.clock).saturating_sub(self.began.1);
        self.began.0.saturating_add(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX))
    }

    fn lock(&self) -> MutexGuard<'_, Shadow> {
        self.shadow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shadow {
    fn expect_drops(&mut self) {
        self.has_drops = true;
        self.turns.has_drops = true;
        self.sessions.has_drops = true;
    }

    fn committed(&mut self, token: &LeaseToken, commit: &TurnCommit, run: Option<Committed>, now: u64) {
        let Self { turns, work, sessions, found, .. } = self;
        let Some(instance) = turns.committed(token, commit, run, now, found) else { return };
        for new in &commit.work {
            work.queue(new, now);
        }
        for identity in &commit.cancelled {
            work.withdraw(identity);
        }
        for closed in sessions.committed(&instance, commit) {
            work.withdraw_session(&closed);
        }
    }

    fn granted_work(&mut self, request: &WorkRequest, lease: &WorkLease) {
        self.check_order(request, lease);
        let Self { turns, work, sessions, found, .. } = self;
        let running = work.sessions_running(lease.now_ms);
        work.granted(request, lease, found);
        if let (Some(asked), Some(claimed)) = (&request.session, &lease.session) {
            for told in sessions.granted(asked, claimed, &running, lease.now_ms, found) {
                turns.expect_migration(told);
            }
        }
    }

    fn abandoned(&mut self, token: &LeaseToken, how: Abandon, refused: bool, now: u64) {
        match token {
            LeaseToken::Turn(_) => self.turns.abandoned(token, how, refused, now, &mut self.found),
            LeaseToken::Work(_) => self.work.abandoned(token, how, refused, now, &mut self.found),
        }
    }
}

#[async_trait]
impl Store for WatchedStore {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn version(&self) -> &str {
        self.inner.version()
    }

    fn admin(&self) -> Option<&dyn ProviderAdmin> {
        self.inner.admin()
    }

    fn supports_owned_sessions(&self) -> bool {
        self.inner.supports_owned_sessions()
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<TurnLease>, ProviderError> {
        let answer = self.fetch(self.inner.fetch_turn(request)).await;
        if let Ok(Some(lease)) = &answer {
            self.see(|shadow, now| {
                if shadow.agrees(now, lease.now_ms) {
                    shadow.turns.check_pin(lease, request.filter, &mut shadow.found);
                    shadow.turns.granted(lease, request.lock_timeout, &mut shadow.found);
                }
            });
        }
        answer
    }

    async fn commit_turn(&self, lease: &LeaseToken, commit: TurnCommit) -> Result<Committed, ProviderError> {
        let answer = self.change(self.inner.commit_turn(lease, commit.clone())).await;
        self.see(|shadow, now| match &answer {
            Ok(run) => shadow.committed(lease, &commit, Some(*run), now),
            Err(error) if error.is_lease_lost() => shadow.turns.lost(lease, now, &mut shadow.found),
            Err(_) => {}
        });
        answer
    }

    async fn fetch_work(&self, request: WorkRequest) -> Result<Option<WorkLease>, ProviderError> {
        let answer = self.fetch(self.inner.fetch_work(request.clone())).await;
        match &answer {
            Ok(Some(lease)) => self.see(|shadow, now| {
                if shadow.agrees(now, lease.now_ms) {
                    shadow.granted_work(&request, lease);
                }
            }),
            Ok(None) => self.see(|shadow, now| shadow.check_idle(&request, now)),
            Err(_) => {}
        }
        answer
    }

    async fn finish_work(&self, lease: &LeaseToken, outcome: Outcome) -> Result<(), ProviderError> {
        let answer = self.change(self.inner.finish_work(lease, outcome.clone())).await;
        self.see(|shadow, now| {
            let Shadow { turns, work, found, .. } = shadow;
            match &answer {
                Ok(()) => {
                    work.finished(lease, now, found);
                    outcome.completion.iter().for_each(|message| turns.send(message, now));
                }
                Err(error) if error.is_lease_lost() => {
                    work.lost(lease, error.kind == ProviderErrorKind::Withdrawn, now, found)
                }
                Err(_) => {}
            }
        });
        answer
    }

    async fn renew(&self, lease: &LeaseToken, extend_for: Duration) -> Result<(), ProviderError> {
        let answer = self.change(self.inner.renew(lease, extend_for)).await;
        self.see(|Shadow { turns, work, found, .. }, now| match (lease, &answer) {
            (LeaseToken::Turn(_), Ok(())) => turns.renewed(lease, extend_for, now, found),
            (LeaseToken::Work(_), Ok(())) => work.renewed(lease, extend_for, now, found),
            (LeaseToken::Turn(_), Err(error)) if error.is_lease_lost() => turns.lost(lease, now, found),
            (LeaseToken::Work(_), Err(error)) if error.is_lease_lost() => {
                work.lost(lease, error.kind == ProviderErrorKind::Withdrawn, now, found)
            }
            (_, Err(_)) => {}
        });
        answer
    }

    async fn abandon(&self, lease: &LeaseToken, how: Abandon) -> Result<(), ProviderError> {
        let answer = self.change(self.inner.abandon(lease, how)).await;
        self.see(|shadow, now| match (lease, &answer) {
            (_, Ok(())) => shadow.abandoned(lease, how, false, now),
            // This is how the holder of withdrawn work gives up its lease (S12).
            (LeaseToken::Work(_), Err(error)) if error.is_lease_lost() => {
                let Shadow { work, found, .. } = shadow;
                work.lost(lease, error.kind == ProviderErrorKind::Withdrawn, now, found);
            }
            (LeaseToken::Turn(_) | LeaseToken::Work(_), Err(_)) => {}
        });
        answer
    }

    fn keeps_tries(&self) -> bool {
        self.inner.keeps_tries()
    }

    async fn end_try(&self, lease: &LeaseToken, ended: EndedTry) -> Result<(), ProviderError> {
        let delay = ended.retry_after;
        let answer = self.change(self.inner.end_try(lease, ended)).await;
        self.see(|Shadow { work, found, .. }, now| match &answer {
            Ok(()) => work.ended_try(lease, delay, now, found),
            Err(error) if error.is_lease_lost() => {
                work.lost(lease, error.kind == ProviderErrorKind::Withdrawn, now, found)
            }
            Err(_) => {}
        });
        answer
    }

    async fn excuse(&self, lease: &LeaseToken) -> Result<bool, ProviderError> {
        let answer = self.change(self.inner.excuse(lease)).await;
        if let Ok(excused) = answer {
            self.see(|Shadow { turns, work, found, .. }, now| match lease {
                LeaseToken::Turn(_) => turns.excused(lease, excused, now, found),
                LeaseToken::Work(_) => work.excused(lease, excused, now, found),
            });
        }
        answer
    }

    async fn refuse(&self, lease: &LeaseToken, refusal: Refusal) -> Result<Refused, ProviderError> {
        let if_unlisted = refusal.if_unlisted;
        let answer = self.change(self.inner.refuse(lease, refusal)).await;
        if let Ok(refused) = &answer {
            let how = match refused {
                Refused::Routed => Abandon { retry_after: None, attempt: Attempt::Uncounted },
                Refused::Unlisted => if_unlisted,
            };
            self.see(|shadow, now| shadow.abandoned(lease, how, true, now));
        }
        answer
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<(), ProviderError> {
        self.inner.report_worker(report).await
    }

    async fn workers(&self, after: Option<&WorkerId>) -> Result<Vec<WorkerInfo>, ProviderError> {
        self.inner.workers(after).await
    }

    async fn delete_ended(
        &self,
        ended_for: Duration,
        limit: u32,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let answer = self.inner.delete_ended(ended_for, limit).await;
        self.look_for_deleted().await;
        answer
    }

    async fn gauges(&self) -> Result<Gauges, ProviderError> {
        self.inner.gauges().await
    }

    async fn register_node(&self, start: &NodeStart) -> Result<NodeRegistration, ProviderError> {
        let answer = self.change(self.inner.register_node(start)).await;
        if let Ok(NodeRegistration::Registered(incarnation)) = answer {
            self.see(|shadow, _| shadow.sessions.registered(start, incarnation, &mut shadow.found));
        }
        answer
    }

    async fn renew_sessions(&self, request: RenewSessions) -> Result<SessionsRenewed, ProviderError> {
        let answer = self.change(self.inner.renew_sessions(request.clone())).await;
        if let Ok(renewed) = &answer {
            self.see(|Shadow { sessions, work, found, .. }, now| {
                sessions.renewed(&request, renewed, &work.sessions_running(now), now, found);
            });
        }
        answer
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
        let answer = self.change(self.inner.release_sessions_because(owner, sessions, reason)).await;
        if let Ok(released) = &answer {
            self.see(|shadow, now| {
                shadow.sessions.released(owner, released, now, &mut shadow.found);
                shadow.sessions.detached(owner, sessions, now);
            });
        }
        answer
    }

    async fn cleanup_sessions(&self) -> Result<usize, ProviderError> {
        if !self.is_exact {
            let answer = self.change(self.inner.cleanup_sessions()).await;
            let kept = self.all_sessions().await?;
            let is_gone = |key: &SessionKey| !kept.contains_key(key);
            self.see(|shadow, _| shadow.sessions.forget(is_gone));
            return answer;
        }
        let before = self.all_sessions().await?;
        let answer = self.inner.cleanup_sessions().await;
        let after = self.all_sessions().await?;
        self.see(|shadow, now| shadow.cleaned_up(&before, &after, now));
        answer
    }

    async fn sessions(&self, after: Option<&SessionKey>) -> Result<Vec<SessionInfo>, ProviderError> {
        self.inner.sessions(after).await
    }

    async fn session(&self, key: &SessionKey) -> Result<Option<SessionInfo>, ProviderError> {
        self.inner.session(key).await
    }

    async fn session_trail(&self, key: &SessionKey) -> Result<Vec<SessionTrailEntry>, ProviderError> {
        self.inner.session_trail(key).await
    }

    async fn cleanup_session_trails(&self, retention: Duration) -> Result<usize, ProviderError> {
        self.inner.cleanup_session_trails(retention).await
    }

    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError> {
        let answer = self.change(self.inner.start(start.clone(), also.clone())).await;
        if let Ok(started) = &answer {
            let first = (*started == Started::New).then_some(&start);
            self.see(|shadow, now| {
                first.into_iter().chain(&also).for_each(|sent| shadow.turns.post(sent, now))
            });
        }
        answer
    }

    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError> {
        let answer = self.change(self.inner.send(messages.clone())).await;
        if answer.is_ok() {
            self.see(|shadow, now| messages.iter().for_each(|sent| shadow.turns.post(sent, now)));
        }
        answer
    }

    async fn enqueue_work(&self, work: NewWork) -> Result<(), ProviderError> {
        let answer = self.change(self.inner.enqueue_work(work.clone())).await;
        if answer.is_ok() {
            self.see(|shadow, now| shadow.work.queue(&work, now));
        }
        answer
    }

    async fn wait(&self, what: WaitFor<'_>, timeout: Duration) -> Result<Waited, ProviderError> {
        self.inner.wait(what, timeout).await
    }

    async fn state(&self, instance: &str) -> Result<Option<InstanceState>, ProviderError> {
        self.inner.state(instance).await
    }

    async fn instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        self.inner.instances(query).await
    }

    async fn read_history(
        &self,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError> {
        self.inner.read_history(instance, execution_id).await
    }

    async fn append_history(
        &self,
        instance: &str,
        execution_id: u64,
        events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.inner.append_history(instance, execution_id, events).await
    }

    async fn kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.inner.kv_value(instance, key).await
    }

    async fn kv_values(
        &self,
        instance: &str,
    ) -> Result<std::collections::HashMap<String, String>, ProviderError> {
        self.inner.kv_values(instance).await
    }

    async fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.inner.stats(instance).await
    }

    async fn set_aside(&self, after: Option<u64>) -> Result<Vec<SetAside>, ProviderError> {
        self.inner.set_aside(after).await
    }

    async fn retry_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        self.inner.retry_set_aside(id).await
    }

    async fn drop_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        self.inner.drop_set_aside(id).await
    }

    async fn turn_of(&self, instance: &str) -> Result<Option<TurnState>, ProviderError> {
        self.inner.turn_of(instance).await
    }

    async fn start_of(&self, instance: &str) -> Result<Option<WaitingStart>, ProviderError> {
        self.inner.start_of(instance).await
    }

    async fn work_of(&self, instance: &str, execution_id: u64) -> Result<Vec<WorkState>, ProviderError> {
        self.inner.work_of(instance, execution_id).await
    }

    async fn oldest_waiting(&self) -> Result<OldestWaiting, ProviderError> {
        self.inner.oldest_waiting().await
    }
}
