//! Committing turns.

use steadfast_core::{EventKind, SessionConcurrency, WorkItem};
use steadfast_store::{Committed, LeaseToken, ProviderError, RunId, TurnCommit, Woken, check_message};
use tokio_postgres::Row;

use crate::link::db::{column, time, unsigned};
use crate::link::escape::unescape;
use crate::merge::queue::Answers;
use crate::verbs::backend::Backend;
use crate::verbs::history::StoredEvents;
use crate::verbs::kv::KvChanges;
use crate::verbs::message::{check_work, text};
use crate::verbs::turn::columns::CommitTurns;
use crate::verbs::turn::lease_lost;

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
    pub(crate) messages: Vec<String>,
    pub(crate) failure: Option<String>,
    /// The custom status, if the commit sets or removes it.
    pub(crate) custom_status: Option<Option<String>>,
    pub(crate) kv: KvChanges,
    pub(crate) sessions: Vec<SessionChange>,
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
    pub(crate) fn new(lease: &LeaseToken, mut commit: TurnCommit) -> Result<Self, ProviderError> {
        for message in &commit.messages {
            check_message(OPERATION, &message.item)?;
        }
        for work in &commit.work {
            check_work(OPERATION, &work.item)?;
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
        let item = |item: &WorkItem| text(OPERATION, item);
        Ok(Self {
            token: lease.as_str().to_owned(),
            instance: events.first().map(|event| event.instance_id.clone()),
            execution: time(commit.execution_id),
            work: commit.work.iter().map(|work| item(&work.item)).collect::<Result<_, _>>()?,
            messages: commit.messages.iter().map(|message| item(&message.item)).collect::<Result<_, _>>()?,
            failure: failure.map(|details| text(OPERATION, details)).transpose()?,
            custom_status,
            kv: KvChanges::of(&events),
            sessions: events.iter().filter_map(|event| session_change(&event.kind)).collect(),
            events: StoredEvents::new(OPERATION, &events)?,
            commit,
        })
    }

    /// Counts the bytes of its texts, which are not bounded.
    pub(crate) fn bytes(&self) -> usize {
        let texts = self.work.iter().chain(&self.messages).chain(&self.failure).map(String::len);
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
        Woken { turns: self.messages.len(), work: work.collect(), any_work: false, instances, ended }
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
            "lost" | "ended" => Err(lease_lost(OPERATION, code, &self.token, &instance)),
            code => {
                let at = column(OPERATION, row, "event_at")?;
                let whose = (instance.as_str(), self.execution);
                Err(self.events.refusal(OPERATION, whose, code, at))
            }
        }
    }
}

/// A change of the sessions of an instance that one event records.
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
    /// All sessions of the instance end.
    End,
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
