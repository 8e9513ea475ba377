//! Polling: a fetch or a wait looks again when a commit wakes it, when something becomes runnable by time,
//! and from time to time.

use std::future::Future;
use std::time::Duration;

use steadfast_store::{InstanceWait, Interest, ProviderError, Waited, Waiter, WorkerId};

use tokio::sync::watch;

use crate::provider::PostgresProvider;

/// What one poll found.
#[derive(Debug)]
pub(crate) enum PollResult<L> {
    Found(L),
    /// Nothing was found; says when to poll again.
    Nothing(NextPoll),
}

/// When the next poll may find something, even if no transaction commits until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextPoll {
    /// No moment is known: wait for a commit, or for the poll interval.
    Unknown,
    /// At a moment of the store's time, which was `now` at the poll.
    At { at: i64, now: i64 },
    /// Soon: other transactions have locked the ready rows.
    Soon,
}

impl NextPoll {
    /// Says when to poll again after a poll at the store's time `now`. `again` means that other transactions
    /// have locked ready rows, `next` is the next moment at which a row becomes ready by time alone.
    pub(crate) fn after(again: bool, next: Option<i64>, now: i64) -> Self {
        if again {
            return Self::Soon;
        }
        next.map_or(Self::Unknown, |at| Self::At { at, now })
    }
}

/// How long to wait if other transactions locked all that was found: a transaction of a store is short.
const SOON: Duration = Duration::from_millis(2);

/// How long to wait if they hold their locks for longer, as a transaction of an application may.
const LOCKED: Duration = Duration::from_millis(100);

/// Bounds how often a poll that found only locked rows is repeated after [`SOON`], so that "nothing" usually
/// means that nothing is ready.
const MAX_SOON: usize = 25;

/// The next moments at which something becomes runnable by time, for all waiting fetches of the process. The
/// one that has learned a moment may be given other work before it comes (G21).
#[derive(Debug)]
pub(crate) struct NextMoments {
    turns: watch::Sender<Duration>,
    work: watch::Sender<Duration>,
}

impl NextMoments {
    pub(crate) fn new() -> Self {
        Self { turns: watch::Sender::new(Duration::MAX), work: watch::Sender::new(Duration::MAX) }
    }

    /// Returns the moment that concerns a waiter, in monotonic time; `None` for one that waits for an
    /// instance.
    fn of(&self, interest: &Interest) -> Option<&watch::Sender<Duration>> {
        match interest {
            Interest::Turn => Some(&self.turns),
            Interest::Work { .. } => Some(&self.work),
            _ => None,
        }
    }
}

/// Notes a moment for all waiters, unless an earlier one is known that has not passed.
fn note(moment: &watch::Sender<Duration>, due: Duration, now: Duration) {
    moment.send_if_modified(|known| {
        let is_news = *known <= now || due < *known;
        if is_news {
            *known = due;
        }
        is_news
    });
}

impl PostgresProvider {
    /// Calls `look` for a worker until it finds a result, or until the timeout has passed; then returns
    /// `None`.
    pub(crate) async fn poll<L, F, Fut>(
        &self,
        timeout: Duration,
        interest: Interest,
        worker: Option<&WorkerId>,
        mut look: F,
    ) -> Result<Option<L>, ProviderError>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<PollResult<L>, ProviderError>>,
    {
        let deadline = self.clock.monotonic().saturating_add(timeout);
        let moment = self.moments.of(&interest);
        let waiter = self.backend.waiters.sit_as(interest, worker.cloned());
        let mut locked = 0;
        loop {
            let looking = waiter.look();
            let looked = look().await?;
            looking.answered();
            match looked {
                PollResult::Found(found) => return Ok(Some(found)),
                PollResult::Nothing(NextPoll::Soon) if locked < MAX_SOON => {
                    locked += 1;
                    soon().await;
                }
                PollResult::Nothing(next) => {
                    if !self.rest(&waiter, next, deadline, moment).await {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Reads the state of an instance, one indexed row, until the wait is satisfied, or until the timeout has
    /// passed.
    pub(crate) async fn watch(
        &self,
        mut wait: InstanceWait<'_>,
        timeout: Duration,
    ) -> Result<Waited, ProviderError> {
        let deadline = self.clock.monotonic().saturating_add(timeout);
        let waiter = self.backend.waiters.sit(wait.interest());
        loop {
            let looking = waiter.look();
            let seen = self.backend.db.state(wait.instance()).await?;
            looking.answered();
            if let Some(waited) = wait.saw(seen) {
                return Ok(waited);
            }
            if !self.rest(&waiter, NextPoll::Unknown, deadline, None).await {
                return Ok(Waited::TimedOut);
            }
        }
    }

    /// Waits until the next poll may find something. Returns false if the deadline has passed. `moment` is
    /// the next moment that any waiter of the same kind has learned.
    async fn rest(
        &self,
        waiter: &Waiter,
        next: NextPoll,
        deadline: Duration,
        moment: Option<&watch::Sender<Duration>>,
    ) -> bool {
        let now = self.clock.monotonic();
        if now >= deadline {
            return false;
        }
        let wait = match next {
            NextPoll::At { at, now } => {
                // The clock of a test may have moved on since the poll. The database's clock has moved on a
                // little.
                let wait = at.saturating_sub(self.backend.db.now().unwrap_or(now));
                Duration::from_millis(u64::try_from(wait).unwrap_or(0)).min(self.poll_interval)
            }
            NextPoll::Soon => LOCKED.min(self.poll_interval),
            NextPoll::Unknown => self.poll_interval,
        };
        let due = now.saturating_add(wait).min(deadline);
        let mut learned = moment.map(|moment| {
            let learned = moment.subscribe();
            if matches!(next, NextPoll::At { .. }) {
                note(moment, now.saturating_add(wait), now);
            }
            learned
        });
        loop {
            let known = learned.as_mut().map_or(Duration::MAX, |learned| *learned.borrow_and_update());
            // A moment that has passed was answered by a poll, of this waiter or of another one.
            let due = if known > now { due.min(known) } else { due };
            tokio::select! {
                biased;
                () = waiter.called() => return true,
                () = self.clock.sleep_until(due) => return true,
                () = changed(learned.as_mut()) => {}
            }
        }
    }
}

/// Waits until another waiter learns a moment.
async fn changed(learned: Option<&mut watch::Receiver<Duration>>) {
    if let Some(learned) = learned
        && learned.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

#[expect(clippy::disallowed_methods, reason = "other transactions must end, and no test clock moves them")]
async fn soon() {
    tokio::time::sleep(SOON).await;
}
