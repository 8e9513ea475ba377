//! Key-value state: what earlier executions left, and what the current one has changed since.

use std::collections::HashMap;

use rusqlite::params;
use steadfast_core::{Event, EventKind, KvEntry};

use crate::db::{Db, sql, time, unsigned};
use crate::error::Done;

impl Db<'_> {
    pub(crate) fn apply_kv(&self, key: i64, events: &[Event], over: bool) -> Done<()> {
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
                    self.run(sql!("kv/clear_left"), [key])?;
                }
                _ => {}
            }
        }
        if over {
            self.run(sql!("kv/merge_cleared"), [key])?;
            self.run(sql!("kv/merge_set"), [key])?;
            self.run(sql!("kv/merge_done"), [key])?;
        }
        Ok(())
    }

    /// What earlier executions left: the state that a replay starts from.
    pub(crate) fn kv_snapshot(&self, key: i64) -> Done<HashMap<String, KvEntry>> {
        let rows = self.all(sql!("kv/snapshot"), [key], |row| {
            let entry = KvEntry { value: row.get(1)?, last_updated_at_ms: unsigned(row.get(2)?) };
            Ok((row.get(0)?, entry))
        })?;
        Ok(rows.into_iter().collect())
    }

    pub(crate) fn kv_value(&self, instance: &str, name: &str) -> Done<Option<String>> {
        let value =
            self.one(sql!("kv/value"), params![instance, name], |row| row.get::<_, Option<String>>(0))?;
        Ok(value.flatten())
    }

    pub(crate) fn kv_values(&self, instance: &str) -> Done<HashMap<String, String>> {
        Ok(self
            .all(sql!("kv/values"), [instance], |row| Ok((row.get(0)?, row.get(1)?)))?
            .into_iter()
            .collect())
    }
}
