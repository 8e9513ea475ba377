//! Waiting: what is there to tell of messages and activities that nobody has dealt with yet.

use steadfast_core::WorkItem;
use steadfast_store::{MAX_PAGE, OldestWaiting, ProviderError, TurnState, WorkPhase, WorkState};
use tokio_postgres::Row;

use crate::link::db::{Db, Function, column, functions, sql, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::params;
use crate::verbs::session::scope_of;
use crate::verbs::work::tag_of;

pub(crate) const FUNCTIONS: &[Function] =
    functions!["waiting/has_work", "waiting/oldest_waiting", "waiting/turn_of"];

/// The state of an activity that can be taken, as it is stored.
const READY: i16 = 1;

/// Whether there is something to take, and else when to look again.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) found: bool,
    /// Somebody else has what is due: it is worth looking again at once.
    pub(crate) again: bool,
    /// The next time at which something becomes runnable by itself.
    pub(crate) next: Option<i64>,
    /// The time of the store.
    pub(crate) now: i64,
}

impl Db {
    /// Is there an activity that somebody could lease?
    pub(crate) async fn has_work(&self) -> Result<Look, ProviderError> {
        const OPERATION: &str = "wait";
        let row = self.one(OPERATION, sql!("waiting/has_work"), params![self.now()]).await?;
        let row = row.ok_or_else(|| ProviderError::permanent(OPERATION, "a look answered nothing"))?;
        Ok(Look {
            found: column(OPERATION, &row, "found")?,
            again: column(OPERATION, &row, "again")?,
            next: column(OPERATION, &row, "next_ms")?,
            now: column(OPERATION, &row, "now_ms")?,
        })
    }

    /// Tells what waits for the turns of an instance.
    pub(crate) async fn turn_of(&self, instance: &str) -> Result<Option<TurnState>, ProviderError> {
        const OPERATION: &str = "turn_of";
        let Some(row) =
            self.one(OPERATION, sql!("waiting/turn_of"), params![escape(instance), self.now()]).await?
        else {
            return Ok(None);
        };
        let number = |name: &str| column::<i64>(OPERATION, &row, name).map(unsigned);
        let maybe =
            |name: &str| column::<Option<i64>>(OPERATION, &row, name).map(|value| value.map(unsigned));
        let scopes: Vec<String> = column(OPERATION, &row, "watched_scopes")?;
        let sessions: Vec<String> = column(OPERATION, &row, "watched_sessions")?;
        Ok(Some(TurnState {
            waiting: number("waiting")?,
            oldest_ms: maybe("oldest_ms")?,
            delayed: number("delayed")?,
            leased: number("leased")?,
            leased_until_ms: maybe("leased_until_ms")?,
            watched: scopes.into_iter().zip(sessions).map(|(scope, id)| scope_of(scope, id)).collect(),
            now_ms: number("now_ms")?,
        }))
    }

    /// Tells how the activities of an execution stand.
    pub(crate) async fn work_of(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<WorkState>, ProviderError> {
        const OPERATION: &str = "work_of";
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        let rows = self
            .rows(
                OPERATION,
                sql!("work/of_execution"),
                params![escape(instance), time(execution_id), page, self.now()],
            )
            .await?;
        rows.iter().map(|row| read_work(OPERATION, row)).collect()
    }

    /// Tells since when the oldest runnable things wait.
    pub(crate) async fn oldest_waiting(&self) -> Result<OldestWaiting, ProviderError> {
        const OPERATION: &str = "oldest_waiting";
        let row = self.one(OPERATION, sql!("waiting/oldest"), params![self.now()]).await?;
        let row = row.ok_or_else(|| ProviderError::permanent(OPERATION, "a look answered nothing"))?;
        let maybe =
            |name: &str| column::<Option<i64>>(OPERATION, &row, name).map(|value| value.map(unsigned));
        Ok(OldestWaiting {
            message_ms: maybe("message_ms")?,
            work_ms: maybe("work_ms")?,
            now_ms: unsigned(column(OPERATION, &row, "now_ms")?),
        })
    }
}

fn read_work(operation: &'static str, row: &Row) -> Result<WorkState, ProviderError> {
    let name = match serde_json::from_str::<WorkItem>(column(operation, row, "work_item")?) {
        Ok(WorkItem::ActivityExecute { name, .. }) => Some(name),
        _ => None,
    };
    let session: Option<String> = column(operation, row, "session_id")?;
    let scope: String = column(operation, row, "session_scope")?;
    let now: i64 = column(operation, row, "now_ms")?;
    let state: i16 = column(operation, row, "state")?;
    let visible_at: i64 = column(operation, row, "visible_ms")?;
    let locked_until = column::<Option<i64>>(operation, row, "locked_until")?.unwrap_or(0);
    let phase = match state {
        READY => WorkPhase::Waiting { since_ms: unsigned(column(operation, row, "since")?) },
        _ if locked_until > now => WorkPhase::Leased {
            worker_id: column::<Option<String>>(operation, row, "worker_id")?
                .map(unescape)
                .unwrap_or_default(),
            until_ms: unsigned(locked_until),
        },
        _ if visible_at > now => WorkPhase::Delayed { until_ms: unsigned(visible_at) },
        // Its time has come, or its lease has ended, and no fetch has moved it yet.
        _ => WorkPhase::Waiting { since_ms: unsigned(visible_at.max(locked_until)) },
    };
    let attempts: i32 = column(operation, row, "attempt_count")?;
    Ok(WorkState {
        activity_id: unsigned(column(operation, row, "activity_id")?),
        name,
        tag: tag_of(column(operation, row, "tag")?),
        session: session.map(|id| scope_of(scope, id)),
        attempts: u32::try_from(attempts).unwrap_or(0),
        phase,
    })
}
