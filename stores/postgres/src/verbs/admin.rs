//! Management: looking at instances, and removing what has ended (F12, F13).

use std::borrow::Cow;

use async_trait::async_trait;
use steadfast_core::Event;
use steadfast_store::{
    DEFAULT_BULK_LIMIT, DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree,
    ProviderAdmin, ProviderError, ProviderErrorKind, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
    Woken,
};
use tokio_postgres::Row;

use crate::link::db::{Db, Function, column, functions, sql, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::{Param, params};
use crate::store::PostgresProvider;
use crate::verbs::notify::{everything, payload};

pub(crate) const FUNCTIONS: &[Function] = functions![
    "admin/instance_tree",
    "admin/alive_instances",
    "admin/ended_roots",
    "admin/named_roots",
    "admin/refuse_deletion",
    "admin/erase_instances",
    "admin/delete_instance",
    "admin/delete_instance_bulk",
    "admin/prune_instances",
    "admin/prune_executions_bulk",
];

#[async_trait]
impl ProviderAdmin for PostgresProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        self.db.names("list_instances", sql!("admin/instances"), params![]).await
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        let statement = sql!("admin/instances_by_status");
        self.db.names("list_instances_by_status", statement, params![escape(status)]).await
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        let rows =
            self.db.rows("list_executions", sql!("admin/executions"), params![escape(instance)]).await?;
        rows.iter().map(|row| column("list_executions", row, "id").map(unsigned)).collect()
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.db.read_history(instance, Some(execution_id)).await
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.db.read_history(instance, None).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        let statement = sql!("admin/latest_execution");
        let row = self.db.one("latest_execution_id", statement, params![escape(instance)]).await?;
        row.map_or(Ok(1), |row| column("latest_execution_id", &row, "id").map(unsigned))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        let row =
            self.db.one("get_instance_info", sql!("admin/instance_info"), params![escape(instance)]).await?;
        instance_info(&row.ok_or_else(|| not_found("get_instance_info", instance))?)
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        let row = self
            .db
            .one(
                "get_execution_info",
                sql!("admin/execution_info"),
                params![escape(instance), time(execution_id)],
            )
            .await?;
        let row = row.ok_or_else(|| {
            let text = format!("execution {execution_id} of instance '{instance}' was not found");
            ProviderError::new(ProviderErrorKind::NotFound, "get_execution_info", text)
        })?;
        execution_info(&row)
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        const OPERATION: &str = "get_system_metrics";
        let Some(row) = self.db.one(OPERATION, sql!("admin/metrics"), params![]).await? else {
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
        let now = self.db.now();
        let Some(row) = self.db.one(OPERATION, sql!("admin/queue_depths"), params![now]).await? else {
            return Ok(QueueDepths::default());
        };
        let depth =
            |name| count(OPERATION, &row, name).map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        Ok(QueueDepths {
            orchestrator_queue: depth("messages")?,
            worker_queue: depth("work")?,
            timer_queue: 0,
        })
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        self.db.names("list_children", sql!("admin/children"), params![escape(instance_id)]).await
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        let row = self.db.one("get_parent_id", sql!("admin/parent"), params![escape(instance_id)]).await?;
        let row = row.ok_or_else(|| not_found("get_parent_id", instance_id))?;
        Ok(column::<Option<String>>("get_parent_id", &row, "id")?.map(unescape))
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        let all_ids =
            self.db.names("get_instance_tree", sql!("admin/tree"), params![escape(instance_id)]).await?;
        Ok(InstanceTree { root_id: instance_id.to_owned(), all_ids })
    }

    async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let row = self
            .db
            .one(
                "delete_instance",
                sql!("admin/delete_instance"),
                params![escape(instance_id), force, everything(&self.me), &*self.me],
            )
            .await?;
        self.waiters.wake_all();
        deleted("delete_instance", row)
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let woken = Woken { ended: ids.to_vec(), ..Woken::default() };
        let row = self
            .db
            .one(
                "delete_instances",
                sql!("admin/delete_instances"),
                params![escaped(ids), force, payload(&self.me, &woken), &*self.me],
            )
            .await?;
        self.waiters.wake(&woken);
        deleted("delete_instances", row)
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let row = self
            .db
            .one(
                "delete_instance_bulk",
                sql!("admin/delete_instance_bulk"),
                params![
                    filter.instance_ids.as_deref().map(escaped),
                    filter.completed_before.map(time),
                    i64::from(filter.limit.unwrap_or(DEFAULT_BULK_LIMIT)),
                    everything(&self.me),
                    &*self.me,
                ],
            )
            .await?;
        self.waiters.wake_all();
        deleted("delete_instance_bulk", row)
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let keep = options.keep_last.map(|keep| i32::try_from(keep).unwrap_or(i32::MAX));
        let row = self
            .db
            .one(
                "prune_executions",
                sql!("admin/prune"),
                params![escape(instance_id), keep, options.completed_before.map(time)],
            )
            .await?;
        pruned("prune_executions", row)
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let row = self
            .db
            .one(
                "prune_executions_bulk",
                sql!("admin/prune_bulk"),
                params![
                    filter.instance_ids.as_deref().map(escaped),
                    filter.completed_before.map(time),
                    i64::from(filter.limit.unwrap_or(DEFAULT_BULK_LIMIT)),
                    options.keep_last.map(i64::from),
                    options.completed_before.map(time),
                ],
            )
            .await?;
        pruned("prune_executions_bulk", row)
    }
}

impl PostgresProvider {
    /// Describes what the database holds, table by table, without payloads.
    pub async fn debug_dump(&self) -> String {
        match self.db.dump().await {
            Ok(text) => text,
            Err(error) => format!("the database cannot be read: {error}"),
        }
    }
}

impl Db {
    /// Runs a statement that gives ids.
    async fn names(
        &self,
        operation: &'static str,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<String>, ProviderError> {
        let rows = self.rows(operation, sql, params).await?;
        rows.iter().map(|row| column(operation, row, "id").map(unescape)).collect()
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
            let rows = self.rows("debug_dump", statement, params![]).await?;
            text.push_str(&format!("{title}: {}\n", rows.len()));
            for row in &rows {
                text.push_str(&format!("  {}\n", unescape(column("debug_dump", row, "line")?)));
            }
        }
        Ok(text)
    }
}

fn deleted(operation: &'static str, row: Option<Row>) -> Result<DeleteInstanceResult, ProviderError> {
    let Some(row) = row else { return Ok(DeleteInstanceResult::default()) };
    Ok(DeleteInstanceResult {
        instances_deleted: count(operation, &row, "instances")?,
        executions_deleted: count(operation, &row, "executions")?,
        events_deleted: count(operation, &row, "events")?,
        queue_messages_deleted: count(operation, &row, "queued")?,
    })
}

fn escaped(ids: &[String]) -> Vec<Cow<'_, str>> {
    ids.iter().map(|id| escape(id)).collect()
}

fn count(operation: &'static str, row: &Row, name: &str) -> Result<u64, ProviderError> {
    column(operation, row, name).map(unsigned)
}

fn pruned(operation: &'static str, row: Option<Row>) -> Result<PruneResult, ProviderError> {
    let Some(row) = row else { return Ok(PruneResult::default()) };
    Ok(PruneResult {
        instances_processed: count(operation, &row, "instances")?,
        executions_deleted: count(operation, &row, "executions")?,
        events_deleted: count(operation, &row, "events")?,
    })
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

fn not_found(operation: &'static str, instance: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::NotFound, operation, format!("instance '{instance}' was not found"))
}
