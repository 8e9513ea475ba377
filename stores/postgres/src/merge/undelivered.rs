//! Leases that nobody came to take: a fetch that is dropped before it returned leaves no lease and counts no attempt.
//!
//! Such a lease is given back before the next fetch of this process looks for something, and at once if nobody fetches.

use std::sync::{Arc, Mutex, PoisonError};

use steadfast_store::{ProviderError, Waiters, Woken};

use crate::link::db::Db;
use crate::verbs::notify::payload;
use crate::verbs::work::Unlease;

/// Names a lease that is to be given back.
#[derive(Debug)]
pub(crate) enum Lease {
    Turn(String),
    Work(Unlease),
}

/// Holds what is to be given back.
#[derive(Debug)]
pub(crate) struct GivingBack {
    db: Db,
    waiters: Arc<Waiters>,
    me: Arc<str>,
    pending: Mutex<Vec<Lease>>,
    /// One at a time gives back, so that who waits for it knows that all is given back.
    turn: tokio::sync::Mutex<()>,
}

impl GivingBack {
    pub(crate) fn new(db: Db, waiters: Arc<Waiters>, me: Arc<str>) -> Arc<Self> {
        Arc::new(Self { db, waiters, me, pending: Mutex::default(), turn: tokio::sync::Mutex::default() })
    }

    fn add(self: &Arc<Self>, lease: Lease) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push(lease);
        // Without a runtime nobody can give it back, and it ends by itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let this = Arc::clone(self);
            runtime.spawn(async move { this.settle().await });
        }
    }

    /// Gives back what is to be given back.
    pub(crate) async fn settle(&self) {
        let _turn = self.turn.lock().await;
        let pending = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        if pending.is_empty() {
            return;
        }
        let (mut turns, mut work) = (Vec::new(), Vec::new());
        for lease in pending {
            match lease {
                Lease::Turn(token) => turns.push(token),
                Lease::Work(lease) => work.push(lease),
            }
        }
        if !turns.is_empty() {
            let woken = Woken { turns: turns.len(), ..Woken::default() };
            let given = self.db.untake_turns(turns.clone(), payload(&self.me, &woken), &self.me).await;
            self.tell(given.map(|()| woken), turns.into_iter().map(Lease::Turn));
        }
        if !work.is_empty() {
            let given = self.db.unlease_work(&self.me, &work).await;
            self.tell(given, work.into_iter().map(Lease::Work));
        }
    }

    /// Wakes those who may take what was given back. What could not be given back now is for the next fetch.
    fn tell(&self, given: Result<Woken, ProviderError>, leases: impl Iterator<Item = Lease>) {
        match given {
            Ok(woken) => self.waiters.wake(&woken),
            Err(error) => {
                tracing::debug!(target: "steadfast::store", %error, "a lease could not be given back yet");
                if error.is_retryable() {
                    self.pending.lock().unwrap_or_else(PoisonError::into_inner).extend(leases);
                }
            }
        }
    }
}

/// Holds something leased. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Taken<L> {
    leased: L,
    receipt: Receipt,
}

impl<L> Taken<L> {
    pub(crate) fn new(leased: L, lease: Lease, giving_back: &Arc<GivingBack>) -> Self {
        let receipt = Receipt { lease: Some(lease), giving_back: Arc::clone(giving_back) };
        Self { leased, receipt }
    }

    /// Hands out what was leased, and what gives it back unless it is kept.
    pub(crate) fn open(self) -> (L, Receipt) {
        (self.leased, self.receipt)
    }
}

/// Gives a lease back when it is dropped without having been kept.
#[derive(Debug)]
pub(crate) struct Receipt {
    lease: Option<Lease>,
    giving_back: Arc<GivingBack>,
}

impl Receipt {
    /// The caller has the lease: it is theirs.
    pub(crate) fn keep(mut self) {
        self.lease = None;
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.giving_back.add(lease);
        }
    }
}
