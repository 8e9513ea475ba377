//! Lives: starts and answers of children belong to the parent that they were made for, not to a later
//! instance of the same id (S17).

use rusqlite::params;
use steadfast_core::WorkItem;
use steadfast_store::TurnCommit;
use steadfast_store::rules::{
    CarriedLife, answers_start, bearer_of_life, carried_life, tell_of_former_lives,
};

use crate::link::db::{Db, sql, text_of};
use crate::link::error::DbResult;
use crate::verbs::message::MessageRow;

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
            let is_of_this_life = match (row.life, bearer_of_life(&item)) {
                (Some(life), Some(bearer)) => {
                    self.number(sql!("instance/life/is"), params![bearer, life])? == 1
                }
                _ => true,
            };
            if is_of_this_life {
                kept.push((row, item));
            } else {
                self.run(sql!("message/delete"), [row.seq])?;
            }
        }
        if kept.len() < count {
            tell_of_former_lives(instance, (count - kept.len()) as u64);
        }
        Ok(kept)
    }

    /// Removes the queued starts that an instance has sent to its children, because the instance is deleted.
    /// The lease of a child that has not begun ends: its start is gone. A start that is leased by an instance
    /// that has begun stays, because the answer to it carries its life. Returns the number of starts.
    pub(crate) fn withdraw_children(&self, key: i64) -> DbResult<u64> {
        let sent = self.all(sql!("admin/delete/child_starts"), params![key, self.now], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?))
        })?;
        let mut gone = 0;
        for (seq, child, is_leased) in sent {
            let has_begun = self.number(sql!("instance/is_known"), [child])? == 1;
            if is_leased && has_begun {
                continue;
            }
            let id = self.one(sql!("instance/name"), [child], |row| row.get::<_, String>(0))?;
            tell_of_former_lives(id.as_deref().unwrap_or_default(), 1);
            self.run(sql!("message/delete"), [seq])?;
            if is_leased {
                self.free_turn(child, self.now)?;
            } else {
                self.touch_turn(child, self.now)?;
            }
            self.run(sql!("instance/forget"), [child])?;
            gone += 1;
        }
        Ok(gone)
    }
}
