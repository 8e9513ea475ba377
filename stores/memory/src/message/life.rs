//! Lives: starts and answers of children belong to the parent that they were made for, not to a later
//! instance of the same id (S17).

use std::collections::{BTreeMap, BTreeSet};

use steadfast_core::WorkItem;
use steadfast_store::rules::{
    CarriedLife, answers_start, bearer_of_life, carried_life, tell_of_former_lives,
};

use crate::state::{MessageRow, State, Stored};

/// A start that a turn consumes, with the life beside it.
pub(crate) type ConsumedStart = (WorkItem, Option<u64>);

impl State {
    /// Returns the starts that a lease holds, in the order of the batch.
    pub(crate) fn consumed_starts(&self, token: &str) -> Vec<ConsumedStart> {
        let held = |row: &&MessageRow| row.token.as_deref() == Some(token) && row.starts;
        let mut starts: Vec<&MessageRow> = self.messages.values().filter(held).collect();
        starts.sort_by_key(|row| row.due_ms);
        let readable = |row: &MessageRow| match &row.item {
            Stored::Readable(item) => Some((item.clone(), row.life)),
            Stored::Unreadable { .. } => None,
        };
        starts.into_iter().filter_map(readable).collect()
    }

    /// Returns the life that a message of a turn carries. The row of the sender is written already.
    pub(crate) fn life_of(&self, sender: &str, item: &WorkItem, starts: &[ConsumedStart]) -> Option<u64> {
        let row = self.instances.get(sender);
        match carried_life(sender, item) {
            CarriedLife::None => None,
            CarriedLife::OfSender => row.map(|row| row.order),
            CarriedLife::OfParent => match starts.iter().find(|(start, _)| answers_start(item, start)) {
                Some((_, life)) => *life,
                None => row.and_then(|row| row.parent_life),
            },
        }
    }

    /// Drops the visible starts and answers of this instance that were made for a former life of a parent.
    /// True if there was one.
    pub(crate) fn settle_former_lives(&mut self, instance: &str, now: u64) -> bool {
        let former = |row: &MessageRow| {
            row.instance == instance && row.visible_at_ms <= now && !self.is_of_this_life(row)
        };
        let places: Vec<u64> =
            self.messages.iter().filter(|(_, row)| former(row)).map(|(place, _)| *place).collect();
        for place in &places {
            self.messages.remove(place);
        }
        if !places.is_empty() {
            tell_of_former_lives(instance, places.len() as u64);
        }
        !places.is_empty()
    }

    /// Tells whether a message was not made for a former life of a parent. The start of a child goes on
    /// without its parent (F13): it is of a former life only if an instance of the parent's id exists.
    pub(crate) fn is_of_this_life(&self, row: &MessageRow) -> bool {
        let (Some(life), Stored::Readable(item)) = (row.life, &row.item) else { return true };
        let Some(bearer) = bearer_of_life(item) else { return true };
        match self.instances.get(bearer) {
            Some(bearer) => bearer.order == life,
            None => row.starts && !self.has_history(bearer) && !self.has_queued_start(bearer),
        }
    }

    /// Returns the starts of these instances that outlive their deletion, each with its instance: those of
    /// parents that wait for them, and are not deleted themselves.
    pub(crate) fn starts_of_others(&self, deleted: &BTreeSet<&str>) -> BTreeMap<u64, String> {
        let has_ended = |id| self.instance_state(id).is_none_or(|state| state.status.is_ended());
        let others = self.instances.iter().filter(|(id, _)| !deleted.contains(id.as_str()));
        let lives: BTreeSet<u64> =
            others.filter(|(id, _)| !has_ended(id.as_str())).map(|(_, row)| row.order).collect();
        let is_kept = |row: &MessageRow| {
            deleted.contains(row.instance.as_str())
                && row.starts
                && row.life.is_some_and(|life| lives.contains(&life))
        };
        let kept = self.messages.iter().filter(|(_, row)| is_kept(row));
        kept.map(|(place, row)| (*place, row.instance.clone())).collect()
    }

    /// Tells whether a turn would begin a child for a former life of its parent: the start that made the
    /// child was leased before an instance of the parent's id was started anew.
    pub(crate) fn begins_for_former_life(&self, child: &str, token: &str, parent: Option<&str>) -> bool {
        let Some(parent) = parent.filter(|_| !self.instances.contains_key(child)) else { return false };
        let held = |row: &&MessageRow| row.token.as_deref() == Some(token) && row.starts;
        let is_asked_by = |row: &MessageRow| match &row.item {
            Stored::Readable(item) => bearer_of_life(item) == Some(parent),
            Stored::Unreadable { .. } => false,
        };
        self.messages.values().filter(held).any(|row| is_asked_by(row) && !self.is_of_this_life(row))
    }
}

/// Returns the life of the parent that started a child: the one beside the first start of that parent.
pub(crate) fn life_of_parent(parent: Option<&str>, starts: &[ConsumedStart]) -> Option<u64> {
    let parent = parent?;
    starts.iter().find(|(start, _)| bearer_of_life(start) == Some(parent)).and_then(|(_, life)| *life)
}
