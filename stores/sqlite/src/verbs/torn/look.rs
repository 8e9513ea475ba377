//! Looks at one row of a queue: whether it is there as it was written.
//!
//! A row that can be read may still not be the one that was written: a leaf may be torn in its second half,
//! or be an older version of itself. So all columns must have their types, and the indexes must have the row
//! as it is.

use rusqlite::{Connection, Error, Row};
use steadfast_store::Queue;

use crate::link::db::{sql, text_if_any, text_of, text_or_none};
use crate::link::error::{is_io, kind_of, provider_error};
use crate::verbs::work::tries::StoredCall;

/// What a look at a row found.
#[derive(Debug)]
pub(crate) enum RowLook {
    Whole,
    /// The row cannot be read, or is not the one that was written; with the reason.
    Torn(String),
    /// The disk does not return the page, which may pass.
    Unreturned(Error),
    /// There is no such row, in the table and in its indexes.
    Absent,
}

impl RowLook {
    /// Returns why the row cannot be read, if it cannot.
    pub(crate) fn reason(self) -> Option<String> {
        match self {
            Self::Whole | Self::Absent => None,
            Self::Torn(reason) => Some(reason),
            Self::Unreturned(error) => Some(reason_of(error)),
        }
    }
}

/// Looks at a row of a queue.
pub(crate) fn look_at(connection: &Connection, queue: Queue, row: i64) -> rusqlite::Result<RowLook> {
    let (look, agrees): (_, fn(&Row<'_>) -> rusqlite::Result<bool>) = match queue {
        Queue::Orchestrator => (sql!("torn/message/look/row"), message_agrees),
        Queue::Worker => (sql!("torn/work/look/row"), work_agrees),
    };
    // An error here is not one of the row.
    let mut look = connection.prepare_cached(look)?;
    Ok(match look.query_row([row], agrees) {
        Ok(true) => RowLook::Whole,
        Ok(false) => RowLook::Torn(format!("{UNREADABLE}: its page is not the one that was written last")),
        Err(Error::QueryReturnedNoRows) => match is_indexed(connection, queue, row)? {
            true => RowLook::Torn(format!("{UNREADABLE}: its row is missing")),
            false => RowLook::Absent,
        },
        Err(error) if is_io(&error) => RowLook::Unreturned(error),
        Err(error) if kind_of(&error) == steadfast_store::ProviderErrorKind::Corrupt => {
            RowLook::Torn(reason_of(error))
        }
        Err(error) => return Err(error),
    })
}

/// How every reason begins.
pub(crate) const UNREADABLE: &str = "the database cannot read it";

fn reason_of(error: Error) -> String {
    format!("{UNREADABLE}: {}", provider_error("fetch", error).message)
}

fn is_indexed(connection: &Connection, queue: Queue, row: i64) -> rusqlite::Result<bool> {
    let indexed = match queue {
        Queue::Orchestrator => sql!("torn/message/look/indexed"),
        Queue::Worker => sql!("torn/work/look/indexed"),
    };
    connection.prepare_cached(indexed)?.query_row([row], |row| row.get(0))
}

fn message_agrees(row: &Row<'_>) -> rusqlite::Result<bool> {
    let _numbers: [i64; 6] = numbers(row, [0, 1, 2, 10, 11, 12])?;
    let _attempts: u32 = row.get(3)?;
    let _token: Option<String> = row.get(4)?;
    let _starts: bool = row.get(5)?;
    let (_item, _traceparent) = (text_of(row, 6)?, text_or_none(row, 7)?);
    let _times: [Option<i64>; 2] = [row.get(8)?, row.get(9)?];
    let _failure = text_if_any(row, 13)?;
    row.get(14)
}

fn work_agrees(row: &Row<'_>) -> rusqlite::Result<bool> {
    let _numbers: [i64; 8] = numbers(row, [0, 1, 2, 3, 6, 10, 11, 17])?;
    let _tag: String = row.get(4)?;
    let _attempts: u32 = row.get(7)?;
    let _options: [Option<i64>; 4] = [row.get(5)?, row.get(9)?, row.get(12)?, row.get(16)?];
    let _texts: [Option<String>; 2] = [row.get(8)?, row.get(13)?];
    let (_item, _traceparent) = (text_of(row, 14)?, text_or_none(row, 15)?);
    let _call = StoredCall::read(row, 18)?;
    row.get(23)
}

fn numbers<const N: usize>(row: &Row<'_>, columns: [usize; N]) -> rusqlite::Result<[i64; N]> {
    let mut numbers = [0; N];
    for (number, column) in numbers.iter_mut().zip(columns) {
        *number = row.get(column)?;
    }
    Ok(numbers)
}
