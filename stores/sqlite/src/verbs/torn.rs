//! Rows of the queues that the database cannot read, because a page of the file is torn (S15).
//!
//! SQLite can neither change nor remove such a row, so it is listed beside its table, and every statement
//! leaves out the rows that are listed. A listed row is counted, held back and read again like any other that
//! cannot be read, and in the end set aside; it stays where it is.
//!
//! After it has met a torn page, SQLite neither writes more in that transaction nor commits it. So a request
//! that meets one finds out which rows are torn and fails with them; then they are listed in a request of
//! their own, and the first one runs again.
//!
//! The rows on the pages beside a torn one can be read and changed, but not always removed: SQLite then moves
//! rows between these pages. A request that fails to remove one runs again, and gives up the rows that it
//! removes: they are listed for good, which is the same to every statement.
//!
//! Neither helps a row that must be written into a torn leaf, as every new one if the last leaf of its queue
//! is torn, or one that grows beside it: the queue gets a new table (`mend`).

pub(crate) mod look;
pub(crate) mod lost;
pub(crate) mod mend;
pub(crate) mod source;

use std::sync::atomic::Ordering;

use rusqlite::{OptionalExtension, Params, params};
use steadfast_store::{MAX_UNREADABLE_ATTEMPTS, ProviderError, ProviderErrorKind, Queue, UNREADABLE_RETRY};

use crate::link::db::{Db, sql};
use crate::link::error::{
    DbResult, Fault, REMEDY, TornRow, TornRows, is_io, is_of_torn_page, is_stuck, is_torn, is_torn_end,
    is_torn_trail, kind_of, torn_rows,
};
use crate::store::SqliteProvider;
use crate::verbs::set_aside::{number_of, tell};
use crate::verbs::turn::SWEEP;

use self::look::{RowLook, look_at};
use self::mend::Generations;

/// Bounds how often one call finds torn rows and runs again.
const MOST_TRIES: u32 = 64;

/// The statements about torn rows of one queue.
struct TornStatements {
    count: &'static str,
    give_up: &'static str,
    retry: &'static str,
    due: &'static str,
    forget: &'static str,
    probe: &'static str,
}

const OF_MESSAGES: TornStatements = TornStatements {
    count: sql!("torn/message/count"),
    give_up: sql!("torn/message/give_up"),
    retry: sql!("torn/message/retry"),
    due: sql!("torn/message/due"),
    forget: sql!("torn/message/forget"),
    probe: sql!("torn/message/probe"),
};

const OF_WORK: TornStatements = TornStatements {
    count: sql!("torn/work/count"),
    give_up: sql!("torn/work/give_up"),
    retry: sql!("torn/work/retry"),
    due: sql!("torn/work/due"),
    forget: sql!("torn/work/forget"),
    probe: sql!("torn/work/probe"),
};

fn statements(queue: Queue) -> &'static TornStatements {
    match queue {
        Queue::Orchestrator => &OF_MESSAGES,
        Queue::Worker => &OF_WORK,
    }
}

/// How often a process tells that rows cannot be removed.
const TELL_EVERY_MS: i64 = 60_000;

/// How long no trails of sessions are written after a page of them was found torn.
const TRAILS_REST_FOR_MS: i64 = 60_000;

/// How long events are stored in front of all others after the last leaf of the histories was found torn.
const IN_FRONT_FOR_MS: i64 = 60_000;

/// A statement that removes rows of a queue, and the one that gives up the same rows where they are.
pub(crate) struct Removal {
    pub(crate) remove: &'static str,
    pub(crate) give_up: &'static str,
}

/// What a call has done to go past torn pages.
#[derive(Default)]
pub(crate) struct PastTorn {
    tries: u32,
    /// True if its next run gives up the rows that it would remove.
    pub(crate) leaves_rows: bool,
    /// True if a row could not be removed.
    met_stuck: bool,
    /// True if it has found the last leaf of the histories torn.
    met_torn_end: bool,
    /// True if it has found a page of the trails of sessions torn.
    met_torn_trail: bool,
    /// The tables of the queues as they were when it met a torn page that no row could be found for.
    generations: Option<Generations>,
    /// True if it has run again although no damage was found.
    has_run_again: bool,
}

impl SqliteProvider {
    /// Runs a transaction. Torn rows that it meets are listed, and it runs again without them.
    pub(crate) async fn write_past_torn<R, F>(
        &self,
        operation: &'static str,
        work: F,
    ) -> Result<R, ProviderError>
    where
        R: Send + 'static,
        F: Fn(&Db<'_>) -> DbResult<R> + Clone + Send + 'static,
    {
        let mut past = PastTorn::default();
        loop {
            let (work, leaves_rows) = (work.clone(), past.leaves_rows);
            let in_front = self.clock.now_ms() < self.in_front_until.load(Ordering::Relaxed);
            let run = move |db: &Db<'_>| {
                db.leaves_rows.set(leaves_rows);
                db.appends_in_front.set(in_front);
                work(db)
            };
            match self.writer.write(operation, run).await {
                Err(error) if self.goes_past_torn(&error, &mut past).await? => {}
                written => return written,
            }
        }
    }

    /// Prepares the next run of a call that has met a torn page: lists the torn rows that the error tells of,
    /// or mends the queues if it tells of none. False if the error tells of no such page, or too often.
    pub(crate) async fn goes_past_torn(
        &self,
        error: &ProviderError,
        past: &mut PastTorn,
    ) -> Result<bool, ProviderError> {
        past.tries += 1;
        if past.tries > MOST_TRIES {
            return Ok(false);
        }
        // SQLite tells of some failed reads as of a torn page: what passes is not met twice.
        if is_stuck(error) && !past.leaves_rows {
            if std::mem::replace(&mut past.met_stuck, true) {
                past.leaves_rows = true;
                self.tell_of_stuck();
            }
            return Ok(true);
        }
        if is_torn_end(error) {
            if std::mem::replace(&mut past.met_torn_end, true) {
                self.store_in_front();
            }
            return Ok(true);
        }
        if is_torn_trail(error) {
            if std::mem::replace(&mut past.met_torn_trail, true) {
                self.leave_out_trails();
            }
            return Ok(true);
        }
        let Some(rows) = torn_rows(error) else {
            return if is_of_torn_page(error) { self.mend(past).await } else { Ok(false) };
        };
        let rows = rows.to_vec();
        let list = move |db: &Db<'_>| rows.iter().try_for_each(|row| db.hold_back_torn(row));
        self.writer.write("list_torn", list).await?;
        Ok(true)
    }

    /// Stores events in front of all others for a while. Then the last leaf of the histories is tried again.
    fn store_in_front(&self) {
        let until = self.clock.now_ms().saturating_add(IN_FRONT_FOR_MS);
        if self.in_front_until.swap(until, Ordering::Relaxed) == i64::MIN {
            tell_of_torn_end();
        }
    }

    /// Writes no trails of sessions for a while. Then they are tried again.
    fn leave_out_trails(&self) {
        if self.looks.leave_out_trails(self.clock.now_ms().saturating_add(TRAILS_REST_FOR_MS)) {
            tracing::warn!(
                target: "steadfast::store",
                "a part of the file is damaged: the trails of sessions cannot be written, and sessions go on \
                 without them; {REMEDY}"
            );
        }
    }

    fn tell_of_stuck(&self) {
        let now = self.clock.now_ms();
        let told = self.stuck_told.swap(now, Ordering::Relaxed);
        if now.saturating_sub(told) < TELL_EVERY_MS {
            self.stuck_told.store(told, Ordering::Relaxed);
            return;
        }
        tracing::warn!(
            target: "steadfast::store",
            "a part of the file is damaged: messages or activities that are done with cannot be removed and \
             stay in the file (`PRAGMA integrity_check` names the pages); {REMEDY}"
        );
    }
}

fn tell_of_torn_end() {
    tracing::warn!(
        target: "steadfast::store",
        "a part of the file is damaged: the last events of the histories cannot be read, and new ones are \
         stored elsewhere in the file; {REMEDY}"
    );
}

impl Db<'_> {
    /// Looks at torn rows again whose time has come, in a bounded batch, beside the transaction: it goes on
    /// if they are still torn.
    pub(crate) fn retry_torn(&self, queue: Queue) -> DbResult<()> {
        let due = self.all(statements(queue).due, params![self.now, SWEEP], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        if due.is_empty() {
            return Ok(());
        }
        self.forget_pages()?;
        for (row, key) in due {
            match look_at(self.beside()?, queue, row)?.reason() {
                Some(reason) => self.hold_back_torn(&self.torn_row(queue, row, key, reason)?)?,
                None => {
                    self.run(statements(queue).forget, [row])?;
                    let place = self.place_of_torn(queue, row)?;
                    self.refresh_place(queue, row, key, place.as_ref())?;
                }
            }
        }
        Ok(())
    }

    /// Removes rows of a queue, or gives them up where they are if they cannot be removed.
    pub(crate) fn remove_rows(&self, removal: &Removal, params: impl Params) -> DbResult<usize> {
        if self.leaves_rows.get() {
            return self.run(removal.give_up, params);
        }
        self.run(removal.remove, params).map_err(|fault| if is_torn(&fault) { Fault::Stuck } else { fault })
    }

    /// Returns the fault of a request that met a torn page, with the torn rows among some. The fault itself
    /// if none of them is torn, and any other fault.
    pub(crate) fn torn_fault(&self, queue: Queue, rows: &[i64], key: Option<i64>, fault: Fault) -> Fault {
        if !is_torn(&fault) {
            return fault;
        }
        match self.torn_among(queue, rows, key) {
            Ok(torn) if torn.is_empty() => fault,
            Ok(torn) => Fault::Torn(TornRows(torn)),
            Err(other) => other,
        }
    }

    /// Returns the fault of a request that met a torn message of an instance. This reads all of its messages,
    /// once for each torn page that a request meets.
    pub(crate) fn torn_fault_of_instance(&self, key: i64, fault: Fault) -> Fault {
        if !is_torn(&fault) {
            return fault;
        }
        match self.all(sql!("torn/message/of_instance"), [key], |row| row.get(0)) {
            Ok(rows) => self.torn_fault(Queue::Orchestrator, &rows, Some(key), fault),
            Err(other) => other,
        }
    }

    /// Returns the fault of a request that met a torn activity among those that a statement lists by indexes
    /// alone.
    pub(crate) fn torn_fault_of_work(&self, listing: &str, params: impl Params, fault: Fault) -> Fault {
        if !is_torn(&fault) {
            return fault;
        }
        match self.all(listing, params, |row| row.get(0)) {
            Ok(rows) => self.torn_fault(Queue::Worker, &rows, None, fault),
            Err(other) => other,
        }
    }

    /// Fails with the torn messages of an instance, if there are any that are not listed: a row must not be
    /// deleted in part.
    pub(crate) fn check_messages(&self, key: i64) -> DbResult<()> {
        let rows = self.all(sql!("torn/message/of_instance"), [key], |row| row.get(0))?;
        self.check(Queue::Orchestrator, &rows, Some(key))
    }

    /// Fails with the torn activities of a session, if there are any that are not listed.
    pub(crate) fn check_work_of_session(&self, session: i64) -> DbResult<()> {
        let rows = self.all(sql!("torn/work/rows/of_session"), [session], |row| row.get(0))?;
        self.check(Queue::Worker, &rows, None)
    }

    fn check(&self, queue: Queue, rows: &[i64], key: Option<i64>) -> DbResult<()> {
        for row in rows {
            if let Err(fault) = self.one(statements(queue).probe, [row], |row| row.get::<_, i64>(2)) {
                return Err(self.torn_fault(queue, rows, key, fault));
            }
        }
        Ok(())
    }

    /// Returns the torn ones among rows that an index lists.
    fn torn_among(&self, queue: Queue, rows: &[i64], key: Option<i64>) -> DbResult<Vec<TornRow>> {
        let mut torn = Vec::new();
        for row in rows {
            match look_at(self.beside()?, queue, *row)? {
                RowLook::Whole | RowLook::Absent => {}
                RowLook::Torn(reason) => torn.push(self.torn_row(queue, *row, key, reason)?),
                RowLook::Unreturned(error) => return Err(error.into()),
            }
        }
        Ok(torn)
    }

    fn torn_row(&self, queue: Queue, row: i64, key: Option<i64>, reason: String) -> DbResult<TornRow> {
        let place = self.place_of_torn(queue, row)?;
        let key = place.as_ref().map(|place| place.key).or(key);
        let place = place.map(|place| (place.session, place.tag));
        Ok(TornRow { queue, row, key, place, reason })
    }

    /// Counts a look at a torn row and holds it back; after [`MAX_UNREADABLE_ATTEMPTS`] it is set aside. Of
    /// calls that meet the row at the same time, one counts.
    fn hold_back_torn(&self, torn: &TornRow) -> DbResult<()> {
        let TornRow { queue, row, key, place, reason } = torn;
        let until = self.after(UNREADABLE_RETRY);
        let counted = self.maybe(statements(*queue).count, params![row, key, until, self.now])?;
        let Some(attempts) = counted else { return Ok(()) };
        let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
        if attempts >= MAX_UNREADABLE_ATTEMPTS {
            self.put_torn_aside(torn, attempts)?;
        } else {
            tracing::debug!(target: "steadfast::store", ?queue, row, reason, "torn row passed over");
            let mut moments = self.moments.borrow_mut();
            match queue {
                Queue::Orchestrator => moments.turn.add(until),
                Queue::Worker => moments.work.add(until),
            }
        }
        let place = place.clone().map(|(session, tag)| WorkPlace { session, tag, key: 0 });
        self.refresh_place(*queue, *row, *key, place.as_ref())
    }

    fn put_torn_aside(&self, torn: &TornRow, attempts: u32) -> DbResult<()> {
        let TornRow { queue, row, key, reason, .. } = torn;
        let name = |key| self.one(sql!("instance/name"), [key], |row| row.get::<_, String>(0));
        let instance = key.map(name).transpose()?.flatten();
        let id = self.next()?;
        tell(id, *queue, instance.as_deref(), reason, attempts);
        let columns = params![id, number_of(*queue), instance, reason, attempts, self.now, row];
        self.run(sql!("torn/set_aside"), columns)?;
        self.run(statements(*queue).give_up, [row])?;
        Ok(())
    }

    /// Reads a torn row again at once that was set aside, with a count of 0.
    pub(crate) fn retry_torn_aside(&self, queue: Queue, row: i64) -> DbResult<()> {
        self.run(statements(queue).retry, params![row, self.now])?;
        let (mut moments, mut woken) = (self.moments.borrow_mut(), self.woken.borrow_mut());
        match queue {
            Queue::Orchestrator => {
                moments.turn.add(self.now);
                woken.any_turn = true;
            }
            Queue::Worker => {
                moments.work.add(self.now);
                woken.any_work = true;
            }
        }
        Ok(())
    }

    /// Leaves the listed messages of an instance that is deleted where they are.
    pub(crate) fn give_up_torn_messages(&self, key: i64) -> DbResult<()> {
        self.run(sql!("torn/message/give_up_all"), [key]).map(drop)
    }

    /// Leaves the listed activities of a session that is closed where they are.
    pub(crate) fn give_up_torn_work_of(&self, session: i64) -> DbResult<()> {
        self.run(sql!("torn/work/give_up_all"), [session]).map(drop)
    }

    /// Leaves an activity that is listed where it is, because it is to be removed.
    pub(crate) fn give_up_torn_work(&self, row: i64) -> DbResult<()> {
        self.run(OF_WORK.give_up, [row]).map(drop)
    }

    /// Gives up messages that a turn has consumed and that are listed.
    pub(crate) fn give_up_consumed(&self, rows: &[i64]) -> DbResult<()> {
        for row in rows {
            if self.run(OF_MESSAGES.give_up, [row])? > 0 {
                self.run(sql!("torn/forget_aside"), [row])?;
            }
        }
        Ok(())
    }

    /// Holds back an activity that is listed for as long as its lease is renewed.
    pub(crate) fn keep_torn_work(&self, row: i64, until: i64) -> DbResult<()> {
        self.run(sql!("torn/work/keep"), params![row, until]).map(drop)
    }

    /// Tells whether a start of an instance is held back because it is torn.
    pub(crate) fn has_torn_start(&self, key: i64) -> DbResult<bool> {
        Ok(self.number(sql!("torn/message/start_to_come"), [key])? == 1)
    }

    /// Updates what stands at a row that was listed or taken off the list: the readiness of its instance, or
    /// the heads of its session.
    fn refresh_place(
        &self,
        queue: Queue,
        row: i64,
        key: Option<i64>,
        place: Option<&WorkPlace>,
    ) -> DbResult<()> {
        match (queue, key, place) {
            (Queue::Orchestrator, Some(key), _) => self.touch_turn(key, self.now),
            (Queue::Orchestrator, None, _) => Ok(()),
            (Queue::Worker, _, Some(place)) => self.work_is_ready(place.session, &place.tag),
            (Queue::Worker, _, None) => {
                let heads = self.all(sql!("torn/work/heads"), [row], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
                })?;
                heads.iter().try_for_each(|(session, tag)| self.work_is_ready(Some(*session), tag))
            }
        }
    }

    /// Reads the columns of an activity that stand in front of its text. `None` if not even they can be read,
    /// and for a message.
    fn place_of_torn(&self, queue: Queue, row: i64) -> DbResult<Option<WorkPlace>> {
        if queue == Queue::Orchestrator {
            return Ok(None);
        }
        let read = |row: &rusqlite::Row<'_>| {
            Ok(WorkPlace { session: row.get(0)?, tag: row.get(1)?, key: row.get(2)? })
        };
        match self.beside()?.prepare_cached(sql!("torn/work/place"))?.query_row([row], read).optional() {
            Err(error) if is_io(&error) || kind_of(&error) == ProviderErrorKind::Corrupt => Ok(None),
            place => Ok(place?),
        }
    }
}

/// Where an activity stands in its queue.
struct WorkPlace {
    session: Option<i64>,
    tag: String,
    key: i64,
}
