//! Sessions and their claims, as the watch knows them.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_core::{SessionConcurrency, SessionKey, WorkItem};
use steadfast_store::{
    Claim, ClaimedSession, NodeStart, Owner, RenewSessions, SessionRef, SessionRequest, SessionScope,
    SessionsRenewed, TurnCommit, rules::SessionEffect,
};

use super::{ExpiredClaim, Found, lease::after};

/// The claims of sessions, the sessions that are open, and who watches them.
#[derive(Default)]
pub(super) struct SessionShadow {
    claims: BTreeMap<SessionKey, ClaimShadow>,
    /// The last claims of sessions that were closed: other processes wait for their ends (G41).
    former: BTreeMap<SessionKey, ClaimShadow>,
    /// The end of each lease that was ever granted, unless it was released before.
    ends: BTreeMap<(SessionKey, u64), u64>,
    highest: u64,
    nodes: BTreeMap<String, (u64, String)>,
    open: BTreeMap<SessionKey, SessionConcurrency>,
    watchers: BTreeMap<SessionKey, BTreeMap<(String, u64), HasSeen>>,
    /// The actual ends of claims that were released.
    released: BTreeMap<(SessionKey, u64), u64>,
    pub(super) expired: Vec<ExpiredClaim>,
    /// Whether fetches may have been dropped after they claimed a session, unseen.
    pub(super) has_drops: bool,
}

/// Whether a watcher has seen an attachment of the session: only a later one is a move.
type HasSeen = bool;

struct ClaimShadow {
    owner: Owner,
    epoch: u64,
    until_ms: u64,
    /// Whether the lease may end by itself: it was released, or the session was idle.
    may_end: bool,
    /// Whether only the fetch that made the claim was given work under it.
    is_fresh: bool,
}

/// A move of a session that an execution is to be told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Migration {
    pub(super) instance: String,
    pub(super) execution_id: u64,
    pub(super) session_id: String,
    pub(super) epoch: u64,
}

impl Migration {
    /// Tells whether a message tells of this move.
    pub(super) fn is(&self, item: &WorkItem) -> bool {
        match item {
            WorkItem::SessionMigrated { instance, execution_id, session_id, epoch, .. } => {
                let Self { instance: mine, execution_id: my_execution, session_id: my_id, .. } = self;
                (instance, execution_id, session_id, epoch) == (mine, my_execution, my_id, &self.epoch)
            }
            _ => false,
        }
    }
}

impl SessionShadow {
    pub(super) fn registered(&mut self, start: &NodeStart, incarnation: u64, found: &mut Found) {
        let NodeStart { node_id, start_id, .. } = start;
        let given = (incarnation, start_id.clone());
        let Some(former) = self.nodes.insert(node_id.clone(), given.clone()) else { return };
        if former != given && (former.0 >= incarnation || former.1 == *start_id) {
            found.add("A13", format!("{node_id} is given {given:?} after {former:?}"));
        }
    }

    pub(super) fn claim_until_ms(&self, key: &SessionKey, epoch: u64) -> Option<u64> {
        self.ends.get(&(key.clone(), epoch)).copied()
    }

    pub(super) fn claim_end_ms(&self, key: &SessionKey, epoch: u64) -> Option<u64> {
        self.released.get(&(key.clone(), epoch)).copied().or_else(|| self.claim_until_ms(key, epoch))
    }

    /// Tells since when a fetch could be given work of a session; `None` if it must not be.
    pub(super) fn serves_since(&self, key: &SessionKey, asked: &SessionRequest, now: u64) -> Option<u64> {
        let is_closed = key.instance.is_some() && !self.open.contains_key(key);
        if is_closed || asked.leave_out.contains(key) {
            return None;
        }
        let claim = self.claims.get(key);
        let is_held = claim.is_some_and(|claim| claim.until_ms > now && claim.owner == asked.owner);
        match (&asked.scope, claim) {
            (SessionScope::Only(keys), _) => (is_held && keys.contains(key)).then_some(0),
            (SessionScope::Claim, None) => self.claimable_since(key, &asked.owner, now),
            (SessionScope::Claim, Some(_)) if is_held => Some(0),
            (SessionScope::Claim, Some(claim)) if claim.until_ms <= now => Some(claim.until_ms),
            (SessionScope::Claim, Some(_)) => None,
        }
    }

    /// Tells since when a process can claim a session without an owner; `None` if its former owner must have
    /// detached it before.
    fn claimable_since(&self, key: &SessionKey, owner: &Owner, now: u64) -> Option<u64> {
        let Some(former) = self.former.get(key) else { return Some(0) };
        let is_own = former.owner == *owner || is_predecessor(&former.owner, owner);
        if is_own { Some(0) } else { (former.until_ms <= now).then_some(former.until_ms) }
    }

    /// Ends the leases of closed sessions that their owner has detached.
    pub(super) fn detached(&mut self, owner: &Owner, claims: &[SessionRef], now: u64) {
        for claim in claims {
            let former = self.former.get_mut(&claim.key).filter(|former| former.epoch == claim.epoch);
            if let Some(former) = former.filter(|former| former.owner == *owner) {
                former.until_ms = former.until_ms.min(now);
            }
        }
    }

    /// Tells whether the last claim of a session was that of another process.
    pub(super) fn was_claimed_by_another(&self, key: &SessionKey, owner: &Owner) -> bool {
        self.claims.get(key).is_some_and(|claim| claim.owner != *owner)
    }

    /// Forgets who claimed the sessions that clean-up removed. The ends of their leases stay known.
    pub(super) fn forget(&mut self, is_gone: impl Fn(&SessionKey) -> bool) {
        self.claims.retain(|key, _| !is_gone(key));
    }

    /// Tells whether an instance has a session open.
    pub(super) fn is_open(&self, key: &SessionKey) -> bool {
        self.open.contains_key(key)
    }

    /// Tells whether a session runs one activity at a time.
    pub(super) fn is_serial(&self, key: &SessionKey) -> bool {
        self.open.get(key) == Some(&SessionConcurrency::Serial)
    }

    /// Returns the owner of a claim that a fetch made and under which no other was given work.
    pub(super) fn fresh_owner(&self, claim: &SessionRef) -> Option<Owner> {
        let known = self.claims.get(&claim.key).filter(|known| known.epoch == claim.epoch)?;
        known.is_fresh.then(|| known.owner.clone())
    }

    /// Looks at the session of a leased activity. Returns the watchers that are to be told of a move.
    pub(super) fn granted(
        &mut self,
        asked: &SessionRequest,
        claimed: &ClaimedSession,
        running: &[SessionKey],
        now: u64,
        found: &mut Found,
    ) -> Vec<Migration> {
        let ClaimedSession { key, epoch, claim } = claimed;
        self.check_node(&asked.owner, "a fetch", found);
        let is_asked = match &asked.scope {
            SessionScope::Claim => true,
            SessionScope::Only(keys) => keys.contains(key),
        };
        if !is_asked || asked.leave_out.contains(key) {
            found.add("D14", format!("a worker is given work of {key:?}, which it did not ask for"));
        }
        if key.instance.is_some() && !self.open.contains_key(key) {
            found.add_unless_deleted("A9", format!("work of {key:?} is given at {now}, which is not open"));
        }
        if self.open.get(key) == Some(&SessionConcurrency::Serial) && running.contains(key) {
            found.add_unless_deleted("D29", format!("two activities of {key:?} run at {now}"));
        }
        let until_ms = after(now, asked.lock_timeout);
        let known = self.claims.get(key);
        let live = known.filter(|known| known.until_ms > now);
        let is_held = live.is_some_and(|known| known.epoch == *epoch && known.owner == asked.owner);
        // The claim of a fetch that was dropped stays if another fetch has used it meanwhile.
        let is_unseen = !is_held && self.has_drops && *epoch > self.highest;
        if *claim == Claim::Held && !is_unseen {
            if !is_held {
                found.add(
                    "A1",
                    format!("{key:?} epoch {epoch} is held at {now} by {:?}: it is not", asked.owner),
                );
            }
            let until_ms = live.map_or(until_ms, |known| known.until_ms.max(until_ms));
            self.prove(key, *epoch, &asked.owner, until_ms);
            self.claims.entry(key.clone()).and_modify(|known| known.is_fresh = false);
            return Vec::new();
        }
        if let Some(known) = live
            && !is_predecessor(&known.owner, &asked.owner)
        {
            let (owner, until) = (&known.owner, known.until_ms);
            let text =
                format!("{key:?} is claimed at {now} by {:?}; {owner:?} has it until {until}", asked.owner);
            found.add_unless_deleted("A5", text);
        }
        if self.claimable_since(key, &asked.owner, now).is_none() {
            let text = format!("{key:?} is claimed at {now} by {:?}, before its former owner", asked.owner);
            found.add_unless_deleted("A9", text + " has detached it");
        }
        if let Some(known) = known.filter(|known| known.until_ms <= now && !known.may_end) {
            let (key, epoch, since_ms) = (key.clone(), known.epoch, known.until_ms);
            self.expired.push(ExpiredClaim { key, epoch, since_ms, until_ms: now });
        }
        if *epoch <= self.highest {
            found.add("A2", format!("{key:?} is claimed with epoch {epoch}, after {}", self.highest));
        }
        self.highest = self.highest.max(*epoch);
        self.former.remove(key);
        self.prove(key, *epoch, &asked.owner, until_ms);
        self.claims.entry(key.clone()).and_modify(|known| known.is_fresh = *claim != Claim::Held);
        self.told_of_move(key, *epoch)
    }

    fn prove(&mut self, key: &SessionKey, epoch: u64, owner: &Owner, until_ms: u64) {
        let end = self.ends.entry((key.clone(), epoch)).or_insert(until_ms);
        *end = (*end).max(until_ms);
        let is_fresh = self.claims.get(key).is_some_and(|known| known.epoch == epoch && known.is_fresh);
        let claim = ClaimShadow { owner: owner.clone(), epoch, until_ms, may_end: false, is_fresh };
        self.claims.insert(key.clone(), claim);
    }

    fn told_of_move(&mut self, key: &SessionKey, epoch: u64) -> Vec<Migration> {
        let Some(watchers) = self.watchers.get_mut(key) else { return Vec::new() };
        let mut told = Vec::new();
        for ((instance, execution_id), has_seen) in watchers {
            if std::mem::replace(has_seen, true) {
                let session_id = key.session_id.clone();
                let (instance, execution_id) = (instance.clone(), *execution_id);
                told.push(Migration { instance, execution_id, session_id, epoch });
            }
        }
        told
    }

    fn check_node(&self, owner: &Owner, call: &str, found: &mut Found) {
        let newest = self.nodes.get(&owner.id);
        if let (Some(given), Some(newest)) = (owner.incarnation, newest)
            && given < newest.0
        {
            found.add("A13", format!("{call} of {owner:?} succeeds; the node has the number {}", newest.0));
        }
    }

    pub(super) fn renewed(
        &mut self,
        request: &RenewSessions,
        answer: &SessionsRenewed,
        running: &[SessionKey],
        now: u64,
        found: &mut Found,
    ) {
        self.check_node(&request.owner, "a renewal", found);
        let until_ms = after(now, request.extend_for);
        for claim in answer.renewed.iter().chain(&answer.idle).chain(&answer.untaken) {
            if !self.holds(claim, &request.owner, now) {
                let text =
                    format!("{claim:?} is renewed at {now} by {:?}, which does not hold it", request.owner);
                found.add_unless_deleted("A1", text);
            }
        }
        for claim in &answer.renewed {
            self.prove(&claim.key, claim.epoch, &request.owner, until_ms);
        }
        for claim in answer.idle.iter().chain(&answer.untaken) {
            if running.contains(&claim.key) {
                found.add("A11", format!("{claim:?} is let go at {now} while an activity runs on it"));
            }
        }
        for claim in &answer.idle {
            self.claims.entry(claim.key.clone()).and_modify(|known| known.may_end = true);
        }
        for claim in &answer.untaken {
            self.end(&claim.key, now);
        }
        for claim in &answer.lost {
            if self.holds(claim, &request.owner, now) {
                found.add_unless_deleted("A1", format!("{claim:?} is called lost at {now}, before its end"));
            }
        }
    }

    pub(super) fn released(&mut self, owner: &Owner, released: &[SessionRef], now: u64, found: &mut Found) {
        self.check_node(owner, "a release", found);
        for claim in released {
            if !self.holds(claim, owner, now) {
                found.add_unless_deleted(
                    "A3",
                    format!("{claim:?} is released at {now} by {owner:?}: it is not held"),
                );
            }
            self.end(&claim.key, now);
        }
    }

    fn holds(&self, claim: &SessionRef, owner: &Owner, now: u64) -> bool {
        self.claims.get(&claim.key).is_some_and(|known| {
            // A client names the node only: it releases what any start of it holds.
            let is_owner = known.owner == *owner || owner.incarnation.is_none() && known.owner.id == owner.id;
            known.epoch == claim.epoch && is_owner && known.until_ms > now
        })
    }

    fn end(&mut self, key: &SessionKey, now: u64) {
        if let Some(known) = self.claims.get_mut(key) {
            known.until_ms = known.until_ms.min(now);
            known.may_end = true;
            self.released.insert((key.clone(), known.epoch), known.until_ms);
        }
    }

    /// Applies a commit. Returns the sessions that it closes.
    pub(super) fn committed(&mut self, instance: &str, commit: &TurnCommit) -> BTreeSet<SessionKey> {
        let mut closed = BTreeSet::new();
        for effect in SessionEffect::of(&commit.events) {
            match effect {
                SessionEffect::Open { session_id, concurrency, .. } => {
                    let key = SessionKey::owned(instance, session_id);
                    closed.remove(&key);
                    self.open.entry(key).or_insert(concurrency.unwrap_or_default());
                }
                SessionEffect::Close { session_id } => {
                    self.close(SessionKey::owned(instance, session_id), &mut closed)
                }
                SessionEffect::CloseAll => {
                    let mine = |key: &&SessionKey| key.instance.as_deref() == Some(instance);
                    let keys: Vec<SessionKey> = self.open.keys().filter(mine).cloned().collect();
                    keys.into_iter().for_each(|key| self.close(key, &mut closed));
                }
            }
        }
        for key in &commit.watched {
            let has_seen = self.claims.get(key).is_some_and(|claim| claim.epoch > 0);
            let watchers = self.watchers.entry(key.clone()).or_default();
            watchers.entry((instance.to_owned(), commit.execution_id)).or_insert(has_seen);
        }
        if commit.ends_execution() {
            let own = (instance.to_owned(), commit.execution_id);
            self.watchers.values_mut().for_each(|watchers| watchers.retain(|watcher, _| *watcher != own));
        }
        closed
    }

    fn close(&mut self, key: SessionKey, closed: &mut BTreeSet<SessionKey>) {
        self.open.remove(&key);
        if let Some(known) = self.claims.remove(&key) {
            self.released.insert((key.clone(), known.epoch), 0);
            self.former.insert(key.clone(), known);
        }
        closed.insert(key);
    }
}

/// Tells whether a claim is that of an earlier start of the same node.
fn is_predecessor(claimed_by: &Owner, owner: &Owner) -> bool {
    claimed_by.id == owner.id && claimed_by.incarnation < owner.incarnation
}
