//! Lives: starts and answers of children belong to the parent that they were made for, not to a later
//! instance of the same id (S17).

use std::collections::BTreeSet;

use rusqlite::params;
use steadfast_core::WorkItem;
use steadfast_store::TurnCommit;
use steadfast_store::rules::{
    CarriedLife, answers_start, bearer_of_life, carried_life, is_rival, is_start, tell_of_former_lives,
};

use crate::link::db::{Db, sql, text_of};
use crate::link::error::DbResult;
use crate::verbs::message::{MessageRow, ONE_MESSAGE};

/// The starts that a turn consumes, with the lives beside them, in the order of the batch.
#[derive(Default)]
pub(crate) struct ConsumedStarts(Vec<(WorkItem, Option<i64>)>);

impl ConsumedStarts {
    /// Returns the life of the parent that started a child: the one beside the first start of that parent.
    pub(crate) fn life_of_parent(&self, parent: Option<&str>) -> Option<i64> {
        let parent = parent?;
        self.0.iter().find(|(start, _)| bearer_of_life(start) == Some(parent)).and_then(|(_, life)| *life)
    }

    /// Returns the life beside the start that a message answers; `None` if the turn consumes no such start.
    fn answered_by(&self, answer: &WorkItem) -> Option<Option<i64>> {
        self.0.iter().find(|(start, _)| answers_start(answer, start)).map(|(_, life)| *life)
    }
}

impl Db<'_> {
    /// Reads the starts that a lease holds, if a life beside one of them can matter to the commit.
    pub(crate) fn consumed_starts(
        &self,
        key: i64,
        token: &str,
        commit: &TurnCommit,
    ) -> DbResult<ConsumedStarts> {
        let begins_child = commit.metadata.parent_instance_id.is_some();
        let answers = |item: &WorkItem| carried_life("", item) == CarriedLife::OfParent;
        if !begins_child && !commit.messages.iter().any(|message| answers(&message.item)) {
            return Ok(ConsumedStarts::default());
        }
        let rows = self.all(sql!("turn/lease/consumed_starts"), params![key, token], |row| {
            Ok((text_of(row, 0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        let readable = |(text, life): (String, _)| Some((serde_json::from_str(&text).ok()?, life));
        Ok(ConsumedStarts(rows.into_iter().filter_map(readable).collect()))
    }

    /// Returns the life that a message of a turn carries. The row of the sender is written already.
    pub(crate) fn life_of(
        &self,
        key: i64,
        sender: &str,
        item: &WorkItem,
        starts: &ConsumedStarts,
    ) -> DbResult<Option<i64>> {
        let lives = || {
            let lives = self.one(sql!("instance/life/own"), [key], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
            })?;
            Ok(lives.unzip())
        };
        match carried_life(sender, item) {
            CarriedLife::None => Ok(None),
            CarriedLife::OfSender => lives().map(|(own, _)| own),
            CarriedLife::OfParent => match starts.answered_by(item) {
                Some(life) => Ok(life),
                None => lives().map(|(_, parent)| parent.flatten()),
            },
        }
    }

    /// Drops the starts and answers of a batch that were made for a former life of a parent. Returns the
    /// others.
    pub(crate) fn settle_former_lives(
        &self,
        instance: &str,
        rows: Vec<(MessageRow, WorkItem)>,
    ) -> DbResult<Vec<(MessageRow, WorkItem)>> {
        let count = rows.len();
        let mut kept = Vec::with_capacity(count);
        for (row, item) in rows {
            if self.is_of_former_life(&item, row.life)? {
                self.remove_rows(&ONE_MESSAGE, [row.seq])?;
            } else {
                kept.push((row, item));
            }
        }
        if kept.len() < count {
            tell_of_former_lives(instance, (count - kept.len()) as u64);
        }
        Ok(kept)
    }

    /// Tells whether a message that carries a life was made for a former life of a parent. The start of a
    /// child goes on without its parent (F13): it is of a former life only if an instance of the parent's id
    /// exists.
    fn is_of_former_life(&self, item: &WorkItem, life: Option<i64>) -> DbResult<bool> {
        let (Some(life), Some(bearer)) = (life, bearer_of_life(item)) else { return Ok(false) };
        Ok(self.number(sql!("instance/life/is_former"), params![bearer, life, is_start(item)])? == 1)
    }

    /// Returns the places of the starts that ask for another instance than this one, which another life of
    /// their parent started. The row of the instance is read only if there is a start with a life.
    pub(crate) fn rival_starts(&self, key: i64, batch: &[(MessageRow, WorkItem)]) -> DbResult<Vec<usize>> {
        if !batch.iter().any(|(row, _)| row.starts && row.life.is_some()) {
            return Ok(Vec::new());
        }
        let own = self.one(sql!("instance/life/own"), [key], |row| row.get::<_, Option<i64>>(1))?.flatten();
        let rivals = batch.iter().enumerate().filter(|(_, (row, _))| row.starts && is_rival(own, row.life));
        Ok(rivals.map(|(place, _)| place).collect())
    }

    /// Tells whether a start waits that a turn of a parent has sent, and that can make the instance exist:
    /// one of a former life does not.
    pub(crate) fn is_asked_for(&self, key: i64) -> DbResult<bool> {
        let starts = self.all(sql!("instance/life/starts"), [key], |row| {
            Ok((text_of(row, 0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        for (text, life) in starts {
            let item = serde_json::from_str::<WorkItem>(&text).ok();
            match item {
                Some(item) if self.is_of_former_life(&item, life)? => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Returns the places of the starts of an instance that outlive its deletion: those of parents that wait
    /// for them, and are not deleted themselves.
    pub(crate) fn starts_of_others(&self, key: i64, deleted: &BTreeSet<String>) -> DbResult<Vec<i64>> {
        let asked = self.all(sql!("instance/life/waiting_parents"), [key], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })?;
        let kept = asked.into_iter().filter(|(_, parent)| !deleted.contains(parent));
        Ok(kept.map(|(seq, _)| seq).collect())
    }

    /// Tells whether a turn would begin a child for a former life of its parent: the start that made the
    /// child was leased before an instance of the parent's id was started anew.
    pub(crate) fn begins_for_former_life(
        &self,
        key: i64,
        parent: Option<&str>,
        starts: &ConsumedStarts,
    ) -> DbResult<bool> {
        let Some(parent) = parent else { return Ok(false) };
        for (start, life) in &starts.0 {
            if bearer_of_life(start) == Some(parent) && self.is_of_former_life(start, *life)? {
                return Ok(self.one(sql!("instance/life/own"), [key], |_| Ok(()))?.is_none());
            }
        }
        Ok(false)
    }
}
