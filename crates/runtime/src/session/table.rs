//! Which sessions are attached here: entering, proving, and leaving.

use std::sync::Arc;
use std::time::Duration;

use steadfast_core::SessionKey;
use steadfast_store::{Appetite, Claim, ClaimedSession, SessionRef, WorkLease};

use super::{Asking, Served, Session, Sessions};
use crate::runtime::Shared;

/// Bounds how many sessions fetches are told to leave out because of missing handlers: each request carries the list.
const MAX_LEFT_OUT: usize = 1_000;

/// A session that is attached here, or was a moment ago.
#[derive(Debug)]
pub(super) struct Entry {
    session: Session,
    /// Until when the process may believe that it holds the session, by the monotonic clock: a little less than the lease.
    deadline: Duration,
    /// Orders the uses of sessions.
    used: u64,
    used_at: Duration,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Held,
    /// The detach procedure runs.
    Detaching,
    /// The lease could not be proven in time. It may live on in the store, which the next renewal tells.
    Unproven,
}

impl Entry {
    pub(super) fn is_leaving(&self) -> bool {
        self.phase != Phase::Held
    }

    fn is(&self, attachment: &SessionRef) -> bool {
        self.session.epoch() == attachment.epoch
    }
}

/// How the activity of a session came in.
pub(crate) struct Arrival {
    pub(crate) served: Served,
    pub(crate) session: Session,
    /// The attachment that this one takes the place of: it was lost.
    pub(crate) replaced: Option<Session>,
}

/// Tells who reads the log how a session came to be attached here. A store without epochs does not say.
pub(crate) fn tell_arrival(shared: &Shared, lease: &WorkLease) {
    let Some(ClaimedSession { key, epoch, claim }) = &lease.session else {
        return shared.metrics().set_attached_sessions(shared.sessions.count());
    };
    let (session_id, epoch, owner) = (key.session_id.as_str(), *epoch, shared.sessions.owner.id.as_str());
    let from = match claim {
        Claim::Held => return,
        Claim::New => None,
        Claim::Taken { from } => Some(from.as_str()),
    };
    let is_reclaim = from == Some(owner);
    tracing::info!(target: "steadfast::runtime", session_id, owner, epoch, from, is_new_claim = from.is_none(), is_reclaim, "session claimed");
    shared.metrics().record_session_claim();
    if let Some(since) = lease.waiting_since_ms {
        let waited = Duration::from_millis(lease.now_ms.saturating_sub(since));
        shared.metrics().record_session_claim_wait(waited.as_secs_f64());
    }
    if let Some(from) = from.filter(|_| !is_reclaim) {
        tracing::info!(target: "steadfast::runtime", session_id, owner, epoch, from, "session migrated");
        shared.metrics().record_session_migration();
    }
    shared.metrics().set_attached_sessions(shared.sessions.count());
}

impl Sessions {
    /// Enters an activity of a session, and its attachment. None when it must be given back: the session is being
    /// detached, or would be one too many, which only a store that cannot be told of such things gives.
    pub(crate) fn enter(
        self: &Arc<Self>,
        attachment: SessionRef,
        asking: Asking,
        now: Duration,
        deadline: Duration,
    ) -> Option<Arrival> {
        let SessionRef { key, epoch } = attachment;
        let mut guard = self.lock();
        let state = &mut *guard;
        let claimed = usize::from(asking.reservation.is_some());
        let others = state.in_flight.len() + state.reserved.saturating_sub(claimed);
        if !state.in_flight.contains_key(&key) && others >= self.limit {
            return None;
        }
        let known = state.attached.get(&key);
        if known.is_some_and(|entry| {
            entry.session.epoch() > epoch || (entry.session.epoch() == epoch && entry.is_leaving())
        }) {
            return None;
        }
        let same = known.filter(|entry| entry.session.epoch() == epoch).map(|entry| entry.session.clone());
        let session = same.unwrap_or_else(|| Session::new(key.clone(), epoch));
        state.uses += 1;
        let entry =
            Entry { session: session.clone(), deadline, used: state.uses, used_at: now, phase: Phase::Held };
        let before = state.attached.insert(key.clone(), entry);
        // One that is leaving has its procedure already.
        let replaced = before.filter(|before| !before.is_leaving() && !before.session.is_same_as(&session));
        let replaced = replaced.map(|before| before.session);
        *state.in_flight.entry(key.clone()).or_insert(0) += 1;
        drop(guard);
        if let Some(replaced) = &replaced {
            replaced.end();
        }
        self.room_changed();
        drop(asking);
        let served = Served { sessions: Arc::clone(self), key };
        Some(Arrival { served, session, replaced })
    }

    /// Notes that an activity of a session has ended.
    pub(crate) fn used(&self, session: &Session, now: Duration) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(entry) = state.attached.get_mut(session.key())
            && entry.session.is_same_as(session)
        {
            state.uses += 1;
            (entry.used, entry.used_at) = (state.uses, now);
        }
    }

    /// Tells whether the process can prove that it holds this attachment.
    pub(crate) fn holds(&self, session: &Session, now: Duration) -> bool {
        let state = self.lock();
        state.attached.get(session.key()).is_some_and(|entry| {
            entry.session.is_same_as(session) && entry.phase == Phase::Held && entry.deadline > now
        })
    }

    /// Names what the process holds.
    pub(super) fn held(&self) -> Vec<SessionRef> {
        let state = self.lock();
        let held = state.attached.values().filter(|entry| entry.phase == Phase::Held);
        held.map(|entry| entry.session.reference()).collect()
    }

    pub(super) fn count(&self) -> usize {
        self.lock().attached.values().filter(|entry| entry.phase == Phase::Held).count()
    }

    /// Waits until nothing is attached here. What was given up need not be waited for.
    pub(super) async fn are_gone(&self) {
        self.until(|state| state.attached.values().all(|entry| entry.phase == Phase::Unproven)).await;
    }

    /// Will the process soon take work of sessions that it does not serve now?
    pub(super) fn appetite(&self) -> Appetite {
        let state = self.lock();
        if state.is_closed || state.in_flight.len() >= self.limit { Appetite::Full } else { Appetite::Hungry }
    }

    /// Says when the first attachment can no longer be proven.
    pub(super) fn first_deadline(&self) -> Option<Duration> {
        let state = self.lock();
        state.attached.values().filter(|entry| entry.phase == Phase::Held).map(|entry| entry.deadline).min()
    }

    /// Notes that the store has extended a lease.
    pub(super) fn proven(&self, attachment: &SessionRef, deadline: Duration) {
        if let Some(entry) = self.lock().attached.get_mut(&attachment.key)
            && entry.is(attachment)
        {
            entry.deadline = entry.deadline.max(deadline);
        }
    }

    /// Begins to detach one attachment, if it is held. One that is busy stays when it may.
    pub(super) fn leave(&self, attachment: &SessionRef, busy: Busy) -> Option<(Session, Duration)> {
        let left = {
            let mut guard = self.lock();
            let state = &mut *guard;
            let entry = state.attached.get_mut(&attachment.key)?;
            let stays = busy == Busy::Stays && state.in_flight.contains_key(&attachment.key);
            if stays || entry.is_leaving() || !entry.is(attachment) {
                return None;
            }
            entry.phase = Phase::Detaching;
            (entry.session.clone(), entry.used_at)
        };
        left.0.end();
        self.changed();
        Some(left)
    }

    /// Gives up the attachments that can no longer be proven.
    pub(super) fn give_up_unproven(&self, now: Duration) -> Vec<Session> {
        let given_up: Vec<Session> = {
            let mut state = self.lock();
            let unproven = state
                .attached
                .values_mut()
                .filter(|entry| entry.phase == Phase::Held && entry.deadline <= now);
            let given_up = unproven.map(|entry| {
                entry.phase = Phase::Unproven;
                entry.session.clone()
            });
            given_up.collect()
        };
        for session in &given_up {
            session.end();
        }
        if !given_up.is_empty() {
            self.changed();
        }
        given_up
    }

    /// Names the attachments that were given up.
    pub(super) fn unproven(&self) -> Vec<SessionRef> {
        let state = self.lock();
        let unproven = state.attached.values().filter(|entry| entry.phase == Phase::Unproven);
        unproven.map(|entry| entry.session.reference()).collect()
    }

    /// Forgets the attachments that were given up, once the store has answered.
    pub(super) fn settle_unproven(&self) {
        self.lock().attached.retain(|_, entry| entry.phase != Phase::Unproven);
        self.changed();
        self.ended();
    }

    /// Forgets an attachment whose procedure has ended.
    pub(super) fn left(&self, session: &Session) {
        {
            let mut state = self.lock();
            let is_it = |entry: &Entry| entry.session.is_same_as(session) && entry.phase == Phase::Detaching;
            if state.attached.get(session.key()).is_some_and(is_it) {
                state.attached.remove(session.key());
            }
        }
        self.changed();
        self.ended();
    }

    /// Leaves a session to others for a while.
    pub(super) fn leave_out(&self, key: &SessionKey, until: Duration) {
        {
            let mut state = self.lock();
            if state.left_out.len() < MAX_LEFT_OUT {
                state.left_out.insert(key.clone(), until);
            }
        }
        self.changed();
    }

    /// Names the held sessions that no activity uses and that are more than may be attached, the least recently used
    /// first; all of them when the process takes no more.
    pub(super) fn too_many(&self, max: Option<usize>) -> Vec<SessionRef> {
        let state = self.lock();
        let held: Vec<&Entry> = state.attached.values().filter(|entry| entry.phase == Phase::Held).collect();
        let excess = match max {
            _ if state.is_closed => held.len(),
            Some(max) => held.len().saturating_sub(max),
            None => 0,
        };
        let mut free: Vec<&Entry> =
            held.into_iter().filter(|entry| !state.in_flight.contains_key(entry.session.key())).collect();
        free.sort_by_key(|entry| entry.used);
        free.into_iter().take(excess).map(|entry| entry.session.reference()).collect()
    }

    /// Names the held sessions of stores without epochs that have not been used for so long.
    pub(super) fn idle_without_epoch(&self, idle: Duration, now: Duration) -> Vec<SessionRef> {
        let state = self.lock();
        let idle = state.attached.values().filter(|entry| {
            entry.session.epoch() == 0
                && entry.phase == Phase::Held
                && entry.used_at.saturating_add(idle) <= now
                && !state.in_flight.contains_key(entry.session.key())
        });
        idle.map(|entry| entry.session.reference()).collect()
    }

    /// Tells whether the process takes no more session work and has nothing attached, not even on its way out.
    pub(super) fn are_handed_on(&self) -> bool {
        let state = self.lock();
        state.is_closed && state.attached.is_empty()
    }

    pub(super) fn is_draining(&self) -> bool {
        self.lock().is_closed
    }
}

/// Says what becomes of a session with a running activity that is to be detached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Busy {
    Stays,
    Goes,
}
