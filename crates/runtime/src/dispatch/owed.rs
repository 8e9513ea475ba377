//! Deliveries that must not count, although their leases ended without an outcome (G38).
//!
//! Poison counts the deliveries that a process died of, or whose code kept the lease from being renewed
//! (`dispatch/held.rs` decides that). A holder that outlives its lease for another reason (the process was
//! paused, the store was away, or other code held the threads) takes its delivery off the count with
//! [`Store::excuse`]; a holder that gives its lease back uncounted and does not reach the store tries again.
//! Both are owed to the store, and wait in one queue until the store answers or the runtime ends.
//!
//! The queue is sent before each fetch, so that a process does not lease again what it still owes for, and by
//! a task of its own, because all slots may be busy. A fetch that waits already may still be faster:
//! [`RuntimeShared::abandons_miscounted`] finds such a lease.
//!
//! A call that is not answered, or whose answer is an error, may have had its effect all the same. So an
//! excuse that is sent again, and takes nothing off then, counts as one that was taken.
//!
//! [`Store::excuse`]: steadfast_store::Store::excuse

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_store::{Abandon, Attempt, LeaseToken, ProviderError, ProviderErrorKind};
use tokio::sync::Notify;

use super::backoff::Backoff;
use super::held::{LeasedRow, Loss, Told};
use super::lease::RETRY;
use super::until_abandon_deadline;
use crate::runtime::RuntimeShared;

/// Bounds the queue. A process owes at most one entry for each lease that it lost, so this many are owed only
/// if the store takes no excuse for a very long time; then further deliveries count.
const MAX_OWED: usize = 10_000;

/// How long a slot waits until the queue is sent, or until a lease is given back. A store that hangs on it
/// must not keep the slots.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the answer to one call of the queue is waited for. While a call is under way no other is sent,
/// and every fetch waits for [`PATIENCE`].
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// After so many failures in a row the store is taken for away, and left alone for [`RETRY`]. More than one,
/// because the trouble may be that of one entry.
const FAILURES_IN_A_ROW: usize = 3;

/// The queue of what this process owes the store.
#[derive(Debug, Default)]
pub(crate) struct OwedToStore {
    queue: Mutex<VecDeque<Owed>>,
    /// Held by the task that sends.
    sending: tokio::sync::Mutex<LastSent>,
    added: Notify,
    /// How many deliveries the store has taken off the count.
    excused: AtomicU64,
}

/// One lease that ended without an outcome, and the call that is owed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owed {
    token: LeaseToken,
    /// What the lease was of, while that is known.
    row: Option<LeasedRow>,
    call: OwedCall,
    sent: SentBefore,
    /// A lease of the same row was given back because of this entry.
    has_delayed: bool,
}

/// Whether the call that is owed was sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentBefore {
    No,
    /// It is under way, or was given up before its answer came.
    Unanswered,
    /// The last answer was an error.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwedCall {
    /// Abandon the lease uncounted: it may live on. If it was lost meanwhile, its delivery may count.
    Abandon { retry_after: Option<Duration>, if_lost: Loss },
    /// Take the delivery off the count: the lease has expired.
    Excuse,
}

/// When the queue could not be sent for the last time, by the monotonic clock.
#[derive(Debug, Default)]
struct LastSent {
    failed_at: Option<Duration>,
}

/// What became of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwedAnswer {
    Settled,
    /// Another call is owed for the lease now.
    Next(OwedCall),
    /// The store could not be reached.
    Later,
}

/// When a queue is sent whose store failed a moment ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterFailure {
    /// The store is left alone for [`RETRY`], however many slots ask.
    Wait,
    /// The store has answered since, or there is no later because the runtime ends.
    TryAgain,
}

/// A lease as it was fetched, with its count.
pub(crate) struct CountedLease<'a> {
    pub(crate) token: &'a LeaseToken,
    pub(crate) row: &'a LeasedRow,
    pub(crate) deliveries: u32,
    /// [`OwedToStore::excused`] when the lease was asked for.
    pub(crate) excused: u64,
}

impl OwedToStore {
    /// Counts the deliveries that the store has taken off the count so far.
    pub(crate) fn excused(&self) -> u64 {
        self.excused.load(Ordering::Acquire)
    }

    fn add(&self, owed: Owed) {
        let mut queue = self.lock();
        if queue.len() >= MAX_OWED {
            tracing::warn!(
                target: "steadfast::runtime",
                MAX_OWED,
                "too many deliveries wait to be excused; one counts although its process lives"
            );
            return;
        }
        queue.push_back(owed);
        drop(queue);
        self.added.notify_one();
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Returns the first entry as it was, and notes that its call is under way.
    fn begin_first(&self) -> Option<Owed> {
        let mut queue = self.lock();
        let first = queue.front_mut()?;
        let before = first.clone();
        first.sent = SentBefore::Unanswered;
        Some(before)
    }

    fn len(&self) -> usize {
        self.lock().len()
    }

    fn owes_for(&self, row: &LeasedRow) -> bool {
        self.lock().iter().any(|owed| owed.is_for(row))
    }

    /// Tells whether a call for a row has not been answered, once for each entry: the call may have had its
    /// effect.
    fn doubts(&self, row: &LeasedRow) -> bool {
        let mut queue = self.lock();
        let mut unanswered =
            queue.iter_mut().filter(|owed| owed.is_for(row) && owed.sent == SentBefore::Unanswered);
        unanswered.any(|owed| !std::mem::replace(&mut owed.has_delayed, true))
    }

    /// Notes what became of the first entry. Only the task that sends takes entries out. An entry that failed
    /// goes behind the others: its trouble may be its own.
    fn settle(&self, sent: OwedAnswer) {
        let mut queue = self.lock();
        let Some(mut first) = queue.pop_front() else { return };
        match sent {
            OwedAnswer::Settled => {}
            OwedAnswer::Next(call) => {
                (first.call, first.sent) = (call, SentBefore::No);
                queue.push_front(first);
            }
            OwedAnswer::Later => {
                first.sent = SentBefore::Failed;
                queue.push_back(first);
            }
        }
    }

    /// Puts the first entry behind the others: its call was not answered.
    fn pass_over_first(&self) {
        let mut queue = self.lock();
        if let Some(first) = queue.pop_front() {
            queue.push_back(first);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Owed>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owed {
    fn new(token: &LeaseToken, row: Option<LeasedRow>, call: OwedCall) -> Self {
        Self { token: token.clone(), row, call, sent: SentBefore::No, has_delayed: false }
    }

    fn is_for(&self, row: &LeasedRow) -> bool {
        self.row.as_ref() == Some(row)
    }
}

impl RuntimeShared {
    /// Gives a lease back uncounted: the turn or the work can be leased again, after `retry_after` if that is
    /// given. If the store cannot be reached this is owed. A lease that is charged counts all the same.
    pub(crate) async fn abandon_uncounted(&self, token: &LeaseToken, retry_after: Option<Duration>) {
        if self.held.is_charged(token) {
            return self.abandon(token, retry_after).await;
        }
        let mut owed = self.owed_abandon(token, retry_after);
        let sent = tokio::select! {
            biased;
            sent = self.send(&owed) => sent,
            () = self.plan.clock.sleep(PATIENCE) => OwedAnswer::Later,
        };
        match sent {
            OwedAnswer::Settled => {}
            OwedAnswer::Next(OwedCall::Excuse) => self.lose(token),
            OwedAnswer::Next(call @ OwedCall::Abandon { .. }) => {
                owed.call = call;
                self.owed.add(owed);
            }
            OwedAnswer::Later => self.owed.add(owed),
        }
    }

    /// Gives a lease back uncounted, without waiting for the store: another call hangs or failed there.
    pub(crate) fn owe_abandon(&self, token: &LeaseToken) {
        self.owed.add(self.owed_abandon(token, None));
    }

    fn owed_abandon(&self, token: &LeaseToken, retry_after: Option<Duration>) -> Owed {
        let call = OwedCall::Abandon { retry_after, if_lost: self.held.if_lost(token) };
        Owed::new(token, self.held.row(token), call)
    }

    /// Notes that a lease has expired while its holder lived. Its delivery is taken off the count, unless the
    /// code of this process kept the lease from being renewed.
    pub(crate) fn lose(&self, token: &LeaseToken) {
        if self.held.lose(token) == Loss::Counts {
            return;
        }
        let row = match self.held.tell(token) {
            Told::First(row) => Some(row),
            Told::Unknown => None,
            Told::Before => return,
        };
        self.owed.add(Owed::new(token, row, OwedCall::Excuse));
    }

    /// Abandons a lease, uncounted, if its count includes a delivery that this process takes off: a fetch
    /// that waits is given expired work before the excuse for it is there. The next fetch is told the right
    /// count. Returns whether it was abandoned.
    ///
    /// A first delivery costs nothing here.
    pub(crate) async fn abandons_miscounted(&self, lease: CountedLease<'_>) -> bool {
        if lease.deliveries <= 1 {
            return false;
        }
        for earlier in self.held.earlier_on(lease.row, lease.token) {
            self.lose(&earlier);
        }
        if self.owed.owes_for(lease.row) {
            // The store has just answered a fetch.
            self.send_owed_patiently(AfterFailure::TryAgain).await;
        }
        let retry_after = if self.owed.excused() != lease.excused {
            None
        } else if self.owed.doubts(lease.row) {
            // The store may have taken the excuse. The next fetch is told.
            Some(RETRY)
        } else if lease.deliveries > self.plan.max_attempts && self.owed.owes_for(lease.row) {
            // The store takes no excuse now. Work that is no poison goes on meanwhile; this would be.
            Some(RETRY)
        } else {
            return false;
        };
        self.abandon_uncounted(lease.token, retry_after).await;
        true
    }

    /// Sends what is owed before a fetch. Returns when the queue is empty, or the store does not answer, or
    /// after [`PATIENCE`].
    pub(crate) async fn send_owed_before_fetch(&self) {
        if !self.owed.is_empty() {
            self.send_owed_patiently(AfterFailure::Wait).await;
        }
    }

    async fn send_owed_patiently(&self, after_failure: AfterFailure) {
        tokio::select! {
            biased;
            () = self.send_owed(after_failure) => {}
            () = self.plan.clock.sleep(PATIENCE) => {}
        }
    }

    /// Sends each entry of the queue at most once, until the queue is empty or the store does not answer.
    async fn send_owed(&self, after_failure: AfterFailure) {
        let clock = &self.plan.clock;
        let mut last = self.owed.sending.lock().await;
        let waits = last.failed_at.is_some_and(|failed| clock.monotonic() < failed.saturating_add(RETRY));
        if waits && after_failure == AfterFailure::Wait {
            return;
        }
        last.failed_at = None;
        let (mut left, mut failures) = (self.owed.len(), 0);
        while left > 0
            && failures < FAILURES_IN_A_ROW
            && let Some(owed) = self.owed.begin_first()
        {
            let sent = tokio::select! {
                biased;
                sent = self.send(&owed) => {
                    self.owed.settle(sent);
                    sent
                }
                () = clock.sleep(ANSWER_PATIENCE) => {
                    self.owed.pass_over_first();
                    OwedAnswer::Later
                }
            };
            match sent {
                OwedAnswer::Settled => (left, failures) = (left - 1, 0),
                OwedAnswer::Next(_) => failures = 0,
                OwedAnswer::Later => {
                    last.failed_at = Some(clock.monotonic());
                    (left, failures) = (left - 1, failures + 1);
                }
            }
        }
    }

    async fn send(&self, owed: &Owed) -> OwedAnswer {
        let answer = match owed.call {
            OwedCall::Abandon { retry_after, .. } => {
                let how = Abandon { retry_after, attempt: Attempt::Uncounted };
                self.store.abandon(&owed.token, how).await
            }
            OwedCall::Excuse => self.store.excuse(&owed.token).await.map(|excused| {
                tracing::debug!(target: "steadfast::runtime", excused, "a delivery that outlived its lease");
                let is_taken = excused || owed.sent != SentBefore::No;
                self.owed.excused.fetch_add(u64::from(is_taken), Ordering::Release);
            }),
        };
        let Err(error) = answer else { return OwedAnswer::Settled };
        tracing::debug!(target: "steadfast::runtime", %error, call = ?owed.call, "not taken off the count");
        match owed.call {
            // Work that was withdrawn has no count any more.
            _ if error.kind == ProviderErrorKind::Withdrawn => OwedAnswer::Settled,
            OwedCall::Abandon { if_lost: Loss::Excused, .. } if error.is_lease_lost() => {
                OwedAnswer::Next(OwedCall::Excuse)
            }
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
        while !shared.owed.is_empty() && !shared.stop.is_cancelled() {
            shared.send_owed(AfterFailure::Wait).await;
            if shared.owed.is_empty() {
                backoff.reset();
                break;
            }
            super::until_stopped(&shared.stop, shared.plan.clock.sleep(backoff.next())).await;
        }
    }
    shared.slots.wait().await;
    tokio::select! {
        biased;
        () = shared.send_owed(AfterFailure::TryAgain) => {}
        () = until_abandon_deadline(&shared) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owing(texts: &[&str]) -> OwedToStore {
        let owed = OwedToStore::default();
        for text in texts {
            owed.add(Owed::new(&LeaseToken::Work((*text).to_owned()), None, OwedCall::Excuse));
        }
        owed
    }

    fn order(owed: &OwedToStore) -> Vec<String> {
        owed.lock().iter().map(|owed| owed.token.as_str().to_owned()).collect()
    }

    #[test]
    fn an_entry_that_fails_goes_behind_the_others() {
        let owed = owing(&["a", "b", "c"]);
        owed.settle(OwedAnswer::Later);
        assert_eq!(order(&owed), ["b", "c", "a"]);
        owed.settle(OwedAnswer::Settled);
        owed.settle(OwedAnswer::Settled);
        assert_eq!(order(&owed), ["a"]);
    }

    #[test]
    fn an_entry_that_has_a_next_call_stays_the_first() {
        let owed = owing(&["a", "b"]);
        let next = OwedCall::Abandon { retry_after: None, if_lost: Loss::Counts };
        owed.settle(OwedAnswer::Next(next));
        assert_eq!(
            (order(&owed), owed.begin_first().map(|first| first.call)),
            (vec!["a".to_owned(), "b".to_owned()], Some(next))
        );
    }
}
