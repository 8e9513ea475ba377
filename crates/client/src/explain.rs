//! What an instance waits for, and who could end its waiting.

mod text;

use std::collections::BTreeMap;

use steadfast_core::{Event, OpenKind, OpenOperation, SessionKey, open_operations};
use steadfast_store::{
    ExecutionState, InstanceState, MAX_PAGE, ProviderError, ProviderErrorKind, SessionInfo, TurnState,
    WorkState,
};

use crate::{Client, ClientError};

/// Tells what an instance waits for. Prints as a text for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Names the instance.
    pub instance: String,
    /// Tells how it stands: orchestration, execution, status. `None` while its start waits for a first turn.
    pub state: Option<InstanceState>,
    /// Tells what waits for its turns and whether one is leased now. `None` when the store cannot tell.
    pub turn: Option<TurnState>,
    /// Lists what its current execution waits for, in the order in which it was asked for; at most
    /// [`MAX_PAGE`] operations, and the moves of sessions behind them.
    pub waiting: Vec<Waiting>,
    /// Counts the operations beyond those.
    pub more: usize,
    /// Tells whether it is pending and waits for nothing that could ever be answered: its code awaits something that
    /// is not durable, and it goes on until it is cancelled. Judged by the history, so it is true only once timers
    /// that the code no longer waits for have fired.
    pub stuck: bool,
    /// Holds the time of the explanation: the store's where it tells, else the client's. In milliseconds since
    /// the Unix epoch, as all times here.
    pub now_ms: u64,
}

/// Names something that an instance waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// The outcome of an activity.
    Activity(Box<WaitingActivity>),
    /// A time.
    Timer {
        /// Numbers the event that asked for it.
        event_id: u64,
        /// Holds the time at which it was asked for.
        asked_at_ms: u64,
        /// Holds the time.
        fire_at_ms: u64,
    },
    /// An event that somebody raises.
    Event {
        /// Numbers the event that asked for it.
        event_id: u64,
        /// Holds the time at which it was asked for.
        asked_at_ms: u64,
        /// Names the event.
        name: String,
    },
    /// A message to a queue.
    Queue {
        /// Numbers the event that asked for it.
        event_id: u64,
        /// Holds the time at which it was asked for.
        asked_at_ms: u64,
        /// Names the queue.
        name: String,
    },
    /// The outcome of a child.
    Child {
        /// Numbers the event that asked for it.
        event_id: u64,
        /// Holds the time at which it was asked for.
        asked_at_ms: u64,
        /// Names its orchestration.
        name: String,
        /// Names its instance, which can be explained too.
        instance: String,
        /// Says how it stands; `None` when it has not begun.
        status: Option<ExecutionState>,
    },
    /// The next attachment of a session. It was asked for; whether the code still waits for it is not recorded.
    SessionMove {
        /// Names the session.
        session: SessionKey,
    },
}

/// Tells of an activity that an instance waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingActivity {
    /// Numbers the event that asked for it.
    pub event_id: u64,
    /// Holds the time at which it was asked for and queued.
    pub queued_at_ms: u64,
    /// Names it.
    pub name: String,
    /// Names the pool of workers that may run it.
    pub tag: Option<String>,
    /// Names the session that it runs on.
    pub session: Option<SessionKey>,
    /// Tells who holds that session and until when. `None` when nobody ever did, or the store cannot tell.
    pub session_info: Option<SessionInfo>,
    /// Says who runs it, or why nobody does.
    pub place: Place,
}

/// Says where an activity is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The store cannot tell.
    Unknown,
    /// It is in the queue.
    Queued(WorkState),
    /// It is in no queue: its answer is on the way, or it could not be read and was set aside.
    NotQueued,
}

/// Bounds how often a look is repeated because the instance changed meanwhile. One that changes all the time is
/// explained as it was last seen.
const LOOKS: u32 = 3;

impl Client {
    /// Tells what an instance waits for now: events, queues, timers, activities and who runs them or why nobody does,
    /// children and how they stand. Also how the instance stands, whether a turn of it is leased, how many messages
    /// wait for it, and whether it is [stuck](Explanation::stuck).
    ///
    /// Operations come from the history; what the store cannot tell beyond it is left out. A timer that the code no
    /// longer waits for is listed until it fires.
    ///
    /// # Errors
    /// `InstanceNotFound`, or `Provider` when the store fails or cannot read the history.
    ///
    /// # Cancel safety
    /// Nothing changes by looking.
    pub async fn explain(&self, instance: &str) -> Result<Explanation, ClientError> {
        let mut state = self.store.state(instance).await?;
        let mut looks = 0;
        loop {
            let found = self.look(instance, state).await?;
            looks += 1;
            state = self.store.state(instance).await?;
            let seen = found.state.as_ref().map(|state| state.change);
            if looks == LOOKS || seen == state.as_ref().map(|state| state.change) {
                return Ok(found);
            }
        }
    }

    async fn look(&self, instance: &str, state: Option<InstanceState>) -> Result<Explanation, ClientError> {
        let turn = known(self.store.turn_of(instance).await)?.flatten();
        if state.is_none() && turn.is_none() {
            return Err(ClientError::InstanceNotFound { instance_id: instance.to_owned() });
        }
        let running = state.as_ref().filter(|state| state.status == ExecutionState::Running);
        let (mut waiting, mut more, mut stuck) = (Vec::new(), 0, false);
        if let Some(running) = running {
            let history = self.store.read_history(instance, Some(running.execution_id)).await?;
            (waiting, more) = self.waits(running, &history).await?;
            let watched = turn.iter().flat_map(|turn| &turn.watched).cloned();
            waiting.extend(watched.map(|session| Waiting::SessionMove { session }));
            stuck = waiting.is_empty() && !history.iter().any(Event::is_terminal);
        }
        let now_ms = turn.as_ref().map_or_else(|| self.clock.now_ms(), |turn| turn.now_ms);
        Ok(Explanation { instance: instance.to_owned(), state, turn, waiting, more, stuck, now_ms })
    }

    /// What an execution waits for, and how many operations are beyond those that are shown.
    async fn waits(
        &self,
        running: &InstanceState,
        history: &[Event],
    ) -> Result<(Vec<Waiting>, usize), ClientError> {
        let open = open_operations(&running.instance, history);
        let more = open.len().saturating_sub(MAX_PAGE);
        let has_work = open.iter().any(|operation| matches!(operation.kind, OpenKind::Activity { .. }));
        let work = match has_work {
            true => known(self.store.work_of(&running.instance, running.execution_id).await)?,
            false => None,
        };
        let mut sessions = BTreeMap::new();
        let mut waiting = Vec::new();
        for operation in open.into_iter().take(MAX_PAGE) {
            if let OpenKind::Activity { session: Some(key), .. } = &operation.kind
                && !sessions.contains_key(key)
            {
                sessions.insert(key.clone(), known(self.store.session(key).await)?.flatten());
            }
            let status = match &operation.kind {
                OpenKind::Child { instance, .. } => {
                    self.store.state(instance).await?.map(|child| child.status)
                }
                _ => None,
            };
            waiting.push(wait_of(operation, work.as_deref(), &sessions, status));
        }
        Ok((waiting, more))
    }
}

/// What a store cannot tell is not known; other errors are errors.
fn known<T>(told: Result<T, ProviderError>) -> Result<Option<T>, ProviderError> {
    match told {
        Ok(told) => Ok(Some(told)),
        Err(error) if error.kind == ProviderErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error),
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
        OpenKind::Activity { name, tag, session } => Waiting::Activity(Box::new(WaitingActivity {
            event_id,
            queued_at_ms: asked_at_ms,
            name,
            tag,
            session_info: session.as_ref().and_then(|key| sessions.get(key).cloned().flatten()),
            session,
            place: match work {
                None => Place::Unknown,
                Some(work) => match work.iter().find(|work| work.activity_id == event_id) {
                    Some(found) => Place::Queued(found.clone()),
                    None => Place::NotQueued,
                },
            },
        })),
        OpenKind::Timer { fire_at_ms } => Waiting::Timer { event_id, asked_at_ms, fire_at_ms },
        OpenKind::Event { name } => Waiting::Event { event_id, asked_at_ms, name },
        OpenKind::Queue { name } => Waiting::Queue { event_id, asked_at_ms, name },
        OpenKind::Child { name, instance } => {
            Waiting::Child { event_id, asked_at_ms, name, instance, status }
        }
    }
}

impl Explanation {
    /// Tells whether the orchestration has ended.
    pub fn has_ended(&self) -> bool {
        let status = self.state.as_ref().map(|state| &state.status);
        matches!(status, Some(ExecutionState::Completed(_) | ExecutionState::Failed(_)))
    }
}
