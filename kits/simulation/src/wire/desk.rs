//! Management over the wire: its calls take time and fail as all calls do.

use async_trait::async_trait;
use steadfast_core::Event;
use steadfast_store::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, ProviderAdmin,
    ProviderError, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};

use super::{Passage, Wire};

/// Carries a call of management to the store and its answer back.
macro_rules! carried {
    ($wire:ident, $kind:ident, $method:ident($($argument:expr),*)) => {{
        let admin = $wire.admin_for(stringify!($method))?;
        $wire.carry(Passage::$kind(stringify!($method)), || admin.$method($($argument),*)).await
    }};
}

/// Carries a deletion to the store and its answer back. The watch looks at what is left.
macro_rules! deleted {
    ($wire:ident, $method:ident($($argument:expr),*)) => {{
        let admin = $wire.admin_for(stringify!($method))?;
        let delete = || async {
            let answer = admin.$method($($argument),*).await;
            $wire.inner.look_for_deleted().await;
            answer
        };
        $wire.carry(Passage::removes(stringify!($method)), delete).await
    }};
}

#[async_trait]
impl ProviderAdmin for Wire {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        carried!(self, reads, list_instances())
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        carried!(self, reads, list_instances_by_status(status))
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        carried!(self, reads, list_executions(instance))
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        carried!(self, reads, read_history_with_execution_id(instance, execution_id))
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        carried!(self, reads, read_history(instance))
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        carried!(self, reads, latest_execution_id(instance))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        carried!(self, reads, get_instance_info(instance))
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        carried!(self, reads, get_execution_info(instance, execution_id))
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        carried!(self, reads, get_system_metrics())
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        carried!(self, reads, get_queue_depths())
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        carried!(self, reads, list_children(instance_id))
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        carried!(self, reads, get_parent_id(instance_id))
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        deleted!(self, delete_instances_atomic(ids, force))
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        carried!(self, reads, get_instance_tree(instance_id))
    }

    async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        deleted!(self, delete_instance(instance_id, force))
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        deleted!(self, delete_instance_bulk(filter.clone()))
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        carried!(self, removes, prune_executions(instance_id, options.clone()))
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        carried!(self, removes, prune_executions_bulk(filter.clone(), options.clone()))
    }
}
