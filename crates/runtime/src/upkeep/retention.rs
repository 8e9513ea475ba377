//! Deleting instances `retain_finished_for` after they ended.

use std::sync::Arc;
use std::time::Duration;

use steadfast_store::InstanceFilter;

use crate::dispatch::until_stopped;
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
    while !shared.stop.is_cancelled() {
        until_stopped(&shared.stop, sweep(&shared, retention)).await;
        until_stopped(&shared.stop, shared.plan.clock.sleep(every)).await;
    }
}

async fn sweep(shared: &RuntimeShared, retention: Duration) {
    let Some(admin) = shared.store.admin() else { return };
    let retained = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
    loop {
        let completed_before = shared.plan.clock.now_ms().saturating_sub(retained);
        let filter = InstanceFilter {
            instance_ids: None,
            completed_before: Some(completed_before),
            limit: Some(BATCH),
        };
        match admin.delete_instance_bulk(filter).await {
            Ok(deleted) if deleted.instances_deleted == 0 => return,
            Ok(deleted) => {
                tracing::info!(
                    target: "steadfast::runtime",
                    instances = deleted.instances_deleted,
                    events = deleted.events_deleted,
                    "finished instances were deleted"
                );
            }
            Err(error) => {
                tracing::warn!(
                    target: "steadfast::runtime",
                    %error,
                    "finished instances could not be deleted; trying again later"
                );
                return;
            }
        }
        tokio::task::yield_now().await;
    }
}
