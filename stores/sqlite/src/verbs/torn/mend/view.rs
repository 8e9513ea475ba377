//! What the indexes know of the rows of a queue, read without a look at the rows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher;

use rusqlite::types::FromSql;

use crate::link::db::{Db, sql};
use crate::link::error::{DbResult, damaged};

/// What the indexes know of a message.
#[derive(Debug, Clone)]
pub(super) struct IndexedMessage {
    pub(super) key: i64,
    pub(super) state: i64,
    pub(super) due: i64,
    /// Until when it is delayed, if it is.
    pub(super) visible_at: Option<i64>,
    pub(super) starts: bool,
    pub(super) needs_code: bool,
}

/// What the indexes know of an activity.
#[derive(Debug, Clone)]
pub(super) struct IndexedWork {
    pub(super) key: i64,
    pub(super) execution: i64,
    pub(super) activity: i64,
    pub(super) state: i64,
    /// `None` for one without a session that is delayed or leased: no index has its tag.
    pub(super) tag: Option<String>,
    pub(super) session: Option<i64>,
    pub(super) visible_at: Option<i64>,
    pub(super) token: Option<String>,
    pub(super) locked_until: Option<i64>,
    pub(super) since: Option<i64>,
    pub(super) route: Option<i64>,
    pub(super) is_refused: bool,
}

/// What is listed of a row: how often it was looked at, and until when it is held back; `None` if it is given
/// up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listed {
    pub(super) attempts: i64,
    pub(super) until: Option<i64>,
}

impl Db<'_> {
    /// Reads the indexes of the messages. Fails if they contradict each other: then one of them is damaged,
    /// and it is not known which rows there are.
    pub(super) fn indexed_messages(&self) -> DbResult<BTreeMap<i64, IndexedMessage>> {
        let ready: HashMap<i64, i64> = self.by_place(sql!("torn/message/mend/view/ready"))?;
        let delayed: HashMap<i64, i64> = self.by_place(sql!("torn/message/mend/view/delayed"))?;
        let starts: HashMap<i64, i64> = self.by_place(sql!("torn/message/mend/view/starts"))?;
        let terminations: HashMap<i64, i64> = self.by_place(sql!("torn/message/mend/view/terminations"))?;
        let rows = self.all(sql!("torn/message/mend/view/rows"), [], |row| {
            let seq: i64 = row.get(0)?;
            let (key, state, due) = (row.get(1)?, row.get(2)?, row.get(3)?);
            let visible_at = delayed.get(&seq).copied();
            let (starts, needs_code) = (starts.contains_key(&seq), !terminations.contains_key(&seq));
            Ok((seq, IndexedMessage { key, state, due, visible_at, starts, needs_code }))
        })?;
        let all: BTreeMap<i64, IndexedMessage> = rows.into_iter().collect();
        let states = all.iter().all(|(seq, row)| match row.state {
            0 => row.visible_at.is_some() && !ready.contains_key(seq),
            _ => row.visible_at.is_none() && ready.get(seq) == Some(&row.key),
        });
        let others = starts.keys().chain(terminations.keys()).all(|seq| all.contains_key(seq));
        agree(states && others && all.len() == ready.len() + delayed.len())?;
        Ok(all)
    }

    /// Reads the indexes of the activities. Fails if they contradict each other.
    pub(super) fn indexed_work(&self) -> DbResult<BTreeMap<i64, IndexedWork>> {
        let delayed: HashMap<i64, i64> = self.by_place(sql!("torn/work/mend/view/delayed"))?;
        let leased: HashMap<i64, i64> = self.by_place(sql!("torn/work/mend/view/leased"))?;
        let tokens: HashMap<i64, String> = self.by_place(sql!("torn/work/mend/view/tokens"))?;
        let free: HashMap<i64, String> = self.by_place(sql!("torn/work/mend/view/free"))?;
        let since: HashMap<i64, i64> = self.by_place(sql!("torn/work/mend/view/free_since"))?;
        let placed_since: HashMap<i64, i64> = self.by_place(sql!("torn/work/mend/view/session_since"))?;
        let routes: HashMap<i64, i64> = self.by_place(sql!("torn/work/mend/view/routes"))?;
        let refused: HashMap<i64, i64> = self.by_place(sql!("torn/work/mend/view/refused"))?;
        let sessions: HashMap<i64, (i64, i64, String)> = self
            .all(sql!("torn/work/mend/view/sessions"), [], |row| {
                Ok((row.get(0)?, (row.get(1)?, row.get(2)?, row.get(3)?)))
            })?
            .into_iter()
            .collect();
        let rows = self.all(sql!("torn/work/mend/view/rows"), [], |row| {
            let seq: i64 = row.get(0)?;
            let session = sessions.get(&seq);
            let state = match (delayed.contains_key(&seq), leased.contains_key(&seq)) {
                (true, _) => 0,
                (_, true) => 2,
                _ => 1,
            };
            let tag = session.map(|(_, _, tag)| tag).or_else(|| free.get(&seq)).cloned();
            let indexed = IndexedWork {
                key: row.get(1)?,
                execution: row.get(2)?,
                activity: row.get(3)?,
                state,
                tag,
                session: session.map(|(session, ..)| *session),
                visible_at: delayed.get(&seq).copied(),
                token: tokens.get(&seq).cloned(),
                locked_until: leased.get(&seq).copied(),
                since: since.get(&seq).or_else(|| placed_since.get(&seq)).copied(),
                route: routes.get(&seq).copied(),
                is_refused: refused.contains_key(&seq),
            };
            Ok((seq, indexed))
        })?;
        let all: BTreeMap<i64, IndexedWork> = rows.into_iter().collect();
        let states = all.iter().all(|(seq, row)| {
            let is_free = row.state == 1 && row.session.is_none();
            sessions.get(seq).is_none_or(|(_, state, _)| *state == row.state)
                && (row.state == 2) == row.token.is_some()
                && is_free == free.contains_key(seq)
                && is_free == since.contains_key(seq)
                && (row.state == 1 && !is_free) == placed_since.contains_key(seq)
        });
        let places: HashSet<&i64> =
            [delayed.keys(), leased.keys(), since.keys(), routes.keys()].into_iter().flatten().collect();
        let is_known = |seq: &i64| all.contains_key(seq);
        agree(states && places.into_iter().all(is_known) && sessions.keys().all(is_known))?;
        Ok(all)
    }

    /// Reads what is listed of a queue.
    pub(super) fn listed(&self, statement: &str) -> DbResult<HashMap<i64, Listed>> {
        let rows = self.all(statement, [], |row| {
            Ok((row.get(0)?, Listed { attempts: row.get(1)?, until: row.get(2)? }))
        })?;
        Ok(rows.into_iter().collect())
    }

    fn by_place<T: FromSql, S: BuildHasher + Default>(
        &self,
        statement: &str,
    ) -> DbResult<HashMap<i64, T, S>> {
        Ok(self.all(statement, [], |row| Ok((row.get(0)?, row.get(1)?)))?.into_iter().collect())
    }
}

fn agree(they_do: bool) -> DbResult<()> {
    if they_do { Ok(()) } else { Err(damaged("mend_queue").into()) }
}
