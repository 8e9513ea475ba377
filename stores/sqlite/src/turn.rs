//! Turns: leasing an instance, and committing what was decided for it.

use rusqlite::params;
use semver::Version;
use steadfast_core::{DispatcherCapabilityFilter, Event, EventKind, WorkItem};
use steadfast_store::{
    Abandon, Attempt, Committed, LeaseToken, MAX_TURN_MESSAGES, Message, ProviderError, RunId, TurnCommit,
    check_message, tell_of_strays,
};

use crate::db::{Db, sql, time, unsigned};
use crate::error::Done;
use crate::message::{Row, is_start};
use crate::writer::Undo;

/// Bounds the rows that one fetch moves because their time has come; the next fetch goes on.
pub(crate) const SWEEP: i64 = 256;

/// A leased instance, before its history is read.
#[derive(Debug)]
pub(crate) struct Leased {
    pub(crate) key: i64,
    pub(crate) token: String,
    pub(crate) instance: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) execution: i64,
    pub(crate) run: Option<RunId>,
    pub(crate) last_event_id: u64,
    pub(crate) messages: Vec<Message>,
    pub(crate) attempt: u32,
    pub(crate) now: i64,
}

impl Undo for Leased {
    fn undo(self, db: &Db<'_>) -> Done<()> {
        db.give_turn_back(self.key, &self.token, Abandon { retry_after: None, attempt: Attempt::Uncounted })
    }
}

/// What the ready messages of an instance stand on.
#[derive(PartialEq, Eq)]
enum Footing {
    /// The instance exists and can run.
    Firm,
    /// Its start is still to come, and they wait for it (S2).
    WaitsForStart,
    /// There is no such instance (S17).
    Stray,
}

/// What a fetch found: a lease, or when to look again.
pub(crate) struct Fetched<L> {
    pub(crate) lease: Option<L>,
    pub(crate) next: Option<i64>,
}

impl<L: Undo> Undo for Fetched<L> {
    fn undo(self, db: &Db<'_>) -> Done<()> {
        self.lease.undo(db)
    }
}

impl Db<'_> {
    pub(crate) fn fetch_turn(
        &self,
        lock_timeout: std::time::Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Done<Fetched<Leased>> {
        self.sweep_turns()?;
        let mut lease = self.lease_oldest(lock_timeout, filter)?;
        if lease.is_none() && self.end_impossible_turns()? {
            lease = self.lease_oldest(lock_timeout, filter)?;
        }
        let next = if lease.is_some() { None } else { self.next_turn_moment()? };
        Ok(Fetched { lease, next })
    }

    fn lease_oldest(
        &self,
        lock_timeout: std::time::Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Done<Option<Leased>> {
        while let Some(key) = self.oldest_ready(filter)? {
            if let Some(lease) = self.try_lease(key, lock_timeout)? {
                return Ok(Some(lease));
            }
        }
        Ok(None)
    }

    /// Ends leases that no clock of now can have granted. Looked for when there is nothing else to do, because it is rare.
    fn end_impossible_turns(&self) -> Done<bool> {
        let found = self.all(sql!("turn/impossible_leases"), params![self.latest_grant(), SWEEP], |row| {
            row.get::<_, i64>(0)
        })?;
        for key in &found {
            self.free_turn(*key, self.now)?;
        }
        Ok(!found.is_empty())
    }

    /// Moves what became runnable by time alone: messages whose time has come, leases that have ended.
    pub(crate) fn sweep_turns(&self) -> Done<()> {
        let due = self.all(sql!("turn/due_messages"), params![self.now, SWEEP], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        })?;
        let mut touched: Vec<(i64, i64)> = Vec::new();
        for (seq, key, visible_at) in due {
            self.run(sql!("turn/make_message_ready"), [seq])?;
            touched.push((key, visible_at));
        }
        // The first of an instance is the oldest, and the one that counts.
        touched.dedup_by_key(|(key, _)| *key);
        for (key, visible_at) in touched {
            self.touch_turn(key, visible_at)?;
        }
        for key in
            self.all(sql!("turn/ended_leases"), params![self.now, SWEEP], |row| row.get::<_, i64>(0))?
        {
            self.free_turn(key, self.now)?;
        }
        Ok(())
    }

    /// An instance has a new message, ready since then: if nobody holds it, it is ready.
    pub(crate) fn touch_turn(&self, key: i64, since: i64) -> Done<()> {
        if self.number(sql!("turn/state"), [key])? != 2 {
            self.free_turn(key, since)?;
        }
        Ok(())
    }

    pub(crate) fn free_turn(&self, key: i64, since: i64) -> Done<()> {
        let head = self.maybe(sql!("turn/first_ready_message"), [key])?;
        self.run(sql!("turn/set_ready"), params![key, head, since])?;
        self.woken.borrow_mut().turns += usize::from(head.is_some());
        Ok(())
    }

    /// The ready instance with the oldest message, over the engine versions that the caller can run.
    fn oldest_ready(&self, filter: Option<&DispatcherCapabilityFilter>) -> Done<Option<i64>> {
        if filter.is_some_and(|filter| filter.supported_duroxide_versions.is_empty()) {
            return Ok(None);
        }
        let mut oldest: Option<(i64, i64)> = None;
        let mut pin = -1;
        while let Some(next) = self.maybe(sql!("turn/next_pin"), [pin])? {
            pin = next;
            if !self.is_compatible(pin, filter)? {
                continue;
            }
            let found = self.one(sql!("turn/oldest_ready"), [pin], |row| Ok((row.get(0)?, row.get(1)?)))?;
            oldest = match (oldest, found) {
                (Some(oldest), Some(found)) => Some(oldest.min(found)),
                (oldest, found) => oldest.or(found),
            };
        }
        Ok(oldest.map(|(_, key)| key))
    }

    fn is_compatible(&self, pin: i64, filter: Option<&DispatcherCapabilityFilter>) -> Done<bool> {
        let (Some(filter), true) = (filter, pin != 0) else { return Ok(true) };
        let version = self.one(sql!("turn/pin_version"), [pin], |row| row.get::<_, String>(0))?;
        let version = version.and_then(|text| Version::parse(&text).ok());
        Ok(version.is_none_or(|version| filter.is_compatible(&version)))
    }

    /// Leases an instance that has ready messages, if there is something to lease: strays are dropped, messages
    /// ahead of a delayed start wait for it, unreadable ones are passed over.
    fn try_lease(&self, key: i64, lock_timeout: std::time::Duration) -> Done<Option<Leased>> {
        let Some((instance, name, version, execution)) = self.identity_row(key)? else { return Ok(None) };
        match self.footing(key, name.is_some())? {
            Footing::Firm => {}
            Footing::WaitsForStart => {
                self.run(sql!("turn/park"), [key])?;
                return Ok(None);
            }
            Footing::Stray => {
                self.settle_strays(key, &instance)?;
                return Ok(None);
            }
        }
        let rows = self.batch(key)?;
        let count = rows.len();
        let readable = self.pass_over_unreadable_messages(&instance, rows)?;
        // What was passed over may be the start: the others wait for it, or have no instance.
        let stands = readable.len() == count || self.footing(key, name.is_some())? == Footing::Firm;
        if readable.is_empty() || !stands {
            self.free_turn(key, self.now)?;
            return Ok(None);
        }
        self.lease(key, instance, name.zip(version), execution, readable, lock_timeout).map(Some)
    }

    fn footing(&self, key: i64, named: bool) -> Done<Footing> {
        let begun = named || self.number(sql!("history/exists"), [key])? == 1;
        if begun || self.number(sql!("turn/has_start"), [key, 1])? == 1 {
            return Ok(Footing::Firm);
        }
        let start_to_come = self.number(sql!("turn/has_start"), [key, 0])? == 1;
        Ok(if start_to_come { Footing::WaitsForStart } else { Footing::Stray })
    }

    /// Since when the ready instance that waits for longest could have been leased.
    pub(crate) fn longest_waiting_turn(&self) -> Done<Option<i64>> {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        for _ in 0..SWEEP {
            let Some((key, since)) = self.one(sql!("turn/waiting_since"), [], read)? else { break };
            let named = self.identity_row(key)?.is_some_and(|(_, name, ..)| name.is_some());
            match self.footing(key, named)? {
                Footing::WaitsForStart => _ = self.run(sql!("turn/park"), [key])?,
                Footing::Firm | Footing::Stray => return Ok(Some(since)),
            }
        }
        Ok(None)
    }

    #[allow(clippy::type_complexity, reason = "the columns of one row")]
    fn identity_row(&self, key: i64) -> Done<Option<(String, Option<String>, Option<String>, i64)>> {
        self.one(sql!("instance/identity"), [key], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
    }

    fn batch(&self, key: i64) -> Done<Vec<Row>> {
        let bound = i64::try_from(MAX_TURN_MESSAGES).unwrap_or(i64::MAX);
        let mut rows = self.all(sql!("turn/batch"), params![key, bound], Row::read)?;
        if let (true, Some(last)) = (rows.len() >= MAX_TURN_MESSAGES, rows.last().map(|row| row.seq)) {
            // A start has first claim on a place, wherever it stands.
            let starts = self.all(sql!("turn/starts_beyond"), params![key, last], Row::read)?;
            for start in starts.into_iter().take(MAX_TURN_MESSAGES) {
                let Some(last_other) = rows.iter().rposition(|row| !row.starts) else { break };
                rows.remove(last_other);
                rows.push(start);
            }
        }
        Ok(rows)
    }

    fn settle_strays(&self, key: i64, instance: &str) -> Done<()> {
        let dropped = self.run(sql!("turn/drop_strays"), [key])?;
        tell_of_strays(instance, dropped as u64);
        self.free_turn(key, self.now)?;
        self.run(sql!("instance/forget"), [key])?;
        Ok(())
    }

    fn lease(
        &self,
        key: i64,
        instance: String,
        row: Option<(String, String)>,
        execution: i64,
        readable: Vec<(Row, WorkItem)>,
        lock_timeout: std::time::Duration,
    ) -> Done<Leased> {
        let token = format!("turn-{}", self.next()?);
        self.run(sql!("turn/lease"), params![key, token, self.lease_until(lock_timeout)?])?;
        let mut attempt = 0;
        let mut messages = Vec::with_capacity(readable.len());
        for (row, item) in readable {
            self.run(sql!("turn/stamp"), params![row.seq, token])?;
            attempt = attempt.max(row.attempts + 1);
            messages.push(Message { item, traceparent: row.traceparent });
        }
        let (name, version) = match row {
            Some(named) => named,
            None => self.started_as(key, execution)?.unwrap_or_else(|| started_by(&messages)),
        };
        let run = self.maybe(sql!("execution/run"), [key, execution])?;
        let last = self.maybe(sql!("history/last_event"), [key, execution])?;
        Ok(Leased {
            key,
            token,
            instance,
            name,
            version,
            execution,
            run: run.map(|run| RunId(unsigned(run))),
            last_event_id: last.map_or(0, unsigned),
            messages,
            attempt,
            now: self.now,
        })
    }

    /// Name and version as history recorded them.
    pub(crate) fn started_as(&self, key: i64, execution: i64) -> Done<Option<(String, String)>> {
        let text = self.one(sql!("history/started"), [key, execution], |row| row.get::<_, String>(0))?;
        Ok(text.and_then(|text| match serde_json::from_str::<Event>(&text).ok()?.kind {
            EventKind::OrchestrationStarted { name, version, .. } => Some((name, version)),
            _ => None,
        }))
    }

    /// Commits a turn. A refusal rolls the whole request back (S3).
    pub(crate) fn commit_turn(&self, token: &str, commit: &Prepared) -> Done<Committed> {
        let (key, instance) = self.turn_holder("commit_turn", token)?;
        self.run(sql!("turn/consume"), params![key, token])?;
        let run = self.record(key, commit)?;
        self.append(
            "commit_turn",
            key,
            &instance,
            commit.commit.execution_id,
            &commit.commit.events,
            &commit.events,
        )?;
        self.apply_kv(key, &commit.commit.events, commit.over)?;
        self.apply_sessions(key, &instance, &commit.commit)?;
        for (work, item) in commit.commit.work.iter().zip(&commit.work) {
            self.insert_work(work, item)?;
        }
        for gone in &commit.commit.cancelled {
            self.withdraw(gone)?;
        }
        for (message, item) in commit.commit.messages.iter().zip(&commit.messages) {
            let visible_at = match &message.item {
                WorkItem::TimerFired { fire_at_ms, .. } => time(*fire_at_ms),
                _ => self.now,
            };
            self.insert_message(message, item, visible_at)?;
        }
        self.free_turn(key, self.now)?;
        let mut woken = self.woken.borrow_mut();
        let changed = if commit.commit.ends_instance() { &mut woken.ended } else { &mut woken.instances };
        changed.push(instance);
        Ok(Committed { run: Some(run) })
    }

    /// Updates the rows of the instance and of its execution.
    fn record(&self, key: i64, prepared: &Prepared) -> Done<RunId> {
        let commit = &prepared.commit;
        let metadata = &commit.metadata;
        let execution = time(commit.execution_id);
        let change = self.next()?;
        if let (Some(name), Some(version)) = (&metadata.orchestration_name, &metadata.orchestration_version) {
            let parent = &metadata.parent_instance_id;
            self.run(
                sql!("instance/name_row"),
                params![key, name, version, parent, self.now, change, execution],
            )?;
        }
        self.run(sql!("instance/touch"), params![key, execution, self.now, change])?;
        if let Some(status) = &prepared.custom_status {
            self.run(sql!("instance/custom_status"), params![key, status])?;
        }
        let pinned = metadata.pinned_duroxide_version.as_ref().map(ToString::to_string);
        if let Some(pinned) = &pinned {
            self.number(sql!("turn/pin_id"), [pinned])?;
        }
        let run = self.next()?;
        let columns = params![
            key,
            execution,
            run,
            metadata.status,
            metadata.output,
            prepared.failure,
            pinned,
            self.now
        ];
        let run = self.number(sql!("execution/upsert"), columns)?;
        self.run(sql!("instance/set_pin"), [key])?;
        Ok(RunId(unsigned(run)))
    }

    /// Makes the rows of an execution that comes from elsewhere.
    pub(crate) fn record_import(
        &self,
        key: i64,
        execution: i64,
        events: &[Event],
        metadata: &steadfast_core::ExecutionMetadata,
    ) -> Done<()> {
        let commit = TurnCommit {
            execution_id: unsigned(execution),
            events: events.to_vec(),
            metadata: metadata.clone(),
            ..TurnCommit::default()
        };
        self.record(key, &Prepared::new(commit)?).map(drop)
    }

    pub(crate) fn renew_turn(&self, token: &str, extend_for: std::time::Duration) -> Done<()> {
        let (key, _) = self.turn_holder("renew", token)?;
        self.run(sql!("turn/renew"), params![key, self.lease_until(extend_for)?])?;
        Ok(())
    }

    pub(crate) fn abandon_turn(&self, token: &str, how: Abandon) -> Done<()> {
        let (key, _) = self.turn_holder("abandon", token)?;
        self.give_turn_back(key, token, how)
    }

    fn give_turn_back(&self, key: i64, token: &str, how: Abandon) -> Done<()> {
        let uncounted = i64::from(how.attempt == Attempt::Uncounted);
        let visible_at = how.retry_after.map(|delay| self.after(delay));
        let given = self.run(sql!("turn/give_back"), params![key, token, uncounted, visible_at, self.now])?;
        if given > 0 {
            self.free_turn(key, self.now)?;
        }
        Ok(())
    }

    /// The instance that a live token holds.
    fn turn_holder(&self, operation: &'static str, token: &str) -> Done<(i64, String)> {
        let held = self.one(sql!("turn/holder"), [token], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<i64>>(2)?))
        })?;
        match held {
            Some((key, instance, Some(until))) if until > self.now => Ok((key, instance)),
            Some((_, instance, _)) => {
                let why = format!("the lease of '{instance}' has ended");
                Err(ProviderError::lease_lost(operation, why).into())
            }
            None => Err(ProviderError::lease_lost(operation, format!("'{token}' holds nothing")).into()),
        }
    }
}

/// A commit whose texts are written before the writer sees it, so that the writer only stores them.
pub(crate) struct Prepared {
    pub(crate) commit: TurnCommit,
    events: Vec<String>,
    work: Vec<String>,
    messages: Vec<String>,
    failure: Option<String>,
    custom_status: Option<Option<String>>,
    /// Is the execution over, so that its key-value changes become the next one's start?
    over: bool,
}

impl Prepared {
    pub(crate) fn new(commit: TurnCommit) -> Result<Self, ProviderError> {
        const OPERATION: &str = "commit_turn";
        for message in &commit.messages {
            check_message(OPERATION, &message.item)?;
        }
        for work in &commit.work {
            crate::message::check_work(OPERATION, &work.item)?;
        }
        let failure = commit.events.iter().find_map(|event| match &event.kind {
            EventKind::OrchestrationFailed { details } => Some(details),
            _ => None,
        });
        let custom_status = commit.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::CustomStatusUpdated { status } => Some(status.clone()),
            _ => None,
        });
        Ok(Self {
            events: texts(OPERATION, commit.events.iter())?,
            work: texts(OPERATION, commit.work.iter().map(|work| &work.item))?,
            messages: texts(OPERATION, commit.messages.iter().map(|message| &message.item))?,
            failure: failure.map(|details| crate::message::text(OPERATION, details)).transpose()?,
            custom_status,
            over: commit.metadata.status.as_deref().is_some_and(|status| status != "Running"),
            commit,
        })
    }
}

fn texts<'a, T: serde::Serialize + 'a>(
    operation: &'static str,
    items: impl Iterator<Item = &'a T>,
) -> Result<Vec<String>, ProviderError> {
    items.map(|item| crate::message::text(operation, item)).collect()
}

fn started_by(messages: &[Message]) -> (String, String) {
    let unknown = || "unknown".to_owned();
    let start = messages.iter().find(|message| is_start(&message.item)).map(|message| match &message.item {
        WorkItem::StartOrchestration { orchestration, version, .. }
        | WorkItem::ContinueAsNew { orchestration, version, .. }
        | WorkItem::ContinueAsNewWithSessions { orchestration, version, .. } => {
            (orchestration.clone(), version.clone().unwrap_or_else(unknown))
        }
        _ => (unknown(), unknown()),
    });
    start.unwrap_or_else(|| (unknown(), unknown()))
}

impl Leased {
    pub(crate) fn lease_token(&self) -> LeaseToken {
        LeaseToken::Turn(self.token.clone())
    }
}
