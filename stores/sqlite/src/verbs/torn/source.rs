//! Rows that stand in the place of torn ones, and the tables in which the torn ones are.
//!
//! The text of such a row names the table and the row. Before it is counted as unreadable, that row is read
//! again, on a connection that has read nothing yet: a disk that failed may be well.

use rusqlite::{OptionalExtension, Row, params};
use steadfast_core::WorkItem;
use steadfast_store::Queue;
use steadfast_store::rules::{is_start, needs_no_code, read_text, stored_tag};

use super::look::UNREADABLE;
use super::mend::generations;
use crate::link::db::{Db, sql, text_if_any, text_of, text_or_none};
use crate::link::error::{DbResult, is_io, kind_of};
use crate::verbs::message::MessageRow;
use crate::verbs::work::tries::StoredCall;
use crate::verbs::worker::route::WorkRoute;

/// The row of a table that was left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TornSource {
    pub(crate) queue: Queue,
    pub(crate) generation: i64,
    pub(crate) row: i64,
}

const BEFORE_ROW: &str = ": a page of the file is torn (row ";

impl TornSource {
    /// Returns the text of the row that stands in the place of this one.
    pub(crate) fn text(&self) -> String {
        format!("{UNREADABLE}{BEFORE_ROW}{} of {})", self.row, left_behind(self.queue, self.generation))
    }

    /// Reads the text of a row. `None` if it stands in the place of no other.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let named = text.strip_prefix(UNREADABLE)?.strip_prefix(BEFORE_ROW)?.strip_suffix(')')?;
        let (row, table) = named.split_once(" of ")?;
        let of = |queue| Some((queue, table.strip_prefix(&left_behind_prefix(queue))?));
        let (queue, generation) = of(Queue::Orchestrator).or_else(|| of(Queue::Worker))?;
        let source = Self { queue, generation: generation.parse().ok()?, row: row.parse().ok()? };
        // Numbers can be written in several ways; the name of the table is part of a statement.
        (source.text() == text).then_some(source)
    }

    fn table(&self) -> String {
        left_behind(self.queue, self.generation)
    }
}

/// Returns the name of the table of a queue.
pub(super) fn table_of(queue: Queue) -> &'static str {
    match queue {
        Queue::Orchestrator => "messages",
        Queue::Worker => "work",
    }
}

/// Returns how the names of the tables of a queue begin that were left behind.
pub(super) fn left_behind_prefix(queue: Queue) -> String {
    format!("damaged_{}_", table_of(queue))
}

/// Returns the name of a table of a queue that was left behind.
pub(super) fn left_behind(queue: Queue, generation: i64) -> String {
    format!("{}{generation}", left_behind_prefix(queue))
}

/// An activity that a torn one has become again.
pub(crate) struct RestoredWork {
    pub(crate) item: WorkItem,
    pub(crate) traceparent: Option<String>,
    pub(crate) attempts: u32,
    pub(crate) tag: String,
    pub(crate) session: Option<i64>,
    pub(crate) call: StoredCall,
}

impl Db<'_> {
    /// Makes a message that stands in the place of a torn one that one again, if it can be read.
    pub(crate) fn restored_message(
        &self,
        instance: &str,
        row: &MessageRow,
    ) -> DbResult<Option<(MessageRow, WorkItem)>> {
        let before = "item, traceparent, attempts, due, life, dropped, starts";
        let columns = [format!("{before}, failure"), format!("{before}, NULL")];
        let read = |found: &Row<'_>| {
            let restored = MessageRow {
                seq: row.seq,
                item: text_of(found, 0)?,
                attempts: found.get(2)?,
                traceparent: text_or_none(found, 1)?,
                starts: found.get(6)?,
                due: found.get::<_, Option<i64>>(3)?.unwrap_or(row.due),
                life: found.get(4)?,
                failure: text_if_any(found, 7)?,
            };
            Ok((restored, found.get::<_, i64>(5)?))
        };
        let Some((restored, dropped)) =
            self.read_source(&row.item, Queue::Orchestrator, &columns, read, |(restored, _)| &restored.item)?
        else {
            return Ok(None);
        };
        let Ok(item) = restored.content() else { return Ok(None) };
        if item.instance() != instance || is_start(&item) != restored.starts {
            return Ok(None);
        }
        let columns = params![
            row.seq,
            restored.item,
            restored.traceparent,
            restored.attempts,
            restored.starts,
            restored.due,
            restored.life,
            dropped,
            !needs_no_code(&item),
            restored.failure
        ];
        self.run(sql!("torn/message/mend/restore"), columns)?;
        tell(Queue::Orchestrator, instance);
        Ok(Some((restored, item)))
    }

    /// Makes an activity that stands in the place of a torn one that one again, if it can be read.
    pub(crate) fn restored_work(&self, seq: i64, key: i64, text: &str) -> DbResult<Option<RestoredWork>> {
        let before = "item, traceparent, attempts";
        let columns = [
            format!("{before}, call, deliveries, tries, last_error, first_fetched"),
            format!("{before}, NULL, 0, 0, NULL, NULL"),
        ];
        let read = |found: &Row<'_>| {
            let (text, traceparent) = (text_of(found, 0)?, text_or_none(found, 1)?);
            Ok((text, traceparent, found.get::<_, u32>(2)?, StoredCall::read(found, 3)?))
        };
        let source = self.read_source(text, Queue::Worker, &columns, read, |(text, ..)| text)?;
        let Some((text, traceparent, attempts, call)) = source else { return Ok(None) };
        if call.terms().is_err() {
            return Ok(None);
        }
        let Ok(item) = read_text::<WorkItem>(&text) else { return Ok(None) };
        let WorkItem::ActivityExecute { instance, execution_id, id, tag, .. } = &item else {
            return Ok(None);
        };
        let own = self.one(sql!("torn/work/mend/identity"), [seq], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })?;
        let name = self.one(sql!("instance/name"), [key], |row| row.get::<_, String>(0))?;
        let (execution, activity) = (crate::link::db::time(*execution_id), crate::link::db::time(*id));
        if name.as_ref() != Some(instance) || own != Some((execution, activity)) {
            return Ok(None);
        }
        // Its session and its route are those of the row that stood in its place.
        let place = self.place_with_tag(seq, stored_tag(tag.as_deref()), call.terms.is_some())?;
        let Some(place) = place else { return Ok(None) };
        let WorkRoute { session, tag, route } = place;
        let columns = params![
            seq,
            text,
            traceparent,
            attempts,
            tag,
            session,
            route,
            call.terms,
            call.deliveries,
            call.tries,
            call.last_error,
            call.first_fetched
        ];
        let restored = self.one(sql!("torn/work/mend/restore"), columns, |row| {
            Ok((row.get::<_, u32>(0)?, StoredCall::read(row, 1)?))
        })?;
        let Some((attempts, call)) = restored else { return Ok(None) };
        tell(Queue::Worker, instance);
        Ok(Some(RestoredWork { item, traceparent, attempts, tag, session, call }))
    }

    /// Reads columns of the row that a text names, beside the transaction: the first ones, or the second if
    /// its table lacks some of those. If the text of that row names
    /// another, or if it cannot be read, its source is older: a row has the same place in all tables that
    /// were left behind. `None` if the text names none, or if no such row can be read.
    fn read_source<T>(
        &self,
        text: &str,
        queue: Queue,
        columns: &[String; 2],
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
        text_of_row: impl Fn(&T) -> &str,
    ) -> DbResult<Option<T>> {
        let named = |text: &str| TornSource::of(text).filter(|source| source.queue == queue);
        let Some(TornSource { mut generation, mut row, .. }) = named(text) else { return Ok(None) };
        let mut older = generations(self.beside()?, queue)?;
        older.sort_unstable();
        while let Some(newest) = older.pop() {
            if newest > generation {
                continue;
            }
            let source = TornSource { queue, generation: newest, row };
            let Some(found) = self.read_row_of(&source, columns, &read)? else { continue };
            match named(text_of_row(&found)) {
                None => return Ok(Some(found)),
                Some(next) => (generation, row) = (next.generation, next.row),
            }
        }
        Ok(None)
    }

    fn read_row_of<T>(
        &self,
        source: &TornSource,
        columns: &[String; 2],
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> DbResult<Option<T>> {
        let beside = self.beside()?;
        let prepare = |columns: &String| {
            beside.prepare(&format!("SELECT {columns} FROM {} WHERE seq = ?1", source.table())).ok()
        };
        // The table may have been dropped by hand, or left behind by a build without the newest columns.
        let Some(mut statement) = columns.iter().find_map(prepare) else { return Ok(None) };
        match statement.query_row([source.row], read).optional() {
            Err(error) if is_io(&error) || kind_of(&error) == steadfast_store::ProviderErrorKind::Corrupt => {
                Ok(None)
            }
            found => Ok(found?),
        }
    }
}

fn tell(queue: Queue, instance: &str) {
    tracing::info!(
        target: "steadfast::store",
        ?queue,
        instance,
        "a row of a damaged table can be read again, and goes on"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_in_the_place_of_a_torn_row_names_it() {
        for queue in [Queue::Orchestrator, Queue::Worker] {
            let source = TornSource { queue, generation: 3, row: 17 };
            assert_eq!(TornSource::of(&source.text()), Some(source));
        }
    }

    #[test]
    fn no_other_text_names_a_row() {
        let text = TornSource { queue: Queue::Worker, generation: 3, row: 17 }.text();
        for other in [
            "{}".to_owned(),
            format!("{text} "),
            text.replace("17", "+17"),
            text.replace("work_3", "work_3; DROP TABLE work"),
            text.replace("work_3", "other_3"),
        ] {
            assert_eq!(TornSource::of(&other), None, "{other}");
        }
    }
}
