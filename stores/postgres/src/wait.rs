//! Waiting: for a commit that concerns the caller, for the next moment at which something becomes runnable by itself, or for the
//! end of the caller's patience.

use std::future::Future;
use std::time::Duration;

use steadfast_store::{Interest, ProviderError, Waiter};

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
    /// In so long.
    In(Duration),
    /// At once: what is there was held by others at that moment.
    Soon,
}

impl Next {
    /// At a time of the store, which is `now`.
    pub(crate) fn at(next: Option<i64>, now: i64) -> Self {
        let wait = |at: i64| u64::try_from(at.saturating_sub(now)).unwrap_or(0);
        next.map_or(Self::Unknown, |at| Self::In(Duration::from_millis(wait(at))))
    }
}

/// Waits so long when all that was found was held by others; they hold it for one transaction.
const SOON: Duration = Duration::from_millis(2);

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
            waiter.look();
            match look().await? {
                Look::Found(found) => return Ok(Some(found)),
                Look::Nothing(Next::Soon) if held < MAX_SOON => {
                    held += 1;
                    tokio::time::sleep(SOON).await;
                }
                Look::Nothing(next) => {
                    if !self.rest(&waiter, next, deadline).await {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Waits until a look may find something. False when the time is over.
    pub(crate) async fn rest(&self, waiter: &Waiter, next: Next, deadline: Duration) -> bool {
        let now = self.clock.monotonic();
        if now >= deadline {
            return false;
        }
        if next == Next::Soon {
            // In real time, because it is others who must end what they do.
            tokio::time::sleep(SOON).await;
            return true;
        }
        let wait = match next {
            Next::In(wait) => wait.min(self.poll_interval),
            Next::Unknown | Next::Soon => self.poll_interval,
        };
        let due = now.saturating_add(wait).min(deadline);
        tokio::select! {
            () = waiter.called() => {}
            () = self.clock.sleep_until(due) => {}
        }
        true
    }
}
