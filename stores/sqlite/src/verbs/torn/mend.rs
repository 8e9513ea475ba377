//! Mending a queue that has a torn page in the way of all its rows.
//!
//! SQLite adds each new row to the last leaf of a table, and moves rows between leaves when one grows. If
//! that leaf or one of those is torn, the call fails, whichever instance it is for. So the queue gets a new
//! table with all whole rows; the old one stays in the file under another name. In the place of each torn row
//! stands one that has what the indexes know of it, and whose text names it (`source`).
//!
//! SQLite tells of some failed reads as of damage, so only what several looks find is taken for torn, each on
//! a connection that has read nothing yet (`docs/decisions/0016-queues-with-a-torn-page.md`).

mod replace;
mod stand_in;
mod view;

use std::collections::HashSet;
use std::sync::Arc;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use steadfast_store::{ProviderError, ProviderErrorKind, Queue};
use tokio::sync::Mutex;

use self::replace::LeftBehind;
use super::PastTorn;
use super::look::look_at;
use super::source::left_behind_prefix;
use crate::link::db::{Db, sql};
use crate::link::error::{DbResult, REMEDY};
use crate::link::look::Looks;
use crate::store::SqliteProvider;

/// The mends of one process. One call at a time mends; the others wait for it.
#[derive(Debug, Default)]
pub(crate) struct Mends(Mutex<Pause>);

/// Until when the queues are not looked at again, by the time of the file. A look reads all of their rows.
#[derive(Debug)]
struct Pause {
    until: i64,
    length_ms: i64,
    /// What kept the last step from being done, if that may pass: calls in the pause are told the same.
    hindered: Option<ProviderError>,
}

const SHORTEST_PAUSE_MS: i64 = 1_000;
const LONGEST_PAUSE_MS: i64 = 60_000;

impl Default for Pause {
    fn default() -> Self {
        Self { until: i64::MIN, length_ms: SHORTEST_PAUSE_MS, hindered: None }
    }
}

impl Pause {
    /// Begins a pause, longer than the last one. One that ended long ago does not count.
    fn begin(&mut self, now: i64, hindered: Option<ProviderError>) {
        self.hindered = hindered;
        if self.until != i64::MIN && now.saturating_sub(self.until) > LONGEST_PAUSE_MS {
            self.length_ms = SHORTEST_PAUSE_MS;
        }
        self.until = now.saturating_add(self.length_ms);
        self.length_ms = self.length_ms.saturating_mul(2).min(LONGEST_PAUSE_MS);
    }
}

/// How often the tables of messages and of work were replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Generations {
    messages: i64,
    work: i64,
}

impl Generations {
    fn read(connection: &Connection) -> DbResult<Self> {
        let of = |queue| generations(connection, queue).map(|found| found.into_iter().max().unwrap_or(0));
        Ok(Self { messages: of(Queue::Orchestrator)?, work: of(Queue::Worker)? })
    }

    fn of(&self, queue: Queue) -> i64 {
        match queue {
            Queue::Orchestrator => self.messages,
            Queue::Worker => self.work,
        }
    }
}

/// The rows of both queues that a look could not read.
#[derive(Debug, Default)]
struct TornPlaces {
    messages: HashSet<i64>,
    work: HashSet<i64>,
}

impl TornPlaces {
    fn of(&self, queue: Queue) -> &HashSet<i64> {
        match queue {
            Queue::Orchestrator => &self.messages,
            Queue::Worker => &self.work,
        }
    }

    fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.work.is_empty()
    }

    /// Looks at all rows, or at those that an earlier look could not read.
    fn look(connection: &Connection, among: Option<&Self>) -> DbResult<Self> {
        let of = |queue| unreadable(connection, queue, among.map(|among| among.of(queue)));
        Ok(Self { messages: of(Queue::Orchestrator)?, work: of(Queue::Worker)? })
    }
}

/// What became of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mended {
    /// It has a new table.
    Now,
    /// Another process has given it a new table meanwhile.
    ByAnother,
    /// The last look has found nothing.
    NotTorn,
}

impl PastTorn {
    /// Lets a call run once more that has met damage where there is none to be found: it has passed, or
    /// another process has mended it.
    fn runs_again(&mut self) -> bool {
        !std::mem::replace(&mut self.has_run_again, true)
    }
}

impl SqliteProvider {
    /// Mends the queues after a call has met a torn page that no row could be found for. Returns whether the
    /// call runs again.
    pub(super) async fn mend(&self, past: &mut PastTorn) -> Result<bool, ProviderError> {
        let mut pause = self.mends.0.lock().await;
        let now = self.clock.now_ms();
        let generations = match self.looks.look(OPERATION, Generations::read).await {
            Ok(Some(generations)) => generations,
            // A database in memory.
            Ok(None) => return Ok(false),
            Err(_) => return Ok(past.runs_again()),
        };
        if past.generations.replace(generations).is_some_and(|seen| seen != generations) {
            return Ok(true);
        }
        if now < pause.until {
            let is_damaged_still = !past.runs_again();
            return match &pause.hindered {
                Some(error) if is_damaged_still => Err(error.clone()),
                _ => Ok(!is_damaged_still),
            };
        }
        match self.mend_torn_queues(generations, now).await {
            Ok(true) => {
                *pause = Pause::default();
                past.generations = None;
                Ok(true)
            }
            Ok(false) => {
                pause.begin(now, None);
                Ok(past.runs_again())
            }
            Err(error) if error.kind == ProviderErrorKind::Busy => Err(error),
            Err(error) => {
                pause.begin(now, Some(error.clone()).filter(ProviderError::is_retryable));
                tracing::warn!(
                    target: "steadfast::store",
                    %error,
                    "a part of the file is damaged, and the queue on it cannot go on by itself; {REMEDY}"
                );
                if error.is_retryable() { Err(error) } else { Ok(past.runs_again()) }
            }
        }
    }

    /// Looks at both queues twice, and mends those with rows that cannot be read. False if there are none.
    async fn mend_torn_queues(&self, generations: Generations, now: i64) -> Result<bool, ProviderError> {
        let first = self.looks.look(OPERATION, |connection| TornPlaces::look(connection, None)).await?;
        let Some(first) = first.filter(|torn| !torn.is_empty()) else { return Ok(false) };
        let again = move |connection: &Connection| TornPlaces::look(connection, Some(&first));
        let second = self.looks.look(OPERATION, again).await?.unwrap_or_default();
        let (second, mut is_mended) = (Arc::new(second), false);
        for queue in [Queue::Orchestrator, Queue::Worker] {
            if second.of(queue).is_empty() {
                continue;
            }
            let (looks, torn) = (self.looks.clone(), Arc::clone(&second));
            let step = Step { queue, generation: generations.of(queue), now };
            let mend = move |connection: &Connection| step.run(connection, &looks, torn.of(queue));
            is_mended |= self.writer.outside(OPERATION, mend).await? != Mended::NotTorn;
        }
        if is_mended {
            self.waiters.wake_all();
        }
        Ok(is_mended)
    }
}

const OPERATION: &str = "mend_queue";

/// One step: a queue gets a new table, if it is still that of a generation.
#[derive(Debug, Clone, Copy)]
struct Step {
    queue: Queue,
    generation: i64,
    now: i64,
}

impl Step {
    /// Runs the step in a transaction of its own.
    fn run(self, connection: &Connection, looks: &Looks, torn: &HashSet<i64>) -> DbResult<Mended> {
        connection.execute_batch("PRAGMA shrink_memory")?;
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        let db = Db::new(connection, self.now).with_looks(looks);
        let mended = db.mend(self, torn)?;
        match mended {
            Mended::Now => transaction.commit()?,
            Mended::ByAnother | Mended::NotTorn => transaction.rollback()?,
        }
        if mended == Mended::Now {
            drop_useless(connection, looks, self);
        }
        Ok(mended)
    }
}

/// Drops the tables of a queue that earlier steps have left behind, if each can be read whole and is the
/// source of no row: the disk that failed is well. What goes wrong here is tried again after the next step.
fn drop_useless(connection: &Connection, looks: &Looks, step: Step) {
    let dropped = || -> DbResult<()> {
        let Some(fresh) = looks.fresh()? else { return Ok(()) };
        let mut tables = generations(&fresh, step.queue)?;
        tables.sort_unstable();
        let mut needed = Vec::new();
        for generation in tables.into_iter().rev() {
            let table = LeftBehind::read(&fresh, step.queue, generation);
            let is_source = needed.iter().any(|later: &LeftBehind| later.needs(generation));
            let may_go = !is_source && table.can_be_read() && generation <= step.generation;
            let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            let db = Db::new(connection, step.now);
            if is_source || db.is_named(step.queue, generation)? {
                needed.push(table);
            } else if may_go {
                db.drop_left_behind(step.queue, generation)?;
            }
            transaction.commit()?;
        }
        Ok(())
    };
    if let Err(fault) = dropped() {
        let error = fault.of(OPERATION);
        tracing::debug!(target: "steadfast::store", %error, "damaged tables stay in the file");
    }
}

/// Lists the generations of a queue whose tables were left behind.
pub(super) fn generations(connection: &Connection, queue: Queue) -> DbResult<Vec<i64>> {
    let prefix = left_behind_prefix(queue);
    let mut statement = connection.prepare_cached(sql!("torn/mend/generations"))?;
    let names = statement.query_map([format!("{prefix}*")], |row| row.get::<_, String>(0))?;
    let names = names.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(names.iter().filter_map(|name| name.strip_prefix(&prefix)?.parse().ok()).collect())
}

/// Looks at rows of a queue, all or some. Returns those that cannot be read.
fn unreadable(connection: &Connection, queue: Queue, among: Option<&HashSet<i64>>) -> DbResult<HashSet<i64>> {
    let rows: Vec<i64> = match (among, queue) {
        (Some(rows), _) => rows.iter().copied().collect(),
        (None, Queue::Orchestrator) => places(connection, sql!("torn/message/mend/view/rows"))?,
        (None, Queue::Worker) => places(connection, sql!("torn/work/mend/view/rows"))?,
    };
    let mut torn = HashSet::new();
    for row in rows {
        if look_at(connection, queue, row)?.reason().is_some() {
            torn.insert(row);
        }
    }
    Ok(torn)
}

fn places(connection: &Connection, statement: &str) -> DbResult<Vec<i64>> {
    let mut statement = connection.prepare_cached(statement)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
