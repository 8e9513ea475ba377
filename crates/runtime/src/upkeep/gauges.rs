//! Gauges that only the store knows: how many instances run, and how much work waits.

use std::sync::Arc;

use crate::dispatch::until_stopped;
use crate::runtime::RuntimeShared;

/// Reads the gauges from the store once.
pub(crate) async fn read(shared: &RuntimeShared) {
    let Some(admin) = shared.store.admin() else { return };
    match admin.get_system_metrics().await {
        Ok(system) => {
            let running = i64::try_from(system.running_instances).unwrap_or(i64::MAX);
            shared.metrics().set_active_orchestrations(running);
        }
        Err(error) => {
            tracing::debug!(target: "steadfast::runtime", %error, "the instances could not be counted");
        }
    }
    match admin.get_queue_depths().await {
        Ok(depths) => {
            shared
                .metrics()
                .update_queue_depths(depths.orchestrator_queue as u64, depths.worker_queue as u64);
        }
        Err(error) => {
            tracing::debug!(target: "steadfast::runtime", %error, "the queues could not be counted");
        }
    }
}

/// Reads the gauges every `gauge_poll_interval`, until the runtime stops.
pub(crate) async fn poll(shared: Arc<RuntimeShared>) {
    let every = shared.plan.observability.gauge_poll_interval;
    if every.is_zero() || shared.store.admin().is_none() {
        return;
    }
    loop {
        until_stopped(&shared.stop, shared.plan.clock.sleep(every)).await;
        if shared.stop.is_cancelled() {
            return;
        }
        until_stopped(&shared.stop, read(&shared)).await;
    }
}
