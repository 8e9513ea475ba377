//! Rows that cannot be read: set aside with the reason, listed, retried, dropped (S15).

use std::borrow::Cow;

use steadfast_core::WorkItem;
use steadfast_store::rules::{is_start, no_such_row, stored_tag};
use steadfast_store::{MAX_PAGE, ProviderError, Queue, SetAside, Woken};
use tokio_postgres::Row;

use crate::link::db::{Db, column, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::{Statement, calls, params, sql};
use crate::schema::functions::{Function, functions};
use crate::verbs::backend::Backend;

pub(crate) const FUNCTIONS: &[Function] =
    functions!["set_aside/retry_message_set_aside", "set_aside/retry_work_set_aside"];

calls! {
    /// Puts a message that was set aside back into its queue.
    RetryMessage<'a> => retry_message_set_aside {
        id: i64,
        instance: Cow<'a, str>,
        starts: bool,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
    }

    /// Puts work that was set aside back into its queue.
    RetryWork<'a> => retry_work_set_aside {
        id: i64,
        instance: Cow<'a, str>,
        execution: i64,
        activity: i64,
        tag: Cow<'a, str>,
        session: Option<Cow<'a, str>>,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
    }
}

impl Backend {
    /// Puts a row back into its queue. If it still cannot be read, the next fetch passes over it again, and
    /// attempts are counted from 0.
    pub(crate) async fn retry_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        const OPERATION: &str = "retry_set_aside";
        let stored = time(id);
        let statement = Statement::of(sql!("set_aside/show"), params![stored]);
        let row = self.db.one(OPERATION, statement).await?;
        let row = read(OPERATION, &row.ok_or_else(|| no_such_row(OPERATION, id))?)?;
        let item = serde_json::from_str::<WorkItem>(&row.payload).ok();
        let (woken, found) = match row.queue {
            Queue::Orchestrator => self.retry_message(id, &row, item.as_ref()).await?,
            Queue::Worker => self.retry_work(id, &row, item.as_ref()).await?,
        };
        match found {
            Some(true) => {
                self.waiters.wake(&woken);
                Ok(())
            }
            _ => Err(no_such_row(OPERATION, id)),
        }
    }

    async fn retry_message(
        &self,
        id: u64,
        row: &SetAside,
        item: Option<&WorkItem>,
    ) -> Result<(Woken, Option<bool>), ProviderError> {
        const OPERATION: &str = "retry_set_aside";
        let woken = Woken { turns: 1, ..Woken::default() };
        let call = RetryMessage {
            id: time(id),
            instance: escape(row.instance.as_deref().or(item.map(WorkItem::instance)).unwrap_or_default()),
            starts: item.is_some_and(is_start),
            now_ms: self.db.now(),
            notify: self.payload(&woken),
            me: &self.me,
        };
        let answer = self.db.one(OPERATION, call.statement()).await?;
        let found = answer.map(|row| column(OPERATION, &row, "retry_message_set_aside")).transpose()?;
        Ok((woken, found))
    }

    async fn retry_work(
        &self,
        id: u64,
        row: &SetAside,
        item: Option<&WorkItem>,
    ) -> Result<(Woken, Option<bool>), ProviderError> {
        const OPERATION: &str = "retry_set_aside";
        let woken = Woken { any_work: true, ..Woken::default() };
        let stored;
        let (instance, execution, activity, tag, session) = match item {
            Some(WorkItem::ActivityExecute { instance, execution_id, id, session_id, tag, .. }) => {
                stored = stored_tag(tag.as_deref());
                (instance.as_str(), time(*execution_id), time(*id), stored.as_str(), session_id.as_deref())
            }
            _ => (row.instance.as_deref().unwrap_or_default(), 0, 0, "", None),
        };
        let call = RetryWork {
            id: time(id),
            instance: escape(instance),
            execution,
            activity,
            tag: escape(tag),
            session: session.map(escape),
            now_ms: self.db.now(),
            notify: self.payload(&woken),
            me: &self.me,
        };
        let answer = self.db.one(OPERATION, call.statement()).await?;
        let found = answer.map(|row| column(OPERATION, &row, "retry_work_set_aside")).transpose()?;
        Ok((woken, found))
    }
}

impl Db {
    /// Lists a page of the rows that were set aside, by rising id.
    pub(crate) async fn set_aside(&self, after: Option<u64>) -> Result<Vec<SetAside>, ProviderError> {
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        let after = after.map_or(-1, time);
        let statement = Statement::of(sql!("set_aside/page"), params![after, page]);
        let rows = self.rows("set_aside", statement).await?;
        rows.iter().map(|row| read("set_aside", row)).collect()
    }

    pub(crate) async fn drop_set_aside(&self, id: u64) -> Result<(), ProviderError> {
        let stored = time(id);
        let statement = Statement::of(sql!("set_aside/delete"), params![stored]);
        let deleted = self.one("drop_set_aside", statement).await?;
        deleted.map(drop).ok_or_else(|| no_such_row("drop_set_aside", id))
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
