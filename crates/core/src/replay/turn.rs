//! What a turn decides.

use crate::replay::ParentLink;
use crate::{
    ErrorDetails, Event, EventKind, ExecutionMetadata, ScheduledActivityIdentifier, SessionConcurrency,
    SessionKey, WorkItem,
};

/// Holds all that one turn decided. It takes effect when it is committed, as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Holds the events to append, in order.
    pub events: Vec<Event>,
    /// Holds what the turn causes outside its history.
    pub effects: Effects,
    /// Says how the execution stands afterwards.
    pub verdict: Verdict,
    /// Holds what is worth telling an operator.
    pub notices: Vec<Notice>,
    /// Holds the children whose answers arrived.
    pub answered: Vec<AnsweredChild>,
}

/// Tells of a child that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredChild {
    /// Holds the name of its orchestration.
    pub name: String,
    /// Holds the time from its schedule to its answer, in milliseconds of the store.
    pub took_ms: u64,
    /// Tells whether it completed.
    pub succeeded: bool,
}

/// Holds what a turn causes outside its own history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// Holds the activities to queue for workers.
    pub work: Vec<QueuedWork>,
    /// Holds the messages to send: timers, starts, cancellations, the successor's start.
    pub messages: Vec<WorkItem>,
    /// Holds the activities to withdraw, queued or running.
    pub cancelled_activities: Vec<ScheduledActivityIdentifier>,
    /// Holds the changes of this instance's sessions, in order.
    pub sessions: Vec<SessionChange>,
    /// Holds what the parent is told, when the execution ended and has one.
    pub parent: Option<ParentNotice>,
}

/// Pairs an activity with the session that it runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedWork {
    /// Holds the activity, always a [`WorkItem::ActivityExecute`].
    pub item: WorkItem,
    /// Names its session.
    pub session: Option<SessionKey>,
}

/// Says what happens to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    /// Opens a session of this instance.
    Open {
        /// Names it.
        session_id: String,
        /// Bounds how long it stays attached without work; `None` holds it while open.
        idle_timeout_ms: Option<u64>,
        /// Says how many of its activities may run at a time.
        concurrency: Option<SessionConcurrency>,
    },
    /// Closes a session of this instance.
    Close {
        /// Names it.
        session_id: String,
    },
    /// Asks to be told when a session is attached anew.
    Watch {
        /// Names the session.
        key: SessionKey,
    },
}

/// Tells a parent how its child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentNotice {
    /// Names who is told.
    pub parent: ParentLink,
    /// Holds the output or the failure.
    pub outcome: Result<String, ErrorDetails>,
}

impl ParentNotice {
    /// Makes the message. `execution_id` is used when the link does not say the parent's execution.
    pub fn into_message(self, execution_id: u64) -> WorkItem {
        let ParentLink { instance: parent_instance, id: parent_id, execution_id: linked } = self.parent;
        let parent_execution_id = linked.unwrap_or(execution_id);
        match self.outcome {
            Ok(result) => {
                WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, result }
            }
            Err(details) => {
                WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, details }
            }
        }
    }
}

/// Says how an execution stands after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Waits for an answer.
    Waiting {
        /// Is true when nothing that the store knows of could ever answer: the code awaits something foreign.
        stuck: bool,
    },
    /// Returned this output.
    Completed {
        /// Holds the handler's result.
        output: String,
    },
    /// Ended without an output: an error, a panic, a cancellation, a mismatch.
    Failed {
        /// Says why.
        details: ErrorDetails,
    },
    /// Goes on in a new execution with this input.
    ContinuedAsNew {
        /// Holds the input of the successor.
        input: String,
        /// Holds the version of the successor's handler, if the code asked for one.
        version: Option<String>,
    },
    /// Had ended before this turn; nothing was decided.
    Ended,
}

impl Verdict {
    /// Tells whether the execution is over.
    pub fn is_terminal(&self) -> bool {
        !matches!(self, Self::Waiting { .. })
    }
}

/// Tells an operator something that is not a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A message changed nothing: a duplicate, a late answer, or one for another execution.
    Ignored {
        /// Names the kind of the message.
        message: &'static str,
        /// Says why.
        why: &'static str,
    },
    /// An event was raised that nobody waited for; it stays in history and is not delivered.
    EarlyEvent {
        /// Holds the name of the event.
        name: String,
    },
    /// A queue message was lost because a continue-as-new carries a limited number.
    CarryForwardDropped {
        /// Holds the name of the queue.
        name: String,
        /// Holds the message.
        data: String,
    },
    /// The first event carries a version that cannot be read.
    InvalidPinnedVersion {
        /// Holds the stamp.
        version: String,
        /// Says what is wrong with it.
        error: String,
    },
    /// The code began to wait for something that no message could ever answer. Told once, by the turn in which it began.
    Stuck,
    /// The history is long enough to be slow; continue-as-new keeps it short.
    LongHistory {
        /// Holds the number of events.
        events: usize,
    },
}

impl Turn {
    pub(crate) fn ended() -> Self {
        Self {
            events: Vec::new(),
            effects: Effects::default(),
            verdict: Verdict::Ended,
            notices: Vec::new(),
            answered: Vec::new(),
        }
    }

    /// Derives the metadata that a store keeps beside the history.
    pub fn metadata(&self) -> ExecutionMetadata {
        let mut metadata = ExecutionMetadata::default();
        for event in &self.events {
            if let EventKind::OrchestrationStarted { name, version, parent_instance, .. } = &event.kind {
                metadata.orchestration_name = Some(name.clone());
                metadata.orchestration_version = Some(version.clone());
                metadata.parent_instance_id.clone_from(parent_instance);
                metadata.pinned_duroxide_version = event.duroxide_version.parse().ok();
            } else if let EventKind::OrchestrationCompleted { output } = &event.kind {
                end(&mut metadata, "Completed", output.clone());
            } else if let EventKind::OrchestrationFailed { details } = &event.kind {
                end(&mut metadata, "Failed", details.display_message());
            } else if let EventKind::OrchestrationContinuedAsNew { input } = &event.kind {
                end(&mut metadata, "ContinuedAsNew", input.clone());
            }
        }
        metadata
    }
}

/// Notes how the execution ended: the first event that says so counts.
fn end(metadata: &mut ExecutionMetadata, status: &str, output: String) {
    if metadata.status.is_none() {
        metadata.status = Some(status.to_owned());
        metadata.output = Some(output);
    }
}
