//! Polling: a call that finds nothing tries again after each change, and when a row becomes runnable by time.

use std::time::Duration;

use steadfast_store::rules::InstanceWait;
use steadfast_store::{ProviderError, Waited};

use crate::MemoryStore;
use crate::state::State;

impl MemoryStore {
    /// Looks until there is a result, or the time-out has passed (`None`).
    ///
    /// Each look is one transaction, and there is no await between a result and the return: a caller that is
    /// dropped has either been given the lease or has none (S5).
    pub(crate) async fn until<R>(
        &self,
        timeout: Duration,
        mut look: impl FnMut(&mut State, u64) -> Result<Option<R>, ProviderError>,
    ) -> Result<Option<R>, ProviderError> {
        let deadline = self.clock.monotonic().saturating_add(timeout);
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let (result, next, now) = {
                let (mut state, now) = self.at_now();
                let result = look(&mut state, now)?;
                (result, state.next_moment(now), now)
            };
            if result.is_some() {
                // A claim may have sent messages, and the new lease has an end that other calls wait for.
                self.changed.notify_waiters();
                return Ok(result);
            }
            let monotonic = self.clock.monotonic();
            if monotonic >= deadline {
                return Ok(None);
            }
            let due = next.map(|at| monotonic.saturating_add(Duration::from_millis(at - now)));
            self.rest(changed, due.map_or(deadline, |due| due.min(deadline)), due.is_some()).await;
        }
    }

    /// Looks at an instance until the wait for it is over, or the time-out has passed (`None`).
    pub(crate) async fn watch(
        &self,
        mut wait: InstanceWait<'_>,
        timeout: Duration,
    ) -> Result<Option<Waited>, ProviderError> {
        let look = |state: &mut State, _| {
            let found = state.instance_state(wait.instance());
            Ok(wait.saw(found))
        };
        self.until(timeout, look).await
    }
}

impl State {
    /// Returns the next time at which a row becomes runnable by itself: a message or an activity becomes
    /// visible, the lease of a turn, an activity or a session ends, or a worker that has work routed to it
    /// ceases to be live.
    fn next_moment(&self, now: u64) -> Option<u64> {
        let messages = self.messages.values().map(|message| message.visible_at_ms);
        let turns = self.turns.values().map(|lock| lock.until_ms);
        let work = self.work.values().map(|row| row.visible_at_ms);
        let leases = self.work.values().filter_map(|row| row.lock.as_ref()).map(|held| held.lock.until_ms);
        let sessions = self.sessions.values().map(|session| session.locked_until_ms);
        let closed = self.closed.values().map(|claim| claim.locked_until_ms);
        let workers = self.ends_of_workers();
        let all =
            messages.chain(turns).chain(work).chain(leases).chain(sessions).chain(closed).chain(workers);
        all.filter(|at| *at > now).min()
    }
}
