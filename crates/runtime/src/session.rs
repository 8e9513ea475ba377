//! Sessions of this process: who it is, how many it serves, and keeping their leases.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use steadfast_core::SessionKey;
use steadfast_store::{Appetite, Owner, RenewSessions, SessionRequest, SessionScope};

use tokio::sync::watch;

use crate::dispatch::until_stopped;
use crate::keeper::RETRY;
use crate::runtime::Shared;

/// The sessions that have an activity running here, and how many more may.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) owner: Owner,
    limit: usize,
    state: Mutex<State>,
    /// Rises when what a fetch may take changes.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    in_flight: BTreeMap<SessionKey, usize>,
    /// Fetches that may claim one more session each.
    reserved: usize,
}

/// What a fetch may ask for, and the room that it has reserved for a session that it might claim.
pub(crate) struct Asking {
    pub(crate) request: Option<SessionRequest>,
    sessions: Arc<Sessions>,
    reservation: Option<Reservation>,
    changes: watch::Receiver<u64>,
}

impl Asking {
    /// Waits until another request would be made: the one that is parked is then dropped and made anew. A request that
    /// may claim takes anything that another could, and stays.
    pub(crate) async fn is_outdated(&mut self) {
        loop {
            if self.changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            if let Some(SessionRequest { scope: SessionScope::Only(serving), .. }) = &self.request {
                let state = self.sessions.lock();
                if state.in_flight.len() + state.reserved < self.sessions.limit
                    || !state.in_flight.keys().eq(serving)
                {
                    return;
                }
            }
        }
    }
}

impl Sessions {
    pub(crate) fn new(owner: Owner, limit: usize) -> Self {
        Self { owner, limit, state: Mutex::default(), changes: watch::Sender::new(0) }
    }

    /// What a fetch may ask for: a claim while there is room for one more session, else only the sessions that are
    /// served already. So no activity is fetched only to be given back.
    pub(crate) fn ask(self: &Arc<Self>, lock_timeout: Duration) -> Asking {
        let changes = self.changes.subscribe();
        if self.limit == 0 {
            return Asking { request: None, sessions: Arc::clone(self), reservation: None, changes };
        }
        let mut state = self.lock();
        let room = state.in_flight.len() + state.reserved < self.limit;
        let scope = if room {
            state.reserved += 1;
            SessionScope::Claim
        } else {
            SessionScope::Only(state.in_flight.keys().cloned().collect())
        };
        let reservation = room.then(|| Reservation { sessions: Arc::clone(self) });
        let request =
            SessionRequest { owner: self.owner.clone(), lock_timeout, scope, leave_out: Vec::new() };
        Asking { request: Some(request), sessions: Arc::clone(self), reservation, changes }
    }

    /// Enters an activity of a session. None when that would be one session too many, which only a store that cannot
    /// be told of the limit gives.
    pub(crate) fn enter(self: &Arc<Self>, key: SessionKey, asking: Asking) -> Option<Served> {
        let mut state = self.lock();
        let claimed = usize::from(asking.reservation.is_some());
        let others = state.in_flight.len() + state.reserved.saturating_sub(claimed);
        if !state.in_flight.contains_key(&key) && others >= self.limit {
            return None;
        }
        *state.in_flight.entry(key.clone()).or_insert(0) += 1;
        drop(state);
        self.changed();
        drop(asking);
        Some(Served { sessions: Arc::clone(self), key })
    }

    /// Tells parked fetches that they may ask for something else now; far from the limit they all ask alike.
    fn changed(&self) {
        let near = {
            let state = self.lock();
            state.in_flight.len() + state.reserved + 1 >= self.limit
        };
        if near {
            self.changes.send_modify(|change| *change = change.wrapping_add(1));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for one session that a fetch might claim.
struct Reservation {
    sessions: Arc<Sessions>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        {
            let mut state = self.sessions.lock();
            state.reserved = state.reserved.saturating_sub(1);
        }
        self.sessions.changed();
    }
}

/// One activity of a session, while it runs.
pub(crate) struct Served {
    sessions: Arc<Sessions>,
    key: SessionKey,
}

impl Drop for Served {
    fn drop(&mut self) {
        let mut state = self.sessions.lock();
        if let Some(count) = state.in_flight.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                state.in_flight.remove(&self.key);
                drop(state);
                self.sessions.changed();
            }
        }
    }
}

/// Renews the leases of this process's sessions, and now and then removes what ended, until the runtime stops.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let plan = &shared.plan;
    let mut clean_at = plan.clock.monotonic().saturating_add(plan.session_cleanup);
    let mut wait = plan.session_lease.renew_every;
    while !shared.stop.is_cancelled() {
        until_stopped(&shared.stop, plan.clock.sleep(wait)).await;
        if shared.stop.is_cancelled() {
            return;
        }
        let request = RenewSessions {
            owner: shared.sessions.owner.clone(),
            extend_for: plan.session_lease.lasts,
            idle_timeout: plan.session_idle,
            untaken_after: plan.session_lease.lasts.saturating_mul(2),
            tags: plan.tags.clone(),
            appetite: Appetite::Hungry,
            held: Vec::new(),
        };
        let renewed = tokio::select! {
            biased;
            // A store that hangs must not keep the process.
            () = shared.stop.cancelled() => return,
            renewed = shared.store.renew_sessions(request) => renewed,
        };
        wait = plan.session_lease.renew_every;
        match renewed {
            Ok(renewed) => {
                tracing::debug!(target: "steadfast::runtime", renewed = renewed.renewed.len(), idle = renewed.idle.len(), "sessions renewed");
            }
            Err(error) => {
                tracing::warn!(target: "steadfast::runtime", %error, "sessions could not be renewed; trying again");
                // Soon, because every lease ends at its own time (F7).
                wait = wait.min(RETRY);
            }
        }
        if plan.clock.monotonic() >= clean_at {
            clean_at = plan.clock.monotonic().saturating_add(plan.session_cleanup);
            let cleaned = tokio::select! {
                biased;
                () = shared.stop.cancelled() => return,
                cleaned = shared.store.cleanup_sessions() => cleaned,
            };
            if let Err(error) = cleaned {
                tracing::warn!(target: "steadfast::runtime", %error, "ended sessions could not be cleaned up; trying again later");
            }
        }
    }
}
