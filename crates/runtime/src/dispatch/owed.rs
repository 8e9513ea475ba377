//! Deliveries that must not count, although their leases ended without an outcome (G38).
//!
//! Poison counts the deliveries during which a process died. A holder that outlives its lease (the process
//! was paused, or the store was away) takes its delivery off the count with [`Store::excuse`]; a holder that
//! gives its lease back uncounted and does not reach the store tries again. Both are owed to the store, and
//! wait in one queue until the store answers or the runtime ends.
//!
//! The queue is sent before each fetch, so that a process does not lease again what it still owes for, and by
//! a task of its own, because all slots may be busy.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_store::{Abandon, Attempt, LeaseToken, ProviderError, ProviderErrorKind};
use tokio::sync::Notify;

use super::backoff::Backoff;
use super::lease::RETRY;
use super::until_abandon_deadline;
use crate::runtime::RuntimeShared;

/// Bounds the queue. A process owes at most one entry for each lease that it lost, so this many are owed only
/// if the store takes no excuse for a very long time; then further deliveries count.
const MAX_OWED: usize = 10_000;

/// How long a fetch waits until the queue is sent. A store that hangs on it must not keep the slots.
const PATIENCE: Duration = Duration::from_secs(1);

/// The queue of what this process owes the store.
#[derive(Debug, Default)]
pub(crate) struct OwedToStore {
    queue: Mutex<VecDeque<Owed>>,
    /// Held by the task that sends.
    sending: tokio::sync::Mutex<LastSent>,
    added: Notify,
}

/// One lease that ended without an outcome, and the call that is owed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owed {
    token: LeaseToken,
    call: OwedCall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwedCall {
    /// Abandon the lease uncounted: it may live on.
    Abandon { retry_after: Option<Duration> },
    /// Take the delivery off the count: the lease has expired.
    Excuse,
}

/// When the queue could not be sent for the last time, by the monotonic clock.
#[derive(Debug, Default)]
struct LastSent {
    failed_at: Option<Duration>,
}

/// What became of one entry.
enum OwedAnswer {
    Settled,
    /// Another call is owed for the lease now.
    Next(OwedCall),
    /// The store could not be reached.
    Later,
}

impl OwedToStore {
    fn add(&self, token: &LeaseToken, call: OwedCall) {
        let mut queue = self.lock();
        if queue.len() >= MAX_OWED {
            tracing::warn!(
                target: "steadfast::runtime",
                MAX_OWED,
                "too many deliveries wait to be excused; one counts although its process lives"
            );
            return;
        }
        queue.push_back(Owed { token: token.clone(), call });
        drop(queue);
        self.added.notify_one();
    }

    fn first(&self) -> Option<Owed> {
        self.lock().front().cloned()
    }

    /// Notes what became of the first entry. Only the task that sends takes entries out.
    fn settle(&self, sent: &OwedAnswer) {
        let mut queue = self.lock();
        match sent {
            OwedAnswer::Settled => drop(queue.pop_front()),
            OwedAnswer::Next(call) => {
                if let Some(first) = queue.front_mut() {
                    first.call = *call;
                }
            }
            OwedAnswer::Later => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Owed>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RuntimeShared {
    /// Gives a lease back uncounted: the turn or the work can be leased again, after `retry_after` if that is
    /// given. If the store cannot be reached this is owed.
    pub(crate) async fn abandon_uncounted(&self, token: &LeaseToken, retry_after: Option<Duration>) {
        let call = OwedCall::Abandon { retry_after };
        match self.send(&Owed { token: token.clone(), call }).await {
            OwedAnswer::Settled => {}
            OwedAnswer::Next(call) => self.owed.add(token, call),
            OwedAnswer::Later => self.owed.add(token, call),
        }
    }

    /// Takes the delivery of a lease off the count that has expired while its holder lived.
    pub(crate) fn excuse(&self, token: &LeaseToken) {
        self.owed.add(token, OwedCall::Excuse);
    }

    /// Sends what is owed before a fetch. Returns when the queue is empty, or the store does not answer, or
    /// after [`PATIENCE`].
    pub(crate) async fn send_owed_before_fetch(&self) {
        if self.owed.first().is_none() {
            return;
        }
        tokio::select! {
            biased;
            () = self.send_owed() => {}
            () = self.plan.clock.sleep(PATIENCE) => {}
        }
    }

    /// Sends the queue until it is empty or the store does not answer. After a failure the store is left
    /// alone for [`RETRY`], however many slots ask.
    async fn send_owed(&self) {
        let clock = &self.plan.clock;
        let mut last = self.owed.sending.lock().await;
        if last.failed_at.is_some_and(|failed| clock.monotonic() < failed.saturating_add(RETRY)) {
            return;
        }
        last.failed_at = None;
        while let Some(owed) = self.owed.first() {
            let sent = self.send(&owed).await;
            self.owed.settle(&sent);
            if matches!(sent, OwedAnswer::Later) {
                last.failed_at = Some(clock.monotonic());
                return;
            }
        }
    }

    async fn send(&self, owed: &Owed) -> OwedAnswer {
        let answer = match owed.call {
            OwedCall::Abandon { retry_after } => {
                let how = Abandon { retry_after, attempt: Attempt::Uncounted };
                self.store.abandon(&owed.token, how).await
            }
            OwedCall::Excuse => self.store.excuse(&owed.token).await.map(|excused| {
                tracing::debug!(target: "steadfast::runtime", excused, "a delivery that outlived its lease");
            }),
        };
        let Err(error) = answer else { return OwedAnswer::Settled };
        tracing::debug!(target: "steadfast::runtime", %error, call = ?owed.call, "not taken off the count");
        match owed.call {
            // Work that was withdrawn has no count any more.
            _ if error.kind == ProviderErrorKind::Withdrawn => OwedAnswer::Settled,
            OwedCall::Abandon { .. } if error.is_lease_lost() => OwedAnswer::Next(OwedCall::Excuse),
            _ if is_worth_another_try(&error) => OwedAnswer::Later,
            OwedCall::Abandon { .. } | OwedCall::Excuse => OwedAnswer::Settled,
        }
    }
}

fn is_worth_another_try(error: &ProviderError) -> bool {
    match error.kind {
        ProviderErrorKind::Busy
        | ProviderErrorKind::Unavailable
        | ProviderErrorKind::Full
        | ProviderErrorKind::NotFound
        | ProviderErrorKind::Refused => true,
        ProviderErrorKind::LeaseLost
        | ProviderErrorKind::Withdrawn
        | ProviderErrorKind::Conflict
        | ProviderErrorKind::Corrupt
        | ProviderErrorKind::Invalid
        | ProviderErrorKind::Unsupported
        | ProviderErrorKind::Other => false,
    }
}

/// Sends what is owed as soon as the store takes it. When the runtime stops, waits until the slots have ended
/// and sends once more.
pub(crate) async fn send_owed(shared: Arc<RuntimeShared>) {
    let mut backoff = Backoff::new(shared.seed);
    loop {
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => break,
            () = shared.owed.added.notified() => {}
        }
        while shared.owed.first().is_some() && !shared.stop.is_cancelled() {
            shared.send_owed().await;
            if shared.owed.first().is_none() {
                backoff.reset();
                break;
            }
            super::until_stopped(&shared.stop, shared.plan.clock.sleep(backoff.next())).await;
        }
    }
    shared.slots.wait().await;
    tokio::select! {
        biased;
        () = shared.send_owed() => {}
        () = until_abandon_deadline(&shared) => {}
    }
}
