//! Histories: appended in the order of arrival, found by index.

use rusqlite::params;
use steadfast_core::Event;
use steadfast_store::rules::{history_after, repeated_event};
use steadfast_store::{History, ProviderErrorKind};

use crate::link::db::{Db, sql, text_of, time};
use crate::link::error::{DbResult, Fault, kind_of};

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
                let text = format!("event id {id} is none that can be stored: ids begin with 1");
                return Err(Fault::invalid(operation, text));
            }
            let columns = params![key, time(execution), time(id), event.kind.name(), text];
            match self.run(sql!("history/insert"), columns) {
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

/// Makes a history of stored texts: those after `known`, the last event that the caller holds, or all (S2,
/// S15).
pub(crate) fn history_of(texts: &[String], known: Option<u64>) -> History {
    history_after(events_of(texts), known)
}

pub(crate) fn events_of(texts: &[String]) -> serde_json::Result<Vec<Event>> {
    texts.iter().map(|text| serde_json::from_str(text)).collect()
}
