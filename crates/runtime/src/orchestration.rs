//! The lane of turns: fetch, triage, run the code, commit.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use semver::Version;
use steadfast_core::replay::{Execution, Identity, Notice, Setup, Turn, Verdict, fail_without_code};
use steadfast_core::{ErrorDetails, Event, EventKind, KvEntry};
use steadfast_store::{
    Attempt, Cold, LeaseToken, Message, ProviderError, TurnCommit, TurnLease, TurnRequest,
};

use crate::dispatch::Lane;
use crate::handler::OrchestrationHandler;
use crate::keeper::Keeper;
use crate::runtime::Shared;
use crate::triage::{Begin, Poison, Run, Triage, Wait, triage};

/// Runs turns.
pub(crate) struct Turns {
    pub(crate) shared: Arc<Shared>,
}

#[async_trait]
impl Lane for Turns {
    type Lease = TurnLease;

    fn name(&self) -> &'static str {
        "turns"
    }

    async fn fetch(&self, _slot: usize) -> Result<Option<TurnLease>, ProviderError> {
        let plan = &self.shared.plan;
        let request = TurnRequest {
            lock_timeout: plan.turn_lease.lasts,
            poll_timeout: plan.poll,
            filter: Some(&plan.filter),
            warm: &Cold,
        };
        let lease = self.shared.store.fetch_turn(request).await?;
        self.shared.counters().orch_dispatcher_items_fetched.add(u64::from(lease.is_some()));
        Ok(lease)
    }

    async fn process(&self, _slot: usize, lease: TurnLease) {
        let token = lease.token.clone();
        let keeper = Keeper::start(&self.shared, token.clone(), self.shared.plan.turn_lease, || {});
        let attempt = lease.attempt;
        let instance = lease.instance.clone();
        let (now_ms, kv) = (lease.now_ms, lease.kv.clone());
        let runs = |version: &str| {
            Version::parse(version).is_ok_and(|version| self.shared.plan.versions.contains(&version))
        };
        match triage(lease, self.shared.plan.max_attempts, runs) {
            Triage::Run(run) => self.run(&token, *run, attempt, now_ms, kv).await,
            Triage::Settle { execution_id, collisions } => {
                tracing::debug!(target: "steadfast::runtime", %instance, "messages dropped: the instance has ended");
                let messages = collisions.into_iter().map(Message::from).collect();
                let commit = TurnCommit { messages, ..TurnCommit::empty(execution_id) };
                self.shared.commit(&token, commit).await;
            }
            Triage::Wait(why) => self.wait(&token, &instance, &why, attempt).await,
            Triage::Poison(poison) => self.poison(&token, *poison, now_ms).await,
        }
        drop(keeper);
    }
}

impl Turns {
    async fn run(
        &self,
        token: &LeaseToken,
        run: Run,
        attempt: u32,
        now_ms: u64,
        kv: std::collections::HashMap<String, KvEntry>,
    ) {
        let Some((version, handler)) = self.resolve(&run) else {
            return self.unregistered(token, &run, attempt).await;
        };
        let Run { instance, execution_id, name, begin, arrivals, collisions, .. } = run;
        let identity = Identity { instance, execution_id, name, version: version.to_string() };
        let mut setup = Setup::new(identity.clone());
        setup.options = self.shared.plan.replay.clone();
        setup.options.owned_sessions = self.shared.store.supports_owned_sessions();
        setup.kv = kv.into_iter().collect();
        let handler = move |ctx, input| async move { handler.invoke(ctx, input).await };
        let start = match &begin {
            Begin::Start(start) => Some(start.clone()),
            Begin::Replay(_) => None,
        };
        let is_start = start.is_some();
        // A turn must not depend on what else ran on this task: no cooperative budget interrupts it.
        let turn = tokio::task::unconstrained(async move {
            let mut execution = match begin {
                Begin::Start(start) => Execution::start(setup, start, handler),
                Begin::Replay(history) => Execution::replay(setup, history, handler),
            };
            execution.turn(now_ms, arrivals)
        })
        .await;
        self.tell(&identity, &turn);
        let cancelled = turn.effects.cancelled_activities.clone();
        let verdict = turn.verdict.clone();
        let mut commit = self.shared.commit_of(turn, execution_id).await;
        commit.messages.extend(collisions.iter().cloned().map(Message::from));
        let committed = match self.shared.commit(token, commit).await {
            Committing::Done => true,
            Committing::Left => false,
            Committing::Refused(error) => {
                self.record_failure(token, &identity, start, &error, collisions, now_ms).await
            }
        };
        if committed {
            self.shared.running.cancel(&cancelled);
            self.count(&verdict, is_start);
        }
    }

    /// A commit that the store refuses for good ends the execution that it was about (2.10, F11).
    async fn record_failure(
        &self,
        token: &LeaseToken,
        identity: &Identity,
        start: Option<steadfast_core::replay::Start>,
        error: &ProviderError,
        collisions: Vec<steadfast_core::WorkItem>,
        now_ms: u64,
    ) -> bool {
        tracing::error!(target: "steadfast::runtime", instance = %identity.instance, %error, "a turn cannot be committed; the execution fails");
        let is_start = start.is_some();
        let history = match start {
            Some(start) => vec![self.started(identity, start, now_ms)],
            None => {
                match self.shared.store.read_history(&identity.instance, Some(identity.execution_id)).await {
                    Ok(history) => history,
                    Err(error) => {
                        tracing::error!(target: "steadfast::runtime", instance = %identity.instance, %error, "its history cannot be read; the lease will end");
                        return false;
                    }
                }
            }
        };
        let details = error.to_infrastructure_error();
        let Ok(mut turn) = fail_without_code(identity, &history, now_ms, details) else { return false };
        if is_start {
            turn.events.splice(0..0, history);
        }
        let verdict = turn.verdict.clone();
        let mut commit = self.shared.commit_of(turn, identity.execution_id).await;
        commit.messages.extend(collisions.into_iter().map(Message::from));
        let cancelled = commit.cancelled.clone();
        let recorded = matches!(self.shared.commit(token, commit).await, Committing::Done);
        if recorded {
            self.shared.running.cancel(&cancelled);
            self.count(&verdict, is_start);
        }
        false
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

    async fn unregistered(&self, token: &LeaseToken, run: &Run, attempt: u32) {
        let delay = self.shared.plan.unregistered.delay(attempt);
        let left = (u64::from(self.shared.plan.max_attempts) + 1).saturating_sub(u64::from(attempt));
        let (name, version) = (&run.name, run.version.as_deref().unwrap_or("any"));
        tracing::warn!(
            target: "steadfast::runtime",
            instance = %run.instance,
            orchestration = %name,
            version,
            "Orchestration not registered, abandoning with {:.1}s backoff (will poison in {left} more attempts); {}",
            delay.as_secs_f64(),
            self.shared.orchestrations.instead_of(name),
        );
        self.shared.abandon(token, Some(delay), Attempt::Counts).await;
    }

    async fn wait(&self, token: &LeaseToken, instance: &str, why: &Wait, attempt: u32) {
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
                self.shared.plan.unregistered.delay(attempt)
            }
        };
        self.shared.abandon(token, Some(delay), Attempt::Counts).await;
    }

    /// Fails an execution whose attempts are used up, without running its code.
    async fn poison(&self, token: &LeaseToken, poison: Poison, now_ms: u64) {
        let Poison {
            instance,
            execution_id,
            name,
            version,
            begin,
            details,
            unreadable,
            last_event_id,
            collisions,
        } = poison;
        if unreadable && self.shared.is_over(&instance).await {
            self.shared.commit(token, TurnCommit::empty(execution_id)).await;
            return;
        }
        tracing::error!(target: "steadfast::runtime", %instance, details = %details.display_message(), "poison: the execution fails");
        let identity = Identity { instance, execution_id, name, version };
        let is_start = matches!(begin, Some(Begin::Start(_)));
        let turn = match begin {
            Some(Begin::Replay(history)) => fail_without_code(&identity, &history, now_ms, details.clone()),
            begin => {
                let start = match begin {
                    Some(Begin::Start(start)) => start,
                    _ => steadfast_core::replay::Start::default(),
                };
                let history =
                    if unreadable { Vec::new() } else { vec![self.started(&identity, start, now_ms)] };
                fail_without_code(&identity, &history, now_ms, details.clone()).map(|mut turn| {
                    turn.events.splice(0..0, history);
                    turn
                })
            }
        };
        let mut commit = match turn {
            Ok(turn) => self.shared.commit_of(turn, execution_id).await,
            Err(_) => {
                let notice = self.shared.news_of_unreadable(&identity.instance, &details).await;
                let mut commit = failed_by_hand(&identity, details, last_event_id, now_ms);
                commit.messages.extend(notice.map(Message::from));
                commit
            }
        };
        commit.messages.extend(collisions.into_iter().map(Message::from));
        let cancelled = commit.cancelled.clone();
        if matches!(self.shared.commit(token, commit).await, Committing::Done) {
            self.shared.running.cancel(&cancelled);
            self.shared.counters().orch_poison.up();
            self.shared.counters().orch_failures.up();
            self.shared.counters().orch_starts.add(u64::from(is_start));
        }
    }

    /// The first event of an execution that fails before its code ran.
    fn started(&self, identity: &Identity, start: steadfast_core::replay::Start, now_ms: u64) -> Event {
        let parent = start.parent;
        let kind = EventKind::OrchestrationStarted {
            name: identity.name.clone(),
            version: identity.version.clone(),
            input: start.input,
            parent_instance: parent.as_ref().map(|parent| parent.instance.clone()),
            parent_id: parent.as_ref().map(|parent| parent.id),
            parent_execution_id: parent.and_then(|parent| parent.execution_id),
            carry_forward_events: (!start.carry_forward.is_empty()).then_some(start.carry_forward),
            initial_custom_status: None,
        };
        Event::at(now_ms, 1, identity.instance.clone(), identity.execution_id, None, kind)
    }

    /// Tells an operator what the turn noticed.
    fn tell(&self, identity: &Identity, turn: &Turn) {
        let instance = identity.instance.as_str();
        for notice in &turn.notices {
            match notice {
                Notice::Ignored { message, why } => {
                    tracing::debug!(target: "steadfast::runtime", instance, message, why, "message ignored");
                }
                Notice::EarlyEvent { name } => {
                    tracing::warn!(target: "steadfast::runtime", instance, %name, "event raised while nobody waits for it; not delivered");
                }
                Notice::CarryForwardDropped { name, data } => {
                    tracing::warn!(target: "steadfast::runtime", instance, %name, %data, "Dropping carry-forward event beyond limit");
                }
                Notice::InvalidPinnedVersion { version, error } => {
                    tracing::warn!(target: "steadfast::runtime", instance, %version, %error, "Invalid pinned version; replaying with this engine");
                }
                Notice::Stuck => {
                    tracing::warn!(target: "steadfast::runtime", instance, "the orchestration waits for nothing that could answer it");
                }
                Notice::LongHistory { events } => {
                    tracing::warn!(target: "steadfast::runtime", instance, events, "the history is long; continue-as-new keeps it short");
                }
            }
        }
    }

    fn count(&self, verdict: &Verdict, is_start: bool) {
        let counters = self.shared.counters();
        counters.orch_starts.add(u64::from(is_start));
        match verdict {
            Verdict::Waiting { .. } | Verdict::Ended => {}
            Verdict::Completed { .. } => counters.orch_completions.up(),
            Verdict::ContinuedAsNew { .. } => counters.orch_continue_as_new.up(),
            Verdict::Failed { details } => {
                counters.orch_failures.up();
                match details {
                    ErrorDetails::Application { .. } => counters.orch_application_errors.up(),
                    ErrorDetails::Infrastructure { .. } => counters.orch_infrastructure_errors.up(),
                    ErrorDetails::Configuration { .. } => counters.orch_configuration_errors.up(),
                    ErrorDetails::Poison { .. } => counters.orch_poison.up(),
                }
            }
        }
    }
}

/// How a commit ended.
pub(crate) enum Committing {
    Done,
    /// Somebody else decides, or the item was given back: nothing more to do.
    Left,
    /// The store will never take it.
    Refused(ProviderError),
}

/// The event id that marks the end of a history which cannot be read, while it is free.
const UNREADABLE_END: u64 = 99_999;

/// The end of an execution whose history cannot be read: nothing is known of what it leaves open.
fn failed_by_hand(identity: &Identity, details: ErrorDetails, last_event_id: u64, now_ms: u64) -> TurnCommit {
    let id = if last_event_id < UNREADABLE_END { UNREADABLE_END } else { last_event_id.saturating_add(1) };
    let output = details.display_message();
    let kind = EventKind::OrchestrationFailed { details };
    let event = Event::at(now_ms, id, identity.instance.clone(), identity.execution_id, None, kind);
    let mut commit = TurnCommit { events: vec![event], ..TurnCommit::empty(identity.execution_id) };
    commit.metadata.status = Some("Failed".to_owned());
    commit.metadata.output = Some(output);
    commit
}
