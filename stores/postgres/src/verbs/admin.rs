//! Management: reading about instances, and deleting those that have ended (F12, F13).

pub(crate) mod age;

use std::borrow::Cow;

use async_trait::async_trait;
use steadfast_core::Event;
use steadfast_store::rules::{no_such_execution, no_such_instance};
use steadfast_store::{
    DEFAULT_BULK_LIMIT, DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree,
    ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths, SystemMetrics, Woken,
};
use tokio_postgres::Row;

use crate::link::db::{Db, column, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::{Statement, calls, params, sql};
use crate::provider::PostgresProvider;
use crate::schema::functions::{Function, functions};
use crate::verbs::notify::everything;

pub(crate) const FUNCTIONS: &[Function] = functions![
    "admin/instance_tree",
    "admin/alive_instances",
    "admin/ended_roots",
    "admin/early_roots",
    "admin/named_roots",
    "admin/refuse_deletion",
    "admin/erase_instances",
    "admin/delete_instance",
    "admin/delete_instance_bulk",
    "admin/prune_instances",
    "admin/prune_executions_bulk",
];

calls! {
    /// Lists the ids of all instances.
    ListInstances => list_instances {}

    /// Lists the ids of instances with a status.
    ListInstancesByStatus<'a> => list_instances_by_status {
        status: Cow<'a, str>,
    }

    /// Lists the executions of an instance.
    ListExecutions<'a> => list_executions {
        instance_id: Cow<'a, str>,
    }

    /// Returns the newest execution of an instance.
    LatestExecution<'a> => latest_execution_id {
        instance_id: Cow<'a, str>,
    }

    /// Counts the queued messages and the queued work.
    GetQueueDepths => get_queue_depths {
        now_ms: Option<i64>,
    }

    /// Lists the children of an instance.
    ListChildren<'a> => list_children {
        instance_id: Cow<'a, str>,
    }

    /// Returns the parent of an instance; no row if there is no such instance.
    GetParent<'a> => get_parent_id {
        instance_id: Cow<'a, str>,
    }

    /// Lists an instance and its descendants.
    ListTree<'a> => instance_tree {
        root: Cow<'a, str>,
    }

    /// Deletes an instance and its descendants.
    DeleteInstance<'a> => delete_instance {
        instance: Cow<'a, str>,
        force: bool,
        notify: String,
        me: &'a str,
        now_ms: Option<i64>,
    }

    /// Deletes instances, all or none.
    DeleteInstances<'a> => delete_instances_atomic {
        instance_ids: Vec<Cow<'a, str>>,
        force: bool,
        notify: Option<String>,
        me: &'a str,
        now_ms: Option<i64>,
    }

    /// Deletes instances that have ended.
    DeleteInstanceBulk<'a> => delete_instance_bulk {
        instances: Option<Vec<Cow<'a, str>>>,
        completed_before: Option<i64>,
        limit: i64,
        notify: String,
        me: &'a str,
        now_ms: Option<i64>,
    }

    /// Deletes old executions of an instance.
    PruneExecutions<'a> => prune_executions {
        instance_id: Cow<'a, str>,
        keep_last: Option<i32>,
        completed_before_ms: Option<i64>,
    }

    /// Deletes old executions of many instances.
    PruneExecutionsBulk<'a> => prune_executions_bulk {
        instances: Option<Vec<Cow<'a, str>>>,
        ended_before: Option<i64>,
        limit: i64,
        keep_last: Option<i64>,
        completed_before: Option<i64>,
    }
}

#[async_trait]
impl ProviderAdmin for PostgresProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        self.db().names("list_instances", ListInstances {}.statement(), "out_instance_id").await
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        let call = ListInstancesByStatus { status: escape(status) };
        self.db().names("list_instances_by_status", call.statement(), "out_instance_id").await
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        const OPERATION: &str = "list_executions";
        let call = ListExecutions { instance_id: escape(instance) };
        let rows = self.db().rows(OPERATION, call.statement()).await?;
        rows.iter().map(|row| column(OPERATION, row, "out_execution_id").map(unsigned)).collect()
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.db().read_history(instance, Some(execution_id)).await
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.db().read_history(instance, None).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        const OPERATION: &str = "latest_execution_id";
        let call = LatestExecution { instance_id: escape(instance) };
        let row = self.db().one(OPERATION, call.statement()).await?;
        row.map_or(Ok(1), |row| column(OPERATION, &row, "latest_execution_id").map(unsigned))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        let stored = escape(instance);
        let statement = Statement::of(sql!("admin/instance_info"), params![stored]);
        let row = self.db().one("get_instance_info", statement).await?;
        instance_info(&row.ok_or_else(|| no_such_instance("get_instance_info", instance))?)
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        let (stored, execution) = (escape(instance), time(execution_id));
        let statement = Statement::of(sql!("admin/execution_info"), params![stored, execution]);
        let row = self.db().one("get_execution_info", statement).await?;
        let none = || no_such_execution("get_execution_info", instance, execution_id);
        execution_info(&row.ok_or_else(none)?)
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        const OPERATION: &str = "get_system_metrics";
        let Some(row) = self.db().one(OPERATION, Statement::of(sql!("admin/metrics"), &[])).await? else {
            return Ok(SystemMetrics::default());
        };
        Ok(SystemMetrics {
            total_instances: count(OPERATION, &row, "instances")?,
            total_executions: count(OPERATION, &row, "executions")?,
            running_instances: count(OPERATION, &row, "running")?,
            completed_instances: count(OPERATION, &row, "completed")?,
            failed_instances: count(OPERATION, &row, "failed")?,
            total_events: count(OPERATION, &row, "events")?,
        })
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        const OPERATION: &str = "get_queue_depths";
        let call = GetQueueDepths { now_ms: self.db().now() };
        let Some(row) = self.db().one(OPERATION, call.statement()).await? else {
            return Ok(QueueDepths::default());
        };
        let depth =
            |name| count(OPERATION, &row, name).map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        Ok(QueueDepths {
            orchestrator_queue: depth("out_orchestrator_queue")?,
            worker_queue: depth("out_worker_queue")?,
            timer_queue: 0,
        })
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        let call = ListChildren { instance_id: escape(instance_id) };
        self.db().names("list_children", call.statement(), "out_instance_id").await
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        const OPERATION: &str = "get_parent_id";
        let call = GetParent { instance_id: escape(instance_id) };
        let row = self.db().one(OPERATION, call.statement()).await?;
        let row = row.ok_or_else(|| no_such_instance(OPERATION, instance_id))?;
        Ok(column::<Option<String>>(OPERATION, &row, "out_parent_instance_id")?.map(unescape))
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        let call = ListTree { root: escape(instance_id) };
        let all_ids = self.db().names("get_instance_tree", call.statement(), "instance_id").await?;
        Ok(InstanceTree { root_id: instance_id.to_owned(), all_ids })
    }

    async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        const OPERATION: &str = "delete_instance";
        let (me, now_ms) = (&self.backend.me, self.db().now());
        let call =
            DeleteInstance { instance: escape(instance_id), force, notify: everything(me), me, now_ms };
        let row = self.db().one(OPERATION, call.statement()).await?;
        self.backend.waiters.wake_all();
        row.map_or(Ok(DeleteInstanceResult::default()), |row| deleted(OPERATION, &row))
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        const OPERATION: &str = "delete_instances";
        // A start of another parent that stays makes its instance ready (S17).
        let woken = Woken { turns: ids.len(), ended: ids.to_vec(), ..Woken::default() };
        let notify = self.backend.payload(&woken);
        let (me, now_ms) = (&self.backend.me, self.db().now());
        let call = DeleteInstances { instance_ids: escaped(ids), force, notify, me, now_ms };
        let row = self.db().one(OPERATION, call.statement()).await?;
        self.backend.waiters.wake(&woken);
        let Some(row) = row else { return Ok(DeleteInstanceResult::default()) };
        Ok(DeleteInstanceResult {
            instances_deleted: count(OPERATION, &row, "out_instances_deleted")?,
            executions_deleted: count(OPERATION, &row, "out_executions_deleted")?,
            events_deleted: count(OPERATION, &row, "out_events_deleted")?,
            queue_messages_deleted: count(OPERATION, &row, "out_queue_messages_deleted")?,
        })
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        const OPERATION: &str = "delete_instance_bulk";
        let me = &self.backend.me;
        let call = DeleteInstanceBulk {
            instances: filter.instance_ids.as_deref().map(escaped),
            completed_before: filter.completed_before.map(time),
            limit: i64::from(filter.limit.unwrap_or(DEFAULT_BULK_LIMIT)),
            notify: everything(me),
            me,
            now_ms: self.db().now(),
        };
        let row = self.db().one(OPERATION, call.statement()).await?;
        self.backend.waiters.wake_all();
        row.map_or(Ok(DeleteInstanceResult::default()), |row| deleted(OPERATION, &row))
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        const OPERATION: &str = "prune_executions";
        let call = PruneExecutions {
            instance_id: escape(instance_id),
            keep_last: options.keep_last.map(|keep| i32::try_from(keep).unwrap_or(i32::MAX)),
            completed_before_ms: options.completed_before.map(time),
        };
        let row = self.db().one(OPERATION, call.statement()).await?;
        let Some(row) = row else { return Ok(PruneResult::default()) };
        Ok(PruneResult {
            instances_processed: count(OPERATION, &row, "out_instances_processed")?,
            executions_deleted: count(OPERATION, &row, "out_executions_deleted")?,
            events_deleted: count(OPERATION, &row, "out_events_deleted")?,
        })
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        const OPERATION: &str = "prune_executions_bulk";
        let call = PruneExecutionsBulk {
            instances: filter.instance_ids.as_deref().map(escaped),
            ended_before: filter.completed_before.map(time),
            limit: i64::from(filter.limit.unwrap_or(DEFAULT_BULK_LIMIT)),
            keep_last: options.keep_last.map(i64::from),
            completed_before: options.completed_before.map(time),
        };
        let row = self.db().one(OPERATION, call.statement()).await?;
        let Some(row) = row else { return Ok(PruneResult::default()) };
        Ok(PruneResult {
            instances_processed: count(OPERATION, &row, "instances")?,
            executions_deleted: count(OPERATION, &row, "executions")?,
            events_deleted: count(OPERATION, &row, "events")?,
        })
    }
}

impl PostgresProvider {
    /// Describes the rows of the store, table by table, without payloads: for a look at a small database.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn debug_dump(&self) -> String {
        match self.db().dump().await {
            Ok(text) => text,
            Err(error) => format!("the database cannot be read: {error}"),
        }
    }
}

impl Db {
    /// Runs a statement that gives ids in a column.
    async fn names(
        &self,
        operation: &'static str,
        statement: Statement<'_>,
        name: &str,
    ) -> Result<Vec<String>, ProviderError> {
        let rows = self.rows(operation, statement).await?;
        rows.iter().map(|row| column(operation, row, name).map(unescape)).collect()
    }

    async fn dump(&self) -> Result<String, ProviderError> {
        let mut text = String::new();
        for (title, statement) in [
            ("instances", sql!("admin/dump_instances")),
            ("executions", sql!("admin/dump_executions")),
            ("turns", sql!("admin/dump_turns")),
            ("messages", sql!("admin/dump_messages")),
            ("work", sql!("admin/dump_work")),
            ("sessions", sql!("admin/dump_sessions")),
        ] {
            let rows = self.rows("debug_dump", Statement::of(statement, &[])).await?;
            text.push_str(&format!("{title}: {}\n", rows.len()));
            for row in &rows {
                text.push_str(&format!("  {}\n", unescape(column("debug_dump", row, "line")?)));
            }
        }
        Ok(text)
    }
}

fn deleted(operation: &'static str, row: &Row) -> Result<DeleteInstanceResult, ProviderError> {
    Ok(DeleteInstanceResult {
        instances_deleted: count(operation, row, "instances")?,
        executions_deleted: count(operation, row, "executions")?,
        events_deleted: count(operation, row, "events")?,
        queue_messages_deleted: count(operation, row, "queued")?,
    })
}

fn escaped(ids: &[String]) -> Vec<Cow<'_, str>> {
    ids.iter().map(|id| escape(id)).collect()
}

fn count(operation: &'static str, row: &Row, name: &str) -> Result<u64, ProviderError> {
    column(operation, row, name).map(unsigned)
}

fn instance_info(row: &Row) -> Result<InstanceInfo, ProviderError> {
    const OPERATION: &str = "get_instance_info";
    let text = |name| column::<String>(OPERATION, row, name).map(unescape);
    let maybe = |name| column::<Option<String>>(OPERATION, row, name).map(|text| text.map(unescape));
    Ok(InstanceInfo {
        instance_id: text("instance_id")?,
        orchestration_name: text("name")?,
        orchestration_version: text("version")?,
        current_execution_id: count(OPERATION, row, "execution_id")?,
        status: text("status")?,
        output: maybe("output")?,
        created_at: count(OPERATION, row, "created_ms")?,
        updated_at: count(OPERATION, row, "updated_ms")?,
        parent_instance_id: maybe("parent")?,
    })
}

fn execution_info(row: &Row) -> Result<ExecutionInfo, ProviderError> {
    const OPERATION: &str = "get_execution_info";
    let events = count(OPERATION, row, "events")?;
    Ok(ExecutionInfo {
        execution_id: count(OPERATION, row, "execution_id")?,
        status: unescape(column(OPERATION, row, "status")?),
        output: column::<Option<String>>(OPERATION, row, "output")?.map(unescape),
        started_at: count(OPERATION, row, "started_ms")?,
        completed_at: column::<Option<i64>>(OPERATION, row, "completed_ms")?.map(unsigned),
        event_count: usize::try_from(events).unwrap_or(usize::MAX),
    })
}
