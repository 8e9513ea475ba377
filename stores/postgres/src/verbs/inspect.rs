//! Inspecting: which messages and activities wait, are delayed or leased.

use std::borrow::Cow;

use steadfast_core::WorkItem;
use steadfast_store::rules::{WorkTimes, timers_of};
use steadfast_store::{MAX_PAGE, OldestWaiting, ProviderError, TurnState, WaitingStart, WorkState};
use tokio_postgres::Row;

use crate::link::db::{Db, column, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::{Statement, calls, params, sql};
use crate::schema::functions::{Function, functions};
use crate::verbs::poll::{NextPoll, PollResult};
use crate::verbs::session::read_key;
use crate::verbs::turn::read_beside;
use crate::verbs::work::read_tag;
use crate::verbs::work::tries::{read_count, read_tries};

pub(crate) const FUNCTIONS: &[Function] =
    functions!["waiting/has_work", "waiting/oldest_waiting", "waiting/turn_of"];

calls! {
    /// Tells whether an activity can be leased, and if not, when.
    HasWork => has_work {
        now_ms: Option<i64>,
    }

    /// Counts the messages of an instance by their state.
    TurnOf<'a> => turn_of {
        instance: Cow<'a, str>,
        now_ms: Option<i64>,
    }

    /// Tells since when the oldest message and the oldest activity have been runnable.
    OldestRunnable => oldest_waiting {
        now_ms: Option<i64>,
    }
}

/// The stored state of an activity that can be leased.
const READY: i16 = 1;

impl Db {
    /// Tells whether an activity can be leased, and if not, when one becomes ready by itself.
    pub(crate) async fn look_for_work(&self) -> Result<PollResult<()>, ProviderError> {
        const OPERATION: &str = "wait";
        let row = self.one(OPERATION, HasWork { now_ms: self.now() }.statement()).await?;
        let row = row.ok_or_else(|| ProviderError::permanent(OPERATION, "a look answered nothing"))?;
        let again = column(OPERATION, &row, "again")?;
        let (next, now) = (column(OPERATION, &row, "next_ms")?, column(OPERATION, &row, "now_ms")?);
        Ok(match column(OPERATION, &row, "found")? {
            true => PollResult::Found(()),
            false => PollResult::Nothing(NextPoll::after(again, next, now)),
        })
    }

    /// Counts the messages of an instance: those that wait, those that are delayed, those that are leased.
    /// `None` if the instance does not exist.
    pub(crate) async fn turn_of(&self, instance: &str) -> Result<Option<TurnState>, ProviderError> {
        const OPERATION: &str = "turn_of";
        let call = TurnOf { instance: escape(instance), now_ms: self.now() };
        let Some(row) = self.one(OPERATION, call.statement()).await? else { return Ok(None) };
        let number = |name: &str| column::<i64>(OPERATION, &row, name).map(unsigned);
        let maybe =
            |name: &str| column::<Option<i64>>(OPERATION, &row, name).map(|value| value.map(unsigned));
        let scopes: Vec<String> = column(OPERATION, &row, "watched_scopes")?;
        let sessions: Vec<String> = column(OPERATION, &row, "watched_sessions")?;
        Ok(Some(TurnState {
            dropped_timers: self.dropped_timers(instance).await?,
            waiting: number("waiting")?,
            oldest_ms: maybe("oldest_ms")?,
            delayed: number("delayed")?,
            leased: number("leased")?,
            leased_until_ms: maybe("leased_until_ms")?,
            watched: scopes.into_iter().zip(sessions).map(|(scope, id)| read_key(scope, id)).collect(),
            now_ms: number("now_ms")?,
        }))
    }

    /// Lists the timers of the latest execution that its code does not await any more, by rising id.
    async fn dropped_timers(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        const OPERATION: &str = "turn_of";
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        let params = params![escape(instance), page];
        let rows = self.rows(OPERATION, Statement::of(sql!("waiting/dropped_timers"), params)).await?;
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        let execution: i64 = column(OPERATION, first, "execution")?;
        let texts: Vec<&str> =
            rows.iter().map(|row| column(OPERATION, row, "work_item")).collect::<Result<_, _>>()?;
        let items = texts.into_iter().filter_map(|text| serde_json::from_str(text).ok());
        Ok(timers_of(unsigned(execution), items))
    }

    /// Describes the first message of an instance that starts an execution.
    pub(crate) async fn start_of(&self, instance: &str) -> Result<Option<WaitingStart>, ProviderError> {
        const OPERATION: &str = "start_of";
        let params = params![escape(instance)];
        let row = self.one(OPERATION, Statement::of(sql!("waiting/start_of"), params)).await?;
        let text: Option<String> = row.map(|row| column(OPERATION, &row, "work_item")).transpose()?;
        Ok(text.and_then(|text| WaitingStart::of(&serde_json::from_str(&text).ok()?)))
    }

    /// Lists the queued activities of an execution with their states.
    pub(crate) async fn work_of(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<WorkState>, ProviderError> {
        const OPERATION: &str = "work_of";
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        let (instance, now) = (escape(instance), self.now());
        let params = params![instance, time(execution_id), page, now];
        let rows = self.rows(OPERATION, Statement::of(sql!("work/of_execution"), params)).await?;
        rows.iter().map(|row| read_work(OPERATION, row)).collect()
    }

    /// Tells since when the oldest message and the oldest activity have been runnable.
    pub(crate) async fn oldest_waiting(&self) -> Result<OldestWaiting, ProviderError> {
        const OPERATION: &str = "oldest_waiting";
        let row = self.one(OPERATION, OldestRunnable { now_ms: self.now() }.statement()).await?;
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
    let number = |name: &str| column::<i64>(operation, row, name).map(unsigned);
    let is_ready = column::<i16>(operation, row, "state")? == READY;
    let times = WorkTimes {
        ready_since_ms: is_ready.then(|| number("since")).transpose()?,
        visible_at_ms: number("visible_ms")?,
        locked_until_ms: column::<Option<i64>>(operation, row, "locked_until")?.map_or(0, unsigned),
    };
    let worker_id: Option<String> = column(operation, row, "worker_id")?;
    let attempts: i32 = column(operation, row, "attempt_count")?;
    Ok(WorkState {
        activity_id: unsigned(column(operation, row, "activity_id")?),
        name,
        tag: read_tag(column(operation, row, "tag")?),
        session: session.map(|id| read_key(scope, id)),
        attempts: u32::try_from(attempts).unwrap_or(0),
        deliveries: read_count(operation, row, "deliveries")?,
        call: read_beside(column(operation, row, "call")?).ok().flatten(),
        tries: read_tries(operation, row)?,
        phase: times.phase(worker_id.map(unescape), number("now_ms")?),
    })
}
