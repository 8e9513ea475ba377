//! Key-value state: what earlier executions left, and what the current one has changed since.

use std::collections::{BTreeMap, HashMap};

use steadfast_core::{Event, EventKind, KvEntry};
use steadfast_store::ProviderError;

use crate::link::db::{Db, Function, column, functions, sql, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::params;

pub(crate) const FUNCTIONS: &[Function] = functions!["kv/change_kv"];

/// What the events of a turn make of the keys: all are cleared first if they say so, and then each is set or cleared.
#[derive(Debug, Clone, Default)]
pub(crate) struct KvChanges {
    pub(crate) clears: bool,
    /// The value, `None` for a cleared key, and when it was set.
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
    /// What earlier executions left: the state that a replay starts from.
    pub(crate) async fn kv_snapshot(
        &self,
        operation: &'static str,
        instance: &str,
    ) -> Result<HashMap<String, KvEntry>, ProviderError> {
        let rows = self.rows(operation, sql!("kv/snapshot"), params![escape(instance)]).await?;
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
        let row = self.one(OPERATION, sql!("kv/value"), params![escape(instance), escape(key)]).await?;
        let value: Option<Option<String>> = row.map(|row| column(OPERATION, &row, "value")).transpose()?;
        Ok(value.flatten().map(unescape))
    }

    pub(crate) async fn kv_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        const OPERATION: &str = "kv_values";
        let rows = self.rows(OPERATION, sql!("kv/values"), params![escape(instance)]).await?;
        let read = |row: &tokio_postgres::Row| {
            Ok((unescape(column(OPERATION, row, "key")?), unescape(column(OPERATION, row, "value")?)))
        };
        rows.iter().map(read).collect()
    }
}
