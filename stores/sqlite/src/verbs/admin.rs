//! Management: inspecting instances, and removing those that have ended (F12, F13).

mod bulk;
pub(crate) mod retention;

use std::collections::BTreeSet;

use async_trait::async_trait;
use rusqlite::params;
use steadfast_core::Event;
use steadfast_store::rules::{child_left_behind, no_such_execution, no_such_instance, still_running};
use steadfast_store::{
    DeleteInstanceResult, ExecutionInfo, Gauges, InstanceFilter, InstanceInfo, ProviderAdmin, ProviderError,
    PruneOptions, PruneResult, QueueDepths, Store, SystemMetrics,
};

use crate::link::db::{Db, sql, time, unsigned};
use crate::link::error::DbResult;
use crate::store::SqliteProvider;
use crate::verbs::message::ONE_MESSAGE;

#[async_trait]
impl ProviderAdmin for SqliteProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        self.read("list_instances", |db| db.all(sql!("admin/instances"), [], |row| row.get(0))).await
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        let status = status.to_owned();
        let look = move |db: &Db<'_>| db.all(sql!("admin/instances_by_status"), [&status], |row| row.get(0));
        self.read("list_instances_by_status", look).await
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        let instance = instance.to_owned();
        let look = move |db: &Db<'_>| {
            db.all(sql!("admin/executions"), [&instance], |row| row.get::<_, i64>(0).map(unsigned))
        };
        self.read("list_executions", look).await
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        Store::read_history(self, instance, Some(execution_id)).await
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        Store::read_history(self, instance, None).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        let instance = instance.to_owned();
        let look = move |db: &Db<'_>| match db.maybe(sql!("instance/key"), [&instance])? {
            Some(key) => Ok(unsigned(db.latest_execution(key)?)),
            None => Ok(1),
        };
        self.read("latest_execution_id", look).await
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        let instance = instance.to_owned();
        let look = move |db: &Db<'_>| {
            let info = db.one(sql!("admin/instance_info"), [&instance], instance_info)?;
            info.ok_or_else(|| no_such_instance("get_instance_info", &instance).into())
        };
        self.read("get_instance_info", look).await
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        let instance = instance.to_owned();
        let look = move |db: &Db<'_>| {
            let info =
                db.one(sql!("admin/execution_info"), params![instance, time(execution_id)], execution_info)?;
            info.ok_or_else(|| no_such_execution("get_execution_info", &instance, execution_id).into())
        };
        self.read("get_execution_info", look).await
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        let look = |db: &Db<'_>| {
            let metrics = db.one(sql!("admin/metrics"), [], |row| {
                Ok(SystemMetrics {
                    total_instances: unsigned(row.get(0)?),
                    total_executions: unsigned(row.get(1)?),
                    running_instances: unsigned(row.get(2)?),
                    completed_instances: unsigned(row.get(3)?),
                    failed_instances: unsigned(row.get(4)?),
                    total_events: unsigned(row.get(5)?),
                })
            })?;
            Ok(metrics.unwrap_or_default())
        };
        self.read("get_system_metrics", look).await
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        let look = |db: &Db<'_>| {
            let count = |count: i64| usize::try_from(count).unwrap_or(usize::MAX);
            Ok(QueueDepths {
                orchestrator_queue: count(db.number(sql!("admin/waiting_messages"), [db.now])?),
                worker_queue: count(db.number(sql!("admin/waiting_work"), [db.now])?),
                timer_queue: 0,
            })
        };
        self.read("get_queue_depths", look).await
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        let instance = instance_id.to_owned();
        self.read("list_children", move |db| db.children_of(&instance)).await
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        let instance = instance_id.to_owned();
        let look = move |db: &Db<'_>| {
            let parent = db.one(sql!("admin/parent"), [&instance], |row| row.get(0))?;
            parent.ok_or_else(|| no_such_instance("get_parent_id", &instance).into())
        };
        self.read("get_parent_id", look).await
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let ids: BTreeSet<String> = ids.iter().cloned().collect();
        let delete = move |db: &Db<'_>| {
            db.check_delete(&ids, force)?;
            db.delete(&ids)
        };
        self.write_past_torn("delete_instances", delete).await
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let filter = std::sync::Arc::new(filter);
        self.write_past_torn("delete_instance_bulk", move |db| db.delete_bulk(&filter)).await
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let instance = instance_id.to_owned();
        let prune = move |db: &Db<'_>| {
            let key = db.maybe(sql!("admin/prune/named_key"), [&instance])?;
            let key = key.ok_or_else(|| no_such_instance("prune_executions", &instance))?;
            db.prune(key, &options)
        };
        self.writer.write("prune_executions", prune).await
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.writer.write("prune_executions_bulk", move |db| db.prune_bulk(&filter, &options)).await
    }
}

impl Db<'_> {
    fn children_of(&self, parent: &str) -> DbResult<Vec<String>> {
        self.all(sql!("admin/children"), [parent], |row| row.get(0))
    }

    fn tree_of(&self, root: &str) -> DbResult<BTreeSet<String>> {
        let mut tree = BTreeSet::from([root.to_owned()]);
        let mut next = vec![root.to_owned()];
        while let Some(id) = next.pop() {
            for child in self.children_of(&id)? {
                if tree.insert(child.clone()) {
                    next.push(child);
                }
            }
        }
        Ok(tree)
    }

    /// Tells whether an instance has not ended: its current execution runs, or the start of its next one
    /// waits.
    fn is_alive(&self, instance: &str) -> DbResult<bool> {
        if self.number(sql!("admin/is_alive"), [instance])? == 1 {
            return Ok(true);
        }
        let key = self.maybe(sql!("instance/key"), [instance])?;
        key.map_or(Ok(false), |key| self.is_asked_for(key))
    }

    fn check_delete(&self, ids: &BTreeSet<String>, force: bool) -> DbResult<()> {
        for id in ids {
            if !force && self.is_alive(id)? {
                return Err(still_running(id).into());
            }
            if let Some(child) = self.children_of(id)?.into_iter().find(|child| !ids.contains(child)) {
                return Err(child_left_behind(&child, id).into());
            }
        }
        Ok(())
    }

    /// Returns an instance with all below it, if all of them have ended.
    fn ended_tree(&self, root: &str) -> DbResult<Option<BTreeSet<String>>> {
        let tree = self.tree_of(root)?;
        for member in &tree {
            if self.is_alive(member)? {
                return Ok(None);
            }
        }
        Ok(Some(tree))
    }

    pub(crate) fn gauges(&self) -> DbResult<Gauges> {
        let counts = self.one(sql!("admin/gauges"), [], |row| {
            Ok(Gauges {
                running_instances: unsigned(row.get(0)?),
                messages: unsigned(row.get(1)?),
                work: unsigned(row.get(2)?),
            })
        })?;
        Ok(counts.unwrap_or_default())
    }

    fn delete(&self, ids: &BTreeSet<String>) -> DbResult<DeleteInstanceResult> {
        let mut result =
            DeleteInstanceResult { instances_deleted: ids.len() as u64, ..DeleteInstanceResult::default() };
        // The id of a child mostly begins with that of its parent: a child that is deleted first is no orphan
        // in between.
        for id in ids.iter().rev() {
            let Some(key) = self.maybe(sql!("instance/key"), [id])? else { continue };
            let key = [key];
            result.executions_deleted += self.run_for_each(sql!("admin/delete/executions"), &key)?;
            result.events_deleted += self.run_for_each(sql!("admin/delete/history"), &key)?;
            self.check_messages(key[0])?;
            self.give_up_torn_messages(key[0])?;
            let kept = self.starts_of_others(key[0], ids)?;
            result.queue_messages_deleted += self.delete_messages(key[0], &kept)?;
            for seq in self.all(sql!("admin/delete/work"), key, |row| row.get::<_, i64>(0))? {
                self.withdraw_work(seq)?;
                result.queue_messages_deleted += 1;
            }
            self.run_for_each(sql!("admin/delete/kv"), &key)?;
            self.run_for_each(sql!("admin/delete/watchers"), &key)?;
            self.close_sessions_of(id)?;
            self.forget_trails_of(id)?;
            self.run(sql!("admin/delete/set_aside"), [id])?;
            if kept.is_empty() {
                self.run_for_each(sql!("admin/delete/instance"), &key)?;
            } else {
                self.make_anew(key[0], id)?;
            }
            self.woken.borrow_mut().ended.push(id.clone());
        }
        Ok(result)
    }

    /// Removes the messages to an instance, but for those at some places. Returns how many it removed.
    fn delete_messages(&self, key: i64, kept: &[i64]) -> DbResult<u64> {
        let mut removed = 0;
        for seq in self.all(sql!("torn/message/of_instance"), [key], |row| row.get::<_, i64>(0))? {
            if !kept.contains(&seq) {
                removed += self.remove_rows(&ONE_MESSAGE, [seq])? as u64;
            }
        }
        Ok(removed)
    }

    /// Deletes the row of an instance whose queue has starts that stay, and inserts a new one of the same key
    /// for them. The lease of the starts ends as if it had expired, and their route ends.
    fn make_anew(&self, key: i64, id: &str) -> DbResult<()> {
        self.remember_expired_turn(key)?;
        self.end_route(key)?;
        self.run_for_each(sql!("admin/delete/instance"), &[key])?;
        self.run(sql!("admin/delete/anew"), params![key, id])?;
        self.free_turn(key, self.now)
    }

    fn prune(&self, key: i64, options: &PruneOptions) -> DbResult<PruneResult> {
        let keep = i64::from(options.keep_last.unwrap_or(1).max(1));
        let mut result = PruneResult { instances_processed: 1, ..PruneResult::default() };
        let columns = params![key, keep, options.completed_before.map(time)];
        for execution in self.all(sql!("admin/prune/prunable"), columns, |row| row.get::<_, i64>(0))? {
            result.events_deleted += self.run(sql!("admin/prune/history"), [key, execution])? as u64;
            result.executions_deleted += self.run(sql!("admin/prune/execution"), [key, execution])? as u64;
        }
        Ok(result)
    }
}

/// Adds what one deletion removed to what others did.
fn add_up(total: &mut DeleteInstanceResult, deleted: &DeleteInstanceResult) {
    total.instances_deleted += deleted.instances_deleted;
    total.executions_deleted += deleted.executions_deleted;
    total.events_deleted += deleted.events_deleted;
    total.queue_messages_deleted += deleted.queue_messages_deleted;
}

fn instance_info(row: &rusqlite::Row<'_>) -> rusqlite::Result<InstanceInfo> {
    Ok(InstanceInfo {
        instance_id: row.get(0)?,
        orchestration_name: row.get(1)?,
        orchestration_version: row.get(2)?,
        current_execution_id: unsigned(row.get(3)?),
        status: row.get(4)?,
        output: row.get(5)?,
        created_at: unsigned(row.get(6)?),
        updated_at: unsigned(row.get(7)?),
        parent_instance_id: row.get(8)?,
    })
}

fn execution_info(row: &rusqlite::Row<'_>) -> rusqlite::Result<ExecutionInfo> {
    Ok(ExecutionInfo {
        execution_id: unsigned(row.get(0)?),
        status: row.get(1)?,
        output: row.get(2)?,
        started_at: unsigned(row.get(3)?),
        completed_at: row.get::<_, Option<i64>>(4)?.map(unsigned),
        event_count: usize::try_from(row.get::<_, i64>(5)?).unwrap_or(usize::MAX),
    })
}
