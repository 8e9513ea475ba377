//! Rebuilding a queue that has a torn page in the way of its other rows.
//!
//! SQLite adds each new row to the last leaf of a table, and moves rows between leaves when one grows. If
//! that leaf or one of those is torn, the call fails, whichever instance it is for. So the queue gets a new
//! table, with all rows that can be read; the old one stays in the file under another name, because SQLite
//! cannot remove it, and `.recover` may find more in it. In the place of each torn row stands one that has
//! what the indexes know of it and no text: it is leased, consumed, finished or withdrawn like any other, and
//! one that is to be delivered is counted, held back and set aside like any text that cannot be read (S15).

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::params;
use rusqlite::types::FromSql;
use steadfast_store::{ProviderError, ProviderErrorKind, Queue};
use tokio::sync::Mutex;

use crate::link::db::{Db, sql};
use crate::link::error::{DbResult, Fault, REMEDY, TornRow, TornRows, is_torn_for_good, torn_rows};
use crate::store::SqliteProvider;
use crate::verbs::torn::{MOST_TRIES, PastTorn};
use crate::verbs::turn::places_in;

/// The text of a row that stands in the place of a torn one, and the reason why it is set aside.
pub(crate) const TORN_TEXT: &str = "the database cannot read it: a page of the file was torn";

/// The rebuilds of queues by one process. One call at a time rebuilds; the others wait for it.
#[derive(Debug)]
pub(crate) struct Rebuilds {
    count: AtomicU64,
    /// When the queues were last searched for torn rows in vain, by the time of the file.
    searched_at: Mutex<i64>,
}

impl Default for Rebuilds {
    fn default() -> Self {
        Self { count: AtomicU64::new(0), searched_at: Mutex::new(i64::MIN) }
    }
}

impl Rebuilds {
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// How long after a search that found no torn row the next one may begin: it reads all rows of the queues.
const SEARCH_EVERY_MS: i64 = 60_000;

/// The statements about all rows of one queue.
struct QueueStatements {
    table: &'static str,
    rows: &'static str,
    listed: &'static str,
    clear: &'static str,
    /// Keeps what was set aside without being removed.
    aside: &'static str,
}

fn statements(queue: Queue) -> QueueStatements {
    match queue {
        Queue::Orchestrator => QueueStatements {
            table: "messages",
            rows: sql!("torn/message/rebuild/rows"),
            listed: sql!("torn/message/rebuild/listed"),
            clear: sql!("torn/message/rebuild/clear"),
            aside: sql!("torn/message/rebuild/aside"),
        },
        Queue::Worker => QueueStatements {
            table: "work",
            rows: sql!("torn/work/rebuild/rows"),
            listed: sql!("torn/work/rebuild/listed"),
            clear: sql!("torn/work/rebuild/clear"),
            aside: sql!("torn/work/rebuild/aside"),
        },
    }
}

/// What is listed of a row: how often it was looked at, and until when it is held back; `None` if it is given
/// up.
struct Listed {
    attempts: i64,
    until: Option<i64>,
}

/// The columns of a row that an index has. Of a message the last two are its state and when it was due, of an
/// activity its execution and its id.
struct IndexedRow {
    seq: i64,
    key: i64,
    third: i64,
    fourth: i64,
}

impl SqliteProvider {
    /// Rebuilds the queues that have torn rows. False if there were none a moment ago: then the call has met
    /// other damage. A call that has met what another one mends runs again.
    pub(super) async fn rebuild_torn_queues(&self, past: &mut PastTorn) -> Result<bool, ProviderError> {
        let mut searched_at = self.rebuilds.searched_at.lock().await;
        let (now, count) = (self.clock.now_ms(), self.rebuilds.count());
        if past.rebuilds != count {
            past.rebuilds = count;
            return Ok(true);
        }
        if now.saturating_sub(*searched_at) < SEARCH_EVERY_MS {
            return Ok(false);
        }
        match self.rebuild_each().await {
            Ok(true) => {
                past.rebuilds = self.rebuilds.count.fetch_add(1, Ordering::Relaxed) + 1;
                Ok(true)
            }
            // Another process may have rebuilt a queue meanwhile: the call runs once more.
            Ok(false) => {
                *searched_at = now;
                Ok(true)
            }
            // An index is torn: the rows cannot be listed.
            Err(error) if error.kind == ProviderErrorKind::Corrupt => {
                *searched_at = now;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn rebuild_each(&self) -> Result<bool, ProviderError> {
        let messages = self.rebuild_if_torn(Queue::Orchestrator).await?;
        Ok(self.rebuild_if_torn(Queue::Worker).await? || messages)
    }

    async fn rebuild_if_torn(&self, queue: Queue) -> Result<bool, ProviderError> {
        let generation = self.write_among_others(move |db| db.generation(queue)).await?;
        let Err(error) = self.write_among_others(move |db| db.find_torn(queue)).await else {
            return Ok(false);
        };
        let Some(torn) = torn_rows(&error) else { return Err(error) };
        let torn: Arc<HashSet<i64>> = Arc::new(torn.iter().map(|row| row.row).collect());
        tracing::warn!(
            target: "steadfast::store",
            ?queue,
            torn = torn.len(),
            "a part of the file is damaged: the queue is rebuilt without what cannot be read; {REMEDY}"
        );
        self.write_among_others(move |db| db.rebuild(queue, generation, &torn)).await?;
        Ok(true)
    }

    /// Runs a transaction, again if another call that meets the torn page has taken it along.
    async fn write_among_others<R, F>(&self, work: F) -> Result<R, ProviderError>
    where
        R: Send + 'static,
        F: Fn(&Db<'_>) -> DbResult<R> + Clone + Send + 'static,
    {
        let mut tries = 1;
        loop {
            match self.writer.write("rebuild_queue", work.clone()).await {
                // An error of its own has a source.
                Err(error) if error.is_retryable() && error.source.is_none() && tries < MOST_TRIES => {
                    tries += 1;
                }
                written => return written,
            }
        }
    }
}

impl Db<'_> {
    /// Counts how often a queue was rebuilt.
    fn generation(&self, queue: Queue) -> DbResult<i64> {
        let left_behind = format!("damaged_{}_*", statements(queue).table);
        self.number(sql!("torn/rebuild/generation"), [left_behind])
    }

    /// Fails with the torn rows of a queue, if it has any, listed or not. This reads all of its rows. A row
    /// that the disk does not return fails it otherwise: such a row may be readable again, and must not be
    /// left behind.
    fn find_torn(&self, queue: Queue) -> DbResult<()> {
        let rows: Vec<i64> = self.all(statements(queue).rows, [], |row| row.get(0))?;
        let mut torn = Vec::new();
        for row in rows {
            match self.probe(queue, row) {
                Err(fault) if is_torn_for_good(&fault) => {
                    torn.push(TornRow { queue, row, key: None, place: None, reason: String::new() });
                }
                probed => probed?,
            }
        }
        if torn.is_empty() { Ok(()) } else { Err(Fault::Torn(TornRows(torn))) }
    }

    /// Gives a queue a new table with the rows that can be read, and others in place of the torn ones. Rows
    /// that were given up do not come along. Does nothing if another call has rebuilt the queue meanwhile.
    fn rebuild(&self, queue: Queue, generation: i64, torn: &HashSet<i64>) -> DbResult<()> {
        if self.generation(queue)? != generation {
            return Ok(());
        }
        let statements = statements(queue);
        let listed = self.listed(queue)?;
        let is_given_up =
            |row: &IndexedRow| listed.get(&row.seq).is_some_and(|listed| listed.until.is_none());
        let mut rows = self.all(statements.rows, [], |row| {
            Ok(IndexedRow { seq: row.get(0)?, key: row.get(1)?, third: row.get(2)?, fourth: row.get(3)? })
        })?;
        rows.retain(|row| !is_given_up(row));
        let (torn, whole): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| torn.contains(&row.seq));
        let stand_ins = match queue {
            Queue::Orchestrator => StandIns::Messages(self.message_stand_ins(&torn, &listed)?),
            Queue::Worker => StandIns::Work(self.work_stand_ins(&torn, &listed)?),
        };
        self.run(statements.aside, [TORN_TEXT])?;
        self.replace_table(statements.table, generation + 1, &whole)?;
        self.run(statements.clear, [])?;
        stand_ins.put(self)?;
        // Some that were held back may have become readable.
        for row in whole.iter().filter(|row| listed.contains_key(&row.seq)) {
            let place = self.place_of_torn(queue, row.seq)?;
            self.refresh_place(queue, row.seq, Some(row.key), place.as_ref())?;
        }
        Ok(())
    }

    fn listed(&self, queue: Queue) -> DbResult<HashMap<i64, Listed>> {
        let read =
            |row: &rusqlite::Row<'_>| Ok((row.get(0)?, Listed { attempts: row.get(1)?, until: row.get(2)? }));
        Ok(self.all(statements(queue).listed, [], read)?.into_iter().collect())
    }

    /// Renames a table, and creates it anew with its indexes, its triggers and some of its rows.
    fn replace_table(&self, table: &str, generation: i64, rows: &[IndexedRow]) -> DbResult<()> {
        let left_behind = format!("damaged_{table}_{generation}");
        let objects = self.all(sql!("torn/rebuild/objects"), [table], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        })?;
        let (tables, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(|(kind, ..)| kind == "table");
        for (kind, name, _) in &others {
            self.script(&format!("DROP {kind} {name}"))?;
        }
        self.script(&format!("ALTER TABLE {table} RENAME TO {left_behind}"))?;
        tables.iter().try_for_each(|(_, _, create)| self.script(create))?;
        self.run(sql!("torn/rebuild/sequence"), [table, &left_behind])?;
        let copy = format!("INSERT INTO {table} SELECT * FROM {left_behind} WHERE seq = ?1");
        for row in rows {
            self.run(&copy, [row.seq])?;
        }
        others.iter().try_for_each(|(_, _, create)| self.script(create))
    }

    fn message_stand_ins(
        &self,
        torn: &[IndexedRow],
        listed: &HashMap<i64, Listed>,
    ) -> DbResult<Vec<MessageStandIn>> {
        let starts: HashSet<i64> =
            self.all(sql!("torn/message/rebuild/starts"), [], |row| row.get(0))?.into_iter().collect();
        let mut stand_ins = Vec::with_capacity(torn.len());
        for IndexedRow { seq, key, third: state, fourth: due } in torn {
            let lease = self.one(sql!("torn/message/rebuild/lease"), [key], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?))
            })?;
            let token = lease.filter(|(token, batch)| places_in(batch.as_deref(), token).contains(seq));
            let held_back = listed.get(seq).filter(|_| token.is_none());
            stand_ins.push(MessageStandIn {
                seq: *seq,
                key: *key,
                state: held_back.map_or(*state, |_| 0),
                visible_at: held_back.and_then(|listed| listed.until).unwrap_or(*due),
                attempts: listed.get(seq).map_or(0, |listed| listed.attempts),
                token: token.map(|(token, _)| token),
                starts: starts.contains(seq),
                due: *due,
            });
        }
        Ok(stand_ins)
    }

    fn work_stand_ins(
        &self,
        torn: &[IndexedRow],
        listed: &HashMap<i64, Listed>,
    ) -> DbResult<Vec<WorkStandIn>> {
        let delayed: HashMap<i64, i64> = self.by_place(sql!("torn/work/rebuild/delayed"))?;
        let leased: HashMap<i64, i64> = self.by_place(sql!("torn/work/rebuild/leased"))?;
        let tokens: HashMap<i64, String> = self.by_place(sql!("torn/work/rebuild/tokens"))?;
        let tags: HashMap<i64, String> = self.by_place(sql!("torn/work/rebuild/tags"))?;
        let routes: HashMap<i64, i64> = self.by_place(sql!("torn/work/rebuild/routes"))?;
        let sessions: HashMap<i64, (i64, String)> = self
            .all(sql!("torn/work/rebuild/sessions"), [], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?
            .into_iter()
            .collect();
        let stand_in = |row: &IndexedRow| {
            let until = listed.get(&row.seq).and_then(|listed| listed.until);
            let lease = tokens.get(&row.seq).zip(leased.get(&row.seq));
            let locked_until =
                lease.map(|(_, locked_until)| until.map_or(*locked_until, |at| at.max(*locked_until)));
            let held_back = until.or_else(|| delayed.get(&row.seq).copied()).filter(|_| lease.is_none());
            let session = sessions.get(&row.seq);
            let tag = session.map(|(_, tag)| tag).or_else(|| tags.get(&row.seq));
            WorkStandIn {
                seq: row.seq,
                key: row.key,
                execution: row.third,
                activity: row.fourth,
                state: if lease.is_some() { 2 } else { i64::from(held_back.is_none()) },
                tag: tag.cloned().unwrap_or_default(),
                session: session.map(|(session, _)| *session),
                visible_at: held_back.unwrap_or(self.now),
                attempts: listed.get(&row.seq).map_or(0, |listed| listed.attempts),
                token: lease.map(|(token, _)| token.clone()),
                locked_until,
                is_held_back: until.is_some() && lease.is_none(),
                route: routes.get(&row.seq).copied(),
            }
        };
        Ok(torn.iter().map(stand_in).collect())
    }

    fn by_place<T: FromSql, S: BuildHasher + Default>(
        &self,
        statement: &str,
    ) -> DbResult<HashMap<i64, T, S>> {
        Ok(self.all(statement, [], |row| Ok((row.get(0)?, row.get(1)?)))?.into_iter().collect())
    }
}

/// The rows that stand in the place of torn ones.
enum StandIns {
    Messages(Vec<MessageStandIn>),
    Work(Vec<WorkStandIn>),
}

impl StandIns {
    fn put(&self, db: &Db<'_>) -> DbResult<()> {
        match self {
            Self::Messages(rows) => rows.iter().try_for_each(|row| row.put(db)),
            Self::Work(rows) => rows.iter().try_for_each(|row| row.put(db)),
        }
    }
}

struct MessageStandIn {
    seq: i64,
    key: i64,
    state: i64,
    visible_at: i64,
    attempts: i64,
    token: Option<String>,
    starts: bool,
    due: i64,
}

impl MessageStandIn {
    fn put(&self, db: &Db<'_>) -> DbResult<()> {
        let Self { seq, key, state, visible_at, attempts, token, starts, due } = self;
        let columns = params![seq, key, state, visible_at, attempts, token, starts, TORN_TEXT, due];
        db.run(sql!("torn/message/rebuild/put"), columns)?;
        db.moments.borrow_mut().turn.add(*visible_at);
        db.touch_turn(*key, db.now)
    }
}

struct WorkStandIn {
    seq: i64,
    key: i64,
    execution: i64,
    activity: i64,
    state: i64,
    tag: String,
    session: Option<i64>,
    visible_at: i64,
    attempts: i64,
    token: Option<String>,
    locked_until: Option<i64>,
    /// True if it was looked at and could not be read.
    is_held_back: bool,
    route: Option<i64>,
}

impl WorkStandIn {
    fn put(&self, db: &Db<'_>) -> DbResult<()> {
        let columns = params![
            self.seq,
            self.key,
            self.execution,
            self.activity,
            self.state,
            self.tag,
            self.session,
            self.visible_at,
            self.attempts,
            self.token,
            self.locked_until,
            db.now,
            self.is_held_back,
            TORN_TEXT,
            self.route
        ];
        db.run(sql!("torn/work/rebuild/put"), columns)?;
        db.moments.borrow_mut().work.add(self.locked_until.unwrap_or(self.visible_at));
        db.work_is_ready(self.session, &self.tag)
    }
}
