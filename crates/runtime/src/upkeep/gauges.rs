//! Gauges that only the store knows: how many instances run, and how much work waits.

use std::sync::Arc;

use steadfast_store::{Gauges, ProviderError, ProviderErrorKind, Store};

use crate::dispatch::{in_time, until_stopped};
use crate::runtime::RuntimeShared;

/// Reads the gauges at the start and every `gauge_poll_interval`, until the runtime stops. The start of the
/// runtime does not wait for it.
pub(crate) async fn poll(shared: Arc<RuntimeShared>) {
    let every = shared.plan.observability.gauge_poll_interval;
    while !shared.stop.is_cancelled() {
        until_stopped(&shared.stop, read(&shared)).await;
        if every.is_zero() {
            return;
        }
        until_stopped(&shared.stop, shared.plan.clock.sleep(every)).await;
    }
}

async fn read(shared: &RuntimeShared) {
    match in_time(shared, "gauges", of(&*shared.store)).await {
        Ok(Some(gauges)) => {
            let running = i64::try_from(gauges.running_instances).unwrap_or(i64::MAX);
            shared.metrics().set_active_orchestrations(running);
            shared.metrics().update_queue_depths(gauges.messages, gauges.work);
        }
        Ok(None) => {}
        Err(error) => {
            tracing::debug!(target: "steadfast::runtime", %error, "the store could not be counted");
        }
    }
}

/// Asks a store for its gauges. A store that cannot count so is asked through its management interface;
/// `None` if it has none.
pub(super) async fn of(store: &dyn Store) -> Result<Option<Gauges>, ProviderError> {
    match store.gauges().await {
        Ok(gauges) => Ok(Some(gauges)),
        Err(error) if error.kind == ProviderErrorKind::Unsupported => {
            let Some(admin) = store.admin() else { return Ok(None) };
            let depths = admin.get_queue_depths().await?;
            let system = admin.get_system_metrics().await?;
            Ok(Some(Gauges {
                running_instances: system.running_instances,
                messages: depths.orchestrator_queue as u64,
                work: depths.worker_queue as u64,
            }))
        }
        Err(error) => Err(error),
    }
}
