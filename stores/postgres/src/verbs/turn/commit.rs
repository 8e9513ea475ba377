//! Committing turns.

use steadfast_core::{SessionConcurrency, WorkItem};
use steadfast_store::rules::{SessionEffect, ended_turn_lease, no_such_lease, to_json};
use steadfast_store::{Committed, LeaseToken, ProviderError, RunId, TurnCommit, Woken};
use tokio_postgres::Row;

use crate::link::db::{column, time, unsigned};
use crate::link::escape::{escape, unescape};
use crate::merge::queue::Answers;
use crate::verbs::backend::Backend;
use crate::verbs::history::StoredEvents;
use crate::verbs::kv::KvChanges;
use crate::verbs::message::stored_failure;
use crate::verbs::turn::columns::CommitTurns;

const OPERATION: &str = "commit_turn";

/// A commit whose texts are written before it is merged with others, so that a call only sends them.
#[derive(Debug, Clone)]
pub(crate) struct PreparedCommit {
    pub(crate) token: String,
    /// The instance, if an event names it: waiters for this instance are woken, in other processes too.
    instance: Option<String>,
    pub(crate) execution: i64,
    pub(crate) events: StoredEvents,
    pub(crate) commit: TurnCommit,
    pub(crate) work: Vec<String>,
    /// The terms of each piece of work.
    pub(crate) work_calls: Vec<Option<String>>,
    pub(crate) messages: Vec<String>,
    /// The failure beside each message.
    pub(crate) message_failures: Vec<Option<String>>,
    pub(crate) dropped_timers: Vec<String>,
    pub(crate) failure: Option<String>,
    /// The custom status, if the commit sets or removes it.
    pub(crate) custom_status: Option<Option<String>>,
    pub(crate) kv: KvChanges,
    pub(crate) sessions: Vec<StoredEffect>,
}

/// What an event does to the sessions of its instance, as the arguments of a call name it.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoredEffect {
    pub(crate) op: &'static str,
    /// The session; `None` for all sessions of the instance.
    pub(crate) session_id: Option<String>,
    pub(crate) idle_timeout: Option<i64>,
    /// Whether activities of the session run one after the other; `None` for the default.
    pub(crate) serial: Option<bool>,
}

/// A turn that was committed.
#[derive(Debug)]
struct CommittedTurn {
    committed: Committed,
    instance: String,
    /// Whether the instance has messages that arrived meanwhile.
    ready: bool,
}

impl Backend {
    /// Commits turns in one call. Each is judged by itself: a refused one changes nothing and does not affect
    /// the others (S3).
    pub(crate) async fn commit_turns(&self, mut asked: Vec<PreparedCommit>) -> Answers<Committed> {
        let mut woken = Woken::default();
        asked.iter().for_each(|prepared| woken.absorb(prepared.woken()));
        let (notify, now_ms) = (self.payload(&woken), self.db.now());
        let mut call = CommitTurns { now_ms, notify, me: &self.me, ..CommitTurns::default() };
        asked.iter_mut().for_each(|prepared| call.push(prepared));
        let rows = self.wake_if_unsure(self.db.rows(OPERATION, call.statement()).await, &woken)?;
        let answers: Vec<_> = rows.iter().zip(&asked).map(|(row, prepared)| prepared.judge(row)).collect();
        let ready = answers.iter().flatten().filter(|committed| committed.ready).count();
        woken.turns += ready;
        // The answers name the instances, also those that no event named. Only committed ones are taken.
        (woken.instances, woken.ended) = (Vec::new(), Vec::new());
        for (answer, prepared) in answers.iter().zip(&asked) {
            let changed = if prepared.ends_instance() { &mut woken.ended } else { &mut woken.instances };
            changed.extend(answer.iter().map(|committed| committed.instance.clone()));
        }
        self.waiters.wake(&woken);
        if ready > 0 {
            self.notify_others(Woken { turns: ready, ..Woken::default() });
        }
        Ok(answers.into_iter().map(|answer| answer.map(|committed| committed.committed)).collect())
    }
}

impl PreparedCommit {
    pub(crate) fn new(lease: &LeaseToken, commit: TurnCommit) -> Result<Self, ProviderError> {
        commit.check()?;
        let item = |item: &WorkItem| to_json(OPERATION, item);
        Ok(Self {
            token: lease.as_str().to_owned(),
            instance: commit.events.first().map(|event| event.instance_id.clone()),
            execution: time(commit.execution_id),
            work: commit.work.iter().map(|work| item(&work.item)).collect::<Result<_, _>>()?,
            work_calls: commit
                .work
                .iter()
                .map(|work| work.call.as_ref().map(|call| to_json(OPERATION, call)).transpose())
                .collect::<Result<_, _>>()?,
            messages: commit.messages.iter().map(|message| item(&message.item)).collect::<Result<_, _>>()?,
            message_failures: commit
                .messages
                .iter()
                .map(|message| stored_failure(OPERATION, message))
                .collect::<Result<_, _>>()?,
            dropped_timers: commit.dropped_timers.iter().map(item).collect::<Result<_, _>>()?,
            failure: commit.failure().map(|details| to_json(OPERATION, details)).transpose()?,
            custom_status: commit.custom_status().map(|status| status.map(str::to_owned)),
            kv: KvChanges::of(&commit.events),
            sessions: SessionEffect::of(&commit.events).map(StoredEffect::of).collect(),
            events: StoredEvents::new(OPERATION, &commit.events)?,
            // The events are stored as texts: they are not kept twice.
            commit: TurnCommit { events: Vec::new(), ..commit },
        })
    }

    /// Counts the bytes of its texts, which are not bounded.
    pub(crate) fn bytes(&self) -> usize {
        let items = self.work.iter().chain(&self.messages).chain(&self.dropped_timers);
        let beside = self.work_calls.iter().chain(&self.message_failures).flatten();
        let texts = items.chain(beside).chain(&self.failure).map(String::len);
        let status = self.custom_status.iter().flatten().map(String::len);
        let output = self.commit.metadata.output.iter().map(String::len);
        texts.chain(status).chain(output).sum::<usize>() + self.events.bytes() + self.kv.bytes()
    }

    /// Returns what the commit makes runnable, as far as that is known before the call.
    pub(crate) fn woken(&self) -> Woken {
        let work = self.commit.work.iter().map(|work| match &work.item {
            WorkItem::ActivityExecute { tag, .. } => (tag.clone(), work.session_key().is_some()),
            _ => (None, false),
        });
        let named = self.instance.iter().cloned().collect();
        let (instances, ended) = if self.ends_instance() { (Vec::new(), named) } else { (named, Vec::new()) };
        let (turns, work) = (self.messages.len(), work.collect());
        Woken { turns, work, instances, ended, ..Woken::default() }
    }

    pub(crate) fn ends_instance(&self) -> bool {
        self.commit.ends_instance()
    }

    /// Reads the answer to the commit: committed, or the error that the store refuses it with.
    fn judge(&self, row: &Row) -> Result<CommittedTurn, ProviderError> {
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
            "ended" => Err(ended_turn_lease(OPERATION, &instance)),
            "lost" => Err(no_such_lease(OPERATION, &self.token)),
            code => {
                let at = column(OPERATION, row, "event_at")?;
                let whose = (instance.as_str(), self.execution);
                Err(self.events.refusal(OPERATION, whose, code, at))
            }
        }
    }
}

impl StoredEffect {
    fn of(effect: SessionEffect<'_>) -> Self {
        let stored = |id: &str| Some(escape(id).into_owned());
        match effect {
            SessionEffect::Open { session_id, idle_timeout_ms, concurrency } => Self {
                op: "open",
                session_id: stored(session_id),
                idle_timeout: idle_timeout_ms.map(time),
                serial: concurrency.map(|concurrency| concurrency == SessionConcurrency::Serial),
            },
            SessionEffect::Close { session_id } => {
                Self { op: "close", session_id: stored(session_id), ..Self::default() }
            }
            SessionEffect::CloseAll => Self { op: "end", ..Self::default() },
        }
    }
}
