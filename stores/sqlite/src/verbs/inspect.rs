//! Inspection: which messages and activities wait, are held back or are leased, and since when.

use rusqlite::params;
use steadfast_core::WorkItem;
use steadfast_store::rules::{WorkTimes, session_key, tag_of, timers_of};
use steadfast_store::{MAX_PAGE, OldestWaiting, TurnState, WaitingStart, WorkState};

use crate::link::db::{Db, sql, text_of, time, unsigned};
use crate::link::error::DbResult;
use crate::verbs::work::call::uncalled_tag;
use crate::verbs::work::tries::StoredCall;

impl Db<'_> {
    pub(crate) fn turn_of(&self, instance: &str) -> DbResult<Option<TurnState>> {
        let Some(key) = self.maybe(sql!("instance/key"), [instance])? else { return Ok(None) };
        if !self.exists(key)? {
            return Ok(None);
        }
        let lease = self.one(sql!("turn/lease/current"), [key, self.now], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })?;
        let (token, until) = lease.unzip();
        let turns = self.one(sql!("turn/messages_of"), params![key, self.now, token], |row| {
            Ok(TurnState {
                leased: unsigned(row.get(0)?),
                waiting: unsigned(row.get(1)?),
                oldest_ms: row.get::<_, Option<i64>>(2)?.map(unsigned),
                delayed: unsigned(row.get(3)?),
                leased_until_ms: until.map(unsigned),
                watched: Vec::new(),
                dropped_timers: Vec::new(),
                now_ms: unsigned(self.now),
            })
        })?;
        let execution = self.latest_execution(key)?;
        let watched = self.all(sql!("session/watch/watched_by"), [key, execution], |row| {
            Ok(session_key(row.get(0)?, row.get(1)?))
        })?;
        let dropped_timers = self.dropped_timers(key, execution)?;
        Ok(turns.map(|turns| TurnState { watched, dropped_timers, ..turns }))
    }

    fn dropped_timers(&self, key: i64, execution: i64) -> DbResult<Vec<u64>> {
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        let texts = self.all(sql!("turn/dropped_timers"), [key, page, execution], |row| text_of(row, 0))?;
        let items = texts.iter().filter_map(|text| serde_json::from_str(text).ok());
        Ok(timers_of(unsigned(execution), items))
    }

    pub(crate) fn start_of(&self, instance: &str) -> DbResult<Option<WaitingStart>> {
        let Some(key) = self.maybe(sql!("instance/key"), [instance])? else { return Ok(None) };
        let text = self.one(sql!("turn/start_of"), [key], |row| row.get::<_, String>(0))?;
        Ok(text.and_then(|text| WaitingStart::of(&serde_json::from_str(&text).ok()?)))
    }

    pub(crate) fn work_of(&self, instance: &str, execution_id: u64) -> DbResult<Vec<WorkState>> {
        let Some(key) = self.maybe(sql!("instance/key"), [instance])? else { return Ok(Vec::new()) };
        let page = i64::try_from(MAX_PAGE).unwrap_or(i64::MAX);
        self.all(sql!("work/of_execution"), params![key, time(execution_id), page], |row| {
            self.work_state(row)
        })
    }

    fn work_state(&self, row: &rusqlite::Row<'_>) -> rusqlite::Result<WorkState> {
        let name = match serde_json::from_str::<WorkItem>(&text_of(row, 1)?) {
            Ok(WorkItem::ActivityExecute { name, .. }) => Some(name),
            _ => None,
        };
        let session = row.get::<_, Option<String>>(3)?.zip(row.get::<_, Option<String>>(4)?);
        let is_ready = row.get::<_, i64>(6)? == READY;
        let times = WorkTimes {
            ready_since_ms: is_ready.then(|| row.get(9).map(unsigned)).transpose()?,
            visible_at_ms: unsigned(row.get(7)?),
            locked_until_ms: row.get::<_, Option<i64>>(8)?.map_or(0, unsigned),
        };
        let stored = StoredCall::read(row, 11)?;
        Ok(WorkState {
            activity_id: unsigned(row.get(0)?),
            name,
            tag: tag_of(uncalled_tag(&row.get::<_, String>(2)?)).map(str::to_owned),
            session: session.map(|(instance, id)| session_key(instance, id)),
            attempts: row.get(5)?,
            deliveries: stored.deliveries,
            call: stored.terms().ok().flatten(),
            tries: stored.tries(),
            phase: times.phase(row.get(10)?, unsigned(self.now)),
        })
    }

    /// Moves the rows that became runnable by time, as a fetch does, so that the indexes hold all that is
    /// runnable.
    pub(crate) fn oldest_waiting(&self) -> DbResult<OldestWaiting> {
        self.sweep_turns()?;
        self.sweep_work()?;
        Ok(OldestWaiting {
            message_ms: self.longest_waiting_turn()?.map(unsigned),
            work_ms: self.maybe(sql!("work/ready/waiting_since"), [])?.map(unsigned),
            now_ms: unsigned(self.now),
        })
    }
}

/// The stored state of an activity that can be leased.
const READY: i64 = 1;
