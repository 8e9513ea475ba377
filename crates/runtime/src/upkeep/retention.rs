//! Deleting instances `retain_finished_for` after they ended.

use std::sync::Arc;
use std::time::Duration;

use steadfast_store::{DeleteInstanceResult, InstanceFilter, ProviderError, ProviderErrorKind};

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
    loop {
        // The store is told a length of time and compares by its own clock: that of this process may be wrong.
        let answer = match shared.store.delete_ended(retention, BATCH).await {
            Err(error) if error.kind == ProviderErrorKind::Unsupported => {
                delete_before(shared, retention).await
            }
            answer => answer,
        };
        match answer {
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

/// Deletes one batch from a store that has only the compatible methods, by the clock of this process. A batch
/// that fails may have taken too long: it is halved, down to one instance.
async fn delete_before(
    shared: &RuntimeShared,
    retention: Duration,
) -> Result<DeleteInstanceResult, ProviderError> {
    let Some(admin) = shared.store.admin() else { return Ok(DeleteInstanceResult::default()) };
    let retained = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
    let mut limit = BATCH;
    loop {
        let completed_before = Some(shared.plan.clock.now_ms().saturating_sub(retained));
        let filter = InstanceFilter { instance_ids: None, completed_before, limit: Some(limit) };
        match admin.delete_instance_bulk(filter).await {
            Err(error) if error.is_retryable() && limit > 1 => limit /= 2,
            answer => return answer,
        }
    }
}
