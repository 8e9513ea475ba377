//! Retention: deleting what ended long ago, a bounded piece of it in each call.

use std::sync::{Mutex, PoisonError};

use rusqlite::params;
use steadfast_store::DeleteInstanceResult;

use crate::link::db::{Db, sql};
use crate::link::error::{DbResult, is_torn};
use crate::verbs::admin::add_up;

/// Where the next call goes on: behind the instances that were looked at and stay, because their tree has not
/// ended. After the last one it begins anew.
#[derive(Debug, Default)]
pub(crate) struct RetentionCursor(Mutex<(Place, Place)>);

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
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, roots: Place, children: Place) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (roots, children);
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
            self.delete_behind(sql!("admin/ended/roots"), before, roots, limit, &mut total)?;
        let left = limit.saturating_sub(deleted);
        let (children, _) =
            self.delete_behind(sql!("admin/ended/children"), before, children, left, &mut total)?;
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
        total: &mut DeleteInstanceResult,
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
            if is_root && let Some(result) = self.delete_tree_if_ended(&root)? {
                add_up(total, &result);
                deleted += 1;
            }
        }
        Ok((if is_last { Place::default() } else { place }, deleted))
    }

    /// Deletes an instance with its children, if all have ended. An instance that the database cannot read
    /// stays as it is, with a line in the log: it must not keep the others from being deleted.
    fn delete_tree_if_ended(&self, root: &str) -> DbResult<Option<DeleteInstanceResult>> {
        self.run(sql!("admin/ended/savepoint"), [])?;
        let deleted = self.ended_tree(root).and_then(|tree| tree.map(|tree| self.delete(&tree)).transpose());
        let deleted = match deleted {
            Err(fault) if is_torn(&fault) => {
                self.run(sql!("admin/ended/roll_back"), [])?;
                let error = fault.of("delete_ended");
                tracing::warn!(
                    target: "steadfast::store",
                    instance = root,
                    %error,
                    "an instance that ended cannot be deleted"
                );
                None
            }
            deleted => deleted?,
        };
        self.run(sql!("admin/ended/release"), [])?;
        Ok(deleted)
    }
}
