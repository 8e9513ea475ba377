//! Instances: their state, read from the history only if an instance has no row.

mod list;

use rusqlite::params_from_iter;
use steadfast_core::{ErrorDetails, Event, EventKind, SystemStats};
use steadfast_store::rules::{self, ROWLESS};
use steadfast_store::{ExecutionState, InstanceState};

use crate::link::db::{Db, sql, text_of, unsigned};
use crate::link::error::DbResult;

impl Db<'_> {
    pub(crate) fn state(&self, instance: &str) -> DbResult<Option<InstanceState>> {
        match self.one(sql!("instance/state"), [instance], read)? {
            Some(state) => Ok(Some(state)),
            None => self.rowless_state(instance),
        }
    }

    /// Returns the state of an instance that has a history and no row: the history was appended without a
    /// lease, or committed without the name of the orchestration.
    fn rowless_state(&self, instance: &str) -> DbResult<Option<InstanceState>> {
        let Some(key) = self.maybe(sql!("instance/key"), [instance])? else { return Ok(None) };
        let execution = self.latest_execution(key)?;
        let Some(text) = self.one(sql!("history/started"), [key, execution], |row| text_of(row, 0))? else {
            return Ok(None);
        };
        let Some(Event {
            kind: EventKind::OrchestrationStarted { name, version, parent_instance, .. }, ..
        }) = serde_json::from_str(&text).ok()
        else {
            return Ok(None);
        };
        let times = self.event_texts(key, execution, 0)?;
        let times: Vec<u64> = times
            .iter()
            .filter_map(|text| serde_json::from_str::<Event>(text).ok())
            .map(|event| event.timestamp_ms)
            .collect();
        let status = self.one(sql!("execution/state"), [key, execution], execution_state)?;
        let last = self.maybe(sql!("history/last_event"), [key, execution])?;
        Ok(Some(InstanceState {
            instance: instance.to_owned(),
            orchestration: name,
            version,
            execution_id: unsigned(execution),
            status: status.unwrap_or(ExecutionState::Running),
            custom_status: None,
            custom_status_version: 0,
            parent: parent_instance,
            created_at_ms: times.iter().copied().min().unwrap_or(0),
            updated_at_ms: times.iter().copied().max().unwrap_or(0),
            change: last.map_or(0, unsigned) | ROWLESS,
        }))
    }

    pub(crate) fn stats(&self, instance: &str) -> DbResult<Option<SystemStats>> {
        let Some(key) = self.maybe(sql!("instance/key"), [instance])? else { return Ok(None) };
        let known = self.number(sql!("instance/is_known"), [key])? == 1;
        if !known {
            return Ok(None);
        }
        let execution = self.latest_execution(key)?;
        let size = self.one(sql!("history/size"), [key, execution], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (count, bytes): (i64, i64) = size.unwrap_or((0, 0));
        let values = self.kv_values(instance)?;
        let started = self.one(sql!("history/started"), [key, execution], |row| text_of(row, 0))?;
        let carried = started.and_then(|text| match serde_json::from_str::<Event>(&text).ok()?.kind {
            EventKind::OrchestrationStarted { carry_forward_events, .. } => carry_forward_events,
            _ => None,
        });
        Ok(Some(SystemStats {
            history_event_count: unsigned(count),
            history_size_bytes: unsigned(bytes),
            queue_pending_count: carried.map_or(0, |carried| carried.len() as u64),
            kv_user_key_count: values.len() as u64,
            kv_total_value_bytes: values.into_values().map(|value| value.len() as u64).sum(),
        }))
    }

    /// Runs a statement once for each id. Returns the number of rows that were changed in all.
    pub(crate) fn run_for_each<'a>(
        &self,
        sql: &str,
        keys: impl IntoIterator<Item = &'a i64>,
    ) -> DbResult<u64> {
        let mut changed = 0;
        for key in keys {
            changed += self.run(sql, params_from_iter([key]))? as u64;
        }
        Ok(changed)
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<InstanceState> {
    Ok(InstanceState {
        instance: row.get(0)?,
        orchestration: row.get(1)?,
        version: row.get(2)?,
        execution_id: unsigned(row.get(3)?),
        custom_status: row.get(4)?,
        custom_status_version: unsigned(row.get(5)?),
        parent: row.get(6)?,
        created_at_ms: unsigned(row.get(7)?),
        updated_at_ms: unsigned(row.get(8)?),
        change: unsigned(row.get(9)?),
        status: state_of(row.get(10)?, row.get(11)?, row.get(12)?),
    })
}

fn execution_state(row: &rusqlite::Row<'_>) -> rusqlite::Result<ExecutionState> {
    Ok(state_of(row.get(0)?, row.get(1)?, row.get(2)?))
}

fn state_of(status: Option<String>, output: Option<String>, failure: Option<String>) -> ExecutionState {
    let failure = failure.and_then(|text| serde_json::from_str::<ErrorDetails>(&text).ok());
    rules::execution_state(status.as_deref(), output, failure)
}
