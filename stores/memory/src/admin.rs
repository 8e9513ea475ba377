//! Management: inspecting instances, and removing those that have ended (F12, F13).

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_core::Event;
use steadfast_store::rules::{child_left_behind, no_such_execution, no_such_instance, still_running};
use steadfast_store::{
    DEFAULT_BULK_LIMIT, DeleteInstanceResult, ExecutionInfo, Gauges, InstanceFilter, InstanceInfo,
    ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};

use crate::state::State;
use crate::{MemoryStore, millis};

#[async_trait]
impl ProviderAdmin for MemoryStore {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        Ok(self.read().newest_first().into_iter().cloned().collect())
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        let state = self.read();
        let has = |id: &&String| state.status_of(id).is_some_and(|found| found == status);
        Ok(state.newest_first().into_iter().filter(has).cloned().collect())
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        Ok(self.read().executions_of(instance).map(|(execution, _)| execution).collect())
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.read().history(instance, execution_id)
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        let state = self.read();
        state.history(instance, state.latest_execution(instance))
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        Ok(self.read().latest_execution(instance))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        self.read().instance_info(instance).ok_or_else(|| no_such_instance("get_instance_info", instance))
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        let state = self.read();
        let row = state
            .executions
            .get(&(instance.to_owned(), execution_id))
            .ok_or_else(|| no_such_execution("get_execution_info", instance, execution_id))?;
        Ok(ExecutionInfo {
            execution_id,
            status: row.status.clone(),
            output: row.output.clone(),
            started_at: row.started_at_ms,
            completed_at: row.completed_at_ms,
            event_count: state.events(instance, execution_id).count(),
        })
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        let state = self.read();
        let count = |status: &str| {
            state.instances.keys().filter(|id| state.status_of(id).as_deref() == Some(status)).count() as u64
        };
        Ok(SystemMetrics {
            total_instances: state.instances.len() as u64,
            total_executions: state.executions.len() as u64,
            running_instances: count("Running"),
            completed_instances: count("Completed"),
            failed_instances: count("Failed"),
            total_events: state.histories.values().map(|events| events.len() as u64).sum(),
        })
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        let (state, now) = self.at_now();
        Ok(QueueDepths {
            orchestrator_queue: state
                .messages
                .values()
                .filter(|row| !state.is_message_leased(row, now))
                .count(),
            worker_queue: state.work.values().filter(|row| !row.is_leased(now)).count(),
            timer_queue: 0,
        })
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        Ok(self.read().children_of(instance_id))
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        let state = self.read();
        let row =
            state.instances.get(instance_id).ok_or_else(|| no_such_instance("get_parent_id", instance_id))?;
        Ok(row.parent.clone())
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.change(|state, now| {
            state.check_delete(ids, force)?;
            Ok(state.delete(ids, now))
        })
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.change(|state, now| Ok(state.delete_trees(state.ended_roots(&filter), now)))
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.change(|state, _| {
            if !state.instances.contains_key(instance_id) {
                return Err(no_such_instance("prune_executions", instance_id));
            }
            Ok(state.prune(instance_id, &options))
        })
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.change(|state, _| {
            let mut total = PruneResult::default();
            for instance in state.selected(&filter) {
                let pruned = state.prune(&instance, &options);
                total.instances_processed += pruned.instances_processed;
                total.executions_deleted += pruned.executions_deleted;
                total.events_deleted += pruned.events_deleted;
            }
            Ok(total)
        })
    }
}

impl State {
    fn status_of(&self, instance: &str) -> Option<String> {
        let current = self.instances.get(instance)?.current_execution;
        self.executions.get(&(instance.to_owned(), current)).map(|row| row.status.clone())
    }

    fn instance_info(&self, instance: &str) -> Option<InstanceInfo> {
        let row = self.instances.get(instance)?;
        let execution = self.executions.get(&(instance.to_owned(), row.current_execution));
        Some(InstanceInfo {
            instance_id: instance.to_owned(),
            orchestration_name: row.name.clone(),
            orchestration_version: row.version.clone(),
            current_execution_id: row.current_execution,
            status: execution.map_or_else(|| "Running".to_owned(), |row| row.status.clone()),
            output: execution.and_then(|row| row.output.clone()),
            created_at: row.created_at_ms,
            updated_at: row.updated_at_ms,
            parent_instance_id: row.parent.clone(),
        })
    }

    fn children_of(&self, parent: &str) -> Vec<String> {
        let rows = self.instances.iter().filter(|(_, row)| row.parent.as_deref() == Some(parent));
        rows.map(|(id, _)| id.clone()).collect()
    }

    fn tree_of(&self, root: &str) -> Vec<String> {
        let mut tree = vec![root.to_owned()];
        let mut next = 0;
        while let Some(id) = tree.get(next).cloned() {
            next += 1;
            let fresh: Vec<String> =
                self.children_of(&id).into_iter().filter(|child| !tree.contains(child)).collect();
            tree.extend(fresh);
        }
        tree
    }

    /// Tells whether an instance has not ended: its current execution runs, or the start of its next one
    /// waits. An instance without a row is in its latest execution.
    fn is_alive(&self, instance: &str) -> bool {
        let row = self.instances.get(instance);
        let current = row.map_or_else(|| self.latest_execution(instance), |row| row.current_execution);
        let execution = self.executions.get(&(instance.to_owned(), current));
        execution.is_some_and(|execution| execution.is_running()) || self.has_pending_start(instance)
    }

    /// Tells whether an instance is a root. A child whose parent was deleted counts as one (F13).
    fn is_root(&self, instance: &str) -> bool {
        let parent = self.instances.get(instance).and_then(|row| row.parent.as_ref());
        parent.is_none_or(|parent| !self.instances.contains_key(parent))
    }

    pub(crate) fn is_message_leased(&self, row: &crate::state::MessageRow, now: u64) -> bool {
        let lock = self.turns.get(&row.instance).filter(|lock| lock.is_live(now));
        lock.is_some_and(|lock| row.token.as_ref() == Some(&lock.token))
    }

    fn check_delete(&self, ids: &[String], force: bool) -> Result<(), ProviderError> {
        for id in ids {
            if !force && self.is_alive(id) {
                return Err(still_running(id));
            }
            if let Some(child) = self.children_of(id).into_iter().find(|child| !ids.contains(child)) {
                return Err(child_left_behind(&child, id));
            }
        }
        Ok(())
    }

    fn delete(&mut self, ids: &[String], now: u64) -> DeleteInstanceResult {
        let named: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        let mut result =
            DeleteInstanceResult { instances_deleted: named.len() as u64, ..DeleteInstanceResult::default() };
        self.executions.retain(|(id, _), _| {
            let deleted = named.contains(id.as_str());
            result.executions_deleted += u64::from(deleted);
            !deleted
        });
        self.histories.retain(|(id, _), events| {
            let deleted = named.contains(id.as_str());
            result.events_deleted += if deleted { events.len() as u64 } else { 0 };
            !deleted
        });
        let kept = self.starts_of_others(&named);
        self.messages.retain(|place, row| {
            let deleted = named.contains(row.instance.as_str()) && !kept.contains_key(place);
            result.queue_messages_deleted += u64::from(deleted);
            !deleted
        });
        for instance in kept.values() {
            self.note_expired_turn(instance);
            self.end_route(instance, now);
        }
        result.queue_messages_deleted +=
            self.withdraw(|row| named.contains(row.identity.instance.as_str()), now);
        self.instances.retain(|id, _| !named.contains(id.as_str()));
        self.turns.retain(|id, _| !named.contains(id.as_str()));
        self.freed.retain(|id, _| !named.contains(id.as_str()));
        self.routes.retain(|id, _| !named.contains(id.as_str()));
        self.kv.retain(|id, _| !named.contains(id.as_str()));
        self.set_aside
            .retain(|_, aside| aside.shown.instance.as_deref().is_none_or(|id| !named.contains(id)));
        self.close_sessions(|key| key.instance.as_deref().is_some_and(|id| named.contains(id)), now);
        self.trails.forget(|id| named.contains(id));
        for watchers in self.watchers.values_mut() {
            watchers.retain(|watcher| !named.contains(watcher.instance.as_str()));
        }
        self.freed.extend(kept.into_values().map(|instance| (instance, now)));
        result
    }

    fn delete_trees(&mut self, roots: Vec<String>, now: u64) -> DeleteInstanceResult {
        let mut total = DeleteInstanceResult::default();
        for root in roots {
            let deleted = self.delete(&self.tree_of(&root), now);
            total.instances_deleted += deleted.instances_deleted;
            total.executions_deleted += deleted.executions_deleted;
            total.events_deleted += deleted.events_deleted;
            total.queue_messages_deleted += deleted.queue_messages_deleted;
        }
        total
    }

    /// Returns the instances with a row that match a filter, oldest first, up to its limit.
    fn selected(&self, filter: &InstanceFilter) -> Vec<String> {
        let limit = filter.limit.unwrap_or(DEFAULT_BULK_LIMIT) as usize;
        let chosen = self.newest_first().into_iter().rev().filter(|id| self.is_selected(id, filter));
        chosen.take(limit).cloned().collect()
    }

    fn is_selected(&self, instance: &str, filter: &InstanceFilter) -> bool {
        let named = filter.instance_ids.as_ref().is_none_or(|ids| ids.iter().any(|id| id == instance));
        named
            && filter
                .completed_before
                .is_none_or(|before| self.ended_at(instance).is_some_and(|at| at < before))
    }

    /// Returns the roots that match a filter and whose whole tree has ended, oldest first, up to its limit.
    fn ended_roots(&self, filter: &InstanceFilter) -> Vec<String> {
        let limit = filter.limit.unwrap_or(DEFAULT_BULK_LIMIT) as usize;
        let roots = self.newest_first().into_iter().rev().filter(|id| {
            self.is_root(id)
                && self.is_selected(id, filter)
                && !self.tree_of(id).iter().any(|member| self.is_alive(member))
        });
        roots.take(limit).cloned().collect()
    }

    /// Deletes the trees that have ended and whose root ended at least `ended_for` ago, oldest end first, up
    /// to a limit of roots.
    pub(crate) fn delete_ended(&mut self, ended_for: Duration, limit: u32, now: u64) -> DeleteInstanceResult {
        let Some(latest) = now.checked_sub(millis(ended_for)) else { return DeleteInstanceResult::default() };
        let mut roots: Vec<(u64, String)> = self
            .ended_roots(&InstanceFilter { limit: Some(u32::MAX), ..InstanceFilter::default() })
            .into_iter()
            .filter_map(|root| Some((self.ended_at(&root).filter(|at| *at <= latest)?, root)))
            .collect();
        roots.sort();
        roots.truncate(limit as usize);
        self.delete_trees(roots.into_iter().map(|(_, root)| root).collect(), now)
    }

    fn ended_at(&self, instance: &str) -> Option<u64> {
        let current = self.instances.get(instance)?.current_execution;
        self.executions.get(&(instance.to_owned(), current))?.completed_at_ms
    }

    pub(crate) fn gauges(&self) -> Gauges {
        let is_running = |id: &&String| self.status_of(id).as_deref() == Some("Running");
        Gauges {
            running_instances: self.instances.keys().filter(is_running).count() as u64,
            messages: self.messages.len() as u64,
            work: self.work.len() as u64,
        }
    }

    fn prune(&mut self, instance: &str, options: &PruneOptions) -> PruneResult {
        let mut result = PruneResult { instances_processed: 1, ..PruneResult::default() };
        let current = self.instances.get(instance).map_or(1, |row| row.current_execution);
        let keep = options.keep_last.unwrap_or(1).max(1) as usize;
        let mut executions: Vec<u64> = self.executions_of(instance).map(|(execution, _)| execution).collect();
        executions.truncate(executions.len().saturating_sub(keep));
        for execution in executions {
            let key = (instance.to_owned(), execution);
            let Some(row) = self.executions.get(&key) else { continue };
            let old = options
                .completed_before
                .is_none_or(|before| row.completed_at_ms.is_some_and(|at| at < before));
            if execution == current || row.is_running() || !old {
                continue;
            }
            self.executions.remove(&key);
            result.executions_deleted += 1;
            result.events_deleted += self.histories.remove(&key).map_or(0, |events| events.len() as u64);
        }
        result
    }
}
