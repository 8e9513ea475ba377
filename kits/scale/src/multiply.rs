//! Copies of the templates under new ids, by statements of the database.
//!
//! A table is copied column by column as the database lists them, so that a column of a later migration is
//! copied too: a text has the number of the copy in place of the mark, a number that stands for a row is
//! raised so that each copy has its own, and the times of what has ended are set back. The rules of a table
//! name only its numbers and times.

mod postgres;
mod sqlite;

use std::fmt::{self, Display, Formatter};

use anyhow::{Result, ensure};

use crate::site::Site;
use crate::templates::{CHILD, SET, SET_SIZE};

/// How many instances one transaction copies.
const BATCH: u64 = 20_000;

/// How long ago the copies of what has ended did so, at least.
pub const AGE_MS: u64 = 30 * 24 * 3600 * 1000;

/// What was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// The number of instances.
    pub instances: u64,
    /// The number of events of all instances.
    pub events: u64,
    /// The number of copies of the set; they are numbered from 1.
    pub sets: u64,
    /// The number of copied children of each large parent; they are numbered from 1.
    pub children: u64,
}

impl Made {
    /// Returns the id of an instance of a set.
    pub fn id(&self, template: &str, copy: u64) -> String {
        format!("{template}{}", SET.replace('t', &copy.to_string()))
    }

    /// Returns the id of a child of a large parent.
    pub fn child_id(&self, parent: &str, copy: u64) -> String {
        format!("{parent}/leaf{}", CHILD.replace('m', &copy.to_string()))
    }
}

impl Display for Made {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { instances, events, sets, children } = self;
        write!(f, "{instances} instances, {events} events ({sets} sets, two parents of {children} children)")
    }
}

/// Copies the templates of a store until it has about so many instances.
///
/// # Errors
///
/// The store is asked to be smaller than the templates, or the database refuses a statement.
///
/// # Cancel safety
/// A dropped future leaves a part of the copies.
pub async fn fill(site: &Site, instances: u64, tell: &(dyn Fn(&str) + Sync)) -> Result<Made> {
    ensure!(instances >= 10 * SET_SIZE, "a store of {instances} instances is too small to be measured");
    // Every tenth instance is a child of one of the two large parents.
    let children = instances / SET_SIZE;
    let sets = (instances - 2 * children) / SET_SIZE;
    let rounds = [
        Round { mark: SET, copies: sets, instances: SET_SIZE, moves_parents: true },
        Round { mark: CHILD, copies: children, instances: 2, moves_parents: false },
    ];
    let (instances, events) = match site {
        Site::File { .. } => sqlite::copy(&site.file().unwrap_or_default(), &rounds, tell)?,
        Site::Schema { url, schema } => postgres::copy(url, schema.name(), &rounds, tell).await?,
    };
    Ok(Made { instances, events, sets, children })
}

/// The copies of the templates with one mark.
struct Round {
    mark: &'static str,
    copies: u64,
    /// How many instances one copy has.
    instances: u64,
    /// Whether the parents of the templates are copied with them.
    moves_parents: bool,
}

impl Round {
    /// Returns the numbers of the first and the last copy of each batch.
    fn batches(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let size = (BATCH / self.instances).max(1);
        (0..self.copies.div_ceil(size)).map(move |n| (n * size + 1, ((n + 1) * size).min(self.copies)))
    }
}

/// How the columns of a table are copied.
struct TableRule {
    table: &'static str,
    /// Selects the rows of the templates; `{mark}` is a pattern of their ids.
    rows: &'static str,
    /// Columns that stand for a row of some table, with the numbers that they are from.
    numbers: &'static [(&'static str, Numbers)],
    /// Columns whose value the database chooses.
    chosen: &'static [&'static str],
    /// Columns with a time that is set back, and the statement's form of the time.
    times: &'static [(&'static str, TimeForm)],
    /// Columns whose text is unique.
    tokens: &'static [&'static str],
}

const PLAIN: TableRule =
    TableRule { table: "", rows: "", numbers: &[], chosen: &[], times: &[], tokens: &[] };

/// Numbers of one kind: a copy has those of its templates, raised by as much as any number is high.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Numbers {
    /// The keys of instances (SQLite).
    Keys,
    /// The messages.
    Messages,
    /// The activities.
    Work,
    /// The sessions (SQLite).
    Sessions,
    /// The numbers that are never given twice: runs, epochs, orders, changes.
    Drawn,
    /// The same, of a parent.
    ParentLife,
}

/// How a time stands in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeForm {
    /// Milliseconds.
    Millis,
    /// A time of the database.
    Stamp,
}

/// Where the numbers of the copies begin, and how far apart those of two copies are.
#[derive(Debug, Clone, Copy)]
struct Span {
    above: i64,
    width: i64,
}

impl Span {
    /// Raises the numbers of a column for the copy `n.i`.
    fn raised(self, column: &str) -> String {
        format!("t.{column} + {} + (n.i - 1) * {}", self.above, self.width)
    }
}
