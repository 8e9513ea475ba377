//! All sessions of this process, behind one lock. No method waits under it, and no I/O happens here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use steadfast_core::SessionKey;
use steadfast_store::{Appetite, Owner, SessionRef};
use tokio::sync::Notify;

use super::ask::SessionAsk;
use super::line::Line;
use super::local_session::{DetachCause, LocalSession, SessionEffect, SessionEvent, SessionState};
use super::released::{ReleasedClaim, ReleasedClaims};
use super::rises::Rises;
use super::{ActivityInFlight, Session};

/// Bounds how many sessions fetches exclude because of missing handlers: each request carries the list.
const MAX_EXCLUDED: usize = 1_000;

/// The sessions of this process: which it holds, which it serves now, and which it must not fetch.
#[derive(Debug)]
pub(crate) struct LocalSessions {
    /// Empty until the node is registered.
    owner: OnceLock<Owner>,
    /// `max_sessions_per_runtime`: bounds the sessions that have an activity running here.
    pub(super) limit: usize,
    table: Mutex<SessionTable>,
    /// Rises when waiting fetches may have to ask for other sessions.
    pub(super) changes: Rises,
    /// Rises when an activity of a session ends, a fetch returns its reservation, or a session is detached.
    endings: Rises,
    /// Rises when a session is claimed, so that its expiry is watched while a renewal is under way.
    pub(super) claims: Rises,
    /// Notified when a claim can be proven for a short time only, so that its lease is renewed early.
    pub(super) proof_is_short: Notify,
}

#[derive(Debug, Default)]
pub(super) struct SessionTable {
    tracked: BTreeMap<SessionKey, TrackedSession>,
    /// The running activities of each session that has one. An activity of a lost session counts until it
    /// ends.
    pub(super) in_flight: BTreeMap<SessionKey, InFlight>,
    /// Counts the fetches that may claim one more session each.
    pub(super) reserved: usize,
    /// Sessions that fetches exclude, until a moment by the time of sessions (`Plan::session_now`).
    pub(super) excluded: BTreeMap<SessionKey, Duration>,
    released: ReleasedClaims,
    /// Sessions that turns of this process have closed, and when by the time of sessions. The answer to a
    /// fetch that was sent before may bring work of the closed session.
    closed: BTreeMap<SessionKey, Duration>,
    /// The process takes no more session work: it drains, it stops, or a newer process has its node's name.
    pub(super) is_draining: bool,
    uses: u64,
}

/// The activities of one session that run in this process.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) count: usize,
    line: Arc<Line>,
}

/// A session in the table.
#[derive(Debug)]
struct TrackedSession {
    local: LocalSession,
    handle: Session,
    last_use: LastUse,
    /// The store has said that the lease of the claim is gone.
    lease_is_gone: bool,
    /// The store has answered a renewal since the session became unproven: it is forgotten when its detach
    /// procedure has ended.
    is_answered: bool,
}

fn is_closed_since(closed: &BTreeMap<SessionKey, Duration>, key: &SessionKey, sent: Duration) -> bool {
    closed.get(key).is_some_and(|at| *at >= sent)
}

impl TrackedSession {
    /// Tells whether the detach procedure has called `on_detach` and dropped the state.
    fn is_detached(&self) -> bool {
        self.handle.detached().is_cancelled()
    }
}

#[derive(Debug, Clone, Copy)]
struct LastUse {
    /// Numbers the uses of all sessions, because two uses may have the same time.
    order: u64,
    at: Duration,
}

/// An activity that runs on a session of this process.
pub(crate) struct OnSession {
    pub(crate) session: Session,
    pub(super) in_flight: ActivityInFlight,
    /// A turn of this process has closed the session since the fetch was sent: the work may be that of the
    /// closed session.
    pub(crate) is_doubtful: bool,
}

/// A claim that a fetch brought.
#[derive(Debug)]
pub(super) struct NewClaim {
    pub(super) of: SessionRef,
    /// The store has no earlier claim of the session.
    pub(super) is_first: bool,
}

/// A session to run the detach procedure for.
#[derive(Debug)]
pub(super) struct Detachment {
    pub(super) session: Session,
    pub(super) cause: DetachCause,
    /// Whether `on_attach` was called, and so whether `on_detach` is due.
    pub(super) was_attached: bool,
    pub(super) used_at: Duration,
}

impl LocalSessions {
    pub(crate) fn new(owner: Option<Owner>, limit: usize) -> Self {
        Self {
            owner: owner.map(OnceLock::from).unwrap_or_default(),
            limit,
            table: Mutex::default(),
            changes: Rises::default(),
            endings: Rises::default(),
            claims: Rises::default(),
            proof_is_short: Notify::new(),
        }
    }

    /// Returns the owner of this process's sessions. `None` until the node is registered.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        self.owner.get()
    }

    /// Tells whether this process takes activities of sessions: its limit allows some, its node is
    /// registered, and it does not drain.
    pub(crate) fn serves(&self) -> bool {
        self.limit > 0 && self.owner().is_some() && !self.is_draining()
    }

    /// Waits until the node is registered.
    pub(crate) async fn until_registered(&self) {
        let mut changes = self.changes.look();
        while self.owner().is_none() {
            changes.risen().await;
        }
    }

    /// Returns the name of the owner for log lines.
    pub(super) fn owner_id(&self) -> &str {
        self.owner().map_or("", |owner| owner.id.as_str())
    }

    /// Takes session work from now on, as this owner.
    pub(super) fn registered(&self, owner: Owner) {
        self.owner.get_or_init(|| owner);
        self.changed();
    }

    /// Counts an activity that a fetch brought among the running ones, and its session among the claimed
    /// ones. If the claim replaces an older one, also returns the detachment of the older claim.
    ///
    /// `None` if the activity must be abandoned: the session is being detached, this claim of it was
    /// released already, or the process serves as many sessions as it may. Only a store whose fetch cannot
    /// exclude sessions, or an answer that was under way, brings such work.
    pub(super) fn claim(
        self: &Arc<Self>,
        claim: NewClaim,
        ask: SessionAsk,
        now: Duration,
        proven_until: Duration,
    ) -> Option<(OnSession, Option<Detachment>)> {
        let sent = ask.sent;
        let (handle, replaced) = {
            let mut table = self.lock();
            let own = usize::from(ask.reservation.is_some());
            let others = table.in_flight.len() + table.reserved.saturating_sub(own);
            if !table.in_flight.contains_key(&claim.of.key) && others >= self.limit {
                return None;
            }
            table.claim(&claim, now, proven_until)?
        };
        if let Some(replaced) = &replaced {
            replaced.session.end();
        }
        self.claims.rise();
        self.capacity_changed();
        drop(ask);
        let is_doubtful = is_closed_since(&self.lock().closed, &claim.of.key, sent);
        let in_flight = ActivityInFlight { sessions: Arc::clone(self), key: claim.of.key };
        Some((OnSession { session: handle, in_flight, is_doubtful }, replaced))
    }

    /// Notes that an activity of a session is about to begin. Returns whether `on_attach` must be called
    /// first.
    pub(super) fn begin(&self, session: &Session) -> bool {
        let mut table = self.lock();
        if table.current(session).is_none() {
            return false;
        }
        table.on(session.key(), SessionEvent::Begin).contains(&SessionEffect::CallOnAttach)
    }

    /// Tells whether an activity of this session may begin here now.
    pub(super) fn may_serve(&self, session: &Session, now: Duration) -> bool {
        let table = self.lock();
        table.current(session).is_some_and(|tracked| tracked.local.may_serve(now) && !tracked.lease_is_gone)
    }

    /// Notes that an activity of a session has ended.
    pub(super) fn used(&self, session: &Session, now: Duration) {
        let mut table = self.lock();
        if table.current(session).is_some() {
            let last_use = table.next_use(now);
            if let Some(tracked) = table.tracked.get_mut(session.key()) {
                tracked.last_use = last_use;
            }
        }
    }

    /// Notes that the store has extended a lease. Returns whether the session must be released there, because
    /// this process has detached it: the lease was not renewed in time, or the release did not arrive.
    pub(super) fn renewed(&self, claim: &SessionRef, proven_until: Duration) -> bool {
        let mut table = self.lock();
        if !table.holds_claim(claim) {
            return table.released.contains(claim);
        }
        table.on(&claim.key, SessionEvent::Renew { proven_until }).contains(&SessionEffect::Release)
    }

    /// Tells whether this process has detached a claim whose lease the store has all the same.
    pub(super) fn has_detached(&self, claim: &SessionRef) -> bool {
        let table = self.lock();
        match table.tracked.get(&claim.key).filter(|tracked| tracked.local.epoch == claim.epoch) {
            Some(tracked) => tracked.local.state == SessionState::Unproven,
            None => table.released.contains(claim),
        }
    }

    /// Notes that the store has released these claims. They are remembered until `until`.
    pub(super) fn confirm_released(&self, claims: &[SessionRef], until: Duration) {
        if self.lock().released.confirm(claims, until) {
            self.changed();
        }
    }

    /// Notes which leases the store has, by its answer to a renewal that was sent at `asked`. The lease of a
    /// claim that was released before, and is not named, is gone. Such claims are remembered until `until`.
    pub(super) fn confirm_unnamed(&self, named: &[SessionRef], asked: Duration, until: Duration) {
        if self.lock().released.confirm_unnamed(named, asked, until) {
            self.changed();
        }
    }

    /// Begins to detach one claim of a session. `None` if this process does not hold it, or if it is busy and
    /// the cause spares busy sessions.
    pub(super) fn detach(&self, claim: &SessionRef, cause: DetachCause) -> Option<Detachment> {
        let detachment = {
            let mut table = self.lock();
            if !table.holds_claim(claim) {
                return None;
            }
            let busy = table.in_flight.contains_key(&claim.key);
            table.detachment(&claim.key, SessionEvent::Detach { cause, busy })?
        };
        detachment.session.end();
        self.changed();
        Some(detachment)
    }

    /// Detaches the sessions whose lease was not renewed in time.
    pub(super) fn expire(&self, now: Duration) -> Vec<Detachment> {
        let expired: Vec<Detachment> = {
            let mut table = self.lock();
            let keys: Vec<SessionKey> = table.tracked.keys().cloned().collect();
            keys.iter().filter_map(|key| table.detachment(key, SessionEvent::Tick { now })).collect()
        };
        for detachment in &expired {
            detachment.session.end();
        }
        if !expired.is_empty() {
            self.changed();
        }
        expired
    }

    /// Forgets a session whose detach procedure has ended, and remembers that this claim of it was released:
    /// until `until`, and until the store has confirmed it.
    pub(super) fn detached(&self, session: &Session, now: Duration, until: Duration, is_confirmed: bool) {
        {
            let mut table = self.lock();
            let (mut is_gone, mut is_answered) = (false, false);
            if let Some(tracked) = table.current(session) {
                (is_gone, is_answered) = (tracked.lease_is_gone, tracked.is_answered);
                table.on(session.key(), SessionEvent::Detached);
            }
            if is_answered {
                table.on(session.key(), SessionEvent::Settle);
            }
            let is_confirmed = is_confirmed || is_gone;
            let released = ReleasedClaim { epoch: session.epoch(), since: now, until, is_confirmed };
            table.released.remember(session.key(), released);
        }
        self.changed();
        self.ended();
    }

    /// Notes that sessions were closed by a turn of this process.
    pub(super) fn note_closed(&self, keys: impl Iterator<Item = SessionKey>, now: Duration) {
        self.lock().closed.extend(keys.map(|key| (key, now)));
    }

    /// Forgets released claims whose time is over, and sessions that were closed before any fetch that may be
    /// answered now was sent.
    pub(super) fn forget_released(&self, now: Duration, longest_fetch: Duration) {
        let mut table = self.lock();
        table.released.forget_old(now);
        table.closed.retain(|_, at| at.saturating_add(longest_fetch) > now);
    }

    /// Notes that the store has no lease of a claim any more.
    pub(super) fn lease_is_gone(&self, claim: &SessionRef) {
        let mut table = self.lock();
        let tracked = table.tracked.get_mut(&claim.key);
        if let Some(tracked) = tracked.filter(|tracked| tracked.local.epoch == claim.epoch) {
            tracked.lease_is_gone = true;
        }
    }

    /// Forgets unproven sessions, once the store has answered a renewal; one whose detach procedure still
    /// runs is forgotten at its end, so that no other attachment begins before.
    pub(super) fn settle_unproven(&self, is_settled: impl Fn(&SessionRef) -> bool) {
        {
            let mut table = self.lock();
            let unproven = table.tracked.values_mut().filter(|tracked| {
                tracked.local.state == SessionState::Unproven && is_settled(&tracked.handle.reference())
            });
            let mut ended = Vec::new();
            for tracked in unproven {
                tracked.is_answered = true;
                if tracked.is_detached() {
                    ended.push(tracked.handle.key().clone());
                }
            }
            for key in &ended {
                table.on(key, SessionEvent::Settle);
            }
        }
        self.changed();
        self.ended();
    }

    /// Makes fetches exclude a session for a while, so that another worker takes it.
    pub(super) fn exclude(&self, key: &SessionKey, until: Duration) {
        {
            let mut table = self.lock();
            if table.excluded.len() < MAX_EXCLUDED {
                table.excluded.insert(key.clone(), until);
            }
        }
        self.changed();
    }

    /// Takes no more session work.
    pub(super) fn start_draining(&self) {
        self.lock().is_draining = true;
        self.changed();
    }

    /// Tells whether the process takes no more session work.
    pub(super) fn is_draining(&self) -> bool {
        self.lock().is_draining
    }

    /// Tells whether the process takes no more session work and tracks no session, not even one that is being
    /// detached.
    pub(super) fn has_drained(&self) -> bool {
        let table = self.lock();
        table.is_draining && table.tracked.is_empty()
    }

    /// Lists the claims of an instance's sessions that this process holds.
    pub(super) fn held_of(&self, instance: &str) -> Vec<SessionRef> {
        let table = self.lock();
        let of_instance =
            table.held().filter(|tracked| tracked.handle.key().instance.as_deref() == Some(instance));
        of_instance.map(|tracked| tracked.handle.reference()).collect()
    }

    /// Lists the claims that this process holds.
    pub(super) fn held(&self) -> Vec<SessionRef> {
        self.lock().held().map(|tracked| tracked.handle.reference()).collect()
    }

    /// Counts the sessions that this process holds.
    pub(crate) fn count(&self) -> usize {
        self.lock().held().count()
    }

    /// Tells the store whether this process will soon take work of sessions that it does not serve now.
    pub(super) fn appetite(&self) -> Appetite {
        let table = self.lock();
        if table.is_draining || table.in_flight.len() >= self.limit {
            Appetite::Full
        } else {
            Appetite::Hungry
        }
    }

    /// Returns when the first of the held sessions becomes unproven.
    pub(super) fn first_expiry(&self) -> Option<Duration> {
        self.lock().held().map(|tracked| tracked.local.proven_until).min()
    }

    /// Lists the held sessions without a running activity that are more than `max`, the least recently used
    /// first; all of them while the process drains.
    pub(super) fn excess(&self, max: Option<usize>) -> Vec<SessionRef> {
        let table = self.lock();
        let held: Vec<&TrackedSession> = table.held().collect();
        let excess = match max {
            _ if table.is_draining => held.len(),
            Some(max) => held.len().saturating_sub(max),
            None => 0,
        };
        let mut idle: Vec<&TrackedSession> =
            held.into_iter().filter(|tracked| !table.is_busy(tracked)).collect();
        idle.sort_by_key(|tracked| tracked.last_use.order);
        idle.into_iter().take(excess).map(|tracked| tracked.handle.reference()).collect()
    }

    /// Lists the held sessions that had no activity for `idle`, on a store without epochs: such a store does
    /// not report idle sessions.
    pub(super) fn idle_without_epoch(&self, idle: Duration, now: Duration) -> Vec<SessionRef> {
        let table = self.lock();
        let is_idle = |tracked: &&TrackedSession| {
            tracked.local.epoch == 0
                && tracked.last_use.at.saturating_add(idle) <= now
                && !table.is_busy(tracked)
        };
        table.held().filter(is_idle).map(|tracked| tracked.handle.reference()).collect()
    }

    /// Waits until no activity of a session runs here and no fetch may bring one.
    pub(super) async fn until_no_activity_runs(&self) {
        self.until(|table| table.in_flight.is_empty() && table.reserved == 0).await;
    }

    /// Waits until no session is held or being detached.
    pub(super) async fn until_all_detached(&self) {
        self.until(|table| {
            let mut tracked = table.tracked.values();
            tracked.all(|tracked| tracked.local.state == SessionState::Unproven && tracked.is_detached())
        })
        .await;
    }

    async fn until(&self, holds: impl Fn(&SessionTable) -> bool) {
        let mut endings = self.endings.look();
        while !holds(&self.lock()) {
            endings.risen().await;
        }
    }

    /// Makes waiting fetches check whether they have to ask for other sessions.
    pub(super) fn changed(&self) {
        self.changes.rise();
    }

    pub(super) fn ended(&self) {
        self.endings.rise();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionTable {
    /// Lets an event happen to a tracked session, and forgets the session when that releases it.
    fn on(&mut self, key: &SessionKey, event: SessionEvent) -> Vec<SessionEffect> {
        let Some(tracked) = self.tracked.get_mut(key) else { return Vec::new() };
        let (next, effects) = tracked.local.on(event);
        tracked.local = next;
        if next.state == SessionState::Released {
            self.tracked.remove(key);
        }
        effects
    }

    /// Lets an event happen to a tracked session, and returns the detachment that it leads to.
    fn detachment(&mut self, key: &SessionKey, event: SessionEvent) -> Option<Detachment> {
        let effects = self.on(key, event);
        self.tracked.get(key)?.detachment(&effects)
    }

    /// Claims a session for one more running activity. `None` if the activity must be abandoned.
    fn claim(
        &mut self,
        claim: &NewClaim,
        now: Duration,
        proven_until: Duration,
    ) -> Option<(Session, Option<Detachment>)> {
        let SessionRef { key, epoch } = &claim.of;
        if self.released.contains(&claim.of) {
            return None;
        }
        // A session of an instance is removed when it is closed, and a shared one when it is cleaned up.
        let is_reopened = claim.is_first && key.instance.is_some();
        self.released.forget(key);
        let known = self.tracked.get(key);
        let local = known.map_or(LocalSession::FREE, |known| known.local);
        let (local, effects) = local.on(SessionEvent::Claim { epoch: *epoch, proven_until, is_reopened });
        if !effects.contains(&SessionEffect::Serve) {
            return None;
        }
        let replaced = known.and_then(|known| known.detachment(&effects));
        let same = known.filter(|known| known.local.epoch == *epoch).map(|known| known.handle.clone());
        let former = known.map(|known| known.handle.detached());
        // An attachment has one line, whether its activities follow each other or overlap: an activity of a
        // later attachment waits for those that still run.
        let own = || same.as_ref().map(|handle| Arc::clone(handle.line())).unwrap_or_default();
        let in_flight =
            self.in_flight.entry(key.clone()).or_insert_with(|| InFlight { count: 0, line: own() });
        in_flight.count += 1;
        let line = Arc::clone(&in_flight.line);
        let lease_is_gone = known.is_some_and(|known| known.local.epoch == *epoch && known.lease_is_gone);
        let handle = same.unwrap_or_else(|| Session::new(key.clone(), *epoch, former, line));
        let tracked = TrackedSession {
            local,
            handle: handle.clone(),
            last_use: self.next_use(now),
            lease_is_gone,
            is_answered: false,
        };
        self.tracked.insert(key.clone(), tracked);
        Some((handle, replaced))
    }

    fn next_use(&mut self, at: Duration) -> LastUse {
        self.uses += 1;
        LastUse { order: self.uses, at }
    }

    /// Finds a session by its handle. `None` if the handle is of an older claim: that may have the same key,
    /// and on a store without epochs the same epoch.
    fn current(&self, session: &Session) -> Option<&TrackedSession> {
        self.tracked.get(session.key()).filter(|tracked| tracked.handle.is_same_as(session))
    }

    fn holds_claim(&self, claim: &SessionRef) -> bool {
        self.tracked.get(&claim.key).is_some_and(|tracked| tracked.local.epoch == claim.epoch)
    }

    fn held(&self) -> impl Iterator<Item = &TrackedSession> {
        self.tracked.values().filter(|tracked| tracked.local.is_held())
    }

    fn is_busy(&self, tracked: &TrackedSession) -> bool {
        self.in_flight.contains_key(tracked.handle.key())
    }

    /// Lists the sessions that a fetch must not bring: those that are being detached or are unproven, and
    /// those that were excluded for a while.
    pub(super) fn all_excluded(&self) -> impl Iterator<Item = &SessionKey> {
        let detached = self.tracked.iter().filter(|(_, tracked)| !tracked.local.is_held());
        let unconfirmed = self.released.unconfirmed().filter(|key| !self.tracked.contains_key(*key));
        detached.map(|(key, _)| key).chain(self.excluded.keys()).chain(unconfirmed)
    }
}

impl TrackedSession {
    fn detachment(&self, effects: &[SessionEffect]) -> Option<Detachment> {
        effects.iter().find_map(|effect| match effect {
            SessionEffect::Detach { cause, was_attached } => Some(Detachment {
                session: self.handle.clone(),
                cause: *cause,
                was_attached: *was_attached,
                used_at: self.last_use.at,
            }),
            SessionEffect::Serve
            | SessionEffect::Abandon
            | SessionEffect::CallOnAttach
            | SessionEffect::Release => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn claim(sessions: &Arc<LocalSessions>, epoch: u64, now: Duration) -> Option<OnSession> {
        let ask = sessions.ask(LEASE, now);
        let of = SessionRef { key: SessionKey::shared("chat"), epoch };
        let claim = NewClaim { of, is_first: false };
        sessions.claim(claim, ask, now, now + LEASE).map(|(on_session, _)| on_session)
    }

    /// Claims a session, lets its activity end, and detaches it.
    fn claim_and_release(sessions: &Arc<LocalSessions>, epoch: u64, now: Duration) {
        let on_session = claim(sessions, epoch, now).expect("is served");
        let reference = on_session.session.reference();
        drop(on_session);
        let detachment = sessions.detach(&reference, DetachCause::Idle).expect("is held");
        sessions.detached(&detachment.session, now, now + LEASE, true);
    }

    fn sessions() -> Arc<LocalSessions> {
        Arc::new(LocalSessions::new(Some(Owner::unnamed("A")), 10))
    }

    #[test]
    fn g10_a_released_claim_is_not_entered_again() {
        let sessions = sessions();
        claim_and_release(&sessions, 5, Duration::ZERO);
        let later = LEASE / 2;
        assert!(claim(&sessions, 5, later).is_none(), "the answer was under way");
        assert!(claim(&sessions, 4, later).is_none(), "so was this one");
        assert!(claim(&sessions, 6, later).is_some(), "a new claim is served");
    }

    #[test]
    fn g10_a_claim_whose_release_is_not_confirmed_is_excluded_and_released_again() {
        let sessions = sessions();
        let on_session = claim(&sessions, 5, Duration::ZERO).expect("is served");
        let reference = on_session.session.reference();
        drop(on_session);
        let detachment = sessions.detach(&reference, DetachCause::Idle).expect("is held");
        sessions.detached(&detachment.session, Duration::ZERO, LEASE, false);
        let much_later = 10 * LEASE;
        sessions.forget_released(much_later, LEASE);
        assert!(claim(&sessions, 5, much_later).is_none(), "its lease may live on");
        let excluded = |sessions: &Arc<LocalSessions>| {
            sessions.ask(LEASE, much_later).request.expect("is registered").leave_out.len()
        };
        assert_eq!(excluded(&sessions), 1);
        assert!(sessions.has_detached(&reference) && sessions.renewed(&reference, much_later + LEASE));
        sessions.confirm_unnamed(std::slice::from_ref(&reference), much_later, much_later + LEASE);
        assert_eq!(excluded(&sessions), 1, "the store has it");
        sessions.confirm_unnamed(&[], much_later, much_later + LEASE);
        assert_eq!(excluded(&sessions), 0);
        assert!(claim(&sessions, 5, much_later).is_none(), "an answer may be under way");
        assert!(claim(&sessions, 6, much_later).is_some());
    }

    #[test]
    fn without_epochs_a_session_is_claimed_again_at_once() {
        let sessions = sessions();
        claim_and_release(&sessions, 0, Duration::ZERO);
        assert!(claim(&sessions, 0, Duration::ZERO).is_some());
    }

    #[test]
    fn g1_without_a_number_of_its_start_a_process_asks_for_no_session_work() {
        let sessions = Arc::new(LocalSessions::new(None, 10));
        assert!(sessions.ask(LEASE, Duration::ZERO).request.is_none());
        sessions.registered(Owner { id: "A".to_owned(), incarnation: Some(2) });
        let request = sessions.ask(LEASE, Duration::ZERO).request.expect("is registered");
        assert_eq!(request.owner.incarnation, Some(2));
    }
}
