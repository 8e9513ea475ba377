//! Lives: starts and answers of children belong to the parent that they were made for, not to a later
//! instance of the same id (S17).

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

    fn is_of_this_life(&self, row: &MessageRow) -> bool {
        let (Some(life), Stored::Readable(item)) = (row.life, &row.item) else { return true };
        bearer_of_life(item)
            .is_none_or(|bearer| self.instances.get(bearer).is_some_and(|row| row.order == life))
    }

    /// Tells whether a start waits that a turn of this instance has sent to a child.
    pub(crate) fn has_starting_child(&self, parent: &str) -> bool {
        let life = self.instances.get(parent).map(|row| row.order);
        life.is_some() && self.messages.values().any(|row| row.starts && row.life == life)
    }

    /// Removes the queued starts that an instance has sent to its children, because the instance is deleted.
    /// The lease of a child that has not begun ends: its start is gone. A start that is leased by an instance
    /// that has begun stays, because the answer to it carries its life. Returns the number of starts.
    pub(crate) fn withdraw_children(&mut self, parent: &str, now: u64) -> u64 {
        let Some(life) = self.instances.get(parent).map(|row| row.order) else { return 0 };
        let sent = self.messages.iter().filter(|(_, row)| row.starts && row.life == Some(life));
        let gone =
            sent.filter(|(_, row)| !self.has_begun(&row.instance) || !self.is_message_leased(row, now));
        let gone: Vec<u64> = gone.map(|(place, _)| *place).collect();
        for place in &gone {
            let Some(row) = self.messages.get(place) else { continue };
            let (child, leased) = (row.instance.clone(), self.is_message_leased(row, now));
            self.messages.remove(place);
            if leased {
                self.end_turn(&child, now);
            }
            tell_of_former_lives(&child, 1);
        }
        gone.len() as u64
    }

    fn has_begun(&self, instance: &str) -> bool {
        self.instances.contains_key(instance) || self.has_history(instance)
    }
}

/// Returns the life of the parent that started a child: the one beside the first start of that parent.
pub(crate) fn life_of_parent(parent: Option<&str>, starts: &[ConsumedStart]) -> Option<u64> {
    let parent = parent?;
    starts.iter().find(|(start, _)| bearer_of_life(start) == Some(parent)).and_then(|(_, life)| *life)
}
