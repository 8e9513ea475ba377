//! Management: inspecting instances, and removing those that have ended.

use std::any::Any;

use async_trait::async_trait;
use steadfast_core::Event;

use crate::{ProviderError, ProviderErrorKind};

/// Inspects a store and removes instances and executions from it.
///
/// # Cancel safety
/// Each required method is one transaction: if its future is dropped, the call took effect as a whole or not
/// at all. [`delete_instance`](Self::delete_instance) reads the tree first and then deletes it in one
/// transaction.
#[async_trait]
pub trait ProviderAdmin: Any + Send + Sync {
    /// Lists the ids of all instances, newest first.
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError>;

    /// Lists the instances whose current execution has this status (`Running`, `Completed`, `Failed`,
    /// `ContinuedAsNew`), newest first; the list is empty for a word that is no status.
    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError>;

    /// Lists the numbers of an instance's executions, ascending; empty for an unknown instance.
    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError>;

    /// Reads the events of one execution; empty if there are none.
    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError>;

    /// Reads the events of the latest execution; empty if there are none.
    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError>;

    /// Returns the number of the latest execution, 1 if there is none.
    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError>;

    /// Describes an instance and its current execution.
    ///
    /// # Errors
    /// `NotFound` if there is no such instance.
    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError>;

    /// Describes one execution.
    ///
    /// # Errors
    /// `NotFound` if there is no such execution.
    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError>;

    /// Counts instances, executions and events.
    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError>;

    /// Counts the messages and activities that are not leased, future timers included.
    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError>;

    /// Lists the direct children of an instance; empty for an unknown instance.
    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError>;

    /// Returns the id of the parent of an instance; `None` for a root.
    ///
    /// # Errors
    /// `NotFound` if there is no such instance.
    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError>;

    /// Deletes exactly these instances, all or none.
    ///
    /// # Errors
    /// `Refused` if one has not ended and `force` is not set, and always if a child of one is not in the
    /// list.
    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// Lists an instance and all its descendants; only the id itself for an unknown instance.
    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        let mut all_ids = vec![instance_id.to_owned()];
        let mut next = 0;
        while let Some(id) = all_ids.get(next).cloned() {
            next += 1;
            for child in self.list_children(&id).await? {
                // A child may have any id, even that of one of its ancestors.
                if !all_ids.contains(&child) {
                    all_ids.push(child);
                }
            }
        }
        Ok(InstanceTree { root_id: instance_id.to_owned(), all_ids })
    }

    /// Deletes an instance and all its descendants.
    ///
    /// # Errors
    /// `Refused` for a child (delete its root instead) and, without `force`, for an instance that has not
    /// ended; `NotFound` if there is no such instance.
    async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        // A child whose parent was deleted counts as a root: nothing else would ever delete it.
        if let Some(parent) = self.get_parent_id(instance_id).await?
            && !self.list_executions(&parent).await?.is_empty()
        {
            return Err(ProviderError::new(
                ProviderErrorKind::Refused,
                "delete_instance",
                format!(
                    "'{instance_id}' is a sub-orchestration of '{parent}': \
                     delete the root orchestration instead"
                ),
            ));
        }
        let tree = self.get_instance_tree(instance_id).await?;
        self.delete_instances_atomic(&tree.all_ids, force).await
    }

    /// Deletes roots that match the filter, each with all its descendants, if the whole tree has ended. A
    /// child whose parent was deleted counts as a root.
    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// Removes old executions of an instance; never the current one, and never one that has not ended.
    ///
    /// # Errors
    /// `NotFound` if there is no such instance.
    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError>;

    /// Removes old executions of all instances that match the filter.
    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError>;
}

/// The largest number of instances that a bulk operation selects if its filter has no `limit`.
pub const DEFAULT_BULK_LIMIT: u32 = 1_000;

/// An instance and its current execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceInfo {
    /// The id that the caller of the start chose, or that the engine made for a child.
    pub instance_id: String,
    /// The name that the orchestration is registered under.
    pub orchestration_name: String,
    /// The version of the handler that runs the current execution.
    pub orchestration_version: String,
    /// The number of the current execution, from 1.
    pub current_execution_id: u64,
    /// The status of the current execution: `Running`, `Completed`, `Failed` or `ContinuedAsNew`.
    pub status: String,
    /// The output of a completed execution, or the failure as text; `None` while it runs.
    pub output: Option<String>,
    /// When the first commit was, in milliseconds since the Unix epoch.
    pub created_at: u64,
    /// When the last commit was, in milliseconds since the Unix epoch.
    pub updated_at: u64,
    /// The id of the instance that started this one as a child; `None` for a root.
    pub parent_instance_id: Option<String>,
}

/// One execution of an instance: its status, output, times and length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionInfo {
    /// The number of the execution, from 1.
    pub execution_id: u64,
    /// The status of the execution: `Running`, `Completed`, `Failed` or `ContinuedAsNew`.
    pub status: String,
    /// The output of a completed execution, or the failure as text; `None` while it runs.
    pub output: Option<String>,
    /// When the first commit of the execution was, in milliseconds since the Unix epoch.
    pub started_at: u64,
    /// When the execution ended, in milliseconds since the Unix epoch; `None` while it runs.
    pub completed_at: Option<u64>,
    /// The number of events in the history of the execution.
    pub event_count: usize,
}

/// The numbers of instances, executions and events in a whole store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemMetrics {
    /// The number of instances that have a row: at least one commit named their orchestration.
    pub total_instances: u64,
    /// The number of executions of all instances, ended ones included.
    pub total_executions: u64,
    /// The number of instances whose current execution has not ended.
    pub running_instances: u64,
    /// The number of instances whose current execution completed.
    pub completed_instances: u64,
    /// The number of instances whose current execution failed.
    pub failed_instances: u64,
    /// The number of events of all executions, ended ones included.
    pub total_events: u64,
}

/// How many rows wait in the queues of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueDepths {
    /// The number of messages that are not leased, future timers included.
    pub orchestrator_queue: usize,
    /// The number of activities that are not leased.
    pub worker_queue: usize,
    /// Always 0: timers are messages and count in `orchestrator_queue`.
    pub timer_queue: usize,
}

/// Selects instances. Every condition that is given must hold; the default selects all, up to the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceFilter {
    /// The ids to select from: `None` means all instances, an empty list selects no instance.
    pub instance_ids: Option<Vec<String>>,
    /// Selects instances whose current execution ended before this time, in milliseconds since the Unix
    /// epoch. `None` does not filter.
    pub completed_before: Option<u64>,
    /// The largest number of instances that one call selects; `None` means [`DEFAULT_BULK_LIMIT`].
    pub limit: Option<u32>,
}

/// Selects executions to remove. Every condition that is given must hold; the default keeps only the current
/// one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneOptions {
    /// Keeps this many of the newest executions; `None` and 0 mean 1, because the current one is always kept.
    pub keep_last: Option<u32>,
    /// Selects executions that ended before this time, in milliseconds since the Unix epoch. `None` does not
    /// filter.
    pub completed_before: Option<u64>,
}

/// The numbers of rows that a deletion removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteInstanceResult {
    /// The number of deleted instances. Ids that were named and have no instance count too.
    pub instances_deleted: u64,
    /// The number of executions of the deleted instances.
    pub executions_deleted: u64,
    /// The number of events in the histories of the deleted instances.
    pub events_deleted: u64,
    /// The number of messages and activities in the queues that belonged to the deleted instances.
    pub queue_messages_deleted: u64,
}

/// The numbers of rows that a pruning removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneResult {
    /// The number of instances that were looked at, whether or not something was removed.
    pub instances_processed: u64,
    /// The number of executions that were removed.
    pub executions_deleted: u64,
    /// The number of events that were removed with them.
    pub events_deleted: u64,
}

/// An instance and all its descendants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceTree {
    /// The id of the instance that was asked for.
    pub root_id: String,
    /// The ids of the instance and its descendants, the instance first, parents before their children.
    pub all_ids: Vec<String>,
}

impl InstanceTree {
    /// Tells whether the instance has no children.
    pub fn is_root_only(&self) -> bool {
        self.all_ids.len() == 1
    }

    /// Returns the number of instances in the tree.
    pub fn size(&self) -> usize {
        self.all_ids.len()
    }
}
