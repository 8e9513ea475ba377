//! Deleting and pruning, terminating, and rows that cannot be read.

use steadfast_store::{DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult, SetAside};

use crate::{Client, ClientError};

impl Client {
    /// Deletes an instance with its history, its messages and its children. `force` also deletes one that has
    /// not ended.
    ///
    /// # Errors
    /// `InstanceNotFound`; `CannotDeleteSubOrchestration` for a child; `InstanceStillRunning` for one that
    /// has not ended, unless `force`; `ManagementNotAvailable`; `Provider` if the store fails.
    pub async fn delete_instance(
        &self,
        instance: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ClientError> {
        let admin = self.admin()?;
        match admin.delete_instance(instance, force).await {
            Ok(deleted) => Ok(deleted),
            Err(error) => {
                // A child whose parent was deleted is a root of its own.
                let is_child = match admin.get_parent_id(instance).await {
                    Ok(Some(parent)) => admin.list_executions(&parent).await.is_ok_and(|of| !of.is_empty()),
                    Ok(None) | Err(_) => false,
                };
                Err(ClientError::of_deletion(error, instance, is_child))
            }
        }
    }

    /// Deletes instances that have ended, are no child, and match the filter, each with its children.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` if the store fails.
    pub async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ClientError> {
        Ok(self.admin()?.delete_instance_bulk(filter).await?)
    }

    /// Removes old executions of an instance, as the options say. The current execution stays.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` if the instance does not exist or the store fails.
    pub async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        Ok(self.admin()?.prune_executions(instance, options).await?)
    }

    /// Removes old executions of all instances that match the filter. Their current executions stay.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` if the store fails.
    pub async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        Ok(self.admin()?.prune_executions_bulk(filter, options).await?)
    }

    /// Ends an instance without its code, which need not be registered in any runtime. At the next turn of
    /// the instance, which any runtime over the store takes, it becomes `Failed` with
    /// [`AppErrorKind::Terminated`](steadfast_core::AppErrorKind::Terminated), its open activities and
    /// children are cancelled, and its parent is told.
    ///
    /// [`cancel_instance`](Self::cancel_instance) ends an instance alike, with another error, but needs a
    /// runtime that has its code. Neither of the two lets the code of the instance run again, so it cannot
    /// clean up; let it wait for an event or a queue message if it must.
    ///
    /// # Errors
    /// `InvalidInput` for an id that is empty, longer than 1,024 bytes or contains NUL; `Provider` if the
    /// store fails. An instance that is unknown or has ended is no error.
    pub async fn terminate_instance(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.sender().terminate(instance.into(), reason.into()).await
    }

    /// Lists one page of the rows that the store could not read and set aside: those after the given number,
    /// or the first ones for `None`.
    ///
    /// # Errors
    /// `Provider` if the store fails.
    pub async fn list_set_aside(&self, after: Option<u64>) -> Result<Vec<SetAside>, ClientError> {
        Ok(self.store.set_aside(after).await?)
    }

    /// Returns one row that was set aside. `None` if no such row has this number.
    ///
    /// # Errors
    /// `Provider` if the store fails.
    pub async fn get_set_aside(&self, id: u64) -> Result<Option<SetAside>, ClientError> {
        // Rows are listed by ascending number: if the row exists, it is the first one after the number before
        // it.
        let rows = self.store.set_aside(id.checked_sub(1)).await?;
        Ok(rows.into_iter().next().filter(|row| row.id == id))
    }

    /// Puts a row that was set aside back into its queue, to be read again.
    ///
    /// # Errors
    /// `Provider` if there is no such row or the store fails.
    pub async fn retry_set_aside(&self, id: u64) -> Result<(), ClientError> {
        Ok(self.store.retry_set_aside(id).await?)
    }

    /// Removes a row that was set aside. Its content is lost.
    ///
    /// # Errors
    /// `Provider` if there is no such row or the store fails.
    pub async fn drop_set_aside(&self, id: u64) -> Result<(), ClientError> {
        Ok(self.store.drop_set_aside(id).await?)
    }
}
