//! One leased turn: joins the lease with the execution in memory, if there is one, and follows the decision
//! of triage.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use semver::Version;
use steadfast_core::{Event, KvEntry, WorkItem, kind_of};
use steadfast_store::rules::lists_orchestration;
use steadfast_store::{
    History, LeaseToken, MAX_PAGE, Message, NeededHandler, RunId, TurnCommit, TurnLease, WorkerId, WorkerInfo,
};

use super::commit::{CommitEnd, damage_delay};
use super::standing::Standing;
use super::triage::{Triage, TurnInput, Wait, triage};
use super::warm::WarmExecution;
use crate::dispatch::in_time;
use crate::runtime::RuntimeShared;

/// A leased turn, from the fetch to the commit.
pub(super) struct TurnProcess {
    pub(super) shared: Arc<RuntimeShared>,
    pub(super) token: LeaseToken,
    pub(super) instance: String,
    /// The store's time when it leased the turn: the *now* of the turn.
    pub(super) now_ms: u64,
    /// How often these messages have been leased, from 1.
    pub(super) deliveries: u32,
    pub(super) last_event_id: u64,
    pub(super) kv: HashMap<String, KvEntry>,
    /// The summary of the history. Empty if the history cannot be read.
    pub(super) standing: Standing,
    /// The kind and the trace context of each message that has a trace context.
    pub(super) traces: Vec<(&'static str, String)>,
}

/// An execution before its turn: its events from the store, or the execution itself from memory.
pub(super) enum KnownExecution {
    /// Its events.
    Cold(Vec<Event>),
    /// The execution itself, from memory.
    Warm(Box<WarmExecution>),
    /// Why its events cannot be read.
    Unreadable(Unreadable),
}

/// Why the events of an execution cannot be read.
pub(super) struct Unreadable {
    error: String,
    /// The database cannot read them, and may later.
    is_damage: bool,
}

/// Processes one leased turn to its end: it is committed or abandoned when this returns.
pub(super) async fn process(shared: &Arc<RuntimeShared>, lease: TurnLease) {
    let kept = shared.warm.take(&lease.instance);
    shared.measure_warm();
    let TurnLease { token, instance, name, version, execution_id, run, last_event_id, .. } = lease;
    let TurnLease { history, messages, rival_starts, attempt: deliveries, kv, now_ms, .. } = lease;
    let Some(known) = KnownExecution::of(history, kept, run) else {
        // The fetch told the store that the execution is in memory; since then it was evicted, or it lacks
        // events that another process committed. The next lease brings the whole history.
        return shared.abandon_uncounted(&token, None).await;
    };
    let (standing, traces) = (known.standing(), traces_of(&messages));
    let shared = Arc::clone(shared);
    let turn =
        TurnProcess { shared, token, instance, now_ms, deliveries, last_event_id, kv, standing, traces };
    let instance = turn.instance.clone();
    let input = TurnInput { instance, name, version, execution_id, messages, rival_starts, deliveries };
    turn.decide(input, known).await;
}

impl TurnProcess {
    /// Triages the messages and follows the decision.
    async fn decide(self, input: TurnInput, known: KnownExecution) {
        let message_count = input.messages.len() as u64;
        let raised = input.messages.iter().filter(|message| is_raised(message)).count();
        let starts = input.messages.iter().filter(|message| is_start(message)).count();
        let standing = match &known {
            KnownExecution::Cold(_) | KnownExecution::Warm(_) => Ok(&self.standing),
            KnownExecution::Unreadable(unreadable) => Err(unreadable.error.as_str()),
        };
        let runs = |version: &Version| self.shared.plan.versions.contains(version);
        let decision = triage(input, standing, self.shared.plan.max_attempts, runs);
        let is_incompatible = matches!(decision, Triage::Wait(Wait::Incompatible { .. }));
        if !is_incompatible && standing.is_ok_and(|standing| !standing.is_empty) {
            for _ in 0..starts {
                tracing::warn!(
                    target: "steadfast::runtime",
                    instance = %self.instance,
                    "a start is ignored: the instance has begun already"
                );
            }
        }
        match decision {
            Triage::Run(_) if self.shared.running_turns.is_overdue(&self.instance) => {
                self.wait_for_earlier_turn().await;
            }
            Triage::Run(run) => self.run(run, known).await,
            Triage::Settle { execution_id, collisions } => {
                self.log_dropped(raised);
                self.settle(execution_id, collisions, message_count).await
            }
            Triage::Wait(why) => self.wait(&why, known.is_damaged()).await,
            Triage::Fail(fail) => self.fail(fail, known).await,
        }
    }

    /// Logs that the messages of an ended instance are dropped: a warning if events or queue messages were
    /// among them, because their sender expects them to arrive. Late answers and timers are ordinary.
    fn log_dropped(&self, raised: usize) {
        let instance = self.instance.as_str();
        if raised > 0 {
            tracing::warn!(
                target: "steadfast::runtime",
                instance,
                raised,
                "messages dropped: the instance has ended"
            );
        } else {
            tracing::debug!(
                target: "steadfast::runtime",
                instance,
                "messages dropped: the instance has ended"
            );
        }
    }

    /// Leaves a turn for later whose instance still runs an earlier turn here. The delivery counts, because
    /// the code does not return: in the end the instance is poison, without running its code again (G16).
    async fn wait_for_earlier_turn(&self) {
        tracing::warn!(
            target: "steadfast::runtime",
            instance = %self.instance,
            "an earlier turn of the instance still runs here; it is left for later"
        );
        self.shared.abandon(&self.token, Some(self.shared.plan.turn_lease.lasts)).await;
    }

    /// Removes messages to an instance that has ended. Parents whose child could not be started are told.
    async fn settle(&self, execution_id: u64, collisions: Vec<WorkItem>, message_count: u64) {
        let messages = collisions.into_iter().map(Message::from).collect();
        let commit = TurnCommit { messages, ..TurnCommit::empty(execution_id) };
        if let CommitEnd::Committed(_) = self.hand_in(commit, &[]).await {
            self.shared.metrics().record_messages_to_ended(message_count);
        }
    }

    /// Abandons the turn until its execution can run here or elsewhere.
    async fn wait(&self, why: &Wait, is_damaged: bool) {
        let instance = self.instance.as_str();
        let delay = match why {
            Wait::Unreadable(error) => {
                tracing::warn!(
                    target: "steadfast::runtime",
                    instance,
                    %error,
                    "history cannot be read, abandoning"
                );
                if is_damaged { damage_delay(self.deliveries) } else { Duration::from_secs(1) }
            }
            Wait::Incompatible { version } => {
                tracing::warn!(
                    target: "steadfast::runtime",
                    instance,
                    %version,
                    "Execution pinned at incompatible version, abandoning (runtime-side check)"
                );
                Duration::from_secs(1)
            }
            Wait::BetweenExecutions => {
                tracing::warn!(
                    target: "steadfast::runtime",
                    instance,
                    "between two executions, abandoning until the next one starts"
                );
                self.shared.plan.unregistered.delay(self.deliveries)
            }
            Wait::NotStarted => {
                tracing::warn!(
                    target: "steadfast::runtime",
                    instance,
                    "not started yet, abandoning until its start is due"
                );
                self.shared.plan.unregistered.delay(self.deliveries)
            }
        };
        match why {
            Wait::Incompatible { version } if self.may_run_elsewhere(version).await => {
                self.shared.abandon_uncounted(&self.token, Some(delay)).await;
            }
            _ => self.shared.abandon(&self.token, Some(delay)).await,
        }
    }

    /// Tells whether another live worker has the code of this execution and an engine that is new enough. A
    /// store that does not answer now may have one.
    async fn may_run_elsewhere(&self, engine: &str) -> bool {
        let (Some(started), Ok(engine)) = (&self.standing.started, Version::parse(engine)) else {
            return false;
        };
        let needed = NeededHandler { name: started.name.clone(), version: started.version.clone() };
        let own = &self.shared.worker_row.id;
        let can_run = |worker: &WorkerInfo| {
            let is_new_enough =
                Version::parse(&worker.report.process.version).is_ok_and(|version| version >= engine);
            worker.is_live
                && worker.report.id != *own
                && is_new_enough
                && lists_orchestration(&worker.report, &needed, Some(&engine))
        };
        let mut after: Option<WorkerId> = None;
        loop {
            let page = match in_time(&self.shared, "workers", self.shared.store.workers(after.as_ref())).await
            {
                Ok(page) => page,
                Err(error) => return error.is_retryable(),
            };
            if page.iter().any(can_run) {
                return true;
            }
            match page.last() {
                Some(last) if page.len() >= MAX_PAGE => after = Some(last.report.id.clone()),
                _ => return false,
            }
        }
    }
}

impl KnownExecution {
    /// Chooses between the history of the lease and the execution in memory. `None` if the lease has only the
    /// end of the history, and the execution in memory is not the one that this end continues.
    fn of(history: History, kept: Option<Box<WarmExecution>>, run: Option<RunId>) -> Option<Self> {
        match (history, kept) {
            (History::Whole(events), _) => Some(Self::Cold(events)),
            (History::Tail { after, events }, Some(kept))
                if events.is_empty() && Some(kept.run) == run && kept.execution.last_event_id() == after =>
            {
                Some(Self::Warm(kept))
            }
            (History::Tail { .. }, _) => None,
            (History::Unreadable(error), _) => Some(Self::Unreadable(Unreadable { error, is_damage: false })),
            (History::Damaged(error), _) => Some(Self::Unreadable(Unreadable { error, is_damage: true })),
        }
    }

    /// Tells whether the database cannot read the events, and may later.
    fn is_damaged(&self) -> bool {
        matches!(self, Self::Unreadable(Unreadable { is_damage: true, .. }))
    }

    fn standing(&self) -> Standing {
        match self {
            Self::Cold(events) => Standing::of(events),
            Self::Warm(kept) => kept.standing.clone(),
            Self::Unreadable(_) => Standing::default(),
        }
    }
}

/// Tells whether a caller raised the message: an event or a message to a queue.
fn is_raised(message: &Message) -> bool {
    matches!(message.item, WorkItem::ExternalRaised { .. } | WorkItem::QueueMessage { .. })
}

fn is_start(message: &Message) -> bool {
    matches!(message.item, WorkItem::StartOrchestration { .. })
}

fn traces_of(messages: &[Message]) -> Vec<(&'static str, String)> {
    let traced = |message: &Message| Some((kind_of(&message.item), message.traceparent.clone()?));
    messages.iter().filter_map(traced).collect()
}
