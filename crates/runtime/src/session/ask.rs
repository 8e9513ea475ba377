//! What a fetch may ask for, so that no work is fetched only to be abandoned.
//!
//! A fetch either may claim one more session, for which it holds a [`Reservation`], or asks only for work of
//! the sessions that have an activity running here. Both exclude the sessions that are being detached.

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::Sleep;
use steadfast_core::SessionKey;
use steadfast_store::{SessionRequest, SessionScope};

use super::rises::SeenRises;
use super::table::{LocalSessions, SessionTable};
use crate::plan::Plan;

/// What one fetch asks the store for, and the capacity that it has reserved for a session that it may claim.
pub(crate) struct SessionAsk {
    /// `None` asks for no work of sessions.
    pub(crate) request: Option<SessionRequest>,
    /// When the first of the excluded sessions may be asked for again.
    expires: Option<Duration>,
    sessions: Arc<LocalSessions>,
    pub(super) reservation: Option<Reservation>,
    changes: SeenRises,
    /// When the fetch was sent, by the time of sessions (`Plan::session_now`): a lease that it brings lasts
    /// at least from then on.
    pub(super) sent: Duration,
}

impl SessionAsk {
    /// Waits until the fetch should ask for other sessions than this request does. The caller then drops the
    /// waiting fetch and asks anew.
    pub(crate) async fn is_outdated(&mut self, plan: &Plan) {
        let expires = self
            .expires
            .map_or_else(|| -> Sleep { Box::pin(std::future::pending()) }, |at| plan.sleep_until_session(at));
        tokio::select! {
            biased;
            () = expires => {}
            () = self.is_overtaken() => {}
        }
    }

    async fn is_overtaken(&mut self) {
        loop {
            self.changes.risen().await;
            let table = self.sessions.lock();
            let Some(request) = &self.request else {
                // The node may have been registered meanwhile.
                if self.sessions.owner().is_some() && !table.is_draining && self.sessions.limit > 0 {
                    return;
                }
                continue;
            };
            if table.is_draining || !table.all_excluded().eq(&request.leave_out) {
                return;
            }
            // A request that may claim a session already asks for as much as a request can. A request that
            // may not claim is made anew when no other fetch may claim and there is capacity, or when the set
            // of sessions with a running activity has changed.
            if let SessionScope::Only(serving) = &request.scope {
                let must_claim = table.reserved == 0 && table.has_capacity(self.sessions.limit);
                if must_claim || !table.in_flight.keys().eq(serving) {
                    return;
                }
            }
        }
    }
}

impl LocalSessions {
    /// Returns what a fetch may ask for: a claim while there is capacity for one more session, else only work
    /// of the sessions that have an activity running here. Nothing of sessions until the node is registered.
    pub(crate) fn ask(self: &Arc<Self>, lock_timeout: Duration, now: Duration) -> SessionAsk {
        let changes = self.changes.look();
        let mut table = self.lock();
        let owner = self.owner().filter(|_| self.limit > 0 && !table.is_draining);
        let Some(owner) = owner else {
            drop(table);
            let sessions = Arc::clone(self);
            return SessionAsk {
                request: None,
                expires: None,
                sessions,
                reservation: None,
                changes,
                sent: now,
            };
        };
        table.excluded.retain(|_, until| *until > now);
        let may_claim = table.has_capacity(self.limit);
        let scope = if may_claim {
            table.reserved += 1;
            SessionScope::Claim
        } else {
            SessionScope::Only(table.in_flight.keys().cloned().collect())
        };
        let reservation = may_claim.then(|| Reservation { sessions: Arc::clone(self) });
        let leave_out = table.all_excluded().cloned().collect();
        let request = SessionRequest { owner: owner.clone(), lock_timeout, scope, leave_out };
        let expires = table.excluded.values().min().copied();
        let sessions = Arc::clone(self);
        SessionAsk { request: Some(request), expires, sessions, reservation, changes, sent: now }
    }

    /// Lets waiting fetches ask anew, because capacity was taken or returned. Does nothing while a fetch may
    /// claim and the limit is far: no request would change.
    pub(super) fn capacity_changed(&self) {
        let near = {
            let table = self.lock();
            table.reserved == 0 || table.in_flight.len() + table.reserved + 1 >= self.limit
        };
        if near {
            self.changed();
        }
    }
}

impl SessionTable {
    fn has_capacity(&self, limit: usize) -> bool {
        self.in_flight.len() + self.reserved < limit
    }
}

/// Capacity for one session that a fetch may claim, returned on drop.
pub(super) struct Reservation {
    sessions: Arc<LocalSessions>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        {
            let mut table = self.sessions.lock();
            table.reserved = table.reserved.saturating_sub(1);
        }
        self.sessions.capacity_changed();
        self.sessions.ended();
    }
}

/// Counts one activity of a session as running, until it is dropped.
pub(super) struct ActivityInFlight {
    pub(super) sessions: Arc<LocalSessions>,
    pub(super) key: SessionKey,
}

impl Drop for ActivityInFlight {
    fn drop(&mut self) {
        let mut table = self.sessions.lock();
        let Some(in_flight) = table.in_flight.get_mut(&self.key) else { return };
        in_flight.count -= 1;
        if in_flight.count == 0 {
            table.in_flight.remove(&self.key);
            drop(table);
            self.sessions.capacity_changed();
            self.sessions.ended();
        }
    }
}
