//! Waiting: for a commit that concerns the caller, for the next moment at which something becomes runnable by
//! itself, or for the end of the caller's patience.

use std::time::Duration;

use steadfast_store::{InstanceWait, Interest, ProviderError, Store, Waited, Waiter};

use crate::db::{Db, sql};
use crate::error::Done;
use crate::store::SqliteProvider;
use crate::turn::Fetched;
use crate::writer::{Taken, Undo};

/// Is there something to fetch, and when will there be something by itself?
type Look = fn(&Db<'_>) -> Done<(bool, Option<i64>)>;

impl SqliteProvider {
    /// Fetches until there is something, or the time is over.
    pub(crate) async fn until<L, F, Fut>(
        &self,
        timeout: Duration,
        interest: Interest,
        mut fetch: F,
    ) -> Result<Option<Taken<Fetched<L>>>, ProviderError>
    where
        L: Undo,
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<Taken<Fetched<L>>, ProviderError>>,
    {
        let deadline = self.clock.clock().monotonic().saturating_add(timeout);
        let waiter = self.waiters.sit(interest);
        loop {
            let looking = waiter.look();
            let fetched = fetch().await?;
            looking.answered();
            let next = match fetched.get() {
                Some(Fetched { lease: None, next }) => *next,
                _ => return Ok(Some(fetched)),
            };
            drop(fetched);
            if !self.rest(&waiter, next, deadline).await {
                return Ok(None);
            }
        }
    }

    /// Looks until there is something to fetch, or the time is over.
    pub(crate) async fn look_until(
        &self,
        interest: Interest,
        look: Look,
        timeout: Duration,
    ) -> Result<Waited, ProviderError> {
        let deadline = self.clock.clock().monotonic().saturating_add(timeout);
        let waiter = self.waiters.sit(interest);
        loop {
            let looking = waiter.look();
            let (found, next) = self.writer.write("wait", look).await?;
            looking.answered();
            if found {
                return Ok(Waited::Woken);
            }
            if !self.rest(&waiter, next, deadline).await {
                return Ok(Waited::TimedOut);
            }
        }
    }

    /// Looks at an instance until the wait is over, or the time is.
    pub(crate) async fn watch(
        &self,
        mut wait: InstanceWait<'_>,
        timeout: Duration,
    ) -> Result<Waited, ProviderError> {
        let deadline = self.clock.clock().monotonic().saturating_add(timeout);
        let waiter = self.waiters.sit(wait.interest());
        loop {
            let looking = waiter.look();
            let seen = self.state(wait.instance()).await?;
            looking.answered();
            if let Some(over) = wait.saw(seen) {
                return Ok(over);
            }
            if !self.rest(&waiter, None, deadline).await {
                return Ok(Waited::TimedOut);
            }
        }
    }

    /// Waits until a look may find something. False when the time is over.
    pub(crate) async fn rest(&self, waiter: &Waiter, next: Option<i64>, deadline: Duration) -> bool {
        let clock = self.clock.clock();
        let monotonic = clock.monotonic();
        if monotonic >= deadline {
            return false;
        }
        let wait = next.map(|at| u64::try_from(at.saturating_sub(self.clock.now_ms())).unwrap_or(0));
        let due =
            wait.map_or(deadline, |wait| monotonic.saturating_add(Duration::from_millis(wait)).min(deadline));
        tokio::select! {
            () = waiter.called() => {}
            () = clock.sleep_until(due) => {}
        }
        true
    }
}

impl Db<'_> {
    /// The next time at which a turn becomes runnable without anybody doing anything.
    pub(crate) fn next_turn_moment(&self) -> Done<Option<i64>> {
        self.maybe(sql!("turn/next_moment"), [self.now])
    }

    /// The next time at which an activity becomes runnable without anybody doing anything.
    pub(crate) fn next_work_moment(&self) -> Done<Option<i64>> {
        self.maybe(sql!("work/next_moment"), [self.now])
    }
}
