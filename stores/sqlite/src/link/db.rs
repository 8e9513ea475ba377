//! One transaction as the code in `verbs` sees it: statements by name, one time, and a list of the turns and
//! work that it makes runnable.

use std::cell::{Cell, OnceCell, RefCell};

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};
use steadfast_store::Woken;

use crate::link::error::{DbResult, Fault, is_torn};
use crate::link::look::Looks;
use crate::merge::alarm::NextMoments;

/// Returns the text of a statement, which has a file of its own.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $name, ".sql"))
    };
}
pub(crate) use sql;

/// A transaction, or a read of the last committed state.
pub(crate) struct Db<'c> {
    connection: &'c Connection,
    /// True if a transaction is open; false for a look at what is committed, statement by statement.
    is_transaction: bool,
    /// The time of the transaction, in milliseconds since the Unix epoch; every change in it gets this time.
    pub(crate) now: i64,
    pub(crate) woken: RefCell<Woken>,
    /// The moments at which rows of this transaction become runnable by themselves.
    pub(crate) moments: RefCell<NextMoments>,
    /// True after a statement has met a torn page: SQLite writes nothing more in this transaction.
    pub(crate) is_damaged: Cell<bool>,
    /// True if rows of the queues are given up where they are instead of being removed: a page beside one of
    /// them is torn.
    pub(crate) leaves_rows: Cell<bool>,
    /// True if events are stored in front of all others: the last leaf of the histories is torn.
    pub(crate) appends_in_front: Cell<bool>,
    looks: Option<&'c Looks>,
    /// The connection of the looks beside the transaction, once there was one.
    beside: OnceCell<Connection>,
}

impl<'c> Db<'c> {
    pub(crate) fn new(connection: &'c Connection, now: i64) -> Self {
        let (woken, moments) = (RefCell::default(), RefCell::default());
        let (is_damaged, leaves_rows, appends_in_front) = Default::default();
        let is_transaction = !connection.is_autocommit();
        let (looks, beside) = (None, OnceCell::new());
        Self {
            connection,
            is_transaction,
            now,
            woken,
            moments,
            is_damaged,
            leaves_rows,
            appends_in_front,
            looks,
            beside,
        }
    }

    /// Lets the transaction look at the file on connections beside it.
    pub(crate) fn with_looks(self, looks: &'c Looks) -> Self {
        Self { looks: Some(looks), ..self }
    }

    /// Tells whether trails of sessions are left out, because a page of them is torn.
    pub(crate) fn leaves_out_trails(&self) -> bool {
        self.looks.is_some_and(|looks| looks.leaves_out_trails(self.now))
    }

    /// Returns a connection that has read nothing of the file before this transaction. It sees what is
    /// committed, and a torn page that it meets does not keep this transaction from writing. A database in
    /// memory has no other connection than this one.
    pub(crate) fn beside(&self) -> DbResult<&Connection> {
        if let Some(beside) = self.beside.get() {
            return Ok(beside);
        }
        match self.looks.map(Looks::fresh).transpose()?.flatten() {
            Some(fresh) => Ok(self.beside.get_or_init(|| fresh)),
            None => Ok(self.connection),
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        self.connection
    }

    /// Forgets the pages that are not in use, so that they are read from the file again.
    pub(crate) fn forget_pages(&self) -> DbResult<()> {
        self.script("PRAGMA shrink_memory")
    }

    /// Runs statements that give no rows and are not kept prepared.
    pub(crate) fn script(&self, sql: &str) -> DbResult<()> {
        if self.is_transaction && self.connection.is_autocommit() {
            return Err(Fault::RolledBack);
        }
        self.seen(self.connection.execute_batch(sql))
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) fn run(&self, sql: &str, params: impl Params) -> DbResult<usize> {
        self.seen(self.statement(sql)?.execute(params))
    }

    /// Runs a statement that gives at most one row.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> DbResult<Option<T>> {
        self.seen(self.statement(sql)?.query_row(params, read).optional())
    }

    /// Runs a statement that gives one number.
    pub(crate) fn number(&self, sql: &str, params: impl Params) -> DbResult<i64> {
        self.seen(self.statement(sql)?.query_row(params, |row| row.get(0)))
    }

    /// Runs a statement that gives one number, NULL or no row; the latter two are `None`.
    pub(crate) fn maybe(&self, sql: &str, params: impl Params) -> DbResult<Option<i64>> {
        Ok(self.one(sql, params, |row| row.get::<_, Option<i64>>(0))?.flatten())
    }

    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> DbResult<Vec<T>> {
        let mut statement = self.statement(sql)?;
        let rows = self.seen(statement.query_map(params, read))?;
        self.seen(rows.collect::<rusqlite::Result<_>>())
    }

    /// Prepares a statement, if the transaction is still open. A full disk or a failed read or write makes
    /// SQLite roll it back by itself; a statement that came after that would be a commit of its own (S3).
    fn statement(&self, sql: &str) -> DbResult<CachedStatement<'c>> {
        if self.is_transaction && self.connection.is_autocommit() {
            return Err(Fault::RolledBack);
        }
        Ok(self.connection.prepare_cached(sql)?)
    }

    /// Takes note of a torn page.
    fn seen<T>(&self, result: rusqlite::Result<T>) -> DbResult<T> {
        result.map_err(|error| {
            let fault = Fault::from(error);
            self.is_damaged.set(self.is_damaged.get() || is_torn(&fault));
            fault
        })
    }

    /// Returns a number that was never given before.
    pub(crate) fn next(&self) -> DbResult<i64> {
        self.number(sql!("schema/next"), [])
    }

    pub(crate) fn last_insert(&self) -> i64 {
        self.connection.last_insert_rowid()
    }

    /// Returns the end of a lease that is granted now, and records the length of the longest lease. A stored
    /// lease that ends later than now plus that length was granted by another time than that of the file, and
    /// counts as ended (S16).
    pub(crate) fn lease_until(&self, lasts: std::time::Duration) -> DbResult<i64> {
        let until = self.after(lasts);
        self.run(sql!("schema/longer_lease"), [until.saturating_sub(self.now)])?;
        Ok(until)
    }

    /// Returns the latest time at which a stored lease can have been granted, with a tolerance. No lease ends
    /// later than this plus the length of the longest lease.
    pub(crate) fn latest_grant(&self) -> i64 {
        self.now.saturating_add(CLOCK_TOLERANCE_MS)
    }

    /// Returns the time after a delay, at most `i64::MAX`.
    pub(crate) fn after(&self, delay: std::time::Duration) -> i64 {
        self.now.saturating_add(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX))
    }
}

/// How much later than the time of the file a lease may have been granted before it counts as impossible. All
/// processes agree on that time, so such a lease is from a file that knows no time (an older build wrote it,
/// and its clock was set back since), or from the seconds before a crash of the machine that were not noted.
const CLOCK_TOLERANCE_MS: i64 = 10_000;

/// Reads a stored text. Bytes that are not UTF-8 become replacement characters, with one in front, so that
/// the text is not valid JSON: such a row is unreadable like any other, and the statement does not fail
/// (S15).
pub(crate) fn text_of(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    let bytes = row.get_ref(column)?.as_bytes()?;
    Ok(match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("\u{fffd}{}", String::from_utf8_lossy(bytes)),
    })
}

/// Reads a stored text that may be missing. One that is not UTF-8 counts as missing.
pub(crate) fn text_or_none(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    let bytes = row.get_ref(column)?.as_bytes_or_null()?;
    Ok(bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).map(str::to_owned))
}

/// Reads a stored text that may be missing, as [`text_of`] reads one.
pub(crate) fn text_if_any(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => text_of(row, column).map(Some),
    }
}

/// Returns a time or a number as SQLite stores it, at most `i64::MAX`.
pub(crate) fn time(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// Returns a stored number as `u64`; a negative one becomes 0.
pub(crate) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3: SQLite rolls a transaction back by itself when a read or a write fails.
    #[test]
    fn a_transaction_that_was_rolled_back_underneath_writes_nothing_more() {
        let connection = Connection::open_in_memory().expect("a database");
        connection.execute_batch("CREATE TABLE t (x)").expect("a table");
        let count = || connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
        connection.execute_batch("BEGIN").expect("it begins");
        let db = Db::new(&connection, 0);
        assert_eq!(db.run("INSERT INTO t VALUES (1)", []).expect("it is open"), 1);
        connection.execute_batch("ROLLBACK").expect("it is rolled back");
        let refused = [
            db.run("INSERT INTO t VALUES (2)", []).map(drop),
            db.maybe("INSERT INTO t VALUES (3) RETURNING x", []).map(drop),
            db.number("INSERT INTO t VALUES (4) RETURNING x", []).map(drop),
            db.all("INSERT INTO t VALUES (5) RETURNING x", [], |row| row.get::<_, i64>(0)).map(drop),
        ];
        for refused in refused {
            let error = refused.expect_err("the transaction has ended").of("commit_turn");
            assert_eq!(error.kind, steadfast_store::ProviderErrorKind::Unavailable);
            assert!(error.is_retryable(), "{error:?}");
        }
        assert_eq!(count().expect("it counts"), 0, "nothing is committed by itself");
    }

    #[test]
    fn a_look_outside_a_transaction_reads_what_is_committed() {
        let connection = Connection::open_in_memory().expect("a database");
        let db = Db::new(&connection, 0);
        assert_eq!(db.number("SELECT 7", []).expect("it reads"), 7);
    }
}
