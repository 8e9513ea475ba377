//! Waiting: for work, for a change of an instance, for the time at which something becomes runnable.

use std::time::Duration;

use steadfast_store::{ProviderError, Waited};

use crate::MemoryStore;
use crate::state::State;

impl MemoryStore {
    /// Tries until there is something, or the time is over. `None` means that the time is over.
    ///
    /// Each try is one transaction, and there is no await between a success and the return: a caller that
    /// goes away has either taken something and been given it, or taken nothing.
    pub(crate) async fn until<R>(
        &self,
        timeout: Duration,
        mut attempt: impl FnMut(&mut State, u64) -> Result<Option<R>, ProviderError>,
    ) -> Result<Option<R>, ProviderError> {
        let deadline = self.clock.monotonic().saturating_add(timeout);
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let now = self.now_ms();
            let (result, next) = {
                let mut state = self.read();
                let result = attempt(&mut state, now)?;
                (result, state.next_moment(now))
            };
            if result.is_some() {
                // What was taken may have sent messages, and has an end that others wait for.
                self.changed.notify_waiters();
                return Ok(result);
            }
            let monotonic = self.clock.monotonic();
            if monotonic >= deadline {
                return Ok(None);
            }
            let due = next.map(|at| monotonic.saturating_add(Duration::from_millis(at - now)));
            tokio::select! {
                () = changed => {}
                () = self.clock.sleep_until(due.map_or(deadline, |due| due.min(deadline))) => {}
            }
        }
    }

    /// An instance that is gone has changed too, for whoever knew it.
    pub(crate) async fn until_changed(
        &self,
        instance: &str,
        seen: u64,
        timeout: Duration,
    ) -> Result<Option<Waited>, ProviderError> {
        let look = |state: &mut State, _| {
            let found = state.instance_state(instance);
            let change = found.as_ref().map_or(0, |state| state.change);
            Ok((change != seen).then(|| Waited::Seen(found.map(Box::new))))
        };
        self.until(timeout, look).await
    }

    /// An instance that was there and is gone has ended too; one that is still to come has not.
    pub(crate) async fn until_ended(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<Option<Waited>, ProviderError> {
        let mut was_there = false;
        let look = |state: &mut State, _| {
            let found = state.instance_state(instance);
            let is_gone = was_there && found.is_none();
            was_there |= found.is_some();
            let has_ended = found.as_ref().is_some_and(|state| state.status.is_ended());
            Ok((has_ended || is_gone).then(|| Waited::Seen(found.map(Box::new))))
        };
        self.until(timeout, look).await
    }
}

impl State {
    /// The next time at which something becomes runnable without anybody doing anything: a message or an
    /// activity becomes visible, a lease or a session ends.
    fn next_moment(&self, now: u64) -> Option<u64> {
        let messages = self.messages.values().map(|message| message.visible_at_ms);
        let turns = self.turns.values().map(|lock| lock.until_ms);
        let work = self.work.values().map(|row| row.visible_at_ms);
        let leases = self.work.values().filter_map(|row| row.lock.as_ref()).map(|held| held.lock.until_ms);
        let sessions = self.sessions.values().map(|session| session.locked_until_ms);
        messages.chain(turns).chain(work).chain(leases).chain(sessions).filter(|at| *at > now).min()
    }
}
