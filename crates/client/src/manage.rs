//! Removing what has ended, and deciding about what cannot be read.

use steadfast_core::WorkItem;
use steadfast_store::{DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult, SetAside};

use crate::{Client, ClientError};

impl Client {
    /// Deletes an instance and all below it.
    ///
    /// # Errors
    /// `InstanceNotFound`, `CannotDeleteSubOrchestration` for a child, `InstanceStillRunning` for one that is alive,
    /// unless `force`; `ManagementNotAvailable`; `Provider` when the store fails.
    pub async fn delete_instance(
        &self,
        instance: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ClientError> {
        let admin = self.admin()?;
        match admin.delete_instance(instance, force).await {
            Ok(deleted) => Ok(deleted),
            Err(error) => {
                // A child whose parent is gone is a root of its own.
                let is_child = match admin.get_parent_id(instance).await {
                    Ok(Some(parent)) => admin.list_executions(&parent).await.is_ok_and(|of| !of.is_empty()),
                    Ok(None) | Err(_) => false,
                };
                Err(ClientError::of_deletion(error, instance, is_child))
            }
        }
    }

    /// Deletes roots that have ended and match the filter, each with all below it.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` when the store fails.
    pub async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ClientError> {
        Ok(self.admin()?.delete_instance_bulk(filter).await?)
    }

    /// Removes old executions of an instance.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` when there is no such instance or the store fails.
    pub async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        Ok(self.admin()?.prune_executions(instance, options).await?)
    }

    /// Removes old executions of all instances that match the filter.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` when the store fails.
    pub async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        Ok(self.admin()?.prune_executions_bulk(filter, options).await?)
    }

    /// Ends an instance without running its code, which may be gone. It becomes `Failed` with
    /// [`AppErrorKind::Terminated`](steadfast_core::AppErrorKind::Terminated), its open activities and children are
    /// cancelled, and its parent is told, when a runtime takes the next turn of it: any runtime over the store does,
    /// whatever is registered there. To let the code clean up, use [`cancel_instance`](Self::cancel_instance).
    ///
    /// # Errors
    /// `InvalidInput` for an impossible id; `Provider` when the store fails. An unknown or finished instance is no error:
    /// there is nothing to end.
    pub async fn terminate_instance(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send_to(WorkItem::TerminateInstance { instance: instance.into(), reason: reason.into() }).await
    }

    /// Lists rows that could not be read and were set aside, after the given one.
    ///
    /// # Errors
    /// `Provider` when the store fails.
    pub async fn list_set_aside(&self, after: Option<u64>) -> Result<Vec<SetAside>, ClientError> {
        Ok(self.store.set_aside(after).await?)
    }

    /// Shows one row that was set aside; `None` when there is none of that number.
    ///
    /// # Errors
    /// `Provider` when the store fails.
    pub async fn get_set_aside(&self, id: u64) -> Result<Option<SetAside>, ClientError> {
        // They are listed by rising number, so the first one after the number before it is the one, or it is not there.
        let rows = self.store.set_aside(id.checked_sub(1)).await?;
        Ok(rows.into_iter().next().filter(|row| row.id == id))
    }

    /// Puts a row that was set aside back into its queue.
    ///
    /// # Errors
    /// `Provider` when there is no such row or the store fails.
    pub async fn retry_set_aside(&self, id: u64) -> Result<(), ClientError> {
        Ok(self.store.retry_set_aside(id).await?)
    }

    /// Removes a row that was set aside.
    ///
    /// # Errors
    /// `Provider` when there is no such row or the store fails.
    pub async fn drop_set_aside(&self, id: u64) -> Result<(), ClientError> {
        Ok(self.store.drop_set_aside(id).await?)
    }
}
