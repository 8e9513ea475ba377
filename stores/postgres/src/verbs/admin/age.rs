//! Deleting what ended long ago, in bounded steps, and counting what is live.

use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_store::{DeleteInstanceResult, Gauges, ProviderError, ProviderErrorKind};

use crate::link::db::{column, millis, unsigned};
use crate::link::error::is_too_slow;
use crate::link::statement::calls;
use crate::schema::functions::{Function, functions};
use crate::verbs::backend::Backend;
use crate::verbs::notify::everything;

pub(crate) const FUNCTIONS: &[Function] = functions!["admin/delete_ended", "admin/count_live"];

calls! {
    /// Deletes instances that ended long ago.
    DeleteEnded<'a> => delete_ended {
        ended_for_ms: i64,
        limit: i64,
        /// The place of the last root that was looked at: when it ended, and its order.
        after_ms: i64,
        after_ord: i64,
        now_ms: Option<i64>,
        notify: String,
        me: &'a str,
    }

    /// Counts what is live.
    CountLive => count_live {}
}

const DELETE: &str = "delete_ended";

/// Bounds the roots that one statement deletes. It is halved when a statement takes too long, for the calls
/// that follow too, and doubled when one does not.
pub(crate) const MAX_STEP: u32 = 64;

impl Backend {
    /// Deletes instances that ended at least `ended_for` ago, until `limit` roots are deleted or none is left
    /// (S16). A statement that takes longer than it may is repeated with half as many roots; a root that
    /// cannot be deleted in time by itself is passed over.
    ///
    /// # Errors
    /// `Busy`, if nothing was deleted because a root is too large for `statement_timeout`.
    pub(crate) async fn delete_ended(
        &self,
        ended_for: Duration,
        limit: u32,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let mut deleted = DeleteInstanceResult::default();
        let (mut left, mut after) = (limit, Some((i64::MIN, i64::MIN)));
        let mut too_large = None;
        while let Some((after_ms, after_ord)) = after.filter(|_| left > 0) {
            let step = self.deletion_step.load(Ordering::Relaxed).clamp(1, MAX_STEP);
            let mut call = DeleteEnded {
                ended_for_ms: millis(ended_for),
                limit: i64::from(step.min(left)),
                after_ms,
                after_ord,
                now_ms: self.db.now(),
                notify: everything(&self.me),
                me: &self.me,
            };
            let answer = match self.db.one(DELETE, call.statement()).await {
                Err(error) if is_too_slow(&error) && call.limit > 1 => {
                    self.deletion_step.store(step.min(left) / 2, Ordering::Relaxed);
                    continue;
                }
                Err(error) if is_too_slow(&error) => {
                    too_large = Some(error);
                    after = self.root_after(&mut call).await?;
                    continue;
                }
                answer => answer?,
            };
            let Some(row) = answer else { break };
            let count = |name| column(DELETE, &row, name).map(unsigned);
            deleted.instances_deleted += count("instances")?;
            deleted.executions_deleted += count("executions")?;
            deleted.events_deleted += count("events")?;
            deleted.queue_messages_deleted += count("queued")?;
            left = left.saturating_sub(u32::try_from(count("roots")?).unwrap_or(u32::MAX));
            let next: Option<i64> = column(DELETE, &row, "next_ms")?;
            after = next.zip(column(DELETE, &row, "next_ord")?);
            self.deletion_step.store(step.saturating_mul(2), Ordering::Relaxed);
        }
        if deleted.instances_deleted > 0 {
            self.waiters.wake_all();
            return Ok(deleted);
        }
        too_large.map_or(Ok(deleted), |error| Err(too_large_root(&error)))
    }

    /// Returns the place of the first root after the place of a call.
    async fn root_after(&self, call: &mut DeleteEnded<'_>) -> Result<Option<(i64, i64)>, ProviderError> {
        call.limit = 0;
        let Some(row) = self.db.one(DELETE, call.statement()).await? else { return Ok(None) };
        let next: Option<i64> = column(DELETE, &row, "next_ms")?;
        Ok(next.zip(column(DELETE, &row, "next_ord")?))
    }

    /// Counts what is live (S20).
    pub(crate) async fn gauges(&self) -> Result<Gauges, ProviderError> {
        const OPERATION: &str = "gauges";
        let row = self.db.one(OPERATION, CountLive {}.statement()).await?;
        let Some(row) = row else { return Ok(Gauges::default()) };
        let count = |name| column(OPERATION, &row, name).map(unsigned);
        Ok(Gauges {
            running_instances: count("running")?,
            messages: count("messages")?,
            work: count("work")?,
        })
    }
}

/// Makes the error for a root that one statement cannot delete.
fn too_large_root(error: &ProviderError) -> ProviderError {
    let text = format!(
        "an instance that has ended is too large to be deleted in one statement; raise statement_timeout: {}",
        error.message
    );
    ProviderError::new(ProviderErrorKind::Busy, DELETE, text)
}
