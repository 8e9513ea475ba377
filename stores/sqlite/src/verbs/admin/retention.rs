//! Retention: deleting what ended long ago, a bounded piece of it in each call.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use rusqlite::params;
use steadfast_store::DeleteInstanceResult;

use crate::link::db::{Db, sql};
use crate::link::error::{DbResult, is_torn};
use crate::verbs::admin::add_up;

/// Where the next call goes on: behind the instances that were looked at and stay, because their tree has not
/// ended. After the last one it begins anew.
#[derive(Debug, Default)]
pub(crate) struct RetentionCursor {
    places: Mutex<(Place, Place)>,
    /// Instances that cannot be deleted, because the database cannot read all of their rows. They must not
    /// keep the others from being deleted.
    left_out: Mutex<HashSet<String>>,
}

/// The walk of one call over the roots, and over the children whose parent is gone. Each step of it is a
/// transaction that looks at a bounded number of instances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetentionWalk {
    roots: Pass,
    orphans: Pass,
}

impl RetentionWalk {
    /// Tells whether the call has looked at all instances.
    pub(crate) fn has_seen_all(&self) -> bool {
        self.roots.ends_left == 0 && self.orphans.ends_left == 0
    }
}

/// How far a walk is in one list.
#[derive(Debug, Clone, Copy)]
struct Pass {
    place: Place,
    /// How often the walk comes to the end of the list until it has seen all of it: once from the beginning,
    /// twice from a place in the middle.
    ends_left: u32,
}

impl Pass {
    fn from(place: Place) -> Self {
        Self { place, ends_left: if place == Place::default() { 1 } else { 2 } }
    }
}

/// The end and the key of an instance that was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    ended_at: i64,
    key: i64,
}

/// Bounds the instances that one call looks at beside those that it deletes.
const MOST_LOOKED_AT: i64 = 256;

impl RetentionCursor {
    /// Begins the walk of a call where the last one ended.
    pub(crate) fn begin(&self) -> RetentionWalk {
        let (roots, orphans) = *self.places.lock().unwrap_or_else(PoisonError::into_inner);
        RetentionWalk { roots: Pass::from(roots), orphans: Pass::from(orphans) }
    }

    /// Ends the walk of a call: the next one goes on from there.
    pub(crate) fn end(&self, walk: &RetentionWalk) {
        let places = (walk.roots.place, walk.orphans.place);
        *self.places.lock().unwrap_or_else(PoisonError::into_inner) = places;
    }

    fn is_left_out(&self, root: &str) -> bool {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).contains(root)
    }

    fn leave_out(&self, root: String) {
        tracing::warn!(
            target: "steadfast::store",
            instance = root,
            "an instance that ended cannot be deleted: the database cannot read all of its rows"
        );
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).insert(root);
    }

    /// Returns how many instances are left out, by which a caller notices that one more is.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Db<'_> {
    /// Does one step of a walk: deletes trees whose root ended at least so long ago, oldest end first, up to
    /// `limit`. Looks at a bounded number of instances (S20). Children whose parent is gone count as roots.
    /// Returns where the next step goes on.
    pub(crate) fn delete_ended(
        &self,
        ended_for: std::time::Duration,
        limit: u32,
        cursor: &RetentionCursor,
        mut walk: RetentionWalk,
    ) -> DbResult<(DeleteInstanceResult, RetentionWalk)> {
        let age = i64::try_from(ended_for.as_millis()).unwrap_or(i64::MAX);
        let before = self.now.saturating_sub(age);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut total = DeleteInstanceResult::default();
        let deleted = self.delete_behind(
            sql!("admin/ended/roots"),
            before,
            &mut walk.roots,
            limit,
            (cursor, &mut total),
        )?;
        let left = limit.saturating_sub(deleted);
        let statement = sql!("admin/ended/orphans");
        self.delete_behind(statement, before, &mut walk.orphans, left, (cursor, &mut total))?;
        Ok((total, walk))
    }

    /// Deletes the trees of the roots that a statement lists behind a place, and moves the place. Returns how
    /// many trees were deleted.
    fn delete_behind(
        &self,
        statement: &str,
        before: i64,
        pass: &mut Pass,
        limit: usize,
        (cursor, total): (&RetentionCursor, &mut DeleteInstanceResult),
    ) -> DbResult<usize> {
        if limit == 0 || pass.ends_left == 0 {
            return Ok(0);
        }
        let from = pass.place;
        let bound = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(MOST_LOOKED_AT);
        let found = self.all(statement, params![before, from.ended_at, from.key, bound], |row| {
            let place = Place { ended_at: row.get(0)?, key: row.get(1)? };
            Ok((place, row.get::<_, String>(2)?))
        })?;
        let is_last = i64::try_from(found.len()).is_ok_and(|count| count < bound);
        let mut deleted = 0;
        for (looked_at, root) in found {
            if deleted == limit {
                return Ok(deleted);
            }
            pass.place = looked_at;
            if cursor.is_left_out(&root) {
                continue;
            }
            let tree = self.ended_tree(&root);
            match tree.and_then(|tree| tree.map(|tree| self.delete(&tree)).transpose()) {
                Ok(None) => {}
                Ok(Some(result)) => {
                    add_up(total, &result);
                    deleted += 1;
                }
                Err(fault) => {
                    if is_torn(&fault) {
                        cursor.leave_out(root);
                    }
                    return Err(fault);
                }
            }
        }
        if is_last {
            *pass = Pass { place: Place::default(), ends_left: pass.ends_left.saturating_sub(1) };
        }
        Ok(deleted)
    }
}
