//! Looking at instances, executions, histories, sessions and queues.

use steadfast_core::{Event, SessionKey, SystemStats};
use steadfast_store::{
    ExecutionInfo, InstanceInfo, InstancePage, InstanceQuery, InstanceTree, Owner, QueueDepths, SessionInfo,
    SessionRef, SystemMetrics,
};

use crate::{Client, ClientError};

impl Client {
    /// Measures an instance; `None` when there is none of that id.
    ///
    /// # Errors
    /// `Provider` when the store fails.
    pub async fn get_orchestration_stats(&self, instance: &str) -> Result<Option<SystemStats>, ClientError> {
        Ok(self.store.stats(instance).await?)
    }

    /// Lists instances page by page, newest first, with filters.
    ///
    /// # Errors
    /// `Provider` when the store fails, or when the cursor is none of its own.
    pub async fn list_instances(&self, query: &InstanceQuery) -> Result<InstancePage, ClientError> {
        Ok(self.store.instances(query).await?)
    }

    /// Lists all instances, newest first.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` when the store fails.
    pub async fn list_all_instances(&self) -> Result<Vec<String>, ClientError> {
        Ok(self.admin()?.list_instances().await?)
    }

    /// Lists the instances with a status (`Running`, `Completed`, `Failed`, `ContinuedAsNew`), newest first.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` when the store fails.
    pub async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ClientError> {
        Ok(self.admin()?.list_instances_by_status(status).await?)
    }

    /// Describes an instance.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` when there is none or the store fails.
    pub async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ClientError> {
        Ok(self.admin()?.get_instance_info(instance).await?)
    }

    /// Describes an execution.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` when there is none or the store fails.
    pub async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ClientError> {
        Ok(self.admin()?.get_execution_info(instance, execution_id).await?)
    }

    /// Lists the executions of an instance.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` when the store fails.
    pub async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ClientError> {
        Ok(self.admin()?.list_executions(instance).await?)
    }

    /// Reads the events of an execution.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` when the store fails or cannot read them.
    pub async fn read_execution_history(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ClientError> {
        Ok(self.admin()?.read_history_with_execution_id(instance, execution_id).await?)
    }

    /// Counts what the store holds.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` when the store fails.
    pub async fn get_system_metrics(&self) -> Result<SystemMetrics, ClientError> {
        Ok(self.admin()?.get_system_metrics().await?)
    }

    /// Counts what waits.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` when the store fails.
    pub async fn get_queue_depths(&self) -> Result<QueueDepths, ClientError> {
        Ok(self.admin()?.get_queue_depths().await?)
    }

    /// Lists an instance and all below it.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` when the store fails.
    pub async fn get_instance_tree(&self, instance: &str) -> Result<InstanceTree, ClientError> {
        Ok(self.admin()?.get_instance_tree(instance).await?)
    }

    /// Lists sessions in the order of their keys, after the given one.
    ///
    /// # Errors
    /// `Provider` when the store fails or cannot list them.
    pub async fn list_sessions(&self, after: Option<&SessionKey>) -> Result<Vec<SessionInfo>, ClientError> {
        Ok(self.store.sessions(after).await?)
    }

    /// Shows one session.
    ///
    /// # Errors
    /// `Provider` when the store fails or cannot show it.
    pub async fn get_session(&self, key: &SessionKey) -> Result<Option<SessionInfo>, ClientError> {
        Ok(self.store.session(key).await?)
    }

    /// Releases a session from the process that holds it, so that the next activity is claimed by whoever comes first.
    /// Activities that run go on; the process learns of it when it renews. Returns whether anybody held it.
    ///
    /// # Errors
    /// `Provider` when the store fails or cannot show sessions.
    ///
    /// # Cancel safety
    /// A dropped call has released the session or not.
    pub async fn release_session(&self, key: &SessionKey) -> Result<bool, ClientError> {
        let Some(info) = self.store.session(key).await? else { return Ok(false) };
        let Some(owner) = info.owner else { return Ok(false) };
        // By name alone: also what an earlier start of a node left behind can be released. The epoch makes sure that no
        // later attachment is.
        let attachment = SessionRef { key: key.clone(), epoch: info.epoch };
        let released = self.store.release_sessions(&Owner::unnamed(&owner.id), &[attachment]).await?;
        if released.is_empty() {
            return Ok(false);
        }
        tracing::info!(
            target: "steadfast::client",
            session_id = %key.session_id,
            owner = %owner.id,
            epoch = info.epoch,
            reason = "by hand",
            "session released"
        );
        Ok(true)
    }
}
