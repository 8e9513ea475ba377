//! Key-value state: the state at the end of the previous execution, and the changes of the current one.

use std::collections::HashMap;

use rusqlite::params;
use steadfast_core::{Event, EventKind, KvEntry};

use crate::link::db::{Db, sql, time, unsigned};
use crate::link::error::DbResult;

impl Db<'_> {
    /// Records what events set and clear. When the execution ends, its changes become the state that the next
    /// execution starts from.
    pub(crate) fn record_kv(&self, key: i64, events: &[Event], ends_execution: bool) -> DbResult<()> {
        for event in events {
            match &event.kind {
                EventKind::KeyValueSet { key: name, value, last_updated_at_ms } => {
                    self.run(sql!("kv/set"), params![key, name, value, time(*last_updated_at_ms)])?;
                }
                EventKind::KeyValueCleared { key: name } => {
                    self.run(sql!("kv/set"), params![key, name, None::<String>, 0])?;
                }
                EventKind::KeyValuesCleared => {
                    self.run(sql!("kv/clear_changes"), [key])?;
                    self.run(sql!("kv/clear_previous"), [key])?;
                }
                _ => {}
            }
        }
        if ends_execution {
            self.run(sql!("kv/merge_cleared"), [key])?;
            self.run(sql!("kv/merge_set"), [key])?;
            self.run(sql!("kv/merge_forget"), [key])?;
        }
        Ok(())
    }

    /// Returns the state at the end of the previous execution, which a replay starts from.
    pub(crate) fn kv_snapshot(&self, key: i64) -> DbResult<HashMap<String, KvEntry>> {
        let rows = self.all(sql!("kv/snapshot"), [key], |row| {
            let entry = KvEntry { value: row.get(1)?, last_updated_at_ms: unsigned(row.get(2)?) };
            Ok((row.get(0)?, entry))
        })?;
        Ok(rows.into_iter().collect())
    }

    pub(crate) fn kv_value(&self, instance: &str, name: &str) -> DbResult<Option<String>> {
        let value =
            self.one(sql!("kv/value"), params![instance, name], |row| row.get::<_, Option<String>>(0))?;
        Ok(value.flatten())
    }

    pub(crate) fn kv_values(&self, instance: &str) -> DbResult<HashMap<String, String>> {
        Ok(self
            .all(sql!("kv/values"), [instance], |row| Ok((row.get(0)?, row.get(1)?)))?
            .into_iter()
            .collect())
    }
}
