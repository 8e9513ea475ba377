//! Leases over a jump of the time: the live ones are extended, also beside rows that are torn.

use rusqlite::{Connection, Error};

use crate::link::db::sql;

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

/// Lists leased activities that are torn. False if there are none. Call this outside a transaction: one that
/// meets a torn page writes nothing more.
pub(crate) fn list_torn_leases(connection: &Connection) -> rusqlite::Result<bool> {
    let leased: Vec<(i64, i64)> = {
        let mut statement = connection.prepare_cached(sql!("torn/work/rows/leased"))?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let mut has_listed = false;
    for (row, until) in leased {
        let probe = |row: &rusqlite::Row<'_>| row.get::<_, i64>(2);
        match connection.prepare_cached(sql!("torn/work/probe"))?.query_row([row], probe) {
            Err(error) if is_torn_page(&error) => {
                connection.prepare_cached(sql!("torn/work/note"))?.execute([row, until])?;
                has_listed = true;
            }
            Err(Error::QueryReturnedNoRows) => {}
            probed => _ = probed?,
        }
    }
    Ok(has_listed)
}

/// Tells whether SQLite has met a torn page.
pub(crate) fn is_torn_page(error: &Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt)
}
