//! Deleting instances `retain_finished_for` after they ended.

use std::sync::Arc;
use std::time::Duration;

use steadfast_store::{DeleteInstanceResult, InstanceFilter, ProviderError, ProviderErrorKind};

use crate::dispatch::{in_time, until_stopped};
use crate::runtime::RuntimeShared;

/// Bounds how many instances one call deletes, because a call is one transaction.
const BATCH: u32 = 100;

/// Deletes instances that ended long enough ago, again and again, until the runtime stops.
pub(crate) async fn delete_ended(shared: Arc<RuntimeShared>, retention: Duration) {
    if shared.store.admin().is_none() {
        tracing::warn!(
            target: "steadfast::runtime",
            "finished instances are kept: the store cannot be managed, so retain_finished_for has no effect"
        );
        return;
    }
    // Often enough that an instance is deleted at most a tenth of the time too late, and at most once a
    // second.
    let every = (retention / 10).clamp(Duration::from_secs(1), Duration::from_secs(3_600));
    let mut sweep = Sweep { shared: &shared, retention, batch: BATCH };
    while !shared.stop.is_cancelled() {
        until_stopped(&shared.stop, sweep.run()).await;
        until_stopped(&shared.stop, shared.plan.clock.sleep(every)).await;
    }
}

/// Deletes what has ended long enough ago, in batches.
struct Sweep<'a> {
    shared: &'a RuntimeShared,
    retention: Duration,
    /// How many instances the next call deletes. It is halved after a call that failed, because the call may
    /// have taken longer than the store allows, and doubled after one that succeeded.
    batch: u32,
}

impl Sweep<'_> {
    async fn run(&mut self) {
        loop {
            match in_time(self.shared, "delete_ended", self.delete()).await {
                Ok(deleted) if deleted.instances_deleted == 0 => return,
                Ok(deleted) => {
                    self.batch = self.batch.saturating_mul(2).min(BATCH);
                    tracing::info!(
                        target: "steadfast::runtime",
                        instances = deleted.instances_deleted,
                        events = deleted.events_deleted,
                        "finished instances were deleted"
                    );
                }
                Err(error) => {
                    self.batch = (self.batch / 2).max(1);
                    tracing::warn!(
                        target: "steadfast::runtime",
                        %error,
                        "finished instances could not be deleted; trying again later with fewer"
                    );
                    return;
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Deletes one batch. The store is told a length of time and compares by its own clock: the clock of this
    /// process may be wrong.
    async fn delete(&self) -> Result<DeleteInstanceResult, ProviderError> {
        match self.shared.store.delete_ended(self.retention, self.batch).await {
            Err(error) if error.kind == ProviderErrorKind::Unsupported => self.delete_before().await,
            answer => answer,
        }
    }

    /// Deletes one batch from a store that cannot compare its own times, by the clock of this process.
    async fn delete_before(&self) -> Result<DeleteInstanceResult, ProviderError> {
        let Some(admin) = self.shared.store.admin() else { return Ok(DeleteInstanceResult::default()) };
        let retained = u64::try_from(self.retention.as_millis()).unwrap_or(u64::MAX);
        let filter = InstanceFilter {
            instance_ids: None,
            completed_before: Some(self.shared.plan.clock.now_ms().saturating_sub(retained)),
            limit: Some(self.batch),
        };
        admin.delete_instance_bulk(filter).await
    }
}
