//! Turns: leasing an instance, and committing what was decided for it.

use std::time::Duration;

use semver::Version;
use steadfast_core::{DispatcherCapabilityFilter, EventKind, SessionConcurrency, WorkItem};
use steadfast_store::{
    Abandon, Attempt, Committed, LeaseToken, MAX_UNREADABLE_ATTEMPTS, Message, ProviderError, RunId,
    TurnCommit, TurnLease, UNREADABLE_RETRY, Warm, Woken, check_message, tell_of_strays,
};
use tokio_postgres::Row;

use crate::link::db::{Db, Function, column, functions, millis, sql, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::link::statement::params;
use crate::merge::lanes::Lane;
use crate::verbs::commit::Columns;
use crate::verbs::history::{Events, history_of};
use crate::verbs::kv::KvChanges;
use crate::verbs::message::is_start;

pub(crate) const FUNCTIONS: &[Function] = functions![
    "turn/pin_of",
    "turn/code_of_lease",
    "turn/free_turns",
    "turn/give_up_turns",
    "turn/make_messages_ready",
    "turn/sweep_turns",
    "turn/has_turn",
    "turn/next_turn_moment",
    "turn/look_for_turns",
    "turn/ready_turns",
    "turn/firm_turns",
    "turn/lock_strays",
    "turn/settle_strays",
    "turn/lease_crowd",
    "turn/lease_turns",
    "turn/fetch_turns",
    "turn/pass_over_messages",
    "turn/renew_turns",
    "turn/abandon_turns",
    "turn/look_at_commits",
    "turn/judge_commits",
    "turn/record_commits",
    "turn/lock_lines_of_commits",
    "turn/change_sessions",
    "turn/commit_turns",
];

/// A leased instance, before its history is read.
#[derive(Debug)]
pub(crate) struct Leased {
    pub(crate) token: String,
    pub(crate) instance: String,
    /// Name and version; `None` when the instance has no row.
    named: Option<(String, String)>,
    pub(crate) execution: i64,
    run: Option<RunId>,
    last_event_id: u64,
    has_kv: bool,
    messages: Vec<Message>,
    attempt: u32,
    now: i64,
}

/// What a fetch found: leases, or when to look again.
#[derive(Debug, Default)]
pub(crate) struct FetchedTurns {
    pub(crate) leases: Vec<Leased>,
    /// Something is ready that others have locked just now: look again soon.
    pub(crate) again: bool,
    /// The next moment at which something becomes ready by itself, in the store's time.
    pub(crate) next: Option<i64>,
    /// The store's time.
    pub(crate) now: i64,
}

impl Leased {
    /// Is there something to run: an instance, its history, or a start?
    fn stands(&self) -> bool {
        let starts = || self.messages.iter().any(|message| is_start(&message.item));
        self.named.is_some() || self.last_event_id > 0 || starts()
    }
}

/// Bounds how often a fetch goes on behind instances that have nothing readable; the next fetch goes on from there.
const MAX_PASSES: usize = 8;

/// A message that cannot be read.
struct Unreadable {
    id: i64,
    reason: String,
}

impl Db {
    /// Leases up to `count` instances, those with the oldest messages first (S1, S2, S18).
    pub(crate) async fn fetch_turns(
        &self,
        lock: Duration,
        count: usize,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<FetchedTurns, ProviderError> {
        const OPERATION: &str = "fetch_turn";
        let (lowest, highest) = filter.map(pins_of).unzip();
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        for pass in 1.. {
            let rows = self
                .rows_of(
                    Lane::FetchTurns,
                    OPERATION,
                    sql!("turn/fetch"),
                    params![self.now(), millis(lock), count, lowest, highest],
                )
                .await?;
            let mut fetched = FetchedTurns::default();
            let mut passed_over = false;
            for row in &rows {
                fetched.now = column(OPERATION, row, "now")?;
                match column(OPERATION, row, "kind")? {
                    "turn" => match self.readable(row).await {
                        Ok(Some(leased)) => fetched.leases.push(leased),
                        Ok(None) => passed_over = true,
                        // The others are leased all the same; this one ends by itself (S5).
                        Err(error) => {
                            tracing::debug!(target: "steadfast::store", %error, "an unreadable message was not passed over");
                            passed_over = true;
                        }
                    },
                    "stray" => {
                        let instance = unescape(column(OPERATION, row, "instance_id")?);
                        tell_of_strays(&instance, unsigned(column(OPERATION, row, "dropped")?));
                    }
                    _ => {
                        fetched.again = column(OPERATION, row, "again")?;
                        fetched.next = column(OPERATION, row, "next_ms")?;
                    }
                }
            }
            // A lease that held nothing readable has been given back: there may be others.
            fetched.again |= passed_over;
            if !(fetched.leases.is_empty() && passed_over) || pass == MAX_PASSES {
                return Ok(fetched);
            }
        }
        Ok(FetchedTurns::default())
    }

    /// Reads a lease; messages that cannot be read are passed over. `None` when nothing is left of it (S15).
    async fn readable(&self, row: &Row) -> Result<Option<Leased>, ProviderError> {
        const OPERATION: &str = "fetch_turn";
        let (mut leased, unreadable) = Leased::read(OPERATION, row)?;
        if unreadable.is_empty() {
            return Ok(Some(leased));
        }
        self.pass_over_messages(&leased, unreadable).await?;
        if leased.messages.is_empty() {
            return Ok(None);
        }
        if !leased.stands() {
            // What was passed over is the start: the others wait for it, or have no instance (S2, S17).
            self.untake_turns(vec![leased.token], None, "").await?;
            return Ok(None);
        }
        leased.messages.shrink_to_fit();
        Ok(Some(leased))
    }

    async fn pass_over_messages(
        &self,
        leased: &Leased,
        unreadable: Vec<Unreadable>,
    ) -> Result<(), ProviderError> {
        const OPERATION: &str = "fetch_turn";
        let instance = &leased.instance;
        let (ids, reasons): (Vec<i64>, Vec<String>) =
            unreadable.into_iter().map(|row| (row.id, row.reason)).unzip();
        let attempts = i32::try_from(MAX_UNREADABLE_ATTEMPTS).unwrap_or(i32::MAX);
        let escaped: Vec<_> = reasons.iter().map(|reason| escape(reason)).collect();
        let rows = self
            .rows(
                OPERATION,
                sql!("turn/pass_over"),
                params![leased.token, ids, escaped, millis(UNREADABLE_RETRY), attempts, self.now()],
            )
            .await?;
        for row in &rows {
            let id: i64 = column(OPERATION, row, "id")?;
            let attempts: i32 = column(OPERATION, row, "attempts")?;
            let reason = ids.iter().zip(&reasons).find(|(one, _)| **one == id).map(|(_, reason)| reason);
            match column::<Option<i64>>(OPERATION, row, "aside")? {
                Some(aside) => {
                    tracing::warn!(target: "steadfast::store", id = aside, queue = "Orchestrator", instance, reason, attempts, "unreadable row set aside");
                }
                None => {
                    tracing::debug!(target: "steadfast::store", instance, reason, "unreadable message passed over");
                }
            }
        }
        Ok(())
    }

    /// Adds to a lease its history, as far as the caller does not hold it, and the key-value state. The lease keeps both
    /// from changing.
    pub(crate) async fn complete(&self, leased: Leased, warm: &dyn Warm) -> Result<TurnLease, ProviderError> {
        const OPERATION: &str = "fetch_turn";
        let held = warm.held(&leased.instance);
        let held =
            held.filter(|held| Some(held.run) == leased.run && held.last_event_id <= leased.last_event_id);
        let known = held.map(|held| held.last_event_id);
        let Leased { token, instance, named, execution, .. } = leased;
        let texts = match known.unwrap_or(0) {
            // The caller holds all there is: nothing is read.
            known if known == leased.last_event_id => Vec::new(),
            known => self.event_texts(OPERATION, &instance, execution, known).await?,
        };
        let kv = match known {
            None if leased.has_kv => self.kv_snapshot(OPERATION, &instance).await?,
            _ => Default::default(),
        };
        let (name, version) = match named {
            Some(named) => named,
            None if leased.last_event_id == 0 => started_by(&leased.messages),
            None => match self.started(OPERATION, &instance, execution).await?.map(|event| event.kind) {
                Some(EventKind::OrchestrationStarted { name, version, .. }) => (name, version),
                _ => started_by(&leased.messages),
            },
        };
        Ok(TurnLease {
            token: LeaseToken::Turn(token),
            instance,
            name,
            version,
            execution_id: unsigned(execution),
            run: leased.run,
            last_event_id: leased.last_event_id,
            history: history_of(&texts, known),
            messages: leased.messages,
            attempt: leased.attempt,
            kv,
            now_ms: unsigned(leased.now),
        })
    }

    /// Commits turns, each alone (S3).
    pub(crate) async fn commit_turns(
        &self,
        requests: Vec<(String, Prepared)>,
        notify: Option<String>,
        me: &str,
    ) -> Result<Vec<Result<CommittedTurn, ProviderError>>, ProviderError> {
        const OPERATION: &str = "commit_turn";
        let mut columns = Columns::default();
        let mut asked = Vec::with_capacity(requests.len());
        for (token, mut prepared) in requests {
            columns.push(&token, &mut prepared);
            asked.push((token, prepared));
        }
        let rows = columns.send(self, OPERATION, notify, me).await?;
        let judge = |(row, (token, prepared)): (&Row, &(String, Prepared))| {
            let code: &str = column(OPERATION, row, "code")?;
            let instance: Option<String> = column(OPERATION, row, "instance_id")?;
            let instance = instance.map(unescape).unwrap_or_default();
            match code {
                "ok" => {
                    let run: i64 = column(OPERATION, row, "run_id")?;
                    let committed = Committed { run: Some(RunId(unsigned(run))) };
                    let ready = column(OPERATION, row, "ready")?;
                    Ok(CommittedTurn { committed, instance, ready })
                }
                "lost" | "ended" => Err(lease_lost(OPERATION, code, token, &instance)),
                code => {
                    let at = column(OPERATION, row, "event_at")?;
                    let whose = (instance.as_str(), prepared.execution);
                    Err(prepared.events.refusal(OPERATION, whose, code, at))
                }
            }
        };
        Ok(rows.iter().zip(&asked).map(judge).collect())
    }

    /// Extends leases (S4).
    pub(crate) async fn renew_turns(
        &self,
        requests: Vec<(String, Duration)>,
    ) -> Result<Vec<Result<(), ProviderError>>, ProviderError> {
        const OPERATION: &str = "renew";
        let (tokens, extend): (Vec<_>, Vec<_>) =
            requests.into_iter().map(|(token, extend_for)| (token, millis(extend_for))).unzip();
        let rows = self
            .rows(OPERATION, sql!("turn/renew"), params![stored_tokens(&tokens), extend, self.now()])
            .await?;
        Ok(rows.iter().zip(&tokens).map(|(row, token)| judge_lease(OPERATION, row, token)).collect())
    }

    /// Gives leased messages back (S6).
    pub(crate) async fn abandon_turns(
        &self,
        requests: Vec<(String, Abandon)>,
        notify: Option<String>,
        me: &str,
    ) -> Result<Vec<Result<(), ProviderError>>, ProviderError> {
        const OPERATION: &str = "abandon";
        let (tokens, how): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
        let delays: Vec<_> = how.iter().map(|how| how.retry_after.map(millis)).collect();
        let uncounted: Vec<_> = how.iter().map(|how| how.attempt == Attempt::Uncounted).collect();
        let rows = self
            .rows(
                OPERATION,
                sql!("turn/abandon"),
                params![stored_tokens(&tokens), delays, uncounted, self.now(), notify, me],
            )
            .await?;
        Ok(rows.iter().zip(&tokens).map(|(row, token)| judge_lease(OPERATION, row, token)).collect())
    }

    /// Gives back what was leased for somebody who is gone, also when the lease has ended meanwhile: uncounted (S5).
    pub(crate) async fn untake_turns(
        &self,
        tokens: Vec<String>,
        notify: Option<String>,
        me: &str,
    ) -> Result<(), ProviderError> {
        let untaken = params![stored_tokens(&tokens), self.now(), notify, me];
        self.rows("fetch_turn", sql!("turn/untake"), untaken).await.map(drop)
    }

    /// Is there a turn to lease, and when will there be one by itself?
    pub(crate) async fn look_for_turns(&self) -> Result<(bool, Option<i64>, i64), ProviderError> {
        const OPERATION: &str = "wait";
        let row = self.one(OPERATION, sql!("turn/look"), params![self.now()]).await?;
        let row = row.ok_or_else(|| ProviderError::permanent(OPERATION, "a look answered nothing"))?;
        let next = column(OPERATION, &row, "next_ms")?;
        Ok((column(OPERATION, &row, "ready")?, next, column(OPERATION, &row, "now")?))
    }
}

/// A turn that was committed.
#[derive(Debug)]
pub(crate) struct CommittedTurn {
    pub(crate) committed: Committed,
    pub(crate) instance: String,
    /// The instance has messages that arrived meanwhile.
    pub(crate) ready: bool,
}

impl Leased {
    fn read(operation: &'static str, row: &Row) -> Result<(Self, Vec<Unreadable>), ProviderError> {
        let named = Option::zip(
            column::<Option<String>>(operation, row, "name")?,
            column::<Option<String>>(operation, row, "version")?,
        );
        let run: Option<i64> = column(operation, row, "run_id")?;
        let mut leased = Self {
            token: column(operation, row, "token")?,
            instance: unescape(column(operation, row, "instance_id")?),
            named: named.map(|(name, version)| (unescape(name), unescape(version))),
            execution: column(operation, row, "execution_id")?,
            run: run.map(|run| RunId(unsigned(run))),
            last_event_id: unsigned(column(operation, row, "last_event_id")?),
            has_kv: column(operation, row, "has_kv")?,
            messages: Vec::new(),
            attempt: 0,
            now: column(operation, row, "now")?,
        };
        let ids: Vec<i64> = column(operation, row, "ids")?;
        let items: Vec<&str> = column(operation, row, "items")?;
        let attempts: Vec<i32> = column(operation, row, "attempts")?;
        let traceparents: Vec<Option<String>> = column(operation, row, "traceparents")?;
        let mut unreadable = Vec::new();
        for (((id, item), attempts), traceparent) in
            ids.into_iter().zip(items).zip(attempts).zip(traceparents)
        {
            match serde_json::from_str(item) {
                Ok(item) => {
                    leased.attempt = leased.attempt.max(u32::try_from(attempts).unwrap_or(0));
                    leased.messages.push(Message { item, traceparent: traceparent.map(unescape) });
                }
                Err(error) => unreadable.push(Unreadable { id, reason: error.to_string() }),
            }
        }
        Ok((leased, unreadable))
    }
}

/// A commit whose texts are written before it is merged with others, so that a call only sends them.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    /// The instance, as far as its events name it: for those who wait for it elsewhere.
    instance: Option<String>,
    pub(crate) execution: i64,
    pub(crate) events: Events,
    pub(crate) commit: TurnCommit,
    pub(crate) work: Vec<String>,
    pub(crate) messages: Vec<String>,
    pub(crate) failure: Option<String>,
    /// The custom status, if the commit sets or removes it.
    pub(crate) custom_status: Option<Option<String>>,
    pub(crate) kv: KvChanges,
    pub(crate) sessions: Vec<SessionChange>,
}

/// What an event says about the sessions of its instance.
#[derive(Debug, Clone)]
pub(crate) enum SessionChange {
    Open {
        id: String,
        idle_timeout: Option<i64>,
        serial: Option<bool>,
    },
    Close {
        id: String,
    },
    /// All of them end.
    End,
}

impl Prepared {
    pub(crate) fn new(mut commit: TurnCommit) -> Result<Self, ProviderError> {
        const OPERATION: &str = "commit_turn";
        for message in &commit.messages {
            check_message(OPERATION, &message.item)?;
        }
        for work in &commit.work {
            crate::verbs::message::check_work(OPERATION, &work.item)?;
        }
        let events = std::mem::take(&mut commit.events);
        let failure = events.iter().find_map(|event| match &event.kind {
            EventKind::OrchestrationFailed { details } => Some(details),
            _ => None,
        });
        let custom_status = events.iter().rev().find_map(|event| match &event.kind {
            EventKind::CustomStatusUpdated { status } => Some(status.clone()),
            _ => None,
        });
        let text = |item: &WorkItem| crate::verbs::message::text(OPERATION, item);
        Ok(Self {
            instance: events.first().map(|event| event.instance_id.clone()),
            execution: time(commit.execution_id),
            work: commit.work.iter().map(|work| text(&work.item)).collect::<Result<_, _>>()?,
            messages: commit.messages.iter().map(|message| text(&message.item)).collect::<Result<_, _>>()?,
            failure: failure.map(|details| crate::verbs::message::text(OPERATION, details)).transpose()?,
            custom_status,
            kv: KvChanges::of(&events),
            sessions: events.iter().filter_map(|event| session_change(&event.kind)).collect(),
            events: Events::new(OPERATION, &events)?,
            commit,
        })
    }

    /// Counts the bytes of its texts.
    pub(crate) fn bytes(&self) -> usize {
        let texts = self.work.iter().chain(&self.messages).chain(&self.failure).map(String::len);
        let status = self.custom_status.iter().flatten().map(String::len);
        let output = self.commit.metadata.output.iter().map(String::len);
        texts.chain(status).chain(output).sum::<usize>() + self.events.bytes() + self.kv.bytes()
    }

    /// What the commit makes runnable, as far as it is known before.
    pub(crate) fn woken(&self) -> Woken {
        let work = self.commit.work.iter().map(|work| match &work.item {
            WorkItem::ActivityExecute { tag, .. } => (tag.clone(), work.session_key().is_some()),
            _ => (None, false),
        });
        let named = self.instance.iter().cloned().collect();
        let (instances, ended) = if self.ends_instance() { (Vec::new(), named) } else { (named, Vec::new()) };
        Woken { turns: self.messages.len(), work: work.collect(), any_work: false, instances, ended }
    }

    pub(crate) fn ends_instance(&self) -> bool {
        self.commit.ends_instance()
    }
}

fn session_change(kind: &EventKind) -> Option<SessionChange> {
    match kind {
        EventKind::SessionOpened { session_id, idle_timeout_ms, concurrency } => Some(SessionChange::Open {
            id: session_id.clone(),
            idle_timeout: idle_timeout_ms.map(time),
            serial: concurrency.map(|concurrency| concurrency == SessionConcurrency::Serial),
        }),
        EventKind::SessionClosed { session_id } => Some(SessionChange::Close { id: session_id.clone() }),
        EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. } => {
            Some(SessionChange::End)
        }
        _ => None,
    }
}

fn started_by(messages: &[Message]) -> (String, String) {
    let unknown = || "unknown".to_owned();
    let start = messages.iter().find_map(|message| match &message.item {
        WorkItem::StartOrchestration { orchestration, version, .. }
        | WorkItem::ContinueAsNew { orchestration, version, .. }
        | WorkItem::ContinueAsNewWithSessions { orchestration, version, .. } => {
            Some((orchestration.clone(), version.clone().unwrap_or_else(unknown)))
        }
        _ => None,
    });
    start.unwrap_or_else(|| (unknown(), unknown()))
}

/// The ranges of pins that a filter accepts.
fn pins_of(filter: &DispatcherCapabilityFilter) -> (Vec<i64>, Vec<i64>) {
    filter.supported_duroxide_versions.iter().map(|range| (pin_of(&range.min), pin_of(&range.max))).unzip()
}

/// An engine version as the number that ready instances are found by: 20 bits for each part.
fn pin_of(version: &Version) -> i64 {
    const LARGEST: u64 = (1 << 20) - 1;
    let part = |part: u64| time(part.min(LARGEST));
    part(version.major) << 40 | part(version.minor) << 20 | part(version.patch)
}

fn stored_tokens(tokens: &[String]) -> Vec<std::borrow::Cow<'_, str>> {
    tokens.iter().map(|token| escape(token)).collect()
}

fn judge_lease(operation: &'static str, row: &Row, token: &str) -> Result<(), ProviderError> {
    match column(operation, row, "code")? {
        "ok" => Ok(()),
        code => {
            let instance: Option<String> = column(operation, row, "instance_id")?;
            Err(lease_lost(operation, code, token, &instance.map(unescape).unwrap_or_default()))
        }
    }
}

fn lease_lost(operation: &'static str, code: &str, token: &str, instance: &str) -> ProviderError {
    match code {
        "ended" => ProviderError::lease_lost(operation, format!("the lease of '{instance}' has ended")),
        _ => ProviderError::lease_lost(operation, format!("'{token}' holds nothing")),
    }
}
