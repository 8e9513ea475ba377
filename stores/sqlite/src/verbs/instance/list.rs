//! Pages of instances, each found by the index of one condition.

use rusqlite::params;
use steadfast_store::rules::{behind_prefix, instance_page, no_such_cursor};
use steadfast_store::{Cursor, InstancePage, InstanceQuery};

use super::read;
use crate::link::db::{Db, sql};
use crate::link::error::DbResult;

/// The column of a page that holds the order, behind those of a state.
const ORDER: usize = 14;

/// Up to how many rows of each condition are counted, to find the rarest one: counting so many costs about as
/// much as a page.
const COUNTED: i64 = 256;

/// The condition by whose index the rows of a page are found; the other conditions are looked at row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leading {
    Nothing,
    Roots,
    Status,
    Orchestration,
    Prefix,
    Parent,
}

impl Leading {
    /// Returns the statement that lists instances by this condition.
    fn statement(self) -> &'static str {
        match self {
            Self::Nothing => sql!("instance/page/all"),
            Self::Roots => sql!("instance/page/roots"),
            Self::Status => sql!("instance/page/status"),
            Self::Orchestration => sql!("instance/page/name"),
            Self::Prefix => sql!("instance/page/prefix"),
            Self::Parent => sql!("instance/page/parent"),
        }
    }
}

impl Db<'_> {
    pub(crate) fn instances(&self, query: &InstanceQuery) -> DbResult<InstancePage> {
        let before = match &query.after {
            None => i64::MAX,
            Some(Cursor(text)) => text.parse().map_err(|_| no_such_cursor(text))?,
        };
        let limit = i64::try_from(query.page_size()).unwrap_or(i64::MAX);
        let prefix = query.id_prefix.as_deref();
        let end = prefix.and_then(behind_prefix);
        let InstanceQuery { status, orchestration, parent, roots_only, .. } = query;
        let row = |row: &rusqlite::Row<'_>| Ok((read(row)?, row.get::<_, i64>(ORDER)?));
        let columns = params![before, status, orchestration, prefix, end, parent, roots_only, limit + 1];
        let found = self.all(self.leading(query)?.statement(), columns, row)?;
        Ok(instance_page(query, found))
    }

    /// Finds the condition that the fewest instances meet. Rows are counted only if it makes a difference:
    /// one condition alone leads, except a prefix, whose rows have to be sorted.
    fn leading(&self, query: &InstanceQuery) -> DbResult<Leading> {
        let rest = if query.roots_only { Leading::Roots } else { Leading::Nothing };
        let mut given = Vec::new();
        if let Some(parent) = &query.parent {
            given.push((Leading::Parent, parent, sql!("instance/count/parent")));
        }
        if let Some(orchestration) = &query.orchestration {
            given.push((Leading::Orchestration, orchestration, sql!("instance/count/name")));
        }
        if let Some(status) = &query.status {
            given.push((Leading::Status, status, sql!("instance/count/status")));
        }
        let prefix = query.id_prefix.as_deref().filter(|prefix| !prefix.is_empty());
        if let ([(only, ..)], None) = (given.as_slice(), prefix) {
            return Ok(*only);
        }
        let mut rarest = None;
        if let Some(prefix) = prefix {
            let columns = params![prefix, behind_prefix(prefix), COUNTED];
            let count = self.number(sql!("instance/count/prefix"), columns)?;
            rarest = (count < COUNTED).then_some((count, Leading::Prefix));
        }
        for (leading, value, statement) in given {
            let least = rarest.map_or(COUNTED, |(least, _)| least);
            let count = self.number(statement, params![value, least])?;
            if rarest.is_none() || count < least {
                rarest = Some((count, leading));
            }
        }
        Ok(rarest.map_or(rest, |(_, leading)| leading))
    }
}
