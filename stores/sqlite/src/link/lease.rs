//! Leases over a jump of the time: the live ones are extended, also beside rows that are torn.

use rusqlite::{Connection, Error};
use steadfast_store::Queue;

use crate::link::db::sql;
use crate::link::look::Looks;
use crate::verbs::torn::look::{RowLook, look_at};

/// Extends the leases that had not ended at a time, the lives of workers, and for how long withdrawn leases
/// are known, because the time jumps forward from there.
pub(crate) fn extend_leases(connection: &Connection, live_at_ms: i64, by_ms: i64) -> rusqlite::Result<()> {
    for extend in [
        sql!("clock/extend_turns"),
        sql!("clock/extend_work"),
        sql!("clock/extend_torn_work"),
        sql!("clock/extend_sessions"),
        sql!("clock/extend_workers"),
        sql!("clock/extend_withdrawn"),
    ] {
        connection.prepare_cached(extend)?.execute([live_at_ms, by_ms])?;
    }
    Ok(())
}

/// Lists leased activities that are torn. Call this outside a transaction: one that
/// meets a torn page writes nothing more.
pub(crate) fn list_torn_leases(connection: &Connection, looks: &Looks) -> rusqlite::Result<()> {
    let leased: Vec<(i64, i64)> = {
        let mut statement = connection.prepare_cached(sql!("torn/work/rows/leased"))?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for (row, until) in leased {
        if stays_torn(connection, looks, row)? {
            connection.prepare_cached(sql!("torn/work/note"))?.execute([row, until])?;
        }
    }
    Ok(())
}

/// How often an activity is looked at before it is taken for torn.
const LOOKS: u32 = 3;

/// Tells whether all looks at an activity find it torn, each on a connection that has read nothing yet.
fn stays_torn(connection: &Connection, looks: &Looks, row: i64) -> rusqlite::Result<bool> {
    for _ in 0..LOOKS {
        let fresh = looks.fresh()?;
        match look_at(fresh.as_ref().unwrap_or(connection), Queue::Worker, row)? {
            RowLook::Torn(_) => {}
            RowLook::Unreturned(error) => return Err(error),
            RowLook::Whole | RowLook::Absent => return Ok(false),
        }
    }
    Ok(true)
}

/// Tells whether SQLite has met a torn page.
pub(crate) fn is_torn_page(error: &Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt)
}
