//! The decisions of a turn, as plain data.

use crate::replay::ParentLink;
use crate::{
    CallTerms, ErrorDetails, Event, EventKind, ExecutionMetadata, ScheduledActivityIdentifier,
    SessionConcurrency, SessionKey, WorkItem,
};

/// Everything that one turn decided. It takes effect as a whole, when a store commits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The events to append to the history, in order.
    pub events: Vec<Event>,
    /// The work, the messages and the other changes that the turn causes outside its history.
    pub effects: Effects,
    /// How the execution stands after the turn.
    pub verdict: Verdict,
    /// Notices for operators, which the runtime logs. They change nothing else.
    pub notices: Vec<Notice>,
    /// The children whose answers this turn recorded, for metrics.
    pub answered: Vec<AnsweredChild>,
}

/// A child whose answer a turn recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredChild {
    /// The name that the orchestration of the child is registered under.
    pub name: String,
    /// The time from the schedule of the child to its answer, in milliseconds by the store's clock.
    pub took_ms: u64,
    /// Whether the child completed; false if it failed.
    pub succeeded: bool,
}

/// The changes that a turn causes outside its own history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    /// The activities to queue for workers, in the order of the calls.
    pub work: Vec<QueuedWork>,
    /// The messages to send: timers, starts, cancellations, the start of the next execution.
    pub messages: Vec<WorkItem>,
    /// The activities to withdraw, whether they are queued or already run.
    pub cancelled_activities: Vec<ScheduledActivityIdentifier>,
    /// The messages of the timers whose future the code dropped in this turn, by rising id of their events,
    /// and of all open timers when the instance goes on in a new execution. They still fire and change
    /// nothing: a store marks them, so that people are not told of a wait that has ended.
    pub dropped_timers: Vec<WorkItem>,
    /// The sessions to open, close and watch, in the order of the calls. A call that changes nothing, such as
    /// opening an open session, is not among them.
    pub sessions: Vec<SessionChange>,
    /// The outcome for the parent; `None` while the execution goes on, and for an instance without a parent.
    pub parent: Option<ParentNotice>,
}

/// An activity with the session that it runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedWork {
    /// The activity, always a [`WorkItem::ActivityExecute`].
    pub item: WorkItem,
    /// The key of the session that the activity runs on; `None` for an activity without a session.
    pub session: Option<SessionKey>,
    /// The key and the policy of the call; `None` for an activity of the engine itself.
    pub call: Option<Box<CallTerms>>,
}

/// A change of a session that a turn asks the store for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    /// Opens a session of this instance.
    Open {
        /// The id of the session within this instance.
        session_id: String,
        /// How long the session stays attached without a running activity, in milliseconds; `None` keeps it
        /// attached until it is closed.
        idle_timeout_ms: Option<u64>,
        /// How many activities of the session may run at a time; `None` means as many as fit.
        concurrency: Option<SessionConcurrency>,
    },
    /// Closes a session of this instance.
    Close {
        /// The id of the session within this instance.
        session_id: String,
        /// What closes it.
        cause: CloseCause,
    },
    /// Asks the store for a message when a session is attached to a worker anew.
    Watch {
        /// The key of the session, which need not belong to this instance.
        key: SessionKey,
    },
}

/// What closes a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCause {
    /// The code called `close_session`.
    Call,
    /// The instance has ended.
    End,
}

/// The outcome of a child, for its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentNotice {
    /// The schedule of the parent that waits for the outcome.
    pub parent: ParentLink,
    /// The output of the child, as its handler encoded it, or its failure.
    pub outcome: Result<String, ErrorDetails>,
}

impl ParentNotice {
    /// Makes the message to the parent. `execution_id` is used if the link does not name the execution of the
    /// parent, as in histories of older engines.
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

/// How an execution stands after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The execution waits for an answer.
    Waiting {
        /// Whether no message can ever answer: the code awaits something that history does not record.
        stuck: bool,
    },
    /// The handler returned an output.
    Completed {
        /// The output of the execution, as its handler encoded it.
        output: String,
    },
    /// The execution ended without an output: by an error, a panic, a cancellation or a mismatch.
    Failed {
        /// Why the execution failed; the event that ends the history records the same.
        details: ErrorDetails,
    },
    /// The instance goes on in a new execution.
    ContinuedAsNew {
        /// The input of the next execution, as the code encoded it.
        input: String,
        /// The version that the next execution shall run; `None` if the code did not ask for one.
        version: Option<String>,
    },
    /// The execution had ended before this turn; nothing was decided.
    Ended,
}

impl Verdict {
    /// Tells whether the execution has ended.
    pub fn is_terminal(&self) -> bool {
        !matches!(self, Self::Waiting { .. })
    }
}

/// Tells operators something about a turn that is not part of its decisions: the runtime logs it and nothing
/// else follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A message changed nothing: a duplicate, a late answer, or one for another execution.
    Ignored {
        /// The kind of the message, as [`kind_of`](crate::kind_of) names it.
        message: &'static str,
        /// Why the message changed nothing, in words for people.
        why: &'static str,
    },
    /// An event was raised while no wait for its name was open. It stays in history and is never delivered.
    EarlyEvent {
        /// The name that the event was raised under.
        name: String,
    },
    /// A queue message was dropped because a continue-as-new carries a limited number of them.
    CarryForwardDropped {
        /// The name of the queue that the message waited in.
        name: String,
        /// The payload of the dropped message.
        data: String,
    },
    /// The engine version in the first event of the history cannot be parsed.
    InvalidPinnedVersion {
        /// The version as the event records it.
        version: String,
        /// Why the version cannot be parsed, as the parser said it.
        error: String,
    },
    /// The code began to wait for something that no message can ever answer. Told once, by the turn in which
    /// the wait began.
    Stuck,
    /// The history has grown so long that replaying it is slow; continue-as-new starts a fresh one.
    LongHistory {
        /// The number of events in the history of the execution.
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

    /// Derives the metadata that a store keeps beside the history from the events of the turn.
    pub fn metadata(&self) -> ExecutionMetadata {
        let mut metadata = ExecutionMetadata::default();
        for event in &self.events {
            if let EventKind::OrchestrationStarted { name, version, parent_instance, .. } = &event.kind {
                metadata.orchestration_name = Some(name.clone());
                metadata.orchestration_version = Some(version.clone());
                metadata.parent_instance_id.clone_from(parent_instance);
                metadata.pinned_duroxide_version = event.duroxide_version.parse().ok();
            }
            if event.needs_newer_engine() {
                // Older engines would lose what the event says, so they may not run the execution from here.
                metadata.pinned_duroxide_version = event.duroxide_version.parse().ok();
            }
            if let EventKind::OrchestrationCompleted { output } = &event.kind {
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

/// Writes the end of the execution into the metadata. If two events say how it ended, the first counts.
fn end(metadata: &mut ExecutionMetadata, status: &str, output: String) {
    if metadata.status.is_none() {
        metadata.status = Some(status.to_owned());
        metadata.output = Some(output);
    }
}
