//! Histories: appended in the order of arrival, found by index. If the last leaf of their table is torn, they
//! are appended in front of the first one.

use rusqlite::params;
use steadfast_core::Event;
use steadfast_store::ProviderErrorKind;
use steadfast_store::rules::{repeated_event, unstorable_event};

use crate::link::db::{Db, sql, text_of, time};
use crate::link::error::{DbResult, Fault, is_torn, kind_of};

impl Db<'_> {
    /// Appends events; a repeated id is a conflict (S8).
    pub(crate) fn append(
        &self,
        operation: &'static str,
        key: i64,
        instance: &str,
        execution: u64,
        events: &[Event],
        texts: &[String],
    ) -> DbResult<()> {
        for (event, text) in events.iter().zip(texts) {
            let id = event.event_id;
            if id == 0 || i64::try_from(id).is_err() {
                return Err(unstorable_event(operation, id).into());
            }
            let columns = params![key, time(execution), time(id), event.kind.name(), text];
            let in_front = self.appends_in_front.get();
            let insert = if in_front { sql!("history/insert_in_front") } else { sql!("history/insert") };
            match self.run(insert, columns) {
                Err(fault) if is_torn(&fault) && !in_front => return Err(Fault::TornEnd),
                Err(Fault::Sqlite(error)) if kind_of(&error) == ProviderErrorKind::Conflict => {
                    return Err(repeated_event(operation, instance, execution, id).into());
                }
                inserted => inserted.map(drop)?,
            }
        }
        Ok(())
    }

    /// Returns the number of the latest execution, 1 if there is none.
    pub(crate) fn latest_execution(&self, key: i64) -> DbResult<i64> {
        Ok(self.maybe(sql!("execution/latest"), [key])?.unwrap_or(1))
    }

    /// Reads the texts of the events after one of them.
    pub(crate) fn event_texts(&self, key: i64, execution: i64, after: u64) -> DbResult<Vec<String>> {
        self.all(sql!("history/after"), params![key, execution, time(after)], |row| text_of(row, 0))
    }
}
