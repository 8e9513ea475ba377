//! Turns: leasing instances, renewing and abandoning their leases. [`commit`] commits the decisions of leased
//! turns, [`unread`] says what becomes of a text that is not read in time.

pub(crate) mod columns;
pub(crate) mod commit;
pub(crate) mod unread;

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use semver::Version;
use serde::de::DeserializeOwned;
use steadfast_clock::{Clock, SystemClock};
use steadfast_core::{DispatcherCapabilityFilter, EventKind, KvEntry, WorkItem};
use steadfast_store::rules::{
    ended_turn_lease, events_of, history_after, holds_run, is_start, no_such_lease, read_text, started_by,
    tell_of_strays,
};
use steadfast_store::{
    Attempt, History, LeaseToken, Message, ProviderError, RunId, TurnLease, Warm, Woken, WorkerId,
};
use tokio_postgres::Row;

use crate::link::db::{Db, column, millis, time, unsigned};
use crate::link::error::{is_damage, is_unreadable};
use crate::link::escape::{escape, unescape};
use crate::link::statement::calls;
use crate::merge::calls::{LeaseAbandon, LeaseRenewal};
use crate::merge::queue::Answers;
use crate::merge::undelivered::{Guarded, UndeliveredLease};
use crate::schema::functions::{Function, functions};
use crate::verbs::backend::Backend;
use crate::verbs::poll::{NextPoll, PollResult};
use crate::verbs::turn::unread::{PassOver, SlowRead};

pub(crate) const FUNCTIONS: &[Function] = functions![
    "turn/fetch/pin_of",
    "turn/lease/code_of_lease",
    "turn/lease/free_turns",
    "turn/lease/give_up_turns",
    "turn/fetch/make_messages_ready",
    "turn/fetch/sweep_turns",
    "turn/fetch/has_turn",
    "turn/fetch/next_turn_moment",
    "turn/fetch/look_for_turns",
    "turn/fetch/ready_turns",
    "turn/lease/firm_turns",
    "turn/fetch/lock_strays",
    "turn/fetch/settle_orphans",
    "turn/fetch/settle_strays",
    "turn/text/text_or_null",
    "turn/text/whole_or_null",
    "turn/fetch/lease_crowd",
    "turn/fetch/lease_turns",
    "turn/fetch/fetch_turns",
    "turn/fetch/pass_over_messages",
    "turn/lease/renew_turns",
    "turn/lease/abandon_turns",
    "turn/commit/look_at_commits",
    "turn/commit/drop_timers",
    "turn/commit/judge_commits",
    "turn/commit/record_commits",
    "turn/commit/lives_of_messages",
    "turn/commit/refuse_orphans",
    "turn/commit/lock_lines_of_commits",
    "turn/commit/change_sessions",
    "turn/commit/commit_turns",
];

calls! {
    /// Leases ready instances.
    FetchTurns => fetch_turns on FetchTurns {
        now_ms: Option<i64>,
        lock_ms: i64,
        count: i32,
        /// The lowest pin of each range that the caller can run; `None` for all pins.
        lo: Option<Vec<i64>>,
        /// The highest pin of each range.
        hi: Option<Vec<i64>>,
        /// Whether the commit does not wait for the disk.
        unsynced: bool,
        /// Whether a message that the database cannot read is leased without its text.
        careful: bool,
        /// The worker that asks; `None` takes instances of any route.
        worker: Option<String>,
    }

    /// Counts and delays messages of a lease that cannot be read, or sets them aside (S15).
    PassOverMessages<'a> => pass_over_messages {
        token: &'a str,
        ids: Vec<i64>,
        reasons: Vec<Cow<'a, str>>,
        retry_ms: i64,
        /// `None` for messages that were not read in time: they are neither counted nor set aside.
        max_attempts: Option<i32>,
        now_ms: Option<i64>,
        /// Whether the database cannot read the text of the message.
        lost: Vec<bool>,
    }

    /// Extends leases of instances (S4).
    RenewTurns<'a> => renew_turns {
        tokens: Vec<Cow<'a, str>>,
        extend_ms: Vec<i64>,
        now_ms: Option<i64>,
    }

    /// Ends leases of instances without a commit (S6).
    AbandonTurns<'a> => abandon_turns {
        tokens: Vec<Cow<'a, str>>,
        delay_ms: Vec<Option<i64>>,
        uncounted: Vec<bool>,
        now_ms: Option<i64>,
        notify: Option<String>,
        me: &'a str,
        /// Whether leases that have expired are abandoned too.
        ended_too: bool,
    }

    /// Makes due messages ready, ends expired leases, and tells whether an instance is ready.
    LookForTurns => look_for_turns {
        now_ms: Option<i64>,
    }
}

/// The operation of all statements of a fetch.
const FETCH: &str = "fetch_turn";

/// Bounds how many calls one fetch makes while the instances that it leases have no readable message; the
/// next fetch goes on from there.
const MAX_PASSES: usize = 8;

/// Bounds how often the history of a leased instance is read that the database says is damaged.
const MAX_READS: usize = 2;

/// Asks for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnFetch {
    pub(crate) lock_timeout: Duration,
    pub(crate) filter: Option<DispatcherCapabilityFilter>,
    pub(crate) worker: Option<WorkerId>,
}

impl TurnFetch {
    /// Tells whether one call can serve this request and the other one.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self == other
    }
}

/// A leased instance, before its history is read.
#[derive(Debug)]
pub(crate) struct LeasedTurn {
    pub(crate) token: String,
    instance: String,
    /// Name and version; `None` if the instance has no row.
    named: Option<(String, String)>,
    execution: i64,
    run: Option<RunId>,
    last_event_id: u64,
    has_kv: bool,
    messages: Vec<Message>,
    rival_starts: Vec<usize>,
    attempt: u32,
    now: i64,
}

/// The state of a leased instance.
struct LeasedState {
    history: History,
    kv: HashMap<String, KvEntry>,
    /// Name and version of the orchestration.
    named: (String, String),
}

impl LeasedState {
    /// The state of an instance that the database cannot read.
    fn unreadable(leased: &LeasedTurn, error: &ProviderError) -> Self {
        let named = leased.named.clone().unwrap_or_else(|| started_by(&leased.messages));
        Self { history: History::Damaged(error.to_string()), kv: Default::default(), named }
    }
}

/// What one call found: leases, or when to look again.
#[derive(Debug, Default)]
struct FetchedTurns {
    leases: Vec<LeasedTurn>,
    /// Whether a lease without a readable message was abandoned: other instances may be ready.
    passed_over: bool,
    /// Whether instances are ready that other transactions have locked: look again soon.
    again: bool,
    /// The next moment at which an instance becomes ready by time alone, in the store's time.
    next: Option<i64>,
    /// The store's time at the call.
    now: i64,
}

/// A message that cannot be read.
struct UnreadableMessage {
    id: i64,
    reason: String,
    /// Whether the database cannot read its text.
    is_lost: bool,
}

impl Backend {
    /// Leases an instance for each request, those with the oldest messages first (S1, S2, S18). All requests
    /// are alike.
    pub(crate) async fn fetch_turns(
        &self,
        asked: Vec<TurnFetch>,
    ) -> Answers<PollResult<Guarded<LeasedTurn>>> {
        self.undelivered.abandon_all().await;
        let Some(TurnFetch { lock_timeout, filter, worker }) = asked.first() else { return Ok(Vec::new()) };
        let (lowest, highest) = filter.as_ref().map(pins_of).unzip();
        let mut call = FetchTurns {
            now_ms: None,
            lock_ms: millis(*lock_timeout),
            count: i32::try_from(asked.len()).unwrap_or(i32::MAX),
            lo: lowest,
            hi: highest,
            unsynced: true,
            careful: false,
            worker: worker.as_ref().map(|worker| escape(&worker.0).into_owned()),
        };
        let mut fetched = FetchedTurns::default();
        let mut slow = None;
        for _ in 0..MAX_PASSES {
            call.now_ms = self.db.now();
            call.lock_ms = millis(slow.map_or(*lock_timeout, |slow: SlowRead| slow.lease(*lock_timeout)));
            let began = SystemClock.monotonic();
            let answered = match self.db.rows(FETCH, call.statement()).await {
                Ok(rows) => self.db.read_turns(&rows, slow).await,
                Err(error) => Err(error),
            };
            match answered {
                Ok(answered) => fetched = answered,
                // One message failed the whole call: the next one leases it without its text (S15).
                Err(error) if !call.careful => {
                    slow = self.db.limit_met(FETCH, &error, began).await.map(|limit| SlowRead { limit });
                    if slow.is_none() && !is_damage(&error) {
                        // It is not repeated for each request: it would fail for each.
                        return Ok(asked.iter().map(|_| Err(error.clone())).collect());
                    }
                    tracing::debug!(target: "steadfast::store", %error, "a message cannot be read");
                    call.careful = true;
                    continue;
                }
                Err(error) => return Ok(asked.iter().map(|_| Err(error.clone())).collect()),
            }
            if slow.take().is_some() {
                call.careful = false;
            }
            if !fetched.leases.is_empty() || !fetched.passed_over {
                break;
            }
        }
        let next = NextPoll::after(fetched.again, fetched.next, fetched.now);
        let mut leases = fetched.leases.into_iter();
        let answer = |_: &TurnFetch| {
            Ok(leases.next().map_or(PollResult::Nothing(next), |leased| {
                let lease = UndeliveredLease::Turn(leased.token.clone());
                PollResult::Found(Guarded::new(leased, lease, &self.undelivered))
            }))
        };
        Ok(asked.iter().map(answer).collect())
    }

    /// Renews the leases of instances (S4). Each request gets its own answer; a lease that has expired or
    /// whose token is unknown is lost.
    pub(crate) async fn renew_turns(&self, asked: Vec<LeaseRenewal>) -> Answers<()> {
        const OPERATION: &str = "renew";
        let call = RenewTurns {
            tokens: asked.iter().map(|renewal| escape(&renewal.token)).collect(),
            extend_ms: asked.iter().map(|renewal| millis(renewal.extend_for)).collect(),
            now_ms: self.db.now(),
        };
        let rows = self.db.rows(OPERATION, call.statement()).await?;
        let judge = |(row, asked): (&Row, &LeaseRenewal)| judge_lease(OPERATION, row, &asked.token);
        Ok(rows.iter().zip(&asked).map(judge).collect())
    }

    /// Abandons the leases of instances, so that their messages can be leased again (S6). Each request gets
    /// its own answer.
    pub(crate) async fn abandon_turns(&self, asked: Vec<LeaseAbandon>) -> Answers<()> {
        const OPERATION: &str = "abandon";
        let woken = Woken { turns: asked.len(), ..Woken::default() };
        let call = AbandonTurns {
            tokens: asked.iter().map(|abandon| escape(&abandon.token)).collect(),
            delay_ms: asked.iter().map(|abandon| abandon.how.retry_after.map(millis)).collect(),
            uncounted: asked.iter().map(|abandon| abandon.how.attempt == Attempt::Uncounted).collect(),
            now_ms: self.db.now(),
            notify: self.payload(&woken),
            me: &self.me,
            ended_too: false,
        };
        let rows = self.wake_if_unsure(self.db.rows(OPERATION, call.statement()).await, &woken)?;
        let judge = |(row, asked): (&Row, &LeaseAbandon)| judge_lease(OPERATION, row, &asked.token);
        let answers = rows.iter().zip(&asked).map(judge).collect();
        self.waiters.wake(&woken);
        Ok(answers)
    }
}

impl Db {
    /// Reads the rows of a fetch. A message that cannot be read is passed over (S15). With `slow`, texts are
    /// missing because the time was up: the messages of the first instance that lacks some took it, and the
    /// instances behind it are given back.
    async fn read_turns(&self, rows: &[Row], slow: Option<SlowRead>) -> Result<FetchedTurns, ProviderError> {
        let mut fetched = FetchedTurns::default();
        let mut behind: Option<Vec<String>> = None;
        for row in rows {
            fetched.now = column(FETCH, row, "now")?;
            if slow.is_some() && lacks_texts(row)? {
                match &mut behind {
                    None => behind = Some(Vec::new()),
                    Some(behind) => {
                        behind.push(column(FETCH, row, "token")?);
                        continue;
                    }
                }
            }
            match column(FETCH, row, "kind")? {
                "turn" => match self.readable(row, slow).await {
                    Ok(Some(leased)) => fetched.leases.push(leased),
                    Ok(None) => fetched.passed_over = true,
                    // The other instances are leased all the same; this lease expires by itself (S5).
                    Err(error) => {
                        tracing::debug!(
                            target: "steadfast::store",
                            %error,
                            "an unreadable message was not passed over"
                        );
                        fetched.passed_over = true;
                    }
                },
                "stray" => {
                    let instance = unescape(column(FETCH, row, "instance_id")?);
                    tell_of_strays(&instance, unsigned(column(FETCH, row, "dropped")?));
                }
                _ => {
                    fetched.again = column(FETCH, row, "again")?;
                    fetched.next = column(FETCH, row, "next_ms")?;
                }
            }
        }
        if let Some(behind) = behind.filter(|behind| !behind.is_empty()) {
            fetched.passed_over = true;
            // A lease that is not given back expires by itself (S5).
            if let Err(error) = self.abandon_undelivered_turns(&behind, None, "").await {
                tracing::debug!(target: "steadfast::store", %error, "a lease was not given back");
            }
        }
        fetched.again |= fetched.passed_over;
        Ok(fetched)
    }

    /// Reads a lease and passes over its messages that cannot be read. `None` if no turn can be made of the
    /// others (S15).
    async fn readable(&self, row: &Row, slow: Option<SlowRead>) -> Result<Option<LeasedTurn>, ProviderError> {
        let (mut leased, unreadable) = LeasedTurn::read(row)?;
        if unreadable.is_empty() {
            return Ok(Some(leased));
        }
        self.pass_over_messages(&leased, unreadable, slow).await?;
        if leased.messages.is_empty() {
            return Ok(None);
        }
        if !leased.can_run() {
            // The start was passed over: the other messages wait for it, or have no instance (S2, S17).
            self.abandon_undelivered_turns(&[leased.token], None, "").await?;
            return Ok(None);
        }
        leased.messages.shrink_to_fit();
        Ok(Some(leased))
    }

    async fn pass_over_messages(
        &self,
        leased: &LeasedTurn,
        mut unreadable: Vec<UnreadableMessage>,
        slow: Option<SlowRead>,
    ) -> Result<(), ProviderError> {
        let instance = &leased.instance;
        let PassOver { retry, max_attempts } = PassOver::of(slow);
        for message in unreadable.iter_mut().filter(|message| slow.is_some() && message.is_lost) {
            message.reason = SlowRead::REASON.to_owned();
        }
        let call = PassOverMessages {
            token: &leased.token,
            ids: unreadable.iter().map(|message| message.id).collect(),
            lost: unreadable.iter().map(|message| message.is_lost).collect(),
            reasons: unreadable.iter().map(|message| escape(&message.reason)).collect(),
            retry_ms: millis(retry),
            max_attempts,
            now_ms: self.now(),
        };
        let rows = self.rows(FETCH, call.statement()).await?;
        for row in &rows {
            let id: i64 = column(FETCH, row, "id")?;
            let attempts: i32 = column(FETCH, row, "attempts")?;
            let reason = unreadable.iter().find(|message| message.id == id).map(|message| &message.reason);
            match column::<Option<i64>>(FETCH, row, "aside")? {
                Some(aside) => {
                    tracing::warn!(
                        target: "steadfast::store",
                        id = aside,
                        queue = "Orchestrator",
                        instance,
                        reason,
                        attempts,
                        "unreadable row set aside"
                    );
                }
                None if slow.is_some() => {
                    tracing::warn!(target: "steadfast::store", instance, reason, "message held back");
                }
                None => {
                    tracing::debug!(
                        target: "steadfast::store",
                        instance,
                        reason,
                        "unreadable message passed over"
                    );
                }
            }
        }
        Ok(())
    }

    /// Adds to a lease the part of its history that the caller does not hold, and the key-value state.
    /// Neither can change while the lease lasts.
    pub(crate) async fn complete(
        &self,
        leased: LeasedTurn,
        warm: &dyn Warm,
    ) -> Result<TurnLease, ProviderError> {
        let held = warm.held(&leased.instance);
        let held = held.filter(|held| holds_run(held, leased.run, leased.last_event_id));
        let known = held.map(|held| held.last_event_id);
        let mut tries = MAX_READS;
        let read = loop {
            tries -= 1;
            match self.read_state(&leased, known).await {
                Err(error) if is_damage(&error) && tries > 0 => {}
                read => break read,
            }
        };
        let state = match read {
            Ok(state) => state,
            // An error here would undo the lease, and the instance would be the oldest for every fetch (S15).
            Err(error) if is_unreadable(&error) => LeasedState::unreadable(&leased, &error),
            Err(error) => return Err(error),
        };
        let (name, version) = state.named;
        Ok(TurnLease {
            token: LeaseToken::Turn(leased.token),
            instance: leased.instance,
            name,
            version,
            execution_id: unsigned(leased.execution),
            run: leased.run,
            last_event_id: leased.last_event_id,
            history: state.history,
            messages: leased.messages,
            rival_starts: leased.rival_starts,
            attempt: leased.attempt,
            kv: state.kv,
            now_ms: unsigned(leased.now),
        })
    }

    /// Reads the state of a leased instance: its history after the event `known`, its key-value state if no
    /// event is known, and the name of its orchestration.
    async fn read_state(
        &self,
        leased: &LeasedTurn,
        known: Option<u64>,
    ) -> Result<LeasedState, ProviderError> {
        let LeasedTurn { instance, execution, .. } = leased;
        let texts = match known.unwrap_or(0) {
            // The caller holds the whole history: nothing is read.
            known if known == leased.last_event_id => Vec::new(),
            known => self.event_texts(FETCH, instance, *execution, known).await?,
        };
        let kv = match known {
            None if leased.has_kv => self.kv_snapshot(FETCH, instance).await?,
            _ => Default::default(),
        };
        let named = match &leased.named {
            Some(named) => named.clone(),
            None if leased.last_event_id == 0 => started_by(&leased.messages),
            None => match self.started(FETCH, instance, *execution).await?.map(|event| event.kind) {
                Some(EventKind::OrchestrationStarted { name, version, .. }) => (name, version),
                _ => started_by(&leased.messages),
            },
        };
        Ok(LeasedState { history: history_after(events_of(&texts), known), kv, named })
    }

    /// Abandons leases that were never delivered, even if they have expired meanwhile. No attempt is counted
    /// (S5).
    pub(crate) async fn abandon_undelivered_turns(
        &self,
        tokens: &[String],
        notify: Option<String>,
        me: &str,
    ) -> Result<(), ProviderError> {
        let call = AbandonTurns {
            tokens: tokens.iter().map(|token| escape(token)).collect(),
            delay_ms: vec![None; tokens.len()],
            uncounted: vec![true; tokens.len()],
            now_ms: self.now(),
            notify,
            me,
            ended_too: true,
        };
        self.rows(FETCH, call.statement()).await.map(drop)
    }

    /// Tells whether a turn can be leased, and if not, when one becomes ready by itself.
    pub(crate) async fn look_for_turns(&self) -> Result<PollResult<()>, ProviderError> {
        const OPERATION: &str = "wait";
        let row = self.one(OPERATION, LookForTurns { now_ms: self.now() }.statement()).await?;
        let row = row.ok_or_else(|| ProviderError::permanent(OPERATION, "a look answered nothing"))?;
        let (next, now) = (column(OPERATION, &row, "next_ms")?, column(OPERATION, &row, "now")?);
        Ok(match column(OPERATION, &row, "ready")? {
            true => PollResult::Found(()),
            false => PollResult::Nothing(NextPoll::after(false, next, now)),
        })
    }
}

impl LeasedTurn {
    fn read(row: &Row) -> Result<(Self, Vec<UnreadableMessage>), ProviderError> {
        let named = Option::zip(
            column::<Option<String>>(FETCH, row, "name")?,
            column::<Option<String>>(FETCH, row, "version")?,
        );
        let run: Option<i64> = column(FETCH, row, "run_id")?;
        let mut leased = Self {
            token: column(FETCH, row, "token")?,
            instance: unescape(column(FETCH, row, "instance_id")?),
            named: named.map(|(name, version)| (unescape(name), unescape(version))),
            execution: column(FETCH, row, "execution_id")?,
            run: run.map(|run| RunId(unsigned(run))),
            last_event_id: unsigned(column(FETCH, row, "last_event_id")?),
            has_kv: column(FETCH, row, "has_kv")?,
            messages: Vec::new(),
            rival_starts: Vec::new(),
            attempt: 0,
            now: column(FETCH, row, "now")?,
        };
        let ids: Vec<i64> = column(FETCH, row, "ids")?;
        let items: Vec<Option<&str>> = column(FETCH, row, "items")?;
        let attempts: Vec<i32> = column(FETCH, row, "attempts")?;
        let traceparents: Vec<Option<String>> = column(FETCH, row, "traceparents")?;
        let failures: Vec<Option<&str>> = column(FETCH, row, "failures")?;
        let rivals = column::<Option<Vec<i64>>>(FETCH, row, "rivals")?.unwrap_or_default();
        let mut unreadable = Vec::new();
        for ((((id, item), attempts), traceparent), failure) in
            ids.into_iter().zip(items).zip(attempts).zip(traceparents).zip(failures)
        {
            match read_item(item).and_then(|item| Ok((item, read_beside(failure)?))) {
                Ok((item, failure)) => {
                    leased.attempt = leased.attempt.max(u32::try_from(attempts).unwrap_or(0));
                    if rivals.contains(&id) {
                        leased.rival_starts.push(leased.messages.len());
                    }
                    leased.messages.push(Message { item, traceparent: traceparent.map(unescape), failure });
                }
                Err(reason) => {
                    unreadable.push(UnreadableMessage { id, reason, is_lost: item.is_none() });
                }
            }
        }
        Ok((leased, unreadable))
    }

    /// Tells whether there is something to run: an instance, its history, or a start.
    fn can_run(&self) -> bool {
        let starts = || self.messages.iter().any(|message| is_start(&message.item));
        self.named.is_some() || self.last_event_id > 0 || starts()
    }
}

/// Tells whether a row is a lease that lacks the texts of some of its messages.
fn lacks_texts(row: &Row) -> Result<bool, ProviderError> {
    let items: Option<Vec<Option<&str>>> = column(FETCH, row, "items")?;
    Ok(items.is_some_and(|items| items.contains(&None)))
}

/// Reads the item of a row; an item that the database could not read is `None`.
///
/// # Errors
/// Why it cannot be read, without any part of the item: the text goes into logs.
pub(crate) fn read_item(item: Option<&str>) -> Result<WorkItem, String> {
    let item = item.ok_or_else(|| "the database cannot read its text: it is damaged".to_owned())?;
    read_text(item).map_err(|error| error.to_string())
}

/// Reads the text that stands beside an item: the terms of work, or the failure of a message.
///
/// # Errors
/// Why it cannot be read, without any part of it: the text goes into logs.
pub(crate) fn read_beside<T: DeserializeOwned>(text: Option<&str>) -> Result<Option<Box<T>>, String> {
    text.map(|text| read_text(text).map(Box::new).map_err(|error| error.to_string())).transpose()
}

/// Returns the ranges of pins that a filter accepts: the lowest pins, and the highest.
pub(crate) fn pins_of(filter: &DispatcherCapabilityFilter) -> (Vec<i64>, Vec<i64>) {
    filter.supported_duroxide_versions.iter().map(|range| (pin_of(&range.min), pin_of(&range.max))).unzip()
}

/// Returns an engine version as the number that ready instances are found by: 20 bits for each part.
fn pin_of(version: &Version) -> i64 {
    const LARGEST: u64 = (1 << 20) - 1;
    let part = |part: u64| time(part.min(LARGEST));
    part(version.major) << 40 | part(version.minor) << 20 | part(version.patch)
}

/// Reads the answer to a request that named a lease: an error if the lease has expired or its token is
/// unknown.
pub(crate) fn judge_lease(operation: &'static str, row: &Row, token: &str) -> Result<(), ProviderError> {
    match column(operation, row, "code")? {
        "ok" => Ok(()),
        "ended" => {
            let instance: Option<String> = column(operation, row, "instance_id")?;
            Err(ended_turn_lease(operation, &instance.map(unescape).unwrap_or_default()))
        }
        _ => Err(no_such_lease(operation, token)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g17_the_reason_of_an_unreadable_row_quotes_no_part_of_it() {
        for item in [r#"{"CardNumber":{"number":"4111"}}"#, r#"{"CancelInstance":"4111"}"#, "4111 4111"] {
            let reason = read_item(Some(item)).expect_err("it is no item");
            assert!(!reason.contains("4111") && !reason.contains("CardNumber"), "{reason}");
        }
        assert!(read_item(None).expect_err("there is no text").contains("the database cannot read"));
    }
}
