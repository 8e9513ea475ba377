//! Waiting: for a commit that concerns the caller, for the next moment at which something becomes runnable by itself, or for the
//! end of the caller's patience.

use std::future::Future;
use std::time::Duration;

use steadfast_store::{InstanceWait, Interest, ProviderError, Waited, Waiter};

use crate::store::PostgresProvider;

/// What one look found.
#[derive(Debug)]
pub(crate) enum Look<L> {
    /// This.
    Found(L),
    /// Nothing, and when to look again.
    Nothing(Next),
}

/// When a look may find something that the last one did not, although nobody commits anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// At no time that is known.
    Unknown,
    /// At a time of the store, which was `now` when it looked.
    At { at: i64, now: i64 },
    /// At once: what is there was held by others at that moment.
    Soon,
}

impl Next {
    /// At a time of the store, which is `now`.
    pub(crate) fn at(next: Option<i64>, now: i64) -> Self {
        next.map_or(Self::Unknown, |at| Self::At { at, now })
    }
}

/// Waits so long when all that was found was held by others; they hold it for one transaction.
const SOON: Duration = Duration::from_millis(2);

/// Waits so long when they hold it for longer: a transaction of an application, perhaps.
const HELD: Duration = Duration::from_millis(100);

/// Bounds how often one who is out of patience looks again for what others held: "nothing" should mean that there is nothing.
const MAX_SOON: usize = 25;

impl PostgresProvider {
    /// Looks until there is something, or the time is over.
    pub(crate) async fn until<L, F, Fut>(
        &self,
        timeout: Duration,
        interest: Interest,
        mut look: F,
    ) -> Result<Option<L>, ProviderError>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<Look<L>, ProviderError>>,
    {
        let deadline = self.clock.monotonic().saturating_add(timeout);
        let waiter = self.waiters.sit(interest);
        let mut held = 0;
        loop {
            let looking = waiter.look();
            let looked = look().await?;
            looking.answered();
            match looked {
                Look::Found(found) => return Ok(Some(found)),
                Look::Nothing(Next::Soon) if held < MAX_SOON => {
                    held += 1;
                    soon().await;
                }
                Look::Nothing(next) => {
                    if !self.rest(&waiter, next, deadline).await {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Looks at an instance, one indexed row, until the wait is over, or the time is.
    pub(crate) async fn watch(
        &self,
        mut wait: InstanceWait<'_>,
        timeout: Duration,
    ) -> Result<Waited, ProviderError> {
        let deadline = self.clock.monotonic().saturating_add(timeout);
        let waiter = self.waiters.sit(wait.interest());
        loop {
            let looking = waiter.look();
            let seen = self.db.state(wait.instance()).await?;
            looking.answered();
            if let Some(over) = wait.saw(seen) {
                return Ok(over);
            }
            if !self.rest(&waiter, Next::Unknown, deadline).await {
                return Ok(Waited::TimedOut);
            }
        }
    }

    /// Waits until a look may find something. False when the time is over.
    pub(crate) async fn rest(&self, waiter: &Waiter, next: Next, deadline: Duration) -> bool {
        let now = self.clock.monotonic();
        if now >= deadline {
            return false;
        }
        let wait = match next {
            Next::At { at, now } => {
                // A clock that tests gave may have moved on since the look; the database's has not, by much.
                let wait = at.saturating_sub(self.db.now().unwrap_or(now));
                Duration::from_millis(u64::try_from(wait).unwrap_or(0)).min(self.poll_interval)
            }
            Next::Soon => HELD.min(self.poll_interval),
            Next::Unknown => self.poll_interval,
        };
        let due = now.saturating_add(wait).min(deadline);
        tokio::select! {
            () = waiter.called() => {}
            () = self.clock.sleep_until(due) => {}
        }
        true
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it is others who must end what they do, and no told clock moves them"
)]
async fn soon() {
    tokio::time::sleep(SOON).await;
}
