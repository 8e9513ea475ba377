//! Turns: leasing an instance for a turn, and what ends its lease.

pub(crate) mod commit;

use rusqlite::params;
use semver::Version;
use steadfast_core::{DispatcherCapabilityFilter, Event, EventKind, WorkItem};
use steadfast_store::rules::{ended_turn_lease, no_such_lease, tell_of_strays};
use steadfast_store::{Abandon, Attempt, LeaseToken, MAX_TURN_MESSAGES, Message, Queue, RunId, WorkerId};

use crate::link::db::{Db, sql, text_of, unsigned};
use crate::link::error::{DbResult, damaged, is_torn};
use crate::merge::request::Undo;
use crate::verbs::message::MessageRow;
use crate::verbs::torn::Removal;
use crate::verbs::torn::lost::Visits;

/// Bounds the rows that one fetch moves because their time has come; the next fetch moves the next ones.
pub(crate) const SWEEP: i64 = 256;

/// The visible messages to an instance that does not exist (S17).
const STRAYS: Removal =
    Removal { remove: sql!("turn/drop_strays"), give_up: sql!("torn/message/instead/of_strays") };

/// A leased instance, before its history is read.
#[derive(Debug)]
pub(crate) struct LeasedTurn {
    pub(crate) key: i64,
    pub(crate) token: String,
    pub(crate) instance: String,
    /// The name and version of its row; `None` for an instance without one, whose history tells them.
    pub(crate) named: Option<(String, String)>,
    pub(crate) execution: i64,
    pub(crate) run: Option<RunId>,
    pub(crate) last_event_id: u64,
    pub(crate) messages: Vec<Message>,
    pub(crate) rival_starts: Vec<usize>,
    pub(crate) attempt: u32,
    pub(crate) now: i64,
}

impl Undo for LeasedTurn {
    fn undo(&self, db: &Db<'_>) -> DbResult<()> {
        db.undo_lease_of_turn(
            self.key,
            &self.token,
            Abandon { retry_after: None, attempt: Attempt::Uncounted },
        )
    }
}

/// The instance that a token holds.
pub(crate) struct HeldTurn {
    pub(crate) key: i64,
    instance: String,
    until: Option<i64>,
    /// The engine version of the instance, or the negative number of its route.
    pub(crate) pin: i64,
    /// The last lease whose messages were written down, with their places.
    batch: Option<String>,
}

/// Returns the places of the messages that the lease of a token holds, as they were written down when it was
/// granted. None if that was another lease.
pub(crate) fn places_in(batch: Option<&str>, token: &str) -> Vec<i64> {
    let places = batch.and_then(|batch| batch.strip_prefix(token)?.strip_prefix(' ')).unwrap_or_default();
    places.split(' ').filter_map(|place| place.parse().ok()).collect()
}

/// A ready instance, ordered by its oldest message.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    head: i64,
    key: i64,
    pin: i64,
}

/// Tells whether the ready messages of an instance can be delivered now.
#[derive(PartialEq, Eq)]
enum Footing {
    /// The instance exists and can run.
    Firm,
    /// The start of the instance is not visible yet, and the messages wait for it (S2).
    WaitsForStart,
    /// There is no such instance (S17).
    Stray,
}

/// The result of a fetch. One without a lease has noted the next time at which a row becomes runnable by
/// itself.
pub(crate) struct Fetched<L> {
    pub(crate) lease: Option<L>,
}

impl<L: Undo> Undo for Fetched<L> {
    fn undo(&self, db: &Db<'_>) -> DbResult<()> {
        self.lease.undo(db)
    }
}

impl Db<'_> {
    pub(crate) fn fetch_turn(
        &self,
        lock_timeout: std::time::Duration,
        filter: Option<&DispatcherCapabilityFilter>,
        asks: Option<&WorkerId>,
    ) -> DbResult<Fetched<LeasedTurn>> {
        self.sweep_turns()?;
        let mut lease = self.lease_oldest(lock_timeout, filter, asks)?;
        if lease.is_none() && self.end_impossible_turns()? {
            lease = self.lease_oldest(lock_timeout, filter, asks)?;
        }
        if lease.is_none() {
            self.note_next_turn(self.end_silence()?)?;
        }
        Ok(Fetched { lease })
    }

    fn lease_oldest(
        &self,
        lock_timeout: std::time::Duration,
        filter: Option<&DispatcherCapabilityFilter>,
        asks: Option<&WorkerId>,
    ) -> DbResult<Option<LeasedTurn>> {
        let (mut visits, mut last) = (Visits::of("fetch_turn"), None);
        while let Some(Ready { head, key, pin }) = self.oldest_ready(filter, asks)? {
            if last.replace(key) == Some(key) {
                visits.count((key, head, self.number(sql!("turn/ready/left"), [key])?))?;
            }
            if let Some(lease) = self.try_lease(key, lock_timeout)? {
                if pin < 0 {
                    self.clear_refusal(key)?;
                }
                return Ok(Some(lease));
            }
        }
        Ok(None)
    }

    /// Ends the leases of instances that end later than any lease can that was granted up to now: the wall
    /// clock was set back since (S16). True if there was one. They are rare, so a fetch looks for them only
    /// if it finds nothing else.
    fn end_impossible_turns(&self) -> DbResult<bool> {
        let found = self.all(sql!("turn/lease/impossible"), params![self.latest_grant(), SWEEP], |row| {
            row.get::<_, i64>(0)
        })?;
        for key in &found {
            self.expire_turn(*key)?;
        }
        Ok(!found.is_empty())
    }

    /// Moves the rows that became runnable by time: messages whose time has come, and instances whose lease
    /// has ended.
    pub(crate) fn sweep_turns(&self) -> DbResult<()> {
        self.retry_torn(Queue::Orchestrator)?;
        let mut touched: Vec<(i64, i64)> = Vec::new();
        let mut terminated = Vec::new();
        for (seq, key, visible_at) in self.due_messages()? {
            let needs_code = match self.number(sql!("turn/ready/make_message"), [seq]) {
                Err(fault) => return Err(self.torn_fault(Queue::Orchestrator, &[seq], Some(key), fault)),
                Ok(made) => made == 1,
            };
            touched.push((key, visible_at));
            terminated.extend((!needs_code).then_some(key));
        }
        // The first message of an instance is the oldest: the instance waits since then.
        touched.dedup_by_key(|(key, _)| *key);
        for (key, visible_at) in touched {
            self.touch_turn(key, visible_at)?;
        }
        for key in terminated {
            self.end_route(key)?;
        }
        for key in self.all(sql!("turn/lease/ended"), params![self.now, SWEEP], |row| row.get::<_, i64>(0))? {
            self.expire_turn(key)?;
        }
        Ok(())
    }

    /// Ends the lease of an instance that has expired. It is remembered: its holder may excuse the delivery.
    fn expire_turn(&self, key: i64) -> DbResult<()> {
        let ended = self.remember_expired_turn(key).and_then(|()| self.free_turn(key, self.now));
        ended.map_err(|fault| self.torn_fault_of_instance(key, fault))
    }

    /// Lists delayed messages whose time has come: the place of each, its instance, and its time.
    fn due_messages(&self) -> DbResult<Vec<(i64, i64, i64)>> {
        let due = self.all(sql!("turn/ready/due_messages"), params![self.now, SWEEP], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        });
        due.or_else(|fault| {
            if !is_torn(&fault) {
                return Err(fault);
            }
            let rows: Vec<i64> =
                self.all(sql!("torn/message/due_rows"), params![self.now, SWEEP], |row| row.get(0))?;
            Err(self.torn_fault(Queue::Orchestrator, &rows, None, fault))
        })
    }

    /// Ends the lease of a token if its time has come, as a sweep does.
    pub(crate) fn sweep_turn_of(&self, token: &str) -> DbResult<()> {
        let ended = |held: &HeldTurn| held.until.is_some_and(|until| until <= self.now);
        if let Some(held) = self.held_turn(token)?.filter(ended) {
            self.expire_turn(held.key)?;
        }
        Ok(())
    }

    /// Makes an instance ready for a turn, because it has a message that is visible since `since`. Does
    /// nothing if the instance is leased.
    pub(crate) fn touch_turn(&self, key: i64, since: i64) -> DbResult<()> {
        if self.number(sql!("turn/state"), [key])? != 2 {
            self.free_turn(key, since)?;
        }
        Ok(())
    }

    /// Ends the lease of an instance, if it has one. An instance with a ready message becomes ready, waiting
    /// since `since`; any other becomes idle.
    pub(crate) fn free_turn(&self, key: i64, since: i64) -> DbResult<()> {
        let found = self.one(sql!("turn/ready/first_message"), [key], |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        let (head, pin) = found.unwrap_or_default();
        self.run(sql!("turn/ready/set"), params![key, head, since])?;
        let mut woken = self.woken.borrow_mut();
        // A routed instance is not given to every worker, so all fetches look.
        woken.any_turn |= head.is_some() && pin.is_some_and(|pin| pin < 0);
        woken.turns += usize::from(head.is_some());
        Ok(())
    }

    /// Returns the ready instance with the oldest message among those pinned to an engine version that the
    /// caller can run, and routed to a handler for which the worker that asks is given instances.
    fn oldest_ready(
        &self,
        filter: Option<&DispatcherCapabilityFilter>,
        asks: Option<&WorkerId>,
    ) -> DbResult<Option<Ready>> {
        if filter.is_some_and(|filter| filter.supported_duroxide_versions.is_empty()) {
            return Ok(None);
        }
        let mut oldest: Option<Ready> = None;
        let mut pin = i64::MIN;
        while let Some(next) = self.maybe(sql!("turn/ready/next_pin"), [pin])? {
            pin = next;
            let is_taken = match pin {
                0.. => self.is_compatible(pin, filter)?,
                _ => self.takes_routed_turn(-pin, filter, asks)?,
            };
            if !is_taken {
                continue;
            }
            let found = self.one(sql!("turn/ready/oldest"), [pin], |row| {
                Ok(Ready { head: row.get(0)?, key: row.get(1)?, pin })
            })?;
            oldest = match (oldest, found) {
                (Some(oldest), Some(found)) => Some(oldest.min(found)),
                (oldest, found) => oldest.or(found),
            };
        }
        Ok(oldest)
    }

    pub(crate) fn is_compatible(
        &self,
        pin: i64,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> DbResult<bool> {
        let (Some(filter), true) = (filter, pin != 0) else { return Ok(true) };
        Ok(self.pinned_version(pin)?.is_none_or(|version| filter.is_compatible(&version)))
    }

    /// Returns the engine version of a number; `None` for 0, which stands for none.
    pub(crate) fn pinned_version(&self, pin: i64) -> DbResult<Option<Version>> {
        if pin == 0 {
            return Ok(None);
        }
        let version = self.one(sql!("turn/ready/pin_version"), [pin], |row| row.get::<_, String>(0))?;
        Ok(version.and_then(|text| Version::parse(&text).ok()))
    }

    /// Leases an instance that has ready messages. `None` if it has nothing to deliver after all: the
    /// instance does not exist and its messages are dropped, or they wait for a delayed start, or they cannot
    /// be read.
    fn try_lease(&self, key: i64, lock_timeout: std::time::Duration) -> DbResult<Option<LeasedTurn>> {
        // An index has the instance, so its row is torn.
        let (instance, name, version, execution) =
            self.identity_row(key)?.ok_or_else(|| damaged("fetch_turn"))?;
        match self.footing(key, name.is_some())? {
            Footing::Firm => {}
            Footing::WaitsForStart => {
                self.run(sql!("turn/wait_for_start"), [key])?;
                return Ok(None);
            }
            Footing::Stray => {
                self.settle_strays(key, &instance)?;
                return Ok(None);
            }
        }
        let rows = match self.batch(key) {
            Err(fault) => return Err(self.torn_fault_of_instance(key, fault)),
            Ok(rows) => rows,
        };
        let count = rows.len();
        let readable = self.pass_over_unreadable_messages(&instance, rows)?;
        let readable = self.settle_former_lives(&instance, readable)?;
        // An unreadable message may be the start, and so may one of a former parent: the others then wait for
        // a start, or their instance does not exist.
        let is_firm = readable.len() == count || self.footing(key, name.is_some())? == Footing::Firm;
        if readable.is_empty() || !is_firm {
            self.free_turn(key, self.now)?;
            self.run(sql!("instance/forget"), [key])?;
            return Ok(None);
        }
        self.lease(key, instance, name.zip(version), execution, readable, lock_timeout).map(Some)
    }

    fn footing(&self, key: i64, named: bool) -> DbResult<Footing> {
        let begun = named || self.number(sql!("history/exists"), [key])? == 1;
        if begun || self.number(sql!("turn/has_start"), [key, 1])? == 1 {
            return Ok(Footing::Firm);
        }
        let start_to_come =
            self.number(sql!("turn/has_start"), [key, 0])? == 1 || self.has_torn_start(key)?;
        Ok(if start_to_come { Footing::WaitsForStart } else { Footing::Stray })
    }

    /// Returns since when the longest waiting ready instance could have been leased.
    pub(crate) fn longest_waiting_turn(&self) -> DbResult<Option<i64>> {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        for _ in 0..SWEEP {
            let Some((key, since)) = self.one(sql!("turn/ready/waiting_since"), [], read)? else { break };
            let named = self.identity_row(key)?.is_some_and(|(_, name, ..)| name.is_some());
            match self.footing(key, named)? {
                Footing::WaitsForStart => _ = self.run(sql!("turn/wait_for_start"), [key])?,
                Footing::Firm | Footing::Stray => return Ok(Some(since)),
            }
        }
        Ok(None)
    }

    #[allow(clippy::type_complexity, reason = "the columns of one row")]
    fn identity_row(&self, key: i64) -> DbResult<Option<(String, Option<String>, Option<String>, i64)>> {
        self.one(sql!("instance/identity"), [key], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
    }

    /// Reads the messages of the next turn: the visible ones that first became due before the others, up to
    /// [`MAX_TURN_MESSAGES`]. A start is always among them (S2).
    fn batch(&self, key: i64) -> DbResult<Vec<MessageRow>> {
        let bound = i64::try_from(MAX_TURN_MESSAGES).unwrap_or(i64::MAX);
        // The sweep moves a bounded number of messages, and not those of this instance first.
        for seq in self.all(sql!("turn/ready/due_of_instance"), params![key, self.now, bound], |row| {
            row.get::<_, i64>(0)
        })? {
            self.number(sql!("turn/ready/make_message"), [seq])?;
        }
        let mut rows = self.all(sql!("turn/lease/batch"), params![key, bound], MessageRow::read)?;
        if let (true, Some(last)) = (rows.len() >= MAX_TURN_MESSAGES, rows.last()) {
            let beyond = params![key, last.due, last.seq, bound];
            for start in self.all(sql!("turn/lease/starts_beyond"), beyond, MessageRow::read)? {
                let Some(last_other) = rows.iter().rposition(|row| !row.starts) else { break };
                rows.remove(last_other);
                rows.push(start);
            }
        }
        Ok(rows)
    }

    fn settle_strays(&self, key: i64, instance: &str) -> DbResult<()> {
        self.check_messages(key)?;
        let dropped = self.remove_rows(&STRAYS, [key])?;
        tell_of_strays(instance, dropped as u64);
        self.end_route(key)?;
        self.free_turn(key, self.now)?;
        self.run(sql!("instance/forget"), [key])?;
        Ok(())
    }

    fn lease(
        &self,
        key: i64,
        instance: String,
        named: Option<(String, String)>,
        execution: i64,
        readable: Vec<(MessageRow, WorkItem)>,
        lock_timeout: std::time::Duration,
    ) -> DbResult<LeasedTurn> {
        let token = format!("turn-{}", self.next()?);
        let until = self.lease_until(lock_timeout)?;
        let mut batch = token.clone();
        for (row, _) in &readable {
            batch.push(' ');
            batch.push_str(&row.seq.to_string());
        }
        self.run(sql!("turn/lease/grant"), params![key, token, until, batch])?;
        self.moments.borrow_mut().turn.add(until);
        let mut attempt = 0;
        let rival_starts = self.rival_starts(key, &readable)?;
        let mut messages = Vec::with_capacity(readable.len());
        for (row, item) in readable {
            self.run(sql!("turn/lease/stamp"), params![row.seq, token])?;
            attempt = attempt.max(row.attempts + 1);
            let failure = row.failure().unwrap_or_default();
            messages.push(Message { item, traceparent: row.traceparent, failure });
        }
        let run = self.maybe(sql!("execution/run"), [key, execution])?;
        let last = self.maybe(sql!("history/last_event"), [key, execution])?;
        Ok(LeasedTurn {
            key,
            token,
            instance,
            named,
            execution,
            run: run.map(|run| RunId(unsigned(run))),
            last_event_id: last.map_or(0, unsigned),
            messages,
            rival_starts,
            attempt,
            now: self.now,
        })
    }

    /// Returns name and version as the history recorded them.
    pub(crate) fn started_as(&self, key: i64, execution: i64) -> DbResult<Option<(String, String)>> {
        let text = match self.one(sql!("history/started"), [key, execution], |row| text_of(row, 0)) {
            Err(fault) if is_torn(&fault) => None,
            text => text?,
        };
        Ok(text.and_then(|text| match serde_json::from_str::<Event>(&text).ok()?.kind {
            EventKind::OrchestrationStarted { name, version, .. } => Some((name, version)),
            _ => None,
        }))
    }

    pub(crate) fn renew_turn(&self, token: &str, extend_for: std::time::Duration) -> DbResult<()> {
        let held = self.turn_holder("renew", token)?;
        self.run(sql!("turn/lease/renew"), params![held.key, self.lease_until(extend_for)?])?;
        Ok(())
    }

    pub(crate) fn abandon_turn(&self, token: &str, how: Abandon) -> DbResult<()> {
        let held = self.turn_holder("abandon", token)?;
        self.undo_lease_of_turn(held.key, token, how)
    }

    /// Makes the leased messages of a turn available again, if the token still holds them.
    pub(crate) fn undo_lease_of_turn(&self, key: i64, token: &str, how: Abandon) -> DbResult<()> {
        let uncounted = i64::from(how.attempt == Attempt::Uncounted);
        let visible_at = how.retry_after.map(|delay| self.after(delay));
        let given = self
            .run(sql!("turn/lease/abandon"), params![key, token, uncounted, visible_at, self.now])
            .map_err(|fault| self.torn_fault_of_instance(key, fault))?;
        // The messages of a lease may all be torn.
        if given > 0 || self.held_turn(token)?.is_some() {
            self.free_turn(key, self.now)?;
            if let Some(at) = visible_at {
                self.moments.borrow_mut().turn.add(at);
            }
        }
        Ok(())
    }

    /// Returns the instance that the token holds, if its lease has not ended (S4).
    pub(crate) fn turn_holder(&self, operation: &'static str, token: &str) -> DbResult<HeldTurn> {
        match self.held_turn(token)? {
            Some(held) if held.until.is_some_and(|until| until > self.now) => Ok(held),
            Some(held) => Err(ended_turn_lease(operation, &held.instance).into()),
            None => Err(no_such_lease(operation, token).into()),
        }
    }

    fn held_turn(&self, token: &str) -> DbResult<Option<HeldTurn>> {
        self.one(sql!("turn/lease/holder"), [token], |row| {
            let (key, instance, until) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(HeldTurn { key, instance, until, pin: row.get(3)?, batch: row.get(4)? })
        })
    }
}

impl LeasedTurn {
    pub(crate) fn lease_token(&self) -> LeaseToken {
        LeaseToken::Turn(self.token.clone())
    }
}
