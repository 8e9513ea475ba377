//! The lane of turns. Each leased turn goes through `process → triage → step → commit`.

mod alarm;
mod commit;
mod fail;
pub(crate) mod overdue;
mod process;
mod report;
mod standing;
mod step;
mod triage;
mod unreadable;
pub(crate) mod warm;

use std::sync::Arc;

use async_trait::async_trait;
use steadfast_store::{ProviderError, TurnLease, TurnRequest};

use crate::dispatch::held::LeasedRow;
use crate::dispatch::lease::{Bound, Keeper};
use crate::dispatch::owed::CountedLease;
use crate::dispatch::{Lane, LaneSlot, fetch_in_time};
use crate::runtime::RuntimeShared;

/// The lane of turns: fetches leases of instances and runs one turn for each.
pub(crate) struct Turns {
    pub(crate) shared: Arc<RuntimeShared>,
}

/// A leased turn, and how many deliveries had been excused when it was asked for.
pub(crate) struct FetchedTurn {
    lease: TurnLease,
    excused: u64,
}

#[async_trait]
impl Lane for Turns {
    type Lease = FetchedTurn;

    fn name(&self) -> &'static str {
        "turns"
    }

    async fn fetch(&self, _slot: &LaneSlot) -> Result<Option<FetchedTurn>, ProviderError> {
        let plan = &self.shared.plan;
        self.shared.worker_row.until_answered().await;
        let excused = self.shared.owed.excused();
        let request = TurnRequest {
            lock_timeout: plan.turn_lease.lasts,
            poll_timeout: plan.poll,
            filter: Some(&plan.filter),
            warm: &self.shared.warm,
            worker: Some(&self.shared.worker_row.id),
        };
        let lease =
            fetch_in_time(&self.shared, "fetch_turn", plan.poll, self.shared.store.fetch_turn(request))
                .await?;
        if lease.is_some() {
            self.shared.metrics().record_orch_dispatcher_items_fetched(1);
        }
        Ok(lease.map(|lease| FetchedTurn { lease, excused }))
    }

    async fn process(&self, slot: &LaneSlot, fetched: FetchedTurn) {
        let FetchedTurn { lease, excused } = fetched;
        let began = self.shared.plan.clock.monotonic();
        let _busy = self.shared.worker_row.busy_with_turn();
        let row = LeasedRow::Turn { instance: lease.instance.clone() };
        let _held = self.shared.held.enter(&lease.token, row.clone(), self.shared.plan.turn_lease.lasts);
        let counted = CountedLease { token: &lease.token, row: &row, deliveries: lease.attempt, excused };
        if self.shared.abandons_miscounted(counted).await {
            return;
        }
        let keeper = self.keep(slot, &lease);
        // Lets the keeper set its timer. A task that was just spawned waits behind this one, on a queue that
        // no other thread takes from, and the code of the turn may hold the thread.
        tokio::task::yield_now().await;
        process::process(&self.shared, lease).await;
        drop(keeper);
        let took = self.shared.plan.clock.monotonic().saturating_sub(began);
        self.shared.metrics().record_orch_dispatcher_processing_duration(took.as_millis() as u64);
    }
}

impl Turns {
    /// Renews the lease while the turn runs, for at most `max_turn_time`: code that never yields must not
    /// hold its instance for ever.
    fn keep(&self, slot: &LaneSlot, lease: &TurnLease) -> Keeper {
        let (running, replace) = (Arc::clone(&self.shared.running_turns), slot.replacement());
        let (instance, limit) = (lease.instance.clone(), self.shared.plan.max_turn_time);
        let (held, token) = (Arc::clone(&self.shared.held), lease.token.clone());
        let bound = Bound {
            limit,
            is_reached: Box::new(move || {
                if !running.mark_overdue(&instance) {
                    return false;
                }
                held.charge(&token);
                tracing::warn!(
                    target: "steadfast::runtime",
                    instance = %instance,
                    max_turn_time = ?limit,
                    "a turn takes too long: its lease is not renewed, and another slot takes over its place; \
                     does the handler block the thread, or loop without awaiting?"
                );
                replace.notify_one();
                true
            }),
        };
        Keeper::bounded(&self.shared, lease.token.clone(), self.shared.plan.turn_lease, bound)
    }
}
