//! The transaction that gives a queue a new table.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::{Connection, params};
use steadfast_store::{ProviderError, ProviderErrorKind, Queue};

use super::stand_in::{MessageStandIn, WorkStandIn};
use super::view::{IndexedMessage, IndexedWork, Listed};
use super::{Mended, OPERATION, Step, generations, unreadable};
use crate::link::db::{Db, sql, text_of};
use crate::link::error::{DbResult, REMEDY, damaged};
use crate::verbs::set_aside::number_of;
use crate::verbs::torn::source::{TornSource, left_behind, table_of};
use crate::verbs::turn::places_in;
use crate::verbs::work::call::{WITHOUT_SESSION, called_tag};
use crate::verbs::worker::route::session_of;

/// So many torn rows are left to stand-ins in any queue, and this share of a long one: all that one torn page
/// can hold. More are not: a page above the leaves is torn, and the leaves behind it may be whole.
const MOST_TORN: usize = 64;
const MOST_TORN_SHARE: usize = 8;

/// If all rows are torn, at most so many: they may have stood on the only page of the queue.
const MOST_TORN_OF_ALL: usize = 32;

/// Bounds the tables of a queue that are left behind.
const MOST_LEFT_BEHIND: usize = 8;

/// How many rows were copied, and how many others stand in the place of torn ones.
#[derive(Debug, Clone, Copy)]
struct Moved {
    whole: usize,
    torn: usize,
}

/// The lease of an instance: its token, and the messages that it holds, if the build that granted it wrote
/// them down.
struct TurnLeaseRow {
    key: i64,
    token: String,
    places: Option<Vec<i64>>,
}

impl Db<'_> {
    /// Gives a queue a new table with its whole rows, and others in the place of the torn ones. Rows that
    /// were given up do not come along. `expected` are the rows that earlier looks could not read.
    pub(super) fn mend(&self, step: Step, expected: &HashSet<i64>) -> DbResult<Mended> {
        let Step { queue, generation, .. } = step;
        let left = generations(self.connection(), queue)?;
        if left.iter().copied().max().unwrap_or(0) != generation {
            return Ok(Mended::ByAnother);
        }
        let torn = unreadable(self.beside()?, queue, None)?;
        if torn.is_empty() {
            return Ok(Mended::NotTorn);
        }
        if !torn.is_subset(expected) {
            let text = "the disk fails reads of the queues; nothing was changed";
            return Err(ProviderError::new(ProviderErrorKind::Unavailable, OPERATION, text).into());
        }
        if left.len() >= MOST_LEFT_BEHIND {
            return Err(damaged(OPERATION).into());
        }
        let moved = match queue {
            Queue::Orchestrator => self.replace_messages(generation + 1, &torn)?,
            Queue::Worker => self.replace_work(generation + 1, &torn)?,
        };
        tracing::warn!(
            target: "steadfast::store",
            ?queue,
            whole = moved.whole,
            torn = moved.torn,
            left_behind = left_behind(queue, generation + 1),
            "a part of the file is damaged: the queue has a new table, and what cannot be read is held back; \
             {REMEDY}"
        );
        Ok(Mended::Now)
    }

    fn replace_messages(&self, generation: i64, torn: &HashSet<i64>) -> DbResult<Moved> {
        let rows = self.indexed_messages()?;
        check_bounds(rows.len(), torn.len())?;
        let listed = self.listed(sql!("torn/message/mend/listed"))?;
        let (whole, stand_ins) = parted(&rows, torn, &listed);
        self.keep_messages_aside(generation, &rows)?;
        self.replace_table(Queue::Orchestrator, generation, &whole)?;
        self.run(sql!("torn/message/mend/clear"), [])?;
        let leases = self.turn_leases()?;
        // A row of an older version of its leaf may lack the mark of its lease.
        for lease in &leases {
            for place in lease.places.iter().flatten().filter(|place| !torn.contains(place)) {
                self.run(sql!("torn/message/mend/stamp"), params![place, lease.token])?;
            }
        }
        let leases: HashMap<i64, TurnLeaseRow> = leases.into_iter().map(|lease| (lease.key, lease)).collect();
        for seq in &stand_ins {
            let Some(row) = rows.get(seq) else { continue };
            let front = self.front_of_message(*seq, row)?;
            let token = match leases.get(&row.key) {
                Some(lease) if self.holds(lease, *seq, row, front.as_ref())? => Some(lease.token.clone()),
                _ => None,
            };
            let source = TornSource { queue: Queue::Orchestrator, generation, row: *seq };
            MessageStandIn { row, token, front, listed: listed.get(seq).copied() }.put(self, &source)?;
        }
        for seq in whole.iter().filter(|seq| listed.contains_key(seq)) {
            rows.get(seq).map_or(Ok(()), |row| self.touch_turn(row.key, self.now))?;
        }
        Ok(Moved { whole: whole.len(), torn: stand_ins.len() })
    }

    fn replace_work(&self, generation: i64, torn: &HashSet<i64>) -> DbResult<Moved> {
        let rows = self.indexed_work()?;
        check_bounds(rows.len(), torn.len())?;
        let listed = self.listed(sql!("torn/work/mend/listed"))?;
        let (whole, stand_ins) = parted(&rows, torn, &listed);
        self.keep_work_aside(generation, &rows)?;
        self.replace_table(Queue::Worker, generation, &whole)?;
        self.run(sql!("torn/work/mend/clear"), [])?;
        for seq in &stand_ins {
            let Some(row) = rows.get(seq) else { continue };
            let (front, epoch) = (self.front_of_work(*seq, row)?, self.epoch_of_lease(row)?);
            let source = TornSource { queue: Queue::Worker, generation, row: *seq };
            let (scheduled_tag, listed) = (self.scheduled_tag(row)?, listed.get(seq).copied());
            WorkStandIn { row, front, epoch, scheduled_tag, listed }.put(self, &source)?;
        }
        for seq in whole.iter().filter(|seq| listed.contains_key(seq)) {
            let Some(row) = rows.get(seq) else { continue };
            self.work_is_ready(row.session, row.tag.as_deref().unwrap_or_default())?;
        }
        Ok(Moved { whole: whole.len(), torn: stand_ins.len() })
    }

    /// Renames a table, and creates it anew with some of its rows, its indexes and its triggers.
    fn replace_table(&self, queue: Queue, generation: i64, rows: &[i64]) -> DbResult<()> {
        let (table, left_behind) = (table_of(queue), left_behind(queue, generation));
        let objects = self.all(sql!("torn/mend/objects"), [table], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        })?;
        let (tables, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(|(kind, ..)| kind == "table");
        for (kind, name, _) in &others {
            self.script(&format!("DROP {kind} {name}"))?;
        }
        self.script(&format!("ALTER TABLE {table} RENAME TO {left_behind}"))?;
        tables.iter().try_for_each(|(_, _, create)| self.script(create))?;
        self.run(sql!("torn/mend/sequence"), [table, &left_behind])?;
        let copy = format!("INSERT INTO {table} SELECT * FROM {left_behind} WHERE seq = ?1");
        for row in rows {
            if self.run(&copy, [row])? != 1 {
                return Err(damaged(OPERATION).into());
            }
        }
        others.iter().try_for_each(|(_, _, create)| self.script(create))
    }

    fn turn_leases(&self) -> DbResult<Vec<TurnLeaseRow>> {
        self.all(sql!("torn/message/mend/leases"), [], |row| {
            let (key, token, batch): (_, String, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let places = places_in(batch.as_deref(), &token);
            let is_written_down = batch.is_some_and(|batch| batch.split(' ').next() == Some(&token));
            Ok(TurnLeaseRow { key, token, places: is_written_down.then_some(places) })
        })
    }

    /// Tells whether the lease of an instance holds a torn message. A build that does not write that down
    /// leases the messages in their order: it holds one that stands before another of its messages.
    fn holds(
        &self,
        lease: &TurnLeaseRow,
        seq: i64,
        row: &IndexedMessage,
        front: Option<&super::stand_in::MessageFront>,
    ) -> DbResult<bool> {
        if row.state != 1 {
            return Ok(false);
        }
        match (&lease.places, front) {
            (Some(places), _) => Ok(places.contains(&seq)),
            (None, Some(front)) => Ok(front.token.as_ref() == Some(&lease.token)),
            (None, None) => {
                let columns = params![lease.key, lease.token, row.due, seq];
                Ok(self.number(sql!("torn/message/mend/is_before"), columns)? == 1)
            }
        }
    }

    /// Lets the messages that were set aside where they are come back to the new table when they are retried.
    fn keep_messages_aside(&self, generation: i64, rows: &BTreeMap<i64, IndexedMessage>) -> DbResult<()> {
        for (id, seq) in self.asides(Queue::Orchestrator)? {
            let text = TornSource { queue: Queue::Orchestrator, generation, row: seq }.text();
            let row = rows.get(&seq);
            let instance = row.map(|row| self.name_of(row.key)).transpose()?.flatten();
            let (starts, due) = (row.is_some_and(|row| row.starts), row.map(|row| row.due));
            self.run(sql!("torn/message/mend/aside"), params![id, text, instance, starts, due])?;
        }
        Ok(())
    }

    /// Lets the activities that were set aside where they are come back to the new table when they are
    /// retried.
    fn keep_work_aside(&self, generation: i64, rows: &BTreeMap<i64, IndexedWork>) -> DbResult<()> {
        for (id, seq) in self.asides(Queue::Worker)? {
            let text = TornSource { queue: Queue::Worker, generation, row: seq }.text();
            let Some(row) = rows.get(&seq) else {
                let nothing: Option<i64> = None;
                let columns = params![id, text, nothing, nothing, nothing, nothing, nothing, nothing];
                self.run(sql!("torn/work/mend/aside"), columns)?;
                continue;
            };
            let tag = match row.route {
                Some(route) => self.one(sql!("torn/work/mend/route_tag"), [route], |row| row.get(0))?,
                None if row.session == Some(WITHOUT_SESSION) => row.tag.as_deref().map(called_tag),
                None => row.tag.clone(),
            };
            let session = session_of(row.session);
            let session = session.map(|session| {
                self.one(sql!("torn/work/mend/session"), [session], |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
                })
            });
            let (scope, name) = session.transpose()?.flatten().unzip();
            let (instance, tag): (_, Option<String>) = (self.name_of(row.key)?, tag);
            let columns = params![id, text, instance, row.execution, row.activity, tag, scope, name];
            self.run(sql!("torn/work/mend/aside"), columns)?;
        }
        Ok(())
    }

    fn asides(&self, queue: Queue) -> DbResult<Vec<(i64, i64)>> {
        self.all(sql!("torn/mend/asides"), [number_of(queue)], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn name_of(&self, key: i64) -> DbResult<Option<String>> {
        self.one(sql!("instance/name"), [key], |row| row.get(0))
    }

    /// Tells whether a row of the queue, or one that was set aside, names a table that was left behind.
    pub(super) fn is_named(&self, queue: Queue, generation: i64) -> DbResult<bool> {
        let named = format!("% of {})", left_behind(queue, generation));
        let queued = match queue {
            Queue::Orchestrator => sql!("torn/message/mend/named"),
            Queue::Worker => sql!("torn/work/mend/named"),
        };
        Ok(self.number(queued, [&named])? == 1 || self.number(sql!("torn/mend/named_aside"), [&named])? == 1)
    }

    pub(super) fn drop_left_behind(&self, queue: Queue, generation: i64) -> DbResult<()> {
        self.script(&format!("DROP TABLE {}", left_behind(queue, generation)))
    }
}

/// A table that was left behind, with the generations that its rows name; `None` if not all of it can be
/// read.
pub(super) struct LeftBehind {
    generation: i64,
    named: Option<HashSet<i64>>,
}

impl LeftBehind {
    pub(super) fn read(connection: &Connection, queue: Queue, generation: i64) -> Self {
        let read = || -> rusqlite::Result<HashSet<i64>> {
            let mut named = HashSet::new();
            let select = format!("SELECT * FROM {}", left_behind(queue, generation));
            let mut statement = connection.prepare(&select)?;
            let (columns, item) = (statement.column_count(), statement.column_index("item")?);
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                for column in 0..columns {
                    row.get_ref(column)?;
                }
                named.extend(TornSource::of(&text_of(row, item)?).map(|source| source.generation));
            }
            Ok(named)
        };
        Self { generation, named: read().ok() }
    }

    pub(super) fn can_be_read(&self) -> bool {
        self.named.is_some()
    }

    /// Tells whether rows of this table have their source in an older one, or may have: a row that cannot be
    /// read has the same place there.
    pub(super) fn needs(&self, generation: i64) -> bool {
        generation < self.generation && self.named.as_ref().is_none_or(|named| named.contains(&generation))
    }
}

/// Parts the rows of a queue into those that are copied and those that others stand in the place of.
fn parted<R>(
    rows: &BTreeMap<i64, R>,
    torn: &HashSet<i64>,
    listed: &HashMap<i64, Listed>,
) -> (Vec<i64>, Vec<i64>) {
    let is_given_up = |seq: &i64| listed.get(seq).is_some_and(|listed| listed.until.is_none());
    let kept = rows.keys().copied().filter(|seq| !is_given_up(seq));
    let (torn, whole) = kept.partition(|seq| torn.contains(seq));
    (whole, torn)
}

fn check_bounds(all: usize, torn: usize) -> DbResult<()> {
    let is_too_much = torn > MOST_TORN.max(all / MOST_TORN_SHARE) || (torn == all && torn > MOST_TORN_OF_ALL);
    if is_too_much { Err(damaged(OPERATION).into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_with_few_torn_rows_is_mended_and_one_with_many_is_not() {
        for (all, torn, is_mended) in [
            (1, 1, true),
            (32, 32, true),
            (33, 33, false),
            (70, 64, true),
            (70, 65, false),
            (800, 100, true),
            (800, 101, false),
        ] {
            assert_eq!(check_bounds(all, torn).is_ok(), is_mended, "{torn} of {all}");
        }
    }
}
