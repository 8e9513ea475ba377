//! Leases that were never delivered: a fetch that is dropped before it returned leaves no lease and counts no
//! attempt.
//!
//! Such a lease is abandoned before the next fetch of this process looks for work, and at once if no fetch
//! runs.

use std::sync::{Arc, Mutex, PoisonError};

use steadfast_store::{ProviderError, Waiters, Woken, WorkLease};

use crate::link::db::Db;
use crate::verbs::notify::payload;

/// The leases of this process that are to be abandoned.
#[derive(Debug)]
pub(crate) struct Undelivered {
    db: Db,
    waiters: Arc<Waiters>,
    me: Arc<str>,
    pending: Mutex<Vec<UndeliveredLease>>,
    /// Held while leases are abandoned, so that a fetch that waits for it knows that all are abandoned.
    turn: tokio::sync::Mutex<()>,
}

/// A lease that is to be abandoned.
#[derive(Debug)]
pub(crate) enum UndeliveredLease {
    /// The token of a turn.
    Turn(String),
    Work(UndeliveredWork),
}

/// The lease of a piece of work.
#[derive(Debug)]
pub(crate) struct UndeliveredWork {
    pub(crate) token: String,
    /// Whether the fetch claimed the session of the work: then the claim is undone too.
    pub(crate) claimed: bool,
}

impl UndeliveredWork {
    pub(crate) fn of(lease: &WorkLease) -> Self {
        let claimed = crate::verbs::work::made_a_claim(lease.session.as_ref());
        Self { token: lease.token.as_str().to_owned(), claimed }
    }
}

impl Undelivered {
    pub(crate) fn new(db: Db, waiters: Arc<Waiters>, me: Arc<str>) -> Arc<Self> {
        Arc::new(Self { db, waiters, me, pending: Mutex::default(), turn: tokio::sync::Mutex::default() })
    }

    fn add(self: &Arc<Self>, lease: UndeliveredLease) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push(lease);
        // Without a runtime the lease cannot be abandoned; it expires by itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let this = Arc::clone(self);
            runtime.spawn(async move { this.abandon_all().await });
        }
    }

    /// Abandons all leases that were never delivered.
    pub(crate) async fn abandon_all(&self) {
        let _turn = self.turn.lock().await;
        let pending = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        if pending.is_empty() {
            return;
        }
        let (mut turns, mut work) = (Vec::new(), Vec::new());
        for lease in pending {
            match lease {
                UndeliveredLease::Turn(token) => turns.push(token),
                UndeliveredLease::Work(lease) => work.push(lease),
            }
        }
        if !turns.is_empty() {
            let woken = Woken { turns: turns.len(), ..Woken::default() };
            let notify = payload(&self.me, &woken);
            let abandoned = self.db.abandon_undelivered_turns(&turns, notify, &self.me).await;
            self.settle(abandoned, woken, turns.into_iter().map(UndeliveredLease::Turn));
        }
        if !work.is_empty() {
            let woken = Woken { any_work: true, ..Woken::default() };
            let notify = payload(&self.me, &woken);
            let abandoned = self.db.abandon_undelivered_work(&work, notify, &self.me).await;
            self.settle(abandoned, woken, work.into_iter().map(UndeliveredLease::Work));
        }
    }

    /// Wakes the waiters that may lease the abandoned turns or work. Leases that could not be abandoned
    /// because of a passing error are tried again by the next fetch; others expire.
    fn settle(
        &self,
        abandoned: Result<(), ProviderError>,
        woken: Woken,
        leases: impl Iterator<Item = UndeliveredLease>,
    ) {
        match abandoned {
            Ok(()) => self.waiters.wake(&woken),
            Err(error) => {
                tracing::debug!(target: "steadfast::store", %error, "a lease could not be given back yet");
                if error.is_retryable() {
                    self.pending.lock().unwrap_or_else(PoisonError::into_inner).extend(leases);
                }
            }
        }
    }
}

/// A leased turn or piece of work. Its lease is abandoned when this is dropped.
#[derive(Debug)]
pub(crate) struct Guarded<L> {
    leased: L,
    guard: AbandonOnDrop,
}

impl<L> Guarded<L> {
    pub(crate) fn new(leased: L, lease: UndeliveredLease, undelivered: &Arc<Undelivered>) -> Self {
        let guard = AbandonOnDrop { lease: Some(lease), undelivered: Arc::clone(undelivered) };
        Self { leased, guard }
    }

    /// Separates the leased turn or work from the guard of its lease.
    pub(crate) fn into_parts(self) -> (L, AbandonOnDrop) {
        (self.leased, self.guard)
    }
}

/// Abandons a lease when it is dropped, unless the lease was delivered.
#[derive(Debug)]
pub(crate) struct AbandonOnDrop {
    lease: Option<UndeliveredLease>,
    undelivered: Arc<Undelivered>,
}

impl AbandonOnDrop {
    /// Notes that the caller has the lease.
    pub(crate) fn delivered(mut self) {
        self.lease = None;
    }
}

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.undelivered.add(lease);
        }
    }
}
