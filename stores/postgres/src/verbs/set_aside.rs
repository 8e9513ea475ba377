//! Rows that cannot be read: set aside with the reason, listed, retried, dropped (S15).

use steadfast_core::WorkItem;
use steadfast_store::{MAX_PAGE, ProviderError, ProviderErrorKind, Queue, SetAside, Woken};
use tokio_postgres::Row;

use crate::link::db::{Db, Function, column, functions, sql, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::params;
use crate::verbs::message::{is_start, stored_tag};

pub(crate) const FUNCTIONS: &[Function] =
    functions!["set_aside/retry_message_set_aside", "set_aside/retry_work_set_aside"];

impl Db {
    pub(crate) async fn set_aside(&self, after: Option<u64>) -> Result<Vec<SetAside>, ProviderError> {
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        let rows =
            self.rows("set_aside", sql!("set_aside/page"), params![after.map_or(-1, time), page]).await?;
        rows.iter().map(|row| read("set_aside", row)).collect()
    }

    /// Puts a row back and tells what became runnable. One that can still not be read is met again by the next fetch, with no
    /// attempts counted.
    pub(crate) async fn retry_set_aside(&self, id: u64, me: &str) -> Result<Woken, ProviderError> {
        const OPERATION: &str = "retry_set_aside";
        let row = self.one(OPERATION, sql!("set_aside/show"), params![time(id)]).await?;
        let row = read(OPERATION, &row.ok_or_else(|| no_such_row(OPERATION, id))?)?;
        let item = serde_json::from_str::<WorkItem>(&row.payload).ok();
        let woken = match row.queue {
            Queue::Orchestrator => Woken { turns: 1, ..Woken::default() },
            Queue::Worker => Woken { work: vec![place_of(item.as_ref())], ..Woken::default() },
        };
        let (now, notify) = (self.now(), crate::verbs::notify::payload(me, &woken));
        let instance = row.instance.unwrap_or_default();
        let found = match (row.queue, item) {
            (Queue::Orchestrator, item) => {
                let starts = item.as_ref().is_some_and(is_start);
                let to = item.as_ref().map_or(instance.as_str(), WorkItem::instance);
                self.one(
                    OPERATION,
                    sql!("set_aside/retry_message"),
                    params![time(id), escape(to), starts, now, notify, me],
                )
                .await?
            }
            (
                Queue::Worker,
                Some(WorkItem::ActivityExecute {
                    instance, execution_id, id: activity, session_id, tag, ..
                }),
            ) => {
                let tag = stored_tag(tag.as_deref());
                self.one(
                    OPERATION,
                    sql!("set_aside/retry_work"),
                    params![
                        time(id),
                        escape(&instance),
                        time(execution_id),
                        time(activity),
                        escape(&tag),
                        session_id.as_deref().map(escape),
                        now,
                        notify,
                        me
                    ],
                )
                .await?
            }
            (Queue::Worker, _) => {
                self.one(
                    OPERATION,
                    sql!("set_aside/retry_work"),
                    params![time(id), escape(&instance), 0_i64, 0_i64, "", None::<String>, now, notify, me],
                )
                .await?
            }
        };
        match found.map(|row| column::<bool>(OPERATION, &row, "found")).transpose()? {
            Some(true) => Ok(woken),
            _ => Err(no_such_row(OPERATION, id)),
        }
    }

    pub(crate) async fn drop_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        let gone = self.one("drop_set_aside", sql!("set_aside/delete"), params![time(id)]).await?;
        gone.map(drop).ok_or_else(|| no_such_row("drop_set_aside", id))
    }
}

/// The tag of an activity, and whether it belongs to a session; none for one that cannot be read.
fn place_of(item: Option<&WorkItem>) -> (Option<String>, bool) {
    match item {
        Some(WorkItem::ActivityExecute { tag, session_id, .. }) => (tag.clone(), session_id.is_some()),
        _ => (None, false),
    }
}

fn read(operation: &'static str, row: &Row) -> Result<SetAside, ProviderError> {
    let attempts: i32 = column(operation, row, "attempts")?;
    Ok(SetAside {
        id: unsigned(column(operation, row, "id")?),
        queue: if column::<i16>(operation, row, "queue")? == 0 { Queue::Orchestrator } else { Queue::Worker },
        instance: column::<Option<String>>(operation, row, "instance_id")?.map(unescape),
        payload: column(operation, row, "payload")?,
        reason: unescape(column(operation, row, "reason")?),
        attempts: u32::try_from(attempts).unwrap_or(0),
        at_ms: unsigned(column(operation, row, "at_ms")?),
    })
}

fn no_such_row(operation: &'static str, id: u64) -> ProviderError {
    let text = format!("row {id} was not found among those set aside");
    ProviderError::new(ProviderErrorKind::NotFound, operation, text)
}
