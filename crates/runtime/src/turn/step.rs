//! The step of a turn: the code of the orchestration runs on, until it waits again.

use std::sync::Arc;
use std::time::Duration;

use semver::Version;
use steadfast_core::WorkItem;
use steadfast_core::current_build_version;
use steadfast_core::replay::{Execution, Identity, Setup, Start, Turn};
use steadfast_store::LeaseToken;
use tracing::Instrument;

use super::process::{KnownExecution, TurnProcess};
use super::standing::{RecordedEnding, RecordedStart, Standing};
use super::triage::Run;
use crate::dispatch::held::CodeOnThread;
use crate::handler::OrchestrationHandler;
use crate::observe::span;
use crate::runtime::RuntimeShared;
use crate::upkeep::worker::Missing;

/// A turn whose code has run and that is not committed yet.
pub(super) struct SteppedTurn {
    pub(super) identity: Identity,
    /// How the execution began, if this is its first turn.
    pub(super) start: Option<Start>,
    pub(super) execution: Execution,
    pub(super) was_warm: bool,
    pub(super) turn: Turn,
    /// Messages to parents whose child could not be started.
    pub(super) collisions: Vec<WorkItem>,
}

impl TurnProcess {
    /// Runs the code and commits what it decided, in the span of the turn.
    pub(super) async fn run(mut self, mut run: Run, known: KnownExecution) {
        let Some((version, handler)) = self.resolve(&run) else {
            return self.unregistered(&run).await;
        };
        let (instance, name) = (self.instance.clone(), run.name.clone());
        let identity =
            Identity { instance, execution_id: run.execution_id, name, version: version.to_string() };
        if let Some(start) = &mut run.start {
            start.random = Some(self.shared.plan.random.draw() as u64);
            self.standing = begun(&identity, start, self.now_ms);
        }
        let span = span::of_turn(&identity, self.standing.traceparent());
        span.in_scope(|| {
            for (message, traceparent) in &self.traces {
                tracing::debug!(
                    target: "steadfast::runtime",
                    message_kind = message,
                    %traceparent,
                    "a message came with a trace context"
                );
            }
        });
        let run = async move {
            let stepped = self.step(identity, run, known, handler).await;
            self.report(&stepped.identity, &stepped.turn);
            self.commit(stepped).await;
        };
        run.instrument(span).await;
    }

    /// Runs the code until it waits or returns. Tokio does not interrupt this part of a turn.
    async fn step(
        &self,
        identity: Identity,
        run: Run,
        known: KnownExecution,
        handler: Arc<dyn OrchestrationHandler>,
    ) -> SteppedTurn {
        let Run { start, arrivals, collisions, .. } = run;
        let was_warm = matches!(known, KnownExecution::Warm(_));
        let handler = move |ctx, input| async move { handler.invoke(ctx, input).await };
        // The keeper of the lease, on a task of its own, marks the entry as overdue if the code takes too
        // long. The entry, and with it the mark, is removed when the code returns.
        let _running = self.shared.running_turns.enter(&self.instance);
        let _time = CodeTime::start(&self.shared, &self.token);
        // A turn must not depend on what else ran on this task: no cooperative budget interrupts it.
        tokio::task::unconstrained(async move {
            let (mut execution, visited) = match (known, start.clone()) {
                (KnownExecution::Warm(kept), _) => {
                    self.shared.metrics().record_warm_hit();
                    let visited = kept.execution.effort().events_visited;
                    (kept.execution, visited)
                }
                (_, Some(start)) => (Execution::start(self.set_up(&identity), start, handler), 0),
                (KnownExecution::Cold(history), None) => {
                    self.shared.metrics().record_warm_miss();
                    (Execution::replay(self.set_up(&identity), history, handler), 0)
                }
                // Triage runs no execution whose history cannot be read; a replay of no events fails it.
                (KnownExecution::Unreadable(_), None) => {
                    (Execution::replay(self.set_up(&identity), Vec::new(), handler), 0)
                }
            };
            let turn = execution.turn_of(self.now_ms, arrivals);
            let visited = execution.effort().events_visited.saturating_sub(visited);
            self.shared.events_visited.add(visited);
            SteppedTurn { identity, start, execution, was_warm, turn, collisions }
        })
        .await
    }

    fn set_up(&self, identity: &Identity) -> Setup {
        let mut setup = Setup::new(identity.clone());
        setup.options = self.shared.plan.replay.clone();
        setup.options.owned_sessions = self.shared.store.supports_owned_sessions();
        setup.kv = self.kv.clone().into_iter().collect();
        setup
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

    /// Refuses a turn whose handler is not registered here: a worker of a newer deployment may have it.
    async fn unregistered(&self, run: &Run) {
        let needed = self.shared.orchestrations.needed(&run.name, run.version.as_deref());
        let missing = self.shared.refuse(&self.token, needed, self.deliveries).await;
        let (name, version) = (&run.name, run.version.as_deref().unwrap_or("any"));
        if missing == Missing::Routed {
            tracing::debug!(
                target: "steadfast::runtime",
                instance = %self.instance,
                orchestration = %name,
                version,
                "orchestration not registered; the turn is left to a worker that has it"
            );
        } else {
            tracing::warn!(
                target: "steadfast::runtime",
                instance = %self.instance,
                orchestration = %name,
                version,
                "Orchestration not registered, {}; {}",
                missing.text(self.shared.plan.max_attempts, self.deliveries),
                self.shared.orchestrations.instead_of(name),
            );
        }
    }
}

/// Measures how long the code of a turn runs, and charges the lease if that is longer than `max_turn_time`.
/// The keeper of the lease cannot tell if the code holds the thread that the keeper would run on (G16).
struct CodeTime<'a> {
    shared: &'a RuntimeShared,
    token: &'a LeaseToken,
    began: Option<Duration>,
    _running: CodeOnThread<'a>,
}

impl<'a> CodeTime<'a> {
    fn start(shared: &'a RuntimeShared, token: &'a LeaseToken) -> Self {
        Self { shared, token, began: shared.held.pulse().lived(), _running: shared.held.run_code(token) }
    }
}

impl Drop for CodeTime<'_> {
    fn drop(&mut self) {
        let took = self.shared.held.pulse().lived_since(self.began);
        if took.is_some_and(|took| took > self.shared.plan.max_turn_time) {
            self.shared.held.charge(self.token);
        }
    }
}

/// Makes the standing of an execution that begins with this turn.
fn begun(identity: &Identity, start: &Start, now_ms: u64) -> Standing {
    let started = RecordedStart {
        name: identity.name.clone(),
        version: Some(identity.version.clone()),
        engine: Some(current_build_version()),
        parent: start.parent.clone(),
        at_ms: now_ms,
        traceparent: start.traceparent.clone(),
    };
    Standing { started: Some(started), is_empty: false, ending: RecordedEnding::None, turns: 0 }
}
