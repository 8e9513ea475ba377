//! Sessions: claims, renewals and releases (S13). A session has an owner exactly while its lease lasts.

mod closed;
pub(crate) mod trail;

use std::collections::BTreeSet;

use steadfast_core::{SessionConcurrency, SessionKey, WorkItem};
use steadfast_store::rules::{
    NewestStart, SessionEffect, answer_to_start, is_same_owner, lost_claims, started_at_ms, superseded,
};
use steadfast_store::{
    Appetite, Claim, ClaimedSession, MAX_PAGE, NodeRegistration, NodeStart, Owner, ProviderError,
    ReleaseReason, RenewSessions, SessionChange, SessionInfo, SessionRef, SessionRequest, SessionScope,
    SessionTrailEntry, SessionsRenewed, TurnCommit,
};

pub(crate) use self::closed::ClosedClaim;
use crate::millis;
use crate::state::State;

/// The row of a session: its last owner, the epoch of that claim, and the end of the lease.
#[derive(Debug, Default)]
pub(crate) struct SessionRow {
    pub(crate) owner: Option<Owner>,
    pub(crate) locked_until_ms: u64,
    pub(crate) last_activity_at_ms: u64,
    /// The fencing token of the last claim, 0 before the first.
    pub(crate) epoch: u64,
    /// Whether the last claim was released: its lease did not expire, whatever its trail still tells.
    pub(crate) is_released: bool,
    pub(crate) idle_timeout_ms: Option<u64>,
    pub(crate) concurrency: SessionConcurrency,
}

/// An execution that gets a message when a worker claims the session anew.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Watcher {
    pub(crate) instance: String,
    pub(crate) execution: u64,
    /// Whether the session was claimed at least once while this execution watched it, so that the next claim
    /// is a move of the session.
    pub(crate) has_seen: bool,
}

impl Watcher {
    fn is(&self, instance: &str, execution: u64) -> bool {
        self.instance == instance && self.execution == execution
    }
}

impl SessionRow {
    pub(crate) fn is_live(&self, now: u64) -> bool {
        self.locked_until_ms > now
    }

    /// Ends the lease of the last claim before it expires.
    fn release(&mut self, now: u64) {
        self.locked_until_ms = now;
        self.is_released = true;
    }

    /// Tells whether this process owns the session now: it claimed it last, and the lease has not ended.
    fn is_held_by(&self, owner: &Owner, now: u64) -> bool {
        self.is_live(now) && self.owner.as_ref().is_some_and(|holder| is_same_owner(holder, owner))
    }

    /// Tells whether an earlier start of the same node claimed the session: its successor may claim it at
    /// once.
    fn is_held_by_predecessor(&self, owner: &Owner) -> bool {
        self.owner
            .as_ref()
            .is_some_and(|holder| holder.id == owner.id && holder.incarnation < owner.incarnation)
    }
}

/// The newest start of a node.
#[derive(Debug, Clone)]
pub(crate) struct NodeRow {
    incarnation: u64,
    start_id: String,
    started_at_ms: u64,
}

impl NodeRow {
    fn newest(&self) -> NewestStart<'_> {
        let Self { incarnation, start_id, started_at_ms } = self;
        NewestStart { incarnation: *incarnation, start_id, started_at_ms: *started_at_ms }
    }
}

impl State {
    pub(crate) fn register_node(&mut self, start: &NodeStart, now: u64) -> NodeRegistration {
        let newest = self.nodes.get(&start.node_id).map(NodeRow::newest);
        let answer = answer_to_start(start, newest, now);
        if let Some(answer) = answer {
            return answer;
        }
        let incarnation = self.next();
        let (start_id, started_at_ms) = (start.start_id.clone(), started_at_ms(start, now));
        self.nodes.insert(start.node_id.clone(), NodeRow { incarnation, start_id, started_at_ms });
        NodeRegistration::Registered(incarnation)
    }

    /// Refuses a call by a process whose node has started again since (S13).
    pub(crate) fn check_incarnation(&self, operation: &str, owner: &Owner) -> Result<(), ProviderError> {
        match (owner.incarnation, self.nodes.get(&owner.id)) {
            (Some(given), Some(node)) if given < node.incarnation => {
                Err(superseded(operation, &owner.id, given, node.incarnation))
            }
            _ => Ok(()),
        }
    }

    /// Tells whether a fetch may serve this session: the caller owns it, or may claim it.
    pub(crate) fn may_serve(&self, key: &SessionKey, request: &SessionRequest, now: u64) -> bool {
        if request.leave_out.contains(key) {
            return false;
        }
        let session = self.sessions.get(key);
        let held = session.is_some_and(|session| session.is_held_by(&request.owner, now));
        match &request.scope {
            SessionScope::Only(serving) => held && serving.contains(key),
            SessionScope::Claim => {
                let is_free = session.is_none_or(|session| {
                    !session.is_live(now) || session.is_held_by_predecessor(&request.owner)
                });
                held || (is_free && !self.is_kept_from(key, &request.owner, now))
            }
        }
    }

    /// Claims the session for the process that serves it now, or extends the lease of its live claim.
    pub(crate) fn claim(&mut self, key: SessionKey, request: &SessionRequest, now: u64) -> ClaimedSession {
        let until = now.saturating_add(millis(request.lock_timeout));
        if let Some(session) = self.sessions.get_mut(&key)
            && session.is_held_by(&request.owner, now)
        {
            session.locked_until_ms = session.locked_until_ms.max(until);
            session.last_activity_at_ms = now;
            return ClaimedSession { key, epoch: session.epoch, claim: Claim::Held };
        }
        let epoch = self.next();
        self.closed.remove(&key);
        let session = self.sessions.entry(key.clone()).or_default();
        if let Some(end) = session.end_of_claim(now, SessionChange::Lost) {
            self.trails.add(&key, end);
        }
        let from = session.owner.replace(request.owner.clone()).map(|owner| owner.id);
        (session.epoch, session.locked_until_ms, session.last_activity_at_ms) = (epoch, until, now);
        session.is_released = false;
        let owner = request.owner.clone();
        self.trails.add(&key, SessionTrailEntry { epoch, owner, at_ms: now, change: SessionChange::Claimed });
        self.tell_watchers(&key, epoch, from.as_deref(), &request.owner.id, now);
        let claim = from.map_or(Claim::New, |from| Claim::Taken { from });
        ClaimedSession { key, epoch, claim }
    }

    /// Sends a message about a new claim to the executions that watch the session. The first claim that an
    /// execution watches is not told: only later ones are moves.
    fn tell_watchers(&mut self, key: &SessionKey, epoch: u64, from: Option<&str>, to: &str, now: u64) {
        let Some(watchers) = self.watchers.remove(key) else { return };
        let mut seen = BTreeSet::new();
        for mut watcher in watchers {
            if watcher.has_seen {
                let message = WorkItem::SessionMigrated {
                    instance: watcher.instance.clone(),
                    execution_id: watcher.execution,
                    session_id: key.session_id.clone(),
                    epoch,
                    from: from.map(str::to_owned),
                    to: to.to_owned(),
                };
                self.push_message(message.into(), now);
            }
            watcher.has_seen = true;
            seen.insert(watcher);
        }
        self.watchers.insert(key.clone(), seen);
    }

    pub(crate) fn renew_sessions(
        &mut self,
        request: &RenewSessions,
        now: u64,
    ) -> Result<SessionsRenewed, ProviderError> {
        self.check_incarnation("renew_sessions", &request.owner)?;
        let mut outcome = SessionsRenewed::default();
        let held: Vec<SessionKey> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.is_held_by(&request.owner, now))
            .map(|(key, _)| key.clone())
            .collect();
        for key in held {
            let (idle, untaken) = (self.is_idle(&key, request, now), self.is_untaken(&key, request, now));
            let Some(session) = self.sessions.get_mut(&key) else { continue };
            let claim = SessionRef { key, epoch: session.epoch };
            if untaken {
                let untaken = SessionChange::Released(ReleaseReason::Untaken);
                if let Some(end) = session.end_of_claim(now, untaken) {
                    self.trails.add(&claim.key, end);
                }
                session.release(now);
                outcome.untaken.push(claim);
            } else if idle {
                outcome.idle.push(claim);
            } else {
                session.locked_until_ms = now.saturating_add(millis(request.extend_for));
                outcome.renewed.push(claim);
            }
        }
        outcome.lost = lost_claims(request, &outcome);
        Ok(outcome)
    }

    /// Tells whether a session is idle: it has no leased activity, and its last work is older than the
    /// time-out.
    fn is_idle(&self, key: &SessionKey, request: &RenewSessions, now: u64) -> bool {
        let Some(session) = self.sessions.get(key) else { return false };
        let timeout = match key.instance {
            Some(_) => session.idle_timeout_ms,
            None => Some(millis(request.idle_timeout)),
        };
        let since = session.last_activity_at_ms;
        timeout.is_some_and(|timeout| since.saturating_add(timeout) <= now) && !self.is_running(key, now)
    }

    /// Tells whether a session has no leased activity, and has had ready work for longer than `untaken_after`
    /// that its owner will not take: the owner takes no session work now, does not serve the tag, or is not
    /// given the work because it lacks the handler.
    fn is_untaken(&self, key: &SessionKey, request: &RenewSessions, now: u64) -> bool {
        let patience = millis(request.untaken_after);
        let own = self.work.iter().filter(|(_, row)| row.session.as_ref() == Some(key));
        let waits = own.filter(|(place, row)| self.is_its_turn(**place, row, now)).any(|(_, row)| {
            let refused = request.appetite == Appetite::Full
                || !request.tags.matches(row.tag.as_deref())
                || !self.may_take_work(request.worker.as_ref(), row, now);
            refused && row.is_waiting(now) && now.saturating_sub(row.waiting_since()) > patience
        });
        waits && !self.is_running(key, now)
    }

    fn is_running(&self, key: &SessionKey, now: u64) -> bool {
        self.work.values().any(|row| row.session.as_ref() == Some(key) && row.is_leased(now))
    }

    pub(crate) fn release_sessions(
        &mut self,
        owner: &Owner,
        sessions: &[SessionRef],
        reason: ReleaseReason,
        now: u64,
    ) -> Result<Vec<SessionRef>, ProviderError> {
        self.check_incarnation("release_sessions", owner)?;
        let mut released = Vec::new();
        for claim in sessions {
            if let Some(session) = self.sessions.get_mut(&claim.key)
                && session.epoch == claim.epoch
                && session.is_held_by(owner, now)
            {
                if let Some(end) = session.end_of_claim(now, SessionChange::Released(reason)) {
                    self.trails.add(&claim.key, end);
                }
                session.release(now);
                released.push(claim.clone());
            }
            self.end_closed(owner, claim);
        }
        Ok(released)
    }

    /// Removes sessions without a live lease and without work, if they are shared or their instance does not
    /// exist. A removed session that is claimed again still gets a higher epoch, because all epochs come from
    /// one counter.
    pub(crate) fn cleanup_sessions(&mut self, now: u64) -> usize {
        let queued: BTreeSet<SessionKey> = self.work.values().filter_map(|row| row.session.clone()).collect();
        let is_unused = |key: &SessionKey, session: &SessionRow| {
            let orphan = key.instance.as_ref().is_none_or(|instance| !self.exists(instance));
            orphan && !session.is_live(now) && !queued.contains(key)
        };
        let keys: Vec<SessionKey> = self
            .sessions
            .iter()
            .filter(|(key, session)| is_unused(key, session))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &keys {
            self.remove_session(key, now, SessionChange::Expired);
        }
        self.closed.retain(|_, claim| claim.is_live(now));
        keys.len()
    }

    /// Applies the session changes in the events of a commit, and the watches that the commit adds or ends.
    pub(crate) fn record_sessions(&mut self, instance: &str, commit: &TurnCommit, now: u64) {
        for effect in SessionEffect::of(&commit.events) {
            match effect {
                SessionEffect::Open { session_id, idle_timeout_ms, concurrency } => {
                    self.sessions.entry(SessionKey::owned(instance, session_id)).or_insert(SessionRow {
                        last_activity_at_ms: now,
                        idle_timeout_ms,
                        concurrency: concurrency.unwrap_or_default(),
                        ..SessionRow::default()
                    });
                }
                SessionEffect::Close { session_id } => {
                    let closed = SessionKey::owned(instance, session_id);
                    self.close_sessions(|key| *key == closed, now);
                }
                SessionEffect::CloseAll => self.close_sessions_of(instance, now),
            }
        }
        for key in &commit.watched {
            self.watch(key, instance, commit.execution_id);
        }
        if commit.ends_execution() {
            self.watchers.retain(|_, watchers| {
                watchers.retain(|watcher| !watcher.is(instance, commit.execution_id));
                !watchers.is_empty()
            });
        }
    }

    fn close_sessions_of(&mut self, instance: &str, now: u64) {
        self.close_sessions(|key| key.instance.as_deref() == Some(instance), now);
    }

    /// Removes sessions of an instance with their work. A worker that runs some of it learns of that at its
    /// next renewal.
    pub(crate) fn close_sessions(&mut self, closes: impl Fn(&SessionKey) -> bool, now: u64) {
        let closed: Vec<SessionKey> = self.sessions.keys().filter(|key| closes(key)).cloned().collect();
        for key in &closed {
            self.keep_closed(key, now);
            self.remove_session(key, now, SessionChange::Closed);
        }
        self.withdraw(|row| row.session.as_ref().is_some_and(&closes), now);
    }

    /// Removes the row of a session, and writes into its trail how its last claim ended.
    fn remove_session(&mut self, key: &SessionKey, now: u64, change: SessionChange) {
        let removed = self.sessions.remove(key);
        if let Some(end) = removed.and_then(|session| session.end_of_claim(now, change)) {
            self.trails.add(key, end);
        }
    }

    fn watch(&mut self, key: &SessionKey, instance: &str, execution: u64) {
        let has_seen = self.sessions.get(key).is_some_and(|session| session.epoch > 0);
        let watchers = self.watchers.entry(key.clone()).or_default();
        if !watchers.iter().any(|watcher| watcher.is(instance, execution)) {
            watchers.insert(Watcher { instance: instance.to_owned(), execution, has_seen });
        }
    }

    pub(crate) fn session_page(&self, after: Option<&SessionKey>) -> Vec<SessionInfo> {
        let behind = self.sessions.keys().filter(|key| after.is_none_or(|after| *key > after));
        behind.take(MAX_PAGE).filter_map(|key| self.session_info(key)).collect()
    }

    pub(crate) fn session_info(&self, key: &SessionKey) -> Option<SessionInfo> {
        let session = self.sessions.get(key)?;
        Some(SessionInfo {
            key: key.clone(),
            owner: session.owner.clone(),
            epoch: session.epoch,
            locked_until_ms: session.locked_until_ms,
            last_activity_at_ms: session.last_activity_at_ms,
            queued: self.work.values().filter(|row| row.session.as_ref() == Some(key)).count() as u64,
            idle_timeout_ms: session.idle_timeout_ms,
            concurrency: session.concurrency,
        })
    }
}
