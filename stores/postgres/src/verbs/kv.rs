//! Key-value state: the values of earlier executions, and the changes of the current one.

use std::collections::{BTreeMap, HashMap};

use steadfast_core::{Event, EventKind, KvEntry};
use steadfast_store::ProviderError;

use crate::link::db::{Db, column, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::{Statement, params, sql};
use crate::schema::functions::{Function, functions};

pub(crate) const FUNCTIONS: &[Function] = functions!["kv/change_kv"];

/// The changes of keys that the events of a turn record.
#[derive(Debug, Clone, Default)]
pub(crate) struct KvChanges {
    /// Whether all keys are cleared before those below are set.
    pub(crate) clears: bool,
    /// By key: the value, `None` for a cleared key, and when it was set.
    pub(crate) keys: BTreeMap<String, (Option<String>, i64)>,
}

impl KvChanges {
    pub(crate) fn of(events: &[Event]) -> Self {
        let mut changes = Self::default();
        for event in events {
            match &event.kind {
                EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                    let value = Some(escape(value).into_owned());
                    changes.keys.insert(escape(key).into_owned(), (value, time(*last_updated_at_ms)));
                }
                EventKind::KeyValueCleared { key } => {
                    changes.keys.insert(escape(key).into_owned(), (None, 0));
                }
                EventKind::KeyValuesCleared => {
                    changes.clears = true;
                    changes.keys.clear();
                }
                _ => {}
            }
        }
        changes
    }

    pub(crate) fn bytes(&self) -> usize {
        self.keys.iter().map(|(key, (value, _))| key.len() + value.as_ref().map_or(0, String::len)).sum()
    }
}

impl Db {
    /// Reads the values that earlier executions left: the state that a replay starts from.
    pub(crate) async fn kv_snapshot(
        &self,
        operation: &'static str,
        instance: &str,
    ) -> Result<HashMap<String, KvEntry>, ProviderError> {
        let instance = escape(instance);
        let rows = self.rows(operation, Statement::of(sql!("kv/snapshot"), params![instance])).await?;
        let read = |row: &tokio_postgres::Row| {
            let updated = unsigned(column(operation, row, "updated_ms")?);
            let entry =
                KvEntry { value: unescape(column(operation, row, "value")?), last_updated_at_ms: updated };
            Ok((unescape(column(operation, row, "key")?), entry))
        };
        rows.iter().map(read).collect()
    }

    pub(crate) async fn kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        const OPERATION: &str = "kv_value";
        let (instance, key) = (escape(instance), escape(key));
        let row = self.one(OPERATION, Statement::of(sql!("kv/value"), params![instance, key])).await?;
        let value: Option<Option<String>> = row.map(|row| column(OPERATION, &row, "value")).transpose()?;
        Ok(value.flatten().map(unescape))
    }

    pub(crate) async fn kv_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        const OPERATION: &str = "kv_values";
        let instance = escape(instance);
        let rows = self.rows(OPERATION, Statement::of(sql!("kv/values"), params![instance])).await?;
        let read = |row: &tokio_postgres::Row| {
            Ok((unescape(column(OPERATION, row, "key")?), unescape(column(OPERATION, row, "value")?)))
        };
        rows.iter().map(read).collect()
    }
}
