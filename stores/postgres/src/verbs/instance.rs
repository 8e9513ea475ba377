//! Instances: their states, read without their histories.

use steadfast_core::{ErrorDetails, Event, EventKind, SystemStats};
use steadfast_store::rules::{self, ROWLESS, behind_prefix, events_of, instance_page, no_such_cursor};
use steadfast_store::{Cursor, ExecutionState, InstancePage, InstanceQuery, InstanceState, ProviderError};
use tokio_postgres::Row;

use crate::link::db::{Db, column, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::{Statement, params, sql};
use crate::schema::functions::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions!["instance/lock_instances", "instance/forget_instances"];

impl Db {
    pub(crate) async fn state(&self, instance: &str) -> Result<Option<InstanceState>, ProviderError> {
        const OPERATION: &str = "state";
        let stored = escape(instance);
        match self.one(OPERATION, Statement::of(sql!("instance/state"), params![stored])).await? {
            Some(row) => read(OPERATION, &row).map(Some),
            None => self.rowless_state(instance).await,
        }
    }

    /// Reads the state of an instance that has a history and no row: the history was appended by hand, or
    /// committed without a name.
    async fn rowless_state(&self, instance: &str) -> Result<Option<InstanceState>, ProviderError> {
        const OPERATION: &str = "state";
        let stored = escape(instance);
        let row = self.one(OPERATION, Statement::of(sql!("instance/rowless"), params![stored])).await?;
        let Some(row) = row else { return Ok(None) };
        let execution: i64 = column(OPERATION, &row, "execution_id")?;
        let started: Option<&str> = column(OPERATION, &row, "started")?;
        let started: Option<Event> = started.and_then(|text| serde_json::from_str(text).ok());
        let Some(EventKind::OrchestrationStarted { name, version, parent_instance, .. }) =
            started.map(|event| event.kind)
        else {
            return Ok(None);
        };
        let texts = self.event_texts(OPERATION, instance, execution, 0).await?;
        let events: Vec<_> =
            texts.iter().filter_map(|text| events_of(std::slice::from_ref(text)).ok()).flatten().collect();
        Ok(Some(InstanceState {
            instance: instance.to_owned(),
            orchestration: name,
            version,
            execution_id: unsigned(execution),
            status: execution_state(OPERATION, &row)?,
            custom_status: None,
            custom_status_version: 0,
            parent: parent_instance,
            created_at_ms: events.iter().map(|event| event.timestamp_ms).min().unwrap_or(0),
            updated_at_ms: events.iter().map(|event| event.timestamp_ms).max().unwrap_or(0),
            change: texts.len() as u64 | ROWLESS,
        }))
    }

    pub(crate) async fn instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        const OPERATION: &str = "instances";
        let before = match &query.after {
            None => i64::MAX,
            Some(Cursor(text)) => text.parse().map_err(|_| no_such_cursor(text))?,
        };
        let limit = i64::try_from(query.page_size()).unwrap_or(i64::MAX - 1);
        let prefix = query.id_prefix.as_deref().map(escape).filter(|prefix| !prefix.is_empty());
        let status = query.status.as_deref().map(escape);
        let orchestration = query.orchestration.as_deref().map(escape);
        let end = prefix.as_deref().and_then(behind_prefix);
        let parent = query.parent.as_deref().map(escape);
        let params = params![before, status, orchestration, prefix, end, parent, query.roots_only, limit + 1];
        let rows = self.rows(OPERATION, Statement::of(sql!("instance/page"), params)).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            found.push((read(OPERATION, row)?, column::<i64>(OPERATION, row, "ord")?));
        }
        Ok(instance_page(query, found))
    }

    pub(crate) async fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        const OPERATION: &str = "stats";
        let stored = escape(instance);
        let size = self.one(OPERATION, Statement::of(sql!("history/size"), params![stored])).await?;
        let Some(size) = size else { return Ok(None) };
        let started = self.started(OPERATION, instance, column(OPERATION, &size, "execution_id")?).await?;
        let carried = match started.map(|event| event.kind) {
            Some(EventKind::OrchestrationStarted { carry_forward_events, .. }) => carry_forward_events,
            _ => None,
        };
        let values = self.kv_values(instance).await?;
        Ok(Some(SystemStats {
            history_event_count: unsigned(column(OPERATION, &size, "events")?),
            history_size_bytes: unsigned(column(OPERATION, &size, "bytes")?),
            queue_pending_count: carried.map_or(0, |carried| carried.len() as u64),
            kv_user_key_count: values.len() as u64,
            kv_total_value_bytes: values.into_values().map(|value| value.len() as u64).sum(),
        }))
    }
}

fn read(operation: &'static str, row: &Row) -> Result<InstanceState, ProviderError> {
    let plain = |name: &str| column::<String>(operation, row, name).map(unescape);
    let maybe = |name: &str| column::<Option<String>>(operation, row, name).map(|text| text.map(unescape));
    let number = |name: &str| column(operation, row, name).map(unsigned);
    Ok(InstanceState {
        instance: plain("instance_id")?,
        orchestration: plain("orchestration_name")?,
        version: plain("orchestration_version")?,
        execution_id: number("current_execution_id")?,
        custom_status: maybe("custom_status")?,
        custom_status_version: number("custom_status_version")?,
        parent: maybe("parent_instance_id")?,
        created_at_ms: number("created_ms")?,
        updated_at_ms: number("updated_ms")?,
        change: number("change")?,
        status: execution_state(operation, row)?,
    })
}

/// Reads the state of an execution from its columns.
fn execution_state(operation: &'static str, row: &Row) -> Result<ExecutionState, ProviderError> {
    let status: Option<String> = column(operation, row, "status")?;
    let output: Option<String> = column(operation, row, "output")?;
    let failure: Option<String> = column(operation, row, "failure")?;
    let failure = failure.and_then(|text| serde_json::from_str::<ErrorDetails>(&text).ok());
    Ok(rules::execution_state(status.as_deref(), output.map(unescape), failure))
}
