//! What an instance waits for, and which process or message could end its wait.

mod text;

use std::collections::{BTreeMap, BTreeSet};

use steadfast_core::{
    Event, EventKind, OpenKind, OpenOperation, SessionConcurrency, SessionKey, open_operations,
};
use steadfast_store::rules::{lists_activity, lists_orchestration};
use steadfast_store::{
    ExecutionState, InstanceState, MAX_PAGE, NeededHandler, ProviderError, ProviderErrorKind, SessionInfo,
    TurnState, WaitingStart, WorkPhase, WorkState, WorkerInfo, WorkerReport,
};

use crate::{Client, ClientError};

/// Tells what an instance waits for. `Display` writes it as a text for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The id of the explained instance.
    pub instance: String,
    /// The row of the instance: orchestration, execution, status. `None` while its start waits for a first
    /// turn.
    pub state: Option<InstanceState>,
    /// The messages that wait for a turn, and whether a turn is leased now. `None` if the store cannot tell.
    pub turn: Option<TurnState>,
    /// The start that waits for the first turn of an execution, if the instance has not begun or continues as
    /// new. `None` also if the store cannot tell.
    pub start: Option<WaitingStart>,
    /// A turn or an activity waits for a worker, and no worker is live: none has reported within the last
    /// minute without stopping since. What is registered is not known then: [`unregistered`] is `None`, and
    /// [`is_unregistered`] is `false`. `false` also if the store keeps no rows of workers.
    ///
    /// [`unregistered`]: Self::unregistered
    /// [`is_unregistered`]: WaitingActivity::is_unregistered
    pub no_worker_is_live: bool,
    /// The orchestration that a turn needs and that no live worker has registered. `None` if a live worker
    /// has it, if no worker is live, if no message waits for a turn, or if the store keeps no rows of
    /// workers.
    pub unregistered: Option<NeededHandler>,
    /// The operations that the current execution waits for, in the order in which the code asked for them, at
    /// most [`MAX_PAGE`]; after them the sessions whose next move it asked for.
    pub waiting: Vec<Waiting>,
    /// How many operations there are beyond [`MAX_PAGE`].
    pub more: usize,
    /// The sessions that the current execution has open, in the order of their ids, at most [`MAX_PAGE`].
    pub sessions: Vec<OpenSession>,
    /// The instance runs and waits for no operation: its code awaits a future that is not durable, so no
    /// message can ever continue it. Cancel it. If the store cannot tell which timers the code has dropped,
    /// this becomes true only after those have fired.
    pub stuck: bool,
    /// The time of the explanation in milliseconds since the Unix epoch, as all times here: the store's time
    /// if the store tells it, else the client's.
    pub now_ms: u64,
}

/// One operation that an instance waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// The outcome of an activity.
    Activity(Box<WaitingActivity>),
    /// A timer.
    Timer {
        /// The id of the history event that recorded the operation.
        event_id: u64,
        /// When the code asked for the operation, in milliseconds since the Unix epoch.
        asked_at_ms: u64,
        /// When the timer is due, in milliseconds since the Unix epoch; in the past if its message still
        /// waits for a turn.
        fire_at_ms: u64,
    },
    /// An event that a client raises.
    Event {
        /// The id of the history event that recorded the operation.
        event_id: u64,
        /// When the code asked for the operation, in milliseconds since the Unix epoch.
        asked_at_ms: u64,
        /// The name of the awaited event.
        name: String,
    },
    /// A message to a queue of the instance.
    Queue {
        /// The id of the history event that recorded the operation.
        event_id: u64,
        /// When the code asked for the operation, in milliseconds since the Unix epoch.
        asked_at_ms: u64,
        /// The name of the queue that the code dequeues from.
        name: String,
    },
    /// The result of a child.
    Child {
        /// The id of the history event that recorded the operation.
        event_id: u64,
        /// When the code asked for the operation, in milliseconds since the Unix epoch.
        asked_at_ms: u64,
        /// The name of the child's orchestration.
        name: String,
        /// The id of the child's instance, which can be explained too.
        instance: String,
        /// The status of the child. `None` if it has not begun.
        status: Option<ExecutionState>,
    },
    /// The next claim of a session by a worker. The code asked for it; whether it still awaits it is not
    /// recorded.
    SessionMove {
        /// The key of the session: its id, and its instance if it is owned.
        session: SessionKey,
    },
}

/// An activity that an instance waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingActivity {
    /// The id of the history event that scheduled the activity.
    pub event_id: u64,
    /// When the activity was scheduled and queued, in milliseconds since the Unix epoch.
    pub queued_at_ms: u64,
    /// The name that the activity is registered under.
    pub name: String,
    /// The tag that workers must serve to run the activity; `None` for workers that take untagged work.
    pub tag: Option<String>,
    /// The session that the activity runs on; `None` for an activity without a session.
    pub session: Option<SessionKey>,
    /// The owner and the lease of that session. `None` if no worker ever claimed it, or if the store cannot
    /// tell.
    pub session_info: Option<SessionInfo>,
    /// Which worker runs the activity, or why it waits.
    pub place: Place,
    /// No live worker that accepts the tag has the activity registered. `false` also while a worker runs it,
    /// if no worker is live, or if the store keeps no rows of workers.
    pub is_unregistered: bool,
    /// Why no worker takes the activity, if its session is what keeps it waiting.
    pub obstacle: Option<SessionObstacle>,
}

/// A session that an instance has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// The id of the session, as the orchestration knows it.
    pub id: String,
    /// Its owner and its lease. `None` if the store cannot tell.
    pub info: Option<SessionInfo>,
}

/// Why no worker takes an activity of a session that could be leased otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionObstacle {
    /// Live workers have the activity registered and accept its tag, but none of them takes work of sessions:
    /// their `max_sessions_per_runtime` is 0, or they are drained.
    NoWorkerTakesSessions,
    /// The session is serial, and an activity that was scheduled earlier has not ended.
    Behind {
        /// The id of the history event that scheduled the earlier activity.
        event_id: u64,
    },
    /// The worker that owns the session has stopped or reports no more, and its lease lasts.
    OwnerIsGone {
        /// The owner: a `worker_node_id`, or the id of a worker without one.
        owner: String,
        /// When the lease ends, in milliseconds since the Unix epoch: then any worker may claim the session.
        until_ms: u64,
    },
}

/// Where the work of an activity is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The store cannot tell.
    Unknown,
    /// In the queue: leased, delayed, or waiting for a worker.
    Queued(WorkState),
    /// In no queue: its answer is on the way to the instance, or its row could not be read and was set aside.
    NotQueued,
}

/// Bounds how often the store is read again because the instance changed meanwhile. An instance that changes
/// all the time is explained as it was last read.
const MAX_READS: u32 = 3;

impl Client {
    /// Tells what an instance waits for now: events, queues, timers, children and their status, activities
    /// and the workers that run them or the reason why they wait. Also the status of the instance, whether a
    /// turn of it is leased, how many messages wait for it, and whether it is [stuck](Explanation::stuck).
    ///
    /// The operations come from the history. Details that the store cannot tell are `None`. A timer that the
    /// code does not await any more is left out if the store knows it: not on a store that cannot tell what
    /// waits, and not if an earlier version of this library ran the turn that dropped it.
    ///
    /// # Errors
    /// `InstanceNotFound`, or `Provider` if the store fails or cannot read the history.
    ///
    /// # Cancel safety
    /// Reads only.
    pub async fn explain(&self, instance: &str) -> Result<Explanation, ClientError> {
        let mut state = self.store.state(instance).await?;
        let mut reads = 0;
        loop {
            let found = self.explain_once(instance, state).await?;
            reads += 1;
            state = self.store.state(instance).await?;
            let seen = found.state.as_ref().map(|state| state.change);
            if reads == MAX_READS || seen == state.as_ref().map(|state| state.change) {
                return Ok(found);
            }
        }
    }

    async fn explain_once(
        &self,
        instance: &str,
        state: Option<InstanceState>,
    ) -> Result<Explanation, ClientError> {
        let turn = known(self.store.turn_of(instance).await)?.flatten();
        if state.is_none() && turn.is_none() {
            return Err(ClientError::not_found(instance));
        }
        let running = state.as_ref().filter(|state| state.status == ExecutionState::Running);
        let (mut waiting, mut more, mut stuck) = (Vec::new(), 0, false);
        let mut sessions = Vec::new();
        if let Some(running) = running {
            let history = self.store.read_history(instance, Some(running.execution_id)).await?;
            let dropped = turn.as_ref().map_or(&[][..], |turn| &turn.dropped_timers);
            let mut infos = BTreeMap::new();
            (waiting, more) = self.waits(running, &history, dropped, &mut infos).await?;
            for id in open_sessions(&history).into_iter().take(MAX_PAGE) {
                let key = SessionKey::owned(instance, id);
                self.read_session(&key, &mut infos).await?;
                sessions.push(OpenSession { info: infos.remove(&key).flatten(), id: key.session_id });
            }
            let watched = turn.iter().flat_map(|turn| &turn.watched).cloned();
            waiting.extend(watched.map(|session| Waiting::SessionMove { session }));
            stuck = waiting.is_empty() && !history.iter().any(Event::is_terminal);
        }
        let now_ms = turn.as_ref().map_or_else(|| self.clock.now_ms(), |turn| turn.now_ms);
        let start = match state.as_ref().map(|state| &state.status) {
            None | Some(ExecutionState::ContinuedAsNew) => {
                known(self.store.start_of(instance).await)?.flatten()
            }
            Some(_) => None,
        };
        let instance = instance.to_owned();
        let mut told = Explanation {
            instance,
            state,
            turn,
            start,
            no_worker_is_live: false,
            unregistered: None,
            waiting,
            more,
            sessions,
            stuck,
            now_ms,
        };
        self.name_unregistered(&mut told).await?;
        Ok(told)
    }

    /// Notes that no worker is live, or else which handlers no live worker lists. The workers are read only
    /// if a turn or an activity waits for one.
    async fn name_unregistered(&self, told: &mut Explanation) -> Result<(), ClientError> {
        let needed = told.needed();
        let waits = told.waiting.iter().any(|wait| matches!(wait, Waiting::Activity(work) if work.waits()));
        if needed.is_none() && !waits {
            return Ok(());
        }
        let Some(workers) = known_to(self.workers().await)? else { return Ok(()) };
        let live: Vec<&WorkerReport> =
            workers.iter().filter(|worker| worker.is_live).map(|worker| &worker.report).collect();
        if live.is_empty() {
            told.no_worker_is_live = true;
            return Ok(());
        }
        told.unregistered =
            needed.filter(|needed| !live.iter().any(|worker| lists_orchestration(worker, needed, None)));
        for wait in &mut told.waiting {
            let Waiting::Activity(activity) = wait else { continue };
            if !activity.waits() {
                continue;
            }
            let needed = NeededHandler { name: activity.name.clone(), version: None };
            let tag = activity.tag.as_deref();
            let has_it =
                |on_session| live.iter().any(|worker| lists_activity(worker, &needed, tag, on_session));
            activity.is_unregistered = !has_it(false);
            let is_on_session = activity.session.is_some();
            if activity.obstacle.is_none() && is_on_session && has_it(false) && !has_it(true) {
                activity.obstacle = Some(SessionObstacle::NoWorkerTakesSessions);
            } else if activity.obstacle.is_none() && !activity.is_unregistered {
                activity.obstacle = activity.owner_that_is_gone(&workers, told.now_ms);
            }
        }
        Ok(())
    }

    /// Reads the row of a session, if it is not among those that were read.
    async fn read_session(
        &self,
        key: &SessionKey,
        infos: &mut BTreeMap<SessionKey, Option<SessionInfo>>,
    ) -> Result<(), ClientError> {
        if !infos.contains_key(key) {
            infos.insert(key.clone(), known(self.store.session(key).await)?.flatten());
        }
        Ok(())
    }

    /// Returns what an execution waits for, and how many operations are beyond `MAX_PAGE`. `dropped` are the
    /// timers that the code does not await any more, by rising id.
    async fn waits(
        &self,
        running: &InstanceState,
        history: &[Event],
        dropped: &[u64],
        sessions: &mut BTreeMap<SessionKey, Option<SessionInfo>>,
    ) -> Result<(Vec<Waiting>, usize), ClientError> {
        let mut open = open_operations(&running.instance, history);
        open.retain(|operation| dropped.binary_search(&operation.event_id).is_err());
        let more = open.len().saturating_sub(MAX_PAGE);
        let has_work = open.iter().any(|operation| matches!(operation.kind, OpenKind::Activity { .. }));
        let work = match has_work {
            true => known(self.store.work_of(&running.instance, running.execution_id).await)?,
            false => None,
        };
        let mut waiting = Vec::new();
        for operation in open.into_iter().take(MAX_PAGE) {
            if let OpenKind::Activity { session: Some(key), .. } = &operation.kind {
                self.read_session(key, sessions).await?;
            }
            let status = match &operation.kind {
                OpenKind::Child { instance, .. } => {
                    self.store.state(instance).await?.map(|child| child.status)
                }
                _ => None,
            };
            waiting.push(wait_of(operation, work.as_deref(), sessions, status));
        }
        Ok((waiting, more))
    }
}

/// Returns `None` instead of the error `Unsupported`: the store cannot tell this detail. Other errors stay
/// errors.
fn known<T>(answer: Result<T, ProviderError>) -> Result<Option<T>, ProviderError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind == ProviderErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error),
    }
}

/// As [`known`], for an answer of the client.
fn known_to<T>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Err(ClientError::Provider(error)) => Ok(known(Err(error))?),
        Err(error) => Err(error),
        Ok(answer) => Ok(Some(answer)),
    }
}

fn wait_of(
    operation: OpenOperation,
    work: Option<&[WorkState]>,
    sessions: &BTreeMap<SessionKey, Option<SessionInfo>>,
    status: Option<ExecutionState>,
) -> Waiting {
    let OpenOperation { event_id, asked_at_ms, kind } = operation;
    match kind {
        OpenKind::Activity { name, tag, session } => {
            let session_info = session.as_ref().and_then(|key| sessions.get(key).cloned().flatten());
            let place = match work {
                None => Place::Unknown,
                Some(work) => match work.iter().find(|work| work.activity_id == event_id) {
                    Some(found) => Place::Queued(found.clone()),
                    None => Place::NotQueued,
                },
            };
            Waiting::Activity(Box::new(WaitingActivity {
                event_id,
                queued_at_ms: asked_at_ms,
                name,
                tag,
                obstacle: earlier_in_line(event_id, session_info.as_ref(), work.unwrap_or_default()),
                session_info,
                session,
                place,
                is_unregistered: false,
            }))
        }
        OpenKind::Timer { fire_at_ms } => Waiting::Timer { event_id, asked_at_ms, fire_at_ms },
        OpenKind::Event { name } => Waiting::Event { event_id, asked_at_ms, name },
        OpenKind::Queue { name } => Waiting::Queue { event_id, asked_at_ms, name },
        OpenKind::Child { name, instance } => {
            Waiting::Child { event_id, asked_at_ms, name, instance, status }
        }
    }
}

/// Returns the ids of the sessions that an execution has open, in their order.
fn open_sessions(history: &[Event]) -> BTreeSet<&str> {
    let mut open = BTreeSet::new();
    for event in history {
        match &event.kind {
            EventKind::SessionsCarried { sessions } => {
                open.extend(sessions.iter().map(|session| session.session_id.as_str()));
            }
            EventKind::SessionOpened { session_id, .. } => {
                open.insert(session_id.as_str());
            }
            EventKind::SessionClosed { session_id } => {
                open.remove(session_id.as_str());
            }
            _ => {}
        }
    }
    open
}

/// Returns the activity of a serial session that comes before another one, if the other could be leased
/// otherwise.
fn earlier_in_line(
    event_id: u64,
    session: Option<&SessionInfo>,
    work: &[WorkState],
) -> Option<SessionObstacle> {
    let session = session.filter(|session| session.concurrency == SessionConcurrency::Serial)?;
    let of_session = |work: &&WorkState| work.session.as_ref() == Some(&session.key);
    let mut line = work.iter().filter(of_session);
    let first = line.clone().map(|work| work.activity_id).min()?;
    let own = line.find(|work| work.activity_id == event_id)?;
    let is_behind = first < event_id && matches!(own.phase, WorkPhase::Waiting { .. });
    is_behind.then_some(SessionObstacle::Behind { event_id: first })
}

impl WaitingActivity {
    /// Returns the owner of the session if it has stopped or reports no more, while its lease lasts.
    fn owner_that_is_gone(&self, workers: &[WorkerInfo], now_ms: u64) -> Option<SessionObstacle> {
        let info = self.session_info.as_ref().filter(|info| info.locked_until_ms > now_ms)?;
        let owner = info.owner.as_ref()?;
        let is_owner = |worker: &&WorkerInfo| match owner.incarnation {
            Some(_) => {
                let process = &worker.report.process;
                process.node.as_ref() == Some(&owner.id) && process.incarnation == owner.incarnation
            }
            None => worker.report.id.0 == owner.id,
        };
        workers.iter().find(is_owner).filter(|worker| !worker.is_live)?;
        Some(SessionObstacle::OwnerIsGone { owner: owner.id.clone(), until_ms: info.locked_until_ms })
    }

    /// Tells whether the activity waits for a worker.
    fn waits(&self) -> bool {
        match &self.place {
            Place::Queued(work) => !matches!(work.phase, WorkPhase::Leased { .. }),
            Place::Unknown | Place::NotQueued => false,
        }
    }
}

impl Explanation {
    /// Returns the orchestration that the next turn needs, if messages wait for one. The turn of an instance
    /// that has ended needs none.
    fn needed(&self) -> Option<NeededHandler> {
        let waits = self.turn.as_ref().is_some_and(|turn| turn.waiting + turn.delayed > 0);
        if let Some(start) = &self.start {
            let WaitingStart { orchestration, version } = start.clone();
            return Some(NeededHandler { name: orchestration, version }).filter(|_| waits);
        }
        let state = self.state.as_ref().filter(|state| waits && state.status == ExecutionState::Running)?;
        Some(NeededHandler { name: state.orchestration.clone(), version: Some(state.version.clone()) })
    }

    /// Tells whether the instance has completed or failed.
    pub fn has_ended(&self) -> bool {
        let status = self.state.as_ref().map(|state| &state.status);
        matches!(status, Some(ExecutionState::Completed(_) | ExecutionState::Failed(_)))
    }
}
