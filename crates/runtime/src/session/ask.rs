//! What a fetch may ask for, so that nothing is fetched only to be given back.

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::{Clock, Sleep};
use steadfast_core::SessionKey;
use steadfast_store::{SessionRequest, SessionScope};
use tokio::sync::watch;

use super::{Sessions, State};

/// What a fetch may ask for, and the room that it has reserved for a session that it might claim.
pub(crate) struct Asking {
    pub(crate) request: Option<SessionRequest>,
    /// When a session need no longer be left out.
    expires: Option<Duration>,
    sessions: Arc<Sessions>,
    pub(super) reservation: Option<Reservation>,
    changes: watch::Receiver<u64>,
}

impl Asking {
    /// Waits until another request would be made: the one that is parked is then dropped and made anew.
    pub(crate) async fn is_outdated(&mut self, clock: &dyn Clock) {
        let expires = self
            .expires
            .map_or_else(|| -> Sleep { Box::pin(std::future::pending()) }, |at| clock.sleep_until(at));
        tokio::select! {
            () = expires => {}
            () = self.is_overtaken() => {}
        }
    }

    async fn is_overtaken(&mut self) {
        loop {
            if self.changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let Some(request) = &self.request else { continue };
            let state = self.sessions.lock();
            if state.is_closed || !state.leaves_out().eq(&request.leave_out) {
                return;
            }
            // A request that may claim takes anything that another could; and while one of the others may, this one need not.
            if let SessionScope::Only(serving) = &request.scope {
                let must_claim = state.reserved == 0 && state.has_room(self.sessions.limit);
                if must_claim || !state.in_flight.keys().eq(serving) {
                    return;
                }
            }
        }
    }
}

impl Sessions {
    /// What a fetch may ask for: a claim while there is room for one more session, else only the sessions that are
    /// served already.
    pub(crate) fn ask(self: &Arc<Self>, lock_timeout: Duration, now: Duration) -> Asking {
        let changes = self.changes.subscribe();
        let mut state = self.lock();
        if self.limit == 0 || state.is_closed {
            drop(state);
            let sessions = Arc::clone(self);
            return Asking { request: None, expires: None, sessions, reservation: None, changes };
        }
        state.left_out.retain(|_, until| *until > now);
        let room = state.has_room(self.limit);
        let scope = if room {
            state.reserved += 1;
            SessionScope::Claim
        } else {
            SessionScope::Only(state.in_flight.keys().cloned().collect())
        };
        let reservation = room.then(|| Reservation { sessions: Arc::clone(self) });
        let leave_out = state.leaves_out().cloned().collect();
        let request = SessionRequest { owner: self.owner.clone(), lock_timeout, scope, leave_out };
        let expires = state.left_out.values().min().copied();
        Asking { request: Some(request), expires, sessions: Arc::clone(self), reservation, changes }
    }

    /// Tells parked fetches that room came or went; far from the limit, and while one of them may claim, they all stay as they are.
    pub(super) fn room_changed(&self) {
        let near = {
            let state = self.lock();
            state.reserved == 0 || state.in_flight.len() + state.reserved + 1 >= self.limit
        };
        if near {
            self.changed();
        }
    }
}

impl State {
    fn has_room(&self, limit: usize) -> bool {
        self.in_flight.len() + self.reserved < limit
    }

    /// Names the sessions that no fetch may bring: those being detached, and those left to others.
    fn leaves_out(&self) -> impl Iterator<Item = &SessionKey> {
        let leaving = self.attached.iter().filter(|(_, entry)| entry.is_leaving()).map(|(key, _)| key);
        leaving.chain(self.left_out.keys())
    }
}

/// Room for one session that a fetch might claim.
pub(super) struct Reservation {
    sessions: Arc<Sessions>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        {
            let mut state = self.sessions.lock();
            state.reserved = state.reserved.saturating_sub(1);
        }
        self.sessions.room_changed();
        self.sessions.ended();
    }
}

/// One activity of a session, while it runs.
pub(crate) struct Served {
    pub(super) sessions: Arc<Sessions>,
    pub(super) key: SessionKey,
}

impl Drop for Served {
    fn drop(&mut self) {
        let mut state = self.sessions.lock();
        let Some(count) = state.in_flight.get_mut(&self.key) else { return };
        *count -= 1;
        if *count == 0 {
            state.in_flight.remove(&self.key);
            drop(state);
            self.sessions.room_changed();
            self.sessions.ended();
        }
    }
}
