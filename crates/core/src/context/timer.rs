//! Waiting for time to pass.

use std::panic::Location;
use std::time::Duration;

use super::OrchestrationContext;
use crate::Action;
use crate::context::future::DurableFuture;
use crate::operation::timer;

impl OrchestrationContext {
    /// Waits for `delay`, across restarts of workers. The clock is that of the store.
    #[track_caller]
    pub fn schedule_timer(&self, delay: Duration) -> DurableFuture<()> {
        self.ask_timer(delay, Location::caller())
    }

    pub(super) fn ask_timer(&self, delay: Duration, at: &'static Location<'static>) -> DurableFuture<()> {
        let action = |ledger: &crate::replay::ledger::Ledger| Action::CreateTimer {
            scheduling_event_id: 0,
            fire_at_ms: timer::fire_at_ms(ledger.now_ms, delay),
        };
        self.ask("schedule_timer", at, action, drop)
    }
}
