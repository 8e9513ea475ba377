//! Sleeps of the machine (G2). Monotonic time, by which calls wait, stands still while the machine sleeps;
//! the time of the store does not. So a sleep is a jump of that time: timers and delays fall due by it, and
//! what was leased stays leased for as long as was left.

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::futures::Notified;

use crate::state::State;
use crate::{MemoryStore, millis};

/// A shorter sleep of the machine is not counted: two clocks are never read at exactly one moment.
const SHORTEST_SLEEP_MS: u64 = 100;

/// How soon a call that waits for a moment notices that the machine has slept.
const NOTICES_SLEEP: Duration = Duration::from_secs(1);

impl MemoryStore {
    /// Waits for a change, for a monotonic time, or, if that is the time of a moment of the store, until the
    /// machine has slept.
    pub(crate) async fn rest(&self, mut changed: Pin<&mut Notified<'_>>, until: Duration, is_moment: bool) {
        loop {
            let look = self.clock.monotonic().saturating_add(NOTICES_SLEEP);
            let until_look = if is_moment { until.min(look) } else { until };
            tokio::select! {
                biased;
                () = changed.as_mut() => return,
                () = self.clock.sleep_until(until_look) => {}
            }
            if self.clock.monotonic() >= until || self.uncounted_sleep_ms(&self.read()).is_some() {
                return;
            }
        }
    }

    /// Returns how long the machine has slept that is not counted yet.
    pub(crate) fn uncounted_sleep_ms(&self, state: &State) -> Option<u64> {
        let slept = self.clock.machine().slept.saturating_sub(self.slept_before);
        let uncounted = millis(slept).saturating_sub(state.slept_ms);
        Some(uncounted).filter(|uncounted| *uncounted >= SHORTEST_SLEEP_MS)
    }
}

impl State {
    /// Counts a sleep of the machine: the time jumps forward from `now`. Whatever is leased then is leased
    /// for so much longer, workers that are live then stay live, and what was withdrawn stays known.
    pub(crate) fn count_sleep(&mut self, now: u64, by_ms: u64) {
        self.slept_ms = self.slept_ms.saturating_add(by_ms);
        let turns = self.turns.values_mut();
        let work = self.work.values_mut().filter_map(|row| row.lock.as_mut()).map(|held| &mut held.lock);
        for lock in turns.chain(work).filter(|lock| lock.is_live(now)) {
            lock.until_ms = lock.until_ms.saturating_add(by_ms);
        }
        for session in self.sessions.values_mut().filter(|session| session.is_live(now)) {
            session.locked_until_ms = session.locked_until_ms.saturating_add(by_ms);
            session.last_activity_at_ms = session.last_activity_at_ms.saturating_add(by_ms);
        }
        for claim in self.closed.values_mut().filter(|claim| claim.is_live(now)) {
            claim.locked_until_ms = claim.locked_until_ms.saturating_add(by_ms);
        }
        for worker in self.workers.values_mut() {
            worker.outlive(now, by_ms);
        }
        for known_until in self.withdrawn.values_mut().filter(|known_until| **known_until > now) {
            *known_until = known_until.saturating_add(by_ms);
        }
    }
}
