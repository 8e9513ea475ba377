//! Management: looking at instances and removing what has ended.

use std::any::Any;

use async_trait::async_trait;
use steadfast_core::Event;

use crate::{ProviderError, ProviderErrorKind};

/// Inspects and cleans a store.
#[async_trait]
pub trait ProviderAdmin: Any + Send + Sync {
    /// Lists all instances, newest first.
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError>;

    /// Lists the instances whose current execution has this status, newest first; none for an unknown word.
    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError>;

    /// Lists the executions of an instance, ascending; none for an unknown one.
    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError>;

    /// Reads the events of one execution.
    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError>;

    /// Reads the events of the latest execution.
    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError>;

    /// Returns the number of the latest execution, 1 if there is none.
    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError>;

    /// Describes an instance.
    ///
    /// # Errors
    /// `NotFound` when there is none of that id.
    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError>;

    /// Describes an execution.
    ///
    /// # Errors
    /// `NotFound` when there is no such execution.
    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError>;

    /// Counts what the store holds.
    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError>;

    /// Counts what waits and is not leased, future timers included.
    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError>;

    /// Lists the direct children of an instance; none for an unknown one.
    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError>;

    /// Names the parent of an instance.
    ///
    /// # Errors
    /// `NotFound` when there is no such instance.
    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError>;

    /// Deletes exactly these instances, all or none.
    ///
    /// # Errors
    /// `Refused` without `force` when one is alive, and always when a child of one is not in the list.
    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// Lists an instance and all below it; just the id itself when it is unknown.
    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        let mut all_ids = vec![instance_id.to_owned()];
        let mut next = 0;
        while let Some(id) = all_ids.get(next).cloned() {
            next += 1;
            for child in self.list_children(&id).await? {
                // A child may carry any id, also one that is its own ancestor's.
                if !all_ids.contains(&child) {
                    all_ids.push(child);
                }
            }
        }
        Ok(InstanceTree { root_id: instance_id.to_owned(), all_ids })
    }

    /// Deletes an instance and all below it.
    ///
    /// # Errors
    /// `Refused` for a child (delete its root instead) and, without `force`, for one that is alive; `NotFound`.
    async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        // A child whose parent is gone is a root of its own: there is nothing else to delete it by.
        if let Some(parent) = self.get_parent_id(instance_id).await?
            && !self.list_executions(&parent).await?.is_empty()
        {
            return Err(ProviderError::new(
                ProviderErrorKind::Refused,
                "delete_instance",
                format!(
                    "'{instance_id}' is a sub-orchestration of '{parent}': delete the root orchestration instead"
                ),
            ));
        }
        let tree = self.get_instance_tree(instance_id).await?;
        self.delete_instances_atomic(&tree.all_ids, force).await
    }

    /// Deletes roots that have ended and match the filter, each with all below it. What is alive stays. A child
    /// whose parent is gone counts as a root.
    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// Removes old executions of an instance, never the current one and never one that runs.
    ///
    /// # Errors
    /// `NotFound` when there is no such instance.
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

/// Bounds bulk operations that do not say their own limit.
pub const DEFAULT_BULK_LIMIT: u32 = 1_000;

/// Describes an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceInfo {
    /// Names it.
    pub instance_id: String,
    /// Names the orchestration.
    pub orchestration_name: String,
    /// Names the version of its handler.
    pub orchestration_version: String,
    /// Numbers its current execution.
    pub current_execution_id: u64,
    /// Holds the status of that execution.
    pub status: String,
    /// Holds the output of that execution, or its failure as text.
    pub output: Option<String>,
    /// Holds the time of the first commit, in milliseconds since the Unix epoch.
    pub created_at: u64,
    /// Holds the time of the last commit, in milliseconds since the Unix epoch.
    pub updated_at: u64,
    /// Names the parent of a child.
    pub parent_instance_id: Option<String>,
}

/// Describes an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionInfo {
    /// Numbers it.
    pub execution_id: u64,
    /// Holds its status.
    pub status: String,
    /// Holds its output, or its failure as text.
    pub output: Option<String>,
    /// Holds the time of its first commit, in milliseconds since the Unix epoch.
    pub started_at: u64,
    /// Holds the time of its end, in milliseconds since the Unix epoch.
    pub completed_at: Option<u64>,
    /// Counts its events.
    pub event_count: usize,
}

/// Counts what a store holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemMetrics {
    /// Counts the instances.
    pub total_instances: u64,
    /// Counts the executions.
    pub total_executions: u64,
    /// Counts the instances whose current execution runs.
    pub running_instances: u64,
    /// Counts the instances whose current execution completed.
    pub completed_instances: u64,
    /// Counts the instances whose current execution failed.
    pub failed_instances: u64,
    /// Counts the events.
    pub total_events: u64,
}

/// Counts what waits in a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueDepths {
    /// Counts the messages.
    pub orchestrator_queue: usize,
    /// Counts the activities.
    pub worker_queue: usize,
    /// Holds 0: timers are messages.
    pub timer_queue: usize,
}

/// Selects instances; what is given must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceFilter {
    /// Selects by id; an empty list selects nothing.
    pub instance_ids: Option<Vec<String>>,
    /// Selects what ended before this time, in milliseconds since the Unix epoch.
    pub completed_before: Option<u64>,
    /// Bounds how many are selected; [`DEFAULT_BULK_LIMIT`] if absent.
    pub limit: Option<u32>,
}

/// Selects executions to remove; what is given must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneOptions {
    /// Keeps this many of the highest executions; the current one is always kept.
    pub keep_last: Option<u32>,
    /// Selects what ended before this time, in milliseconds since the Unix epoch.
    pub completed_before: Option<u64>,
}

/// Counts what a deletion removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteInstanceResult {
    /// Counts the instances.
    pub instances_deleted: u64,
    /// Counts the executions.
    pub executions_deleted: u64,
    /// Counts the events.
    pub events_deleted: u64,
    /// Counts the messages and activities.
    pub queue_messages_deleted: u64,
}

/// Counts what a pruning removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneResult {
    /// Counts the instances that were looked at.
    pub instances_processed: u64,
    /// Counts the executions.
    pub executions_deleted: u64,
    /// Counts the events.
    pub events_deleted: u64,
}

/// Lists an instance and all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceTree {
    /// Names the root.
    pub root_id: String,
    /// Holds all ids, the root first.
    pub all_ids: Vec<String>,
}

impl InstanceTree {
    /// Tells whether the root has no children.
    pub fn is_root_only(&self) -> bool {
        self.all_ids.len() == 1
    }

    /// Counts the instances.
    pub fn size(&self) -> usize {
        self.all_ids.len()
    }
}
