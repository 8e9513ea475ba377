//! Polling: a call that finds nothing looks again after a commit that concerns it, and when a row becomes
//! runnable by time, until its time-out has passed.

use std::time::Duration;

use steadfast_store::{InstanceWait, Interest, ProviderError, Store, Waited, Waiter};

use crate::link::db::{Db, sql};
use crate::link::error::DbResult;
use crate::merge::request::Undo;
use crate::merge::writer::Taken;
use crate::store::SqliteProvider;
use crate::verbs::turn::Fetched;

/// A look: whether there is something to fetch, and at which time there will be by itself.
type FetchLook = fn(&Db<'_>) -> DbResult<(bool, Option<i64>)>;

impl SqliteProvider {
    /// Fetches until there is a lease, or the time-out has passed (`None`).
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

    /// Looks until there is something to fetch, or the time-out has passed.
    pub(crate) async fn look_until(
        &self,
        interest: Interest,
        look: FetchLook,
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

    /// Looks at an instance until the wait for it is over, or the time-out has passed.
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
            if let Some(waited) = wait.saw(seen) {
                return Ok(waited);
            }
            if !self.rest(&waiter, None, deadline).await {
                return Ok(Waited::TimedOut);
            }
        }
    }

    /// Waits until a look may find something. False if the time-out has passed.
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
    /// Returns the next time at which a turn becomes runnable by itself.
    pub(crate) fn next_turn_moment(&self) -> DbResult<Option<i64>> {
        self.maybe(sql!("turn/ready/next_moment"), [self.now])
    }

    /// Returns the next time at which an activity becomes runnable by itself.
    pub(crate) fn next_work_moment(&self) -> DbResult<Option<i64>> {
        self.maybe(sql!("work/ready/next_moment"), [self.now])
    }
}
