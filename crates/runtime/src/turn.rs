//! The lane of turns: fetch, triage, run the code, commit.

pub(crate) mod alarm;
pub(crate) mod commit;
mod fail;
pub(crate) mod overdue;
mod report;
pub(crate) mod triage;
mod unreadable;
pub(crate) mod warm;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use semver::Version;
use steadfast_core::replay::{Execution, Identity, Setup, Start, Turn, Verdict};
use steadfast_core::{Event, KvEntry, WorkItem, current_build_version, kind_of};
use steadfast_store::{
    Attempt, History, LeaseToken, Message, ProviderError, RunId, TurnCommit, TurnLease, TurnRequest,
};

use tracing::Instrument;

use crate::dispatch::keeper::{Bound, Keeper};
use crate::dispatch::{Lane, Slot};
use crate::handler::OrchestrationHandler;
use crate::observability;
use crate::runtime::Shared;
use crate::turn::triage::{Batch, Ending, Run, Standing, Started, Triage, Wait, triage};
use crate::turn::warm::Kept;

/// Runs turns.
pub(crate) struct Turns {
    pub(crate) shared: Arc<Shared>,
}

/// What is known of an execution before its turn.
enum Known {
    /// Its events.
    Cold(Vec<Event>),
    /// All of it: it was kept.
    Warm(Box<Kept>),
    /// Why its events cannot be read.
    Unreadable(String),
}

/// One leased turn.
pub(crate) struct Leased {
    token: LeaseToken,
    instance: String,
    now_ms: u64,
    attempt: u32,
    last_event_id: u64,
    kv: HashMap<String, KvEntry>,
}

#[async_trait]
impl Lane for Turns {
    type Lease = TurnLease;

    fn name(&self) -> &'static str {
        "turns"
    }

    async fn fetch(&self, _slot: &Slot) -> Result<Option<TurnLease>, ProviderError> {
        let plan = &self.shared.plan;
        let request = TurnRequest {
            lock_timeout: plan.turn_lease.lasts,
            poll_timeout: plan.poll,
            filter: Some(&plan.filter),
            warm: &self.shared.warm,
        };
        let lease = self.shared.store.fetch_turn(request).await?;
        if lease.is_some() {
            self.shared.metrics().record_orch_dispatcher_items_fetched(1);
        }
        Ok(lease)
    }

    async fn process(&self, slot: &Slot, lease: TurnLease) {
        let began = self.shared.plan.clock.monotonic();
        let keeper = self.keep(slot, &lease);
        // Lets the keeper set its timer. A task that was just spawned waits behind this one, on a queue that no other
        // thread takes from, and the code of the turn may hold the thread.
        tokio::task::yield_now().await;
        self.decide(lease).await;
        drop(keeper);
        let took = self.shared.plan.clock.monotonic().saturating_sub(began);
        self.shared.metrics().record_orch_dispatcher_processing_duration(took.as_millis() as u64);
    }
}

impl Turns {
    /// Keeps the lease while the turn runs, but not for ever: code that never yields must not hold its instance.
    fn keep(&self, slot: &Slot, lease: &TurnLease) -> Keeper {
        let (overdue, replace) = (Arc::clone(&self.shared.overdue), slot.replacement());
        let (instance, limit) = (lease.instance.clone(), self.shared.plan.max_turn_time);
        let bound = Bound {
            limit,
            is_over: Box::new(move || {
                if !overdue.note(&instance) {
                    return false;
                }
                tracing::warn!(
                    target: "steadfast::runtime",
                    instance = %instance,
                    max_turn_time = ?limit,
                    "a turn takes too long: its lease is not renewed, and another slot takes over its place; does the \
                     handler block the thread, or loop without awaiting?"
                );
                replace.notify_one();
                true
            }),
        };
        Keeper::bounded(&self.shared, lease.token.clone(), self.shared.plan.turn_lease, bound)
    }

    async fn decide(&self, lease: TurnLease) {
        let TurnLease { token, instance, name, version, execution_id, run, last_event_id, .. } = lease;
        let TurnLease { history, messages, attempt, kv, now_ms, .. } = lease;
        let leased = Leased { token, instance, now_ms, attempt, last_event_id, kv };
        let kept = self.shared.warm.take(&leased.instance);
        self.shared.measure_warm();
        if self.shared.overdue.contains(&leased.instance) {
            let delay = self.shared.plan.turn_lease.lasts;
            tracing::warn!(target: "steadfast::runtime", instance = %leased.instance, "an earlier turn of the instance still runs here; it is left for later");
            return self.shared.abandon(&leased.token, Some(delay), Attempt::Counts).await;
        }
        let known = match (history, kept) {
            (History::Whole(events), _) => Known::Cold(events),
            (History::Tail { after, events }, Some(kept))
                if events.is_empty() && Some(kept.run) == run && kept.execution.last_event_id() == after =>
            {
                Known::Warm(kept)
            }
            (History::Tail { .. }, _) => {
                // What the store was told is held was let go of since, or is behind: the next lease brings everything.
                return self.shared.abandon(&leased.token, None, Attempt::Uncounted).await;
            }
            (History::Unreadable(error), _) => Known::Unreadable(error),
        };
        let fresh;
        let standing = match &known {
            Known::Cold(events) => {
                fresh = Standing::of(events);
                Ok(&fresh)
            }
            Known::Warm(kept) => Ok(&kept.standing),
            Known::Unreadable(error) => Err(error.as_str()),
        };
        let traces = traces_of(&messages);
        let arrived = messages.len() as u64;
        let batch =
            Batch { instance: leased.instance.clone(), name, version, execution_id, messages, attempt };
        let runs = |version: &Version| self.shared.plan.versions.contains(version);
        let starts = batch.messages.iter().filter(|message| is_start(message)).count();
        let decision = triage(batch, standing, self.shared.plan.max_attempts, runs);
        let is_left = matches!(decision, Triage::Wait(Wait::Incompatible { .. }));
        if !is_left && standing.is_ok_and(|standing| !standing.is_empty) {
            for _ in 0..starts {
                tracing::warn!(target: "steadfast::runtime", instance = %leased.instance, "a start is ignored: the instance has begun already");
            }
        }
        let standing = standing.cloned().unwrap_or_default();
        match decision {
            Triage::Run(run) => self.run(leased, run, known, standing, traces).await,
            Triage::Settle { execution_id, collisions } => {
                tracing::debug!(target: "steadfast::runtime", instance = %leased.instance, "messages dropped: the instance has ended");
                let messages = collisions.into_iter().map(Message::from).collect();
                let commit = TurnCommit { messages, ..TurnCommit::empty(execution_id) };
                if let Committing::Done(_) = self.shared.commit(&leased.token, commit).await {
                    self.shared.metrics().record_messages_to_ended(arrived);
                }
            }
            Triage::Wait(why) => self.wait(&leased, &why).await,
            Triage::Fail(fail) => self.fail(leased, fail, known, standing).await,
        }
    }

    async fn run(
        &self,
        leased: Leased,
        run: Run,
        known: Known,
        standing: Standing,
        traces: Vec<(&'static str, String)>,
    ) {
        let Some((version, handler)) = self.resolve(&run) else {
            return self.unregistered(&leased, &run).await;
        };
        let (instance, name) = (leased.instance.clone(), run.name.clone());
        let identity =
            Identity { instance, execution_id: run.execution_id, name, version: version.to_string() };
        let standing = match &run.start {
            Some(start) => begun(&identity, start, leased.now_ms),
            None => standing,
        };
        let span = observability::of_turn(&identity, standing.traceparent());
        span.in_scope(|| {
            for (message, traceparent) in traces {
                tracing::debug!(target: "steadfast::runtime", message_kind = message, %traceparent, "a message came with a trace context");
            }
        });
        self.carry_out(leased, identity, run, known, standing, handler).instrument(span).await;
    }

    /// Runs the code and commits what it decided.
    async fn carry_out(
        &self,
        leased: Leased,
        identity: Identity,
        run: Run,
        known: Known,
        mut standing: Standing,
        handler: Arc<dyn OrchestrationHandler>,
    ) {
        let Run { execution_id, start, arrivals, collisions, .. } = run;
        let is_warm = matches!(known, Known::Warm(_));
        let (mut execution, turn) =
            self.turn(&leased, &identity, known, start.clone(), handler, arrivals).await;
        self.tell(&identity, &turn);
        let cancelled = turn.effects.cancelled_activities.clone();
        let verdict = turn.verdict.clone();
        let children = report::Children::of(&turn);
        let events = execution.last_event_id();
        let mut commit = self.shared.commit_of(turn, execution_id, standing.traceparent()).await;
        commit.messages.extend(collisions.iter().cloned().map(Message::from));
        standing.turns += 1;
        match self.shared.commit(&leased.token, commit).await {
            Committing::Done(run) => {
                self.shared.running.cancel(&cancelled);
                self.count(&identity, &verdict, start.as_ref(), &standing, leased.now_ms, events);
                self.count_children(&identity, &children);
                if let (Verdict::Waiting { .. }, Some(run)) = (&verdict, run) {
                    if !is_warm {
                        alarm::set(&self.shared, &leased.instance, &mut execution);
                    }
                    self.shared.warm.put(leased.instance, Box::new(Kept { execution, run, standing }));
                    self.shared.measure_warm();
                }
            }
            Committing::Left => {}
            Committing::Refused(error) => {
                self.record_failure(&leased, &identity, start, &error, collisions, &standing).await;
            }
        }
    }

    /// Runs the code: the part of a turn that nothing interrupts.
    async fn turn(
        &self,
        leased: &Leased,
        identity: &Identity,
        known: Known,
        start: Option<Start>,
        handler: Arc<dyn OrchestrationHandler>,
        arrivals: Vec<WorkItem>,
    ) -> (Execution, Turn) {
        let setup = || {
            let mut setup = Setup::new(identity.clone());
            setup.options = self.shared.plan.replay.clone();
            setup.options.owned_sessions = self.shared.store.supports_owned_sessions();
            setup.kv = leased.kv.clone().into_iter().collect();
            setup
        };
        let handler = move |ctx, input| async move { handler.invoke(ctx, input).await };
        // Code that never yields is noticed by a task of its own; when it returns at last, it is overdue no more.
        let _running = self.shared.overdue.enter(&leased.instance);
        // A turn must not depend on what else ran on this task: no cooperative budget interrupts it.
        tokio::task::unconstrained(async move {
            let (mut execution, visited) = match (known, start) {
                (Known::Warm(kept), _) => {
                    self.shared.metrics().record_warm_hit();
                    let visited = kept.execution.effort().events_visited;
                    (kept.execution, visited)
                }
                (_, Some(start)) => (Execution::start(setup(), start, handler), 0),
                (Known::Cold(history), None) => {
                    self.shared.metrics().record_warm_miss();
                    (Execution::replay(setup(), history, handler), 0)
                }
                // Triage runs nothing whose history cannot be read; a replay of nothing fails the execution.
                (Known::Unreadable(_), None) => (Execution::replay(setup(), Vec::new(), handler), 0),
            };
            let turn = execution.turn(leased.now_ms, arrivals);
            let visited = execution.effort().events_visited.saturating_sub(visited);
            self.shared.events_visited.add(visited);
            (execution, turn)
        })
        .await
    }

    fn resolve(&self, run: &Run) -> Option<(Version, Arc<dyn OrchestrationHandler>)> {
        match &run.version {
            Some(version) => {
                let version = Version::parse(version).ok()?;
                let handler = self.shared.orchestrations.resolve_handler_exact(&run.name, &version)?;
                Some((version, handler))
            }
            None => self.shared.orchestrations.resolve_handler(&run.name),
        }
    }

    async fn unregistered(&self, leased: &Leased, run: &Run) {
        let attempt = leased.attempt;
        let delay = self.shared.plan.unregistered.delay(attempt);
        let left = (u64::from(self.shared.plan.max_attempts) + 1).saturating_sub(u64::from(attempt));
        let (name, version) = (&run.name, run.version.as_deref().unwrap_or("any"));
        tracing::warn!(
            target: "steadfast::runtime",
            instance = %leased.instance,
            orchestration = %name,
            version,
            "Orchestration not registered, abandoning with {:.1}s backoff (will poison in {left} more attempts); {}",
            delay.as_secs_f64(),
            self.shared.orchestrations.instead_of(name),
        );
        self.shared.abandon(&leased.token, Some(delay), Attempt::Counts).await;
    }

    async fn wait(&self, leased: &Leased, why: &Wait) {
        let instance = leased.instance.as_str();
        let delay = match why {
            Wait::Unreadable(error) => {
                tracing::warn!(target: "steadfast::runtime", instance, %error, "history cannot be read, abandoning");
                Duration::from_secs(1)
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
                tracing::warn!(target: "steadfast::runtime", instance, "between two executions, abandoning until the next one starts");
                self.shared.plan.unregistered.delay(leased.attempt)
            }
            Wait::NotStarted => {
                tracing::warn!(target: "steadfast::runtime", instance, "not started yet, abandoning until its start is due");
                self.shared.plan.unregistered.delay(leased.attempt)
            }
        };
        self.shared.abandon(&leased.token, Some(delay), Attempt::Counts).await;
    }
}

fn is_start(message: &Message) -> bool {
    matches!(message.item, WorkItem::StartOrchestration { .. })
}

/// How an execution stands whose first turn this was.
fn begun(identity: &Identity, start: &Start, now_ms: u64) -> Standing {
    let started = Started {
        name: identity.name.clone(),
        version: Some(identity.version.clone()),
        engine: Some(current_build_version()),
        parent: start.parent.clone(),
        at_ms: now_ms,
        traceparent: start.traceparent.clone(),
    };
    Standing { started: Some(started), is_empty: false, ending: Ending::None, turns: 0 }
}

/// The messages that carry a trace context, by kind.
fn traces_of(messages: &[Message]) -> Vec<(&'static str, String)> {
    let traced = |message: &Message| Some((kind_of(&message.item), message.traceparent.clone()?));
    messages.iter().filter_map(traced).collect()
}

/// How a commit ended.
pub(crate) enum Committing {
    /// With the run that its events belong to, when the store tells runs apart.
    Done(Option<RunId>),
    /// Somebody else decides, or the item was given back: nothing more to do.
    Left,
    /// The store will never take it.
    Refused(ProviderError),
}
