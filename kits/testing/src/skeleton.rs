//! The walking skeleton: the smallest loop that runs orchestrations over a store.
//!
//! One thread, one item at a time, no renewals, no retries, nothing kept between turns. It shows that core
//! and store fit, on any store, and is what a store of your own is first tried with. Real programs use the
//! runtime.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::Clock;
use steadfast_core::replay::{Execution, Identity, Setup, Start, StartMessage, Turn};
use steadfast_core::{AppErrorKind, ErrorDetails, Event, OrchestrationContext, TagFilter, WorkItem};
use steadfast_store::{
    Abandon, Attempt, Cold, History, Message, NewWork, Outcome, Owner, Provider, ProviderError,
    SessionRequest, SessionScope, Store, TurnCommit, TurnLease, TurnRequest, WorkRequest, store_of,
};

use crate::witness::HandlerFuture;

/// Runs orchestrations and activities over a store, one step at a time.
///
/// # Cancel safety
///
/// Dropping the future of a step leaves the lease of that step in the store, where it expires after 30
/// seconds; nothing else is lost.
pub struct Skeleton {
    store: Arc<dyn Store>,
    orchestrations: BTreeMap<String, Arc<Orchestration>>,
    activities: BTreeMap<String, Arc<Activity>>,
}

type Orchestration = dyn Fn(OrchestrationContext, String) -> HandlerFuture + Send + Sync;
type Activity = dyn Fn(String) -> Result<String, String> + Send + Sync;

/// Counts what a run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ran {
    /// Turns that were run and committed.
    pub turns: u64,
    /// Activities that were run, whatever their outcome.
    pub activities: u64,
}

const LEASE: Duration = Duration::from_secs(30);

impl Skeleton {
    /// Makes a loop over a provider: through its own store, or through the adapter.
    pub fn over(provider: Arc<dyn Provider>, clock: Arc<dyn Clock>) -> Self {
        let store = store_of(provider, clock);
        Self { store, orchestrations: BTreeMap::new(), activities: BTreeMap::new() }
    }

    /// Registers an orchestration.
    #[must_use]
    pub fn orchestration<H, F>(mut self, name: &str, handler: H) -> Self
    where
        H: Fn(OrchestrationContext, String) -> F + Send + Sync + 'static,
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.orchestrations
            .insert(name.to_owned(), Arc::new(move |ctx, input| Box::pin(handler(ctx, input))));
        self
    }

    /// Registers an activity.
    #[must_use]
    pub fn activity(
        mut self,
        name: &str,
        handler: impl Fn(String) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        self.activities.insert(name.to_owned(), Arc::new(handler));
        self
    }

    /// Runs until nothing is ready, at most `steps` turns and activities.
    ///
    /// # Errors
    /// Any error of the store, also a lost lease: the skeleton is the only worker, so it cannot lose one.
    pub async fn run_until_idle(&self, steps: u64) -> Result<Ran, ProviderError> {
        let mut ran = Ran::default();
        while ran.turns + ran.activities < steps {
            let turned = self.turn().await?;
            let worked = self.work().await?;
            ran.turns += u64::from(turned);
            ran.activities += u64::from(worked);
            if !turned && !worked {
                break;
            }
        }
        Ok(ran)
    }

    /// Runs one turn, if there is one.
    ///
    /// # Errors
    /// Any error of the store.
    pub async fn turn(&self) -> Result<bool, ProviderError> {
        let request = TurnRequest {
            lock_timeout: LEASE,
            poll_timeout: Duration::ZERO,
            filter: None,
            warm: &Cold,
            worker: None,
        };
        let Some(lease) = self.store.fetch_turn(request).await? else { return Ok(false) };
        let token = lease.token.clone();
        match self.decide(lease) {
            Decision::Commit(commit) => self.store.commit_turn(&token, *commit).await.map(drop)?,
            Decision::Wait(retry_after) => {
                let how = Abandon { retry_after: Some(retry_after), attempt: Attempt::Counts };
                self.store.abandon(&token, how).await?;
            }
        }
        Ok(true)
    }

    /// Runs one activity, if there is one.
    ///
    /// # Errors
    /// Any error of the store.
    pub async fn work(&self) -> Result<bool, ProviderError> {
        let session = SessionRequest {
            owner: Owner::unnamed("skeleton"),
            lock_timeout: LEASE,
            scope: SessionScope::Claim,
            leave_out: Vec::new(),
        };
        let request = WorkRequest {
            worker_id: "skeleton".to_owned(),
            lock_timeout: LEASE,
            poll_timeout: Duration::ZERO,
            tags: TagFilter::Any,
            session: Some(session),
            worker: None,
        };
        let Some(lease) = self.store.fetch_work(request).await? else { return Ok(false) };
        let outcome = self.run(lease.item).map(Outcome::from).unwrap_or_default();
        self.store.finish_work(&lease.token, outcome).await?;
        Ok(true)
    }

    /// What to do with a leased instance: a pure function of the lease and of the handlers.
    fn decide(&self, lease: TurnLease) -> Decision {
        let TurnLease { instance, name, version, execution_id, history, messages, kv, now_ms, .. } = lease;
        let history = match history {
            History::Whole(events) => events,
            History::Tail { .. } | History::Unreadable(_) | History::Damaged(_) => {
                return Decision::Wait(LEASE);
            }
        };
        let (start, arrivals) = split(messages, &history);
        let (execution_id, history) = match &start {
            Some(begin) if begin.continues => (execution_id + 1, Vec::new()),
            _ => (execution_id, history),
        };
        let ended = history.iter().any(Event::is_terminal);
        if ended || (history.is_empty() && start.is_none()) {
            return Decision::Commit(Box::new(TurnCommit::empty(execution_id)));
        }
        let name = start.as_ref().map_or(name, |begin| begin.orchestration.clone());
        let Some(handler) = self.orchestrations.get(&name).cloned() else { return Decision::Wait(LEASE) };
        let version = if version == "unknown" { "1.0.0".to_owned() } else { version };
        let mut setup = Setup::new(Identity { instance, execution_id, name, version });
        setup.kv = kv.into_iter().collect();
        setup.options.owned_sessions = self.store.supports_owned_sessions();
        let handler = move |ctx, input| handler(ctx, input);
        let mut execution = match start {
            Some(begin) if history.is_empty() => Execution::start(setup, begin.start, handler),
            _ => Execution::replay(setup, history, handler),
        };
        let turn = execution.turn(now_ms, arrivals);
        Decision::Commit(Box::new(commit_of(turn, execution_id)))
    }

    fn run(&self, item: WorkItem) -> Option<WorkItem> {
        let WorkItem::ActivityExecute { instance, execution_id, id, name, input, .. } = item else {
            return None;
        };
        let result = match self.activities.get(&name) {
            Some(activity) => activity(input),
            None => Err(format!("activity '{name}' is not registered")),
        };
        Some(match result {
            Ok(result) => WorkItem::ActivityCompleted { instance, execution_id, id, result },
            Err(message) => {
                let kind = AppErrorKind::ActivityFailed;
                let details = ErrorDetails::Application { kind, message, retryable: false };
                WorkItem::ActivityFailed { instance, execution_id, id, details }
            }
        })
    }
}

enum Decision {
    Commit(Box<TurnCommit>),
    Wait(Duration),
}

/// The beginning of an execution, as a message says it.
struct Begin {
    orchestration: String,
    start: Start,
    continues: bool,
}

/// Separates the start from what else arrived. A start for an instance that has a history is no start.
fn split(messages: Vec<Message>, history: &[Event]) -> (Option<Begin>, Vec<WorkItem>) {
    let mut begin = None;
    let mut arrivals = Vec::new();
    for message in messages {
        match begin_of(message.item) {
            Ok(found) if begin.is_none() && (found.continues || history.is_empty()) => begin = Some(found),
            Ok(_) => {}
            Err(arrival) => arrivals.push(*arrival),
        }
    }
    (begin, arrivals)
}

fn begin_of(item: WorkItem) -> Result<Begin, Box<WorkItem>> {
    let StartMessage { orchestration, start, continues, .. } = StartMessage::read(item)?;
    Ok(Begin { orchestration, start, continues })
}

fn commit_of(turn: Turn, execution_id: u64) -> TurnCommit {
    let metadata = turn.metadata();
    let effects = turn.effects;
    let watched = effects.sessions.iter().filter_map(|change| match change {
        steadfast_core::replay::SessionChange::Watch { key } => Some(key.clone()),
        _ => None,
    });
    TurnCommit {
        execution_id,
        events: turn.events,
        watched: watched.collect(),
        work: effects
            .work
            .into_iter()
            .map(|work| NewWork { session: work.session, call: work.call, ..work.item.into() })
            .collect(),
        messages: effects
            .messages
            .into_iter()
            .chain(effects.parent.map(|notice| notice.into_message(1)))
            .map(Message::from)
            .collect(),
        metadata,
        cancelled: effects.cancelled_activities,
        dropped_timers: effects.dropped_timers,
    }
}
