//! Instances: starting them, sending to them, and asking how they stand without reading their history.

use std::time::Duration;

use steadfast_core::{ErrorDetails, WorkItem};

use crate::{Interest, Message};

/// Says whether a start made an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// The instance is new.
    New,
    /// The instance was there before; nothing was changed.
    Existing,
}

/// A message on its way to an instance, with the delay after which it is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Holds the message.
    pub message: Message,
    /// Holds it back for this long.
    pub delay: Option<Duration>,
}

impl From<WorkItem> for Envelope {
    fn from(item: WorkItem) -> Self {
        Self { message: item.into(), delay: None }
    }
}

/// Tells how an instance stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceState {
    /// Names the instance.
    pub instance: String,
    /// Names the orchestration.
    pub orchestration: String,
    /// Names the version of its handler.
    pub version: String,
    /// Numbers the current execution.
    pub execution_id: u64,
    /// Says how the current execution stands.
    pub status: ExecutionState,
    /// Holds the text that the orchestration shows.
    pub custom_status: Option<String>,
    /// Counts the changes of that text.
    pub custom_status_version: u64,
    /// Names the parent of a child.
    pub parent: Option<String>,
    /// Holds the time of the first commit, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// Holds the time of the last commit, in milliseconds since the Unix epoch.
    pub updated_at_ms: u64,
    /// Rises with every change of the instance.
    pub change: u64,
}

/// Says how an execution stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionState {
    /// It is under way.
    Running,
    /// It returned this output.
    Completed(String),
    /// It failed.
    Failed(ErrorDetails),
    /// It goes on in another execution, which has not begun yet.
    ContinuedAsNew,
}

impl ExecutionState {
    /// Tells whether the instance has ended with it. One that continues as new has not: another execution follows.
    pub fn is_ended(&self) -> bool {
        match self {
            Self::Completed(_) | Self::Failed(_) => true,
            Self::Running | Self::ContinuedAsNew => false,
        }
    }

    /// Returns the word that lists and filters use.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Completed(_) => "Completed",
            Self::Failed(_) => "Failed",
            Self::ContinuedAsNew => "ContinuedAsNew",
        }
    }
}

/// Names something to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor<'a> {
    /// A turn can be fetched.
    Turn,
    /// An activity can be fetched by somebody.
    Work,
    /// The instance has changed since `seen`, or came to be.
    Instance {
        /// Names it.
        instance: &'a str,
        /// Holds the [`InstanceState::change`] that the caller knows, 0 for none.
        seen: u64,
    },
    /// The instance has ended: its current execution has completed or failed. One that is deleted while it is waited for
    /// ends the wait too; one that is still to come does not. Commits that do not end it cost nobody a look.
    End {
        /// Names it.
        instance: &'a str,
    },
}

/// Says how a wait ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// A turn or an activity may be there: look.
    Woken,
    /// The instance that was waited for stands like this; `None` when there is none.
    Seen(Option<Box<InstanceState>>),
    /// The time is over.
    TimedOut,
}

/// Judges, look by look, whether a wait for an instance is over. A store of any kind looks whenever it was called.
#[derive(Debug)]
pub struct InstanceWait<'a> {
    instance: &'a str,
    until: Until,
}

#[derive(Debug)]
enum Until {
    Changed { seen: u64 },
    Ended { was_there: bool },
}

impl<'a> InstanceWait<'a> {
    /// Waits until the instance has changed since `seen`; one that is gone has, for whoever knew it.
    pub fn for_change(instance: &'a str, seen: u64) -> Self {
        Self { instance, until: Until::Changed { seen } }
    }

    /// Waits until the instance has ended, or is gone.
    pub fn for_end(instance: &'a str) -> Self {
        Self { instance, until: Until::Ended { was_there: false } }
    }

    /// Names the instance.
    pub fn instance(&self) -> &'a str {
        self.instance
    }

    /// Says what must happen before another look is worth it.
    pub fn interest(&self) -> Interest {
        match self.until {
            Until::Changed { .. } => Interest::Instance(self.instance.to_owned()),
            Until::Ended { .. } => Interest::End(self.instance.to_owned()),
        }
    }

    /// Takes what a look found, and returns the end of the wait if it is over.
    pub fn saw(&mut self, state: Option<InstanceState>) -> Option<Waited> {
        let is_over = match &mut self.until {
            Until::Changed { seen } => state.as_ref().map_or(0, |state| state.change) != *seen,
            Until::Ended { was_there } => match &state {
                Some(state) => {
                    *was_there = true;
                    state.status.is_ended()
                }
                None => *was_there,
            },
        };
        is_over.then(|| Waited::Seen(state.map(Box::new)))
    }
}

/// Asks for a page of instances, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceQuery {
    /// Asks for one of `Running`, `Completed`, `Failed`, `ContinuedAsNew`.
    pub status: Option<String>,
    /// Asks for one orchestration.
    pub orchestration: Option<String>,
    /// Asks for ids that begin so.
    pub id_prefix: Option<String>,
    /// Asks for the children of one instance.
    pub parent: Option<String>,
    /// Leaves out children.
    pub roots_only: bool,
    /// Bounds the page; 0 means [`DEFAULT_PAGE`], and no page is larger than [`MAX_PAGE`].
    pub limit: usize,
    /// Goes on where the last page ended.
    pub after: Option<Cursor>,
}

/// Holds the size of a page that does not say its own.
pub const DEFAULT_PAGE: usize = 100;

/// Bounds a page, because it is one answer.
pub const MAX_PAGE: usize = 1_000;

impl InstanceQuery {
    /// Returns the size of the page.
    pub fn page_size(&self) -> usize {
        match self.limit {
            0 => DEFAULT_PAGE,
            limit => limit.min(MAX_PAGE),
        }
    }
}

/// Names the end of a page. Its text has no meaning outside the store that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

/// Holds a page of instances.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstancePage {
    /// Holds the instances, newest first.
    pub instances: Vec<InstanceState>,
    /// Asks for the next page; `None` on the last one.
    pub next: Option<Cursor>,
}
