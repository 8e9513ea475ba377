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

/// The end and the key of an instance that was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    ended_at: i64,
    key: i64,
}

/// Bounds the instances that one call looks at beside those that it deletes.
const MOST_LOOKED_AT: i64 = 256;

impl RetentionCursor {
    fn get(&self) -> (Place, Place) {
        *self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, roots: Place, children: Place) {
        *self.places.lock().unwrap_or_else(PoisonError::into_inner) = (roots, children);
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
    /// Deletes trees whose root ended at least so long ago, oldest end first, up to `limit`. Looks at a
    /// bounded number of instances (S20). Children whose parent is gone count as roots.
    pub(crate) fn delete_ended(
        &self,
        ended_for: std::time::Duration,
        limit: u32,
        cursor: &RetentionCursor,
    ) -> DbResult<DeleteInstanceResult> {
        let age = i64::try_from(ended_for.as_millis()).unwrap_or(i64::MAX);
        let before = self.now.saturating_sub(age);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut total = DeleteInstanceResult::default();
        let (roots, children) = cursor.get();
        let (roots, deleted) =
            self.delete_behind(sql!("admin/ended/roots"), before, roots, limit, (cursor, &mut total))?;
        let left = limit.saturating_sub(deleted);
        let (children, _) =
            self.delete_behind(sql!("admin/ended/children"), before, children, left, (cursor, &mut total))?;
        cursor.set(roots, children);
        Ok(total)
    }

    /// Deletes the trees of the roots that a statement lists behind a place. Returns the place where the next
    /// call goes on, and how many trees were deleted.
    fn delete_behind(
        &self,
        statement: &str,
        before: i64,
        from: Place,
        limit: usize,
        (cursor, total): (&RetentionCursor, &mut DeleteInstanceResult),
    ) -> DbResult<(Place, usize)> {
        if limit == 0 {
            return Ok((from, 0));
        }
        let bound = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(MOST_LOOKED_AT);
        let found = self.all(statement, params![before, from.ended_at, from.key, bound], |row| {
            let place = Place { ended_at: row.get(0)?, key: row.get(1)? };
            Ok((place, row.get::<_, String>(2)?, row.get::<_, bool>(3)?))
        })?;
        let is_last = i64::try_from(found.len()).is_ok_and(|count| count < bound);
        let (mut place, mut deleted) = (from, 0);
        for (looked_at, root, is_root) in found {
            if deleted == limit {
                return Ok((place, deleted));
            }
            place = looked_at;
            if !is_root || cursor.is_left_out(&root) {
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
        Ok((if is_last { Place::default() } else { place }, deleted))
    }
}
