//! Rows that cannot be read: set aside with the reason, listed, retried, dropped (S15).

use rusqlite::params;
use steadfast_core::WorkItem;
use steadfast_store::rules::no_such_row;
use steadfast_store::{MAX_PAGE, Message, NewWork, Queue, SetAside};

use crate::link::db::{Db, sql, time, unsigned};
use crate::link::error::DbResult;

impl Db<'_> {
    pub(crate) fn put_aside(
        &self,
        queue: Queue,
        instance: Option<&str>,
        payload: &str,
        reason: &serde_json::Error,
        attempts: u32,
    ) -> DbResult<()> {
        let id = self.next()?;
        tracing::warn!(
            target: "steadfast::store",
            id, ?queue, instance, %reason, attempts,
            "unreadable row set aside"
        );
        let columns =
            params![id, number_of(queue), instance, payload, reason.to_string(), attempts, self.now];
        self.run(sql!("set_aside/insert"), columns)?;
        Ok(())
    }

    pub(crate) fn set_aside(&self, after: Option<u64>) -> DbResult<Vec<SetAside>> {
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        self.all(sql!("set_aside/page"), params![after.map_or(-1, time), page], read)
    }

    /// Puts a row back into its queue with an attempt count of 0. If it still cannot be read, the next fetch
    /// meets it again.
    pub(crate) fn retry_set_aside(&self, id: u64) -> DbResult<()> {
        let row = self
            .one(sql!("set_aside/show"), [time(id)], read)?
            .ok_or_else(|| no_such_row("retry_set_aside", id))?;
        self.run(sql!("set_aside/delete"), [time(id)])?;
        match (row.queue, serde_json::from_str::<WorkItem>(&row.payload)) {
            (Queue::Orchestrator, Ok(item)) => {
                self.insert_message(&Message::from(item), &row.payload, self.now)
            }
            (Queue::Worker, Ok(item @ WorkItem::ActivityExecute { .. })) => {
                self.insert_work(&NewWork::from(item), &row.payload)
            }
            (Queue::Orchestrator, Err(_)) => {
                let key = self.key_of(row.instance.as_deref().unwrap_or_default())?;
                let columns = params![key, 1, self.now, false, row.payload, None::<String>, None::<i64>];
                self.run(sql!("message/insert"), columns)?;
                self.touch_turn(key, self.now)
            }
            (Queue::Worker, _) => {
                let key = self.key_of(row.instance.as_deref().unwrap_or_default())?;
                let columns = params![key, 0, 0, "", None::<i64>, self.now, row.payload, None::<String>];
                self.run(sql!("work/insert"), columns)?;
                self.woken.borrow_mut().work.push((None, false));
                Ok(())
            }
        }
    }

    pub(crate) fn drop_set_aside(&self, id: u64) -> DbResult<()> {
        match self.run(sql!("set_aside/delete"), [time(id)])? {
            0 => Err(no_such_row("drop_set_aside", id).into()),
            _ => Ok(()),
        }
    }
}

fn number_of(queue: Queue) -> i64 {
    match queue {
        Queue::Orchestrator => 0,
        Queue::Worker => 1,
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<SetAside> {
    Ok(SetAside {
        id: unsigned(row.get(0)?),
        queue: if row.get::<_, i64>(1)? == 0 { Queue::Orchestrator } else { Queue::Worker },
        instance: row.get(2)?,
        payload: row.get(3)?,
        reason: row.get(4)?,
        attempts: row.get(5)?,
        at_ms: unsigned(row.get(6)?),
    })
}
