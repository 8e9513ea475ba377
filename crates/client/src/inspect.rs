//! Looking at instances, executions, histories, sessions and queues.

use std::time::Duration;

use steadfast_core::{Event, SessionKey, SystemStats};
use steadfast_store::{
    ExecutionInfo, InstanceInfo, InstancePage, InstanceQuery, InstanceTree, MAX_PAGE, Owner, QueueDepths,
    ReleaseReason, SessionInfo, SessionRef, SessionTrailEntry, SystemMetrics, WorkerInfo,
};

use crate::{Client, ClientError};

/// One page of sessions that look leaked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeakedSessions {
    /// The sessions, in the order of their keys.
    pub sessions: Vec<SessionInfo>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<SessionKey>,
}

impl Client {
    /// Counts the events, queue messages and keys of an instance, with their sizes in bytes. `None` if no
    /// instance has this id.
    ///
    /// # Errors
    /// `Provider` if the store fails.
    pub async fn get_orchestration_stats(&self, instance: &str) -> Result<Option<SystemStats>, ClientError> {
        Ok(self.store.stats(instance).await?)
    }

    /// Lists one page of instances, newest first. The page names the cursor of the next one.
    ///
    /// # Errors
    /// `Provider` if the store fails, or if the cursor is not one that it returned.
    pub async fn list_instances(&self, query: &InstanceQuery) -> Result<InstancePage, ClientError> {
        Ok(self.store.instances(query).await?)
    }

    /// Lists the ids of all instances, newest first. Use [`list_instances`](Self::list_instances) for many
    /// instances.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` if the store fails.
    pub async fn list_all_instances(&self) -> Result<Vec<String>, ClientError> {
        Ok(self.admin()?.list_instances().await?)
    }

    /// Lists the ids of the instances with a status (`Running`, `Completed`, `Failed`, `ContinuedAsNew`),
    /// newest first.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` if the store fails.
    pub async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ClientError> {
        Ok(self.admin()?.list_instances_by_status(status).await?)
    }

    /// Returns the row of an instance: orchestration, version, status, times and its current execution.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` if it does not exist or the store fails.
    pub async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ClientError> {
        Ok(self.admin()?.get_instance_info(instance).await?)
    }

    /// Returns the row of an execution: status, output, number of events and times.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` if it does not exist or the store fails.
    pub async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ClientError> {
        Ok(self.admin()?.get_execution_info(instance, execution_id).await?)
    }

    /// Lists the ids of the executions of an instance, ascending. An unknown instance has none.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` if the store fails.
    pub async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ClientError> {
        Ok(self.admin()?.list_executions(instance).await?)
    }

    /// Reads the history of an execution: all its events, in the order of their ids.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` if the store fails or cannot read the history.
    pub async fn read_execution_history(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ClientError> {
        Ok(self.admin()?.read_history_with_execution_id(instance, execution_id).await?)
    }

    /// Counts the instances, executions and events of the whole store.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` if the store fails.
    pub async fn get_system_metrics(&self) -> Result<SystemMetrics, ClientError> {
        Ok(self.admin()?.get_system_metrics().await?)
    }

    /// Counts the messages and the work of the whole store that are not leased, those that are not due
    /// included: a timer counts until it fires, also after its instance has ended. So a depth does not tell
    /// how long anything has waited; `Runtime::health` does, in `oldest_message_waits` and
    /// `oldest_work_waits`.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` if the store fails.
    pub async fn get_queue_depths(&self) -> Result<QueueDepths, ClientError> {
        Ok(self.admin()?.get_queue_depths().await?)
    }

    /// Lists an instance and its children, their children, and so on.
    ///
    /// # Errors
    /// `ManagementNotAvailable`, or `Provider` if the store fails.
    pub async fn get_instance_tree(&self, instance: &str) -> Result<InstanceTree, ClientError> {
        Ok(self.admin()?.get_instance_tree(instance).await?)
    }

    /// Lists the workers that the store knows: one row for each start of a runtime, those that stopped or
    /// died within the last day included. Each tells its process, its build, the handlers that it would run
    /// now, its slots, and whether it is live.
    ///
    /// # Errors
    /// `Provider` if the store fails, with kind `Unsupported` if it keeps no rows of workers.
    ///
    /// # Cancel safety
    /// Reads only.
    pub async fn workers(&self) -> Result<Vec<WorkerInfo>, ClientError> {
        let mut workers: Vec<WorkerInfo> = Vec::new();
        loop {
            let last = workers.last().map(|worker| worker.report.id.clone());
            let page = self.store.workers(last.as_ref()).await?;
            let is_full = page.len() >= MAX_PAGE;
            workers.extend(page);
            if !is_full {
                return Ok(workers);
            }
        }
    }

    /// Lists one page of sessions in the order of their keys: those after the given key, or the first ones
    /// for `None`.
    ///
    /// # Errors
    /// `Provider` if the store fails or cannot list them.
    pub async fn list_sessions(&self, after: Option<&SessionKey>) -> Result<Vec<SessionInfo>, ClientError> {
        Ok(self.store.sessions(after).await?)
    }

    /// Returns one session: its owner, epoch, lease and queued work. `None` if the store does not know it.
    ///
    /// # Errors
    /// `Provider` if the store fails or does not support sessions.
    pub async fn get_session(&self, key: &SessionKey) -> Result<Option<SessionInfo>, ClientError> {
        Ok(self.store.session(key).await?)
    }

    /// Lists one page of the sessions that look leaked: an orchestration opened them, no activity of them ran
    /// for `unused_for`, and none is queued. An orchestration that merely waits for long is among them. The
    /// times are compared by the store's clock. `after` is [`LeakedSessions::next`] of the page before,
    /// `None` for the first page.
    ///
    /// A page is made of up to [`MAX_PAGE`] open sessions, most of which are not leaked: it may be empty
    /// although others follow.
    ///
    /// # Errors
    /// `Provider` if the store fails, or cannot list sessions or tell its time.
    ///
    /// # Cancel safety
    /// Reads only.
    pub async fn list_leaked_sessions(
        &self,
        unused_for: Duration,
        after: Option<&SessionKey>,
    ) -> Result<LeakedSessions, ClientError> {
        // Shared sessions come first, and are closed by nobody.
        let first = SessionKey::shared(char::MAX);
        let page = self.store.sessions(Some(after.unwrap_or(&first))).await?;
        let now_ms = self.store.oldest_waiting().await?.now_ms;
        let unused_ms = u64::try_from(unused_for.as_millis()).unwrap_or(u64::MAX);
        let next = page.last().filter(|_| page.len() >= MAX_PAGE).map(|last| last.key.clone());
        let is_leaked = |session: &SessionInfo| {
            session.key.instance.is_some()
                && session.queued == 0
                && session.last_activity_at_ms.saturating_add(unused_ms) <= now_ms
        };
        Ok(LeakedSessions { sessions: page.into_iter().filter(is_leaked).collect(), next })
    }

    /// Returns the trail of a session: which process owned it, from when to when by the store's clock, and
    /// why that changed; oldest first. It tells at most the last
    /// [`MAX_SESSION_TRAIL`](steadfast_store::MAX_SESSION_TRAIL) changes, of the time that the option
    /// `session_trail_retention` of the runtimes says. Empty for a session that no process has claimed in
    /// that time.
    ///
    /// The trail of a session that an orchestration opened is deleted with its instance. A claim that a
    /// process of a version without trails made on a SQLite file is not in it.
    ///
    /// # Errors
    /// `Provider` if the store fails, with kind `Unsupported` if it keeps no trails.
    ///
    /// # Cancel safety
    /// Reads only.
    pub async fn session_trail(&self, key: &SessionKey) -> Result<Vec<SessionTrailEntry>, ClientError> {
        Ok(self.store.session_trail(key).await?)
    }

    /// Releases a session from its owner, so that any worker can claim it with its next activity. Activities
    /// that run go on; the owner detaches the session as lost when it renews its leases. Returns whether a
    /// worker owned the session.
    ///
    /// # Errors
    /// `Provider` if the store fails or cannot show sessions.
    ///
    /// # Cancel safety
    /// A dropped call has released the session or not; call it again.
    pub async fn release_session(&self, key: &SessionKey) -> Result<bool, ClientError> {
        let Some(info) = self.store.session(key).await? else { return Ok(false) };
        let Some(owner) = info.owner else { return Ok(false) };
        // Without an incarnation, so that a session of an earlier process of the node can be released too.
        // The epoch keeps a later claim from being released.
        let claim = SessionRef { key: key.clone(), epoch: info.epoch };
        let released = self
            .store
            .release_sessions_because(&Owner::unnamed(&owner.id), &[claim], ReleaseReason::ByHand)
            .await?;
        if released.is_empty() {
            return Ok(false);
        }
        tracing::info!(
            target: "steadfast::client",
            session_id = %key.session_id,
            instance = key.instance,
            owner = %owner.id,
            epoch = info.epoch,
            reason = "by hand",
            "session released"
        );
        Ok(true)
    }
}
