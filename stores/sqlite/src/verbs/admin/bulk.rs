//! Deleting and pruning many instances that a filter selects.

use std::collections::BTreeSet;

use rusqlite::params;
use steadfast_store::{DEFAULT_BULK_LIMIT, DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult};

use crate::link::db::{Db, sql, time};
use crate::link::error::DbResult;
use crate::verbs::admin::add_up;

/// How many instances one statement lists.
const BATCH: i64 = 256;

/// An instance that a filter selects: its place in the order of age, its key and its id. They sort by age.
type Selected = (i64, i64, String);

impl Db<'_> {
    pub(crate) fn delete_bulk(&self, filter: &InstanceFilter) -> DbResult<DeleteInstanceResult> {
        let limit = filter.limit.unwrap_or(DEFAULT_BULK_LIMIT);
        let mut deletion = Deletion { left: limit, total: DeleteInstanceResult::default() };
        let before = filter.completed_before.map(time);
        if let Some(ids) = &filter.instance_ids {
            let named = self.named(ids, true, before)?;
            self.delete_roots(&named, &mut deletion)?;
            return Ok(deletion.total);
        }
        // If no more roots ended in time than the call may delete, they are found by the time of their end,
        // and what ended later is not looked at.
        if let Some(before) = before {
            let columns = params![before, i64::from(limit) + 1];
            let mut ended = self.all(sql!("admin/selected/ended"), columns, read)?;
            if ended.len() <= limit as usize {
                ended.sort_unstable();
                self.delete_roots(&ended, &mut deletion)?;
                return Ok(deletion.total);
            }
        }
        let mut behind = i64::MIN;
        while deletion.left > 0 {
            let oldest = self.all(sql!("admin/selected/deletable"), params![behind, before, BATCH], read)?;
            let Some((last, ..)) = oldest.last() else { break };
            behind = *last;
            self.delete_roots(&oldest, &mut deletion)?;
        }
        Ok(deletion.total)
    }

    /// Deletes the trees of some roots, if all of a tree has ended.
    fn delete_roots(&self, roots: &[Selected], deletion: &mut Deletion) -> DbResult<()> {
        for (_, _, root) in roots {
            if deletion.left == 0 {
                break;
            }
            let Some(tree) = self.ended_tree(root)? else { continue };
            deletion.left -= 1;
            add_up(&mut deletion.total, &self.delete(&tree)?);
        }
        Ok(())
    }

    pub(crate) fn prune_bulk(
        &self,
        filter: &InstanceFilter,
        options: &PruneOptions,
    ) -> DbResult<PruneResult> {
        let limit = filter.limit.unwrap_or(DEFAULT_BULK_LIMIT);
        let before = filter.completed_before.map(time);
        let selected = match &filter.instance_ids {
            Some(ids) => self.named(ids, false, before)?,
            None => self.all(sql!("admin/selected/all"), params![before, limit], read)?,
        };
        let mut total = PruneResult::default();
        for (_, key, _) in selected.into_iter().take(limit as usize) {
            let pruned = self.prune(key, options)?;
            total.instances_processed += pruned.instances_processed;
            total.executions_deleted += pruned.executions_deleted;
            total.events_deleted += pruned.events_deleted;
        }
        Ok(total)
    }

    /// Returns those of the named instances that match, oldest first; only roots if asked for.
    fn named(&self, ids: &[String], roots: bool, before: Option<i64>) -> DbResult<Vec<Selected>> {
        let mut named = Vec::new();
        for id in ids.iter().collect::<BTreeSet<_>>() {
            named.extend(self.one(sql!("admin/selected/named"), params![roots, before, id], read)?);
        }
        named.sort_unstable();
        Ok(named)
    }
}

/// A deletion in bulk: how many roots it may still delete, and what it has deleted.
struct Deletion {
    left: u32,
    total: DeleteInstanceResult,
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Selected> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}
