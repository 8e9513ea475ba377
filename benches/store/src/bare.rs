//! The statements of the store on a bare connection: prepared once, no savepoints, no thread in between.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use rusqlite::{Connection, OptionalExtension, Statement, params};
use steadfast_clock::{Clock, SystemClock};

use crate::rows;

macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!("../../../stores/sqlite/sql/", $name, ".sql"))
    };
}

/// Requests in transactions of `group` each: first as many activities, then as many turns, as they come.
pub(crate) fn in_groups(file: &Path, pairs: usize, group: usize) -> anyhow::Result<()> {
    let connection = open(file)?;
    let (mut bare, texts) = (Bare::prepare(&connection)?, texts(pairs)?);
    for first in (0..pairs).step_by(group) {
        let range = first..(first + group).min(pairs);
        bare.transaction(|bare| range.clone().try_for_each(|pair| bare.finish(pair, &texts[pair])))?;
        bare.transaction(|bare| range.clone().try_for_each(|pair| bare.commit(pair, &texts[pair])))?;
    }
    Ok(())
}

/// Each request a transaction of its own, and how long each took.
pub(crate) fn one_by_one(file: &Path, pairs: usize) -> anyhow::Result<Vec<Duration>> {
    let connection = open(file)?;
    let (mut bare, texts) = (Bare::prepare(&connection)?, texts(pairs)?);
    let mut times = Vec::with_capacity(2 * pairs);
    for (pair, texts) in texts.iter().enumerate() {
        let begun = SystemClock.monotonic();
        bare.transaction(|bare| bare.finish(pair, texts))?;
        let between = SystemClock.monotonic();
        bare.transaction(|bare| bare.commit(pair, texts))?;
        times.push(between - begun);
        times.push(SystemClock.monotonic() - between);
    }
    Ok(times)
}

pub(crate) fn statements_of_a_pair(file: &Path, pair: usize) -> anyhow::Result<u64> {
    let mut connection = open(file)?;
    let statements = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&statements);
    let count = move |_: TraceEvent<'_>| {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(count))?;
    let (mut bare, texts) = (Bare::prepare(&connection)?, texts(pair + 1)?);
    bare.transaction(|bare| bare.finish(pair, &texts[pair]))?;
    bare.transaction(|bare| bare.commit(pair, &texts[pair]))?;
    Ok(statements.load(Ordering::Relaxed))
}

/// How long a look at the data version takes: the one statement that an idle store runs.
pub(crate) fn looks(file: &Path, count: usize) -> anyhow::Result<Vec<Duration>> {
    let connection = open(file)?;
    let mut look = connection.prepare("PRAGMA data_version")?;
    (0..count)
        .map(|_| {
            let begun = SystemClock.monotonic();
            let _: i64 = look.query_row([], |row| row.get(0))?;
            Ok(SystemClock.monotonic() - begun)
        })
        .collect()
}

fn open(file: &Path) -> anyhow::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")?;
    Ok(connection)
}

/// The texts of a pair, written beforehand: the store's callers write theirs beside the writer.
struct Texts {
    working: String,
    completion: String,
    turning: String,
    events: Vec<(i64, &'static str, String)>,
    activity: String,
}

fn texts(pairs: usize) -> anyhow::Result<Vec<Texts>> {
    (0..pairs)
        .map(|pair| {
            let (working, turning) = (rows::working(pair), rows::turning(pair));
            let events = rows::step(&turning)
                .iter()
                .map(|event| Ok((event.event_id as i64, event.kind.name(), serde_json::to_string(event)?)))
                .collect::<anyhow::Result<_>>()?;
            Ok(Texts {
                completion: serde_json::to_string(&rows::completion(&working))?,
                activity: serde_json::to_string(&rows::activity(&turning, 4))?,
                events,
                working,
                turning,
            })
        })
        .collect()
}

struct Bare<'c> {
    begin: Statement<'c>,
    end: Statement<'c>,
    work_holder: Statement<'c>,
    session_touch: Statement<'c>,
    work_place: Statement<'c>,
    work_delete: Statement<'c>,
    instance_key: Statement<'c>,
    message_insert: Statement<'c>,
    turn_state: Statement<'c>,
    first_ready: Statement<'c>,
    set_ready: Statement<'c>,
    turn_holder: Statement<'c>,
    consume: Statement<'c>,
    next: Statement<'c>,
    touch: Statement<'c>,
    upsert: Statement<'c>,
    set_pin: Statement<'c>,
    append: Statement<'c>,
    work_insert: Statement<'c>,
}

/// The time of all requests: only that leases are live matters.
const NOW: i64 = 1_700_000_000_000;

impl<'c> Bare<'c> {
    fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            end: connection.prepare("COMMIT")?,
            work_holder: connection.prepare(sql!("work/lease/holder"))?,
            session_touch: connection.prepare(sql!("session/lease/touch"))?,
            work_place: connection.prepare(sql!("work/place"))?,
            work_delete: connection.prepare(sql!("work/delete"))?,
            instance_key: connection.prepare(sql!("instance/key"))?,
            message_insert: connection.prepare(sql!("message/insert"))?,
            turn_state: connection.prepare(sql!("turn/state"))?,
            first_ready: connection.prepare(sql!("turn/ready/first_message"))?,
            set_ready: connection.prepare(sql!("turn/ready/set"))?,
            turn_holder: connection.prepare(sql!("turn/lease/holder"))?,
            consume: connection.prepare(sql!("turn/lease/consume"))?,
            next: connection.prepare(sql!("schema/next"))?,
            touch: connection.prepare(sql!("instance/touch"))?,
            upsert: connection.prepare(sql!("execution/upsert"))?,
            set_pin: connection.prepare(sql!("instance/set_pin"))?,
            append: connection.prepare(sql!("history/insert"))?,
            work_insert: connection.prepare(sql!("work/insert"))?,
        })
    }

    fn transaction(&mut self, run: impl FnOnce(&mut Self) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        self.begin.execute([])?;
        run(self)?;
        self.end.execute([]).map(drop)
    }

    fn finish(&mut self, pair: usize, texts: &Texts) -> rusqlite::Result<()> {
        let seq: i64 = self.work_holder.query_row([rows::work_token(pair)], |row| row.get(0))?;
        self.session_touch.execute([seq, NOW])?;
        let _: Option<Option<i64>> = self.work_place.query_row([seq], |row| row.get(0)).optional()?;
        self.work_delete.execute([seq])?;
        let key: i64 = self.instance_key.query_row([&texts.working], |row| row.get(0))?;
        self.message_insert.execute(params![key, 1, NOW, false, texts.completion, None::<String>])?;
        let _: i64 = self.turn_state.query_row([key], |row| row.get(0))?;
        self.free(key)
    }

    fn commit(&mut self, pair: usize, texts: &Texts) -> rusqlite::Result<()> {
        let token = rows::turn_token(pair);
        let key: i64 = self.turn_holder.query_row([&token], |row| row.get(0))?;
        self.consume.execute(params![key, token])?;
        let change = self.number()?;
        self.touch.execute([key, 1, NOW, change])?;
        let run = self.number()?;
        let nothing = None::<String>;
        let columns = params![key, 1, run, nothing, nothing, nothing, nothing, NOW];
        let _: i64 = self.upsert.query_row(columns, |row| row.get(0))?;
        self.set_pin.execute([key])?;
        for (id, kind, text) in &texts.events {
            self.append.execute(params![key, 1, id, kind, text])?;
        }
        let key: i64 = self.instance_key.query_row([&texts.turning], |row| row.get(0))?;
        self.work_insert.execute(params![key, 1, 4, "", None::<i64>, NOW, texts.activity, nothing])?;
        self.free(key)
    }

    fn number(&mut self) -> rusqlite::Result<i64> {
        self.next.query_row([], |row| row.get(0))
    }

    fn free(&mut self, key: i64) -> rusqlite::Result<()> {
        let head: Option<i64> = self.first_ready.query_row([key], |row| row.get(0))?;
        self.set_ready.execute(params![key, head]).map(drop)
    }
}
