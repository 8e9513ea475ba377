//! Instances: starting them, sending to them, and asking how they stand without reading their history.

use std::time::Duration;

use steadfast_core::{ErrorDetails, WorkItem};

use crate::Message;

/// Whether a start made an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// There was no instance of that id; now there is one.
    New,
    /// There was an instance of that id; the start changed nothing.
    Existing,
}

/// A message on its way to an instance, with the delay after which it is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The message, with the trace context of its sender.
    pub message: Message,
    /// How long the message stays invisible; `None` delivers it at once.
    pub delay: Option<Duration>,
}

impl From<WorkItem> for Envelope {
    fn from(item: WorkItem) -> Self {
        Self { message: item.into(), delay: None }
    }
}

/// The state of an instance, with that of its current execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceState {
    /// The id that the caller of the start chose, or that the engine made for a child.
    pub instance: String,
    /// The name that the orchestration is registered under.
    pub orchestration: String,
    /// The version of the handler that runs the current execution.
    pub version: String,
    /// The number of the current execution, from 1; each continue-as-new adds one.
    pub execution_id: u64,
    /// How the current execution stands, with its output or failure.
    pub status: ExecutionState,
    /// The text that the orchestration shows about its progress; `None` if it set none or cleared it.
    pub custom_status: Option<String>,
    /// The number of commits that set or cleared the custom status; 0 if there was no such commit.
    pub custom_status_version: u64,
    /// The id of the instance that started this one as a child; `None` for a root.
    pub parent: Option<String>,
    /// When the first commit of the instance was, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
    /// When the last commit of the instance was, in milliseconds since the Unix epoch.
    pub updated_at_ms: u64,
    /// A number that differs after every change of the instance; pass it to [`WaitFor::Instance`] to wait for
    /// the next change.
    pub change: u64,
}

/// The state of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionState {
    /// The execution has not ended.
    Running,
    /// The execution completed with this output, as its handler encoded it.
    Completed(String),
    /// The execution failed with this error.
    Failed(ErrorDetails),
    /// The execution continued as new, and the next execution has not begun yet.
    ContinuedAsNew,
}

impl ExecutionState {
    /// Tells whether the instance has ended. An execution that continued as new does not end its instance.
    pub fn is_ended(&self) -> bool {
        match self {
            Self::Completed(_) | Self::Failed(_) => true,
            Self::Running | Self::ContinuedAsNew => false,
        }
    }

    /// Returns the word that lists and filters use, such as `Running`.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Completed(_) => "Completed",
            Self::Failed(_) => "Failed",
            Self::ContinuedAsNew => "ContinuedAsNew",
        }
    }
}

/// The change, the turn or the work that a call of [`wait`](crate::Store::wait) waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor<'a> {
    /// A turn that some caller can fetch.
    Turn,
    /// An activity that some caller can fetch.
    Work,
    /// A change of an instance; its first commit and its deletion are changes too.
    Instance {
        /// The id of the instance to wait for.
        instance: &'a str,
        /// The [`InstanceState::change`] that the caller knows, 0 for an instance that it does not know.
        seen: u64,
    },
    /// The end of an instance: its current execution has completed or failed. The wait also ends if the
    /// instance is deleted meanwhile; it does not end because the instance does not exist yet. Other commits
    /// of the instance do not wake the caller.
    End {
        /// The id of the instance to wait for.
        instance: &'a str,
    },
}

/// How a call of [`wait`](crate::Store::wait) ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// A turn or an activity may be ready: the caller should fetch. Only for a wait for a turn or for work.
    Woken,
    /// The state of the instance that the caller waited for; `None` if it does not exist.
    Seen(Option<Box<InstanceState>>),
    /// The time-out passed before anything that the caller waited for happened.
    TimedOut,
}

/// Asks for a page of instances, newest first. Every condition that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceQuery {
    /// Lists only instances whose current execution has this status: `Running`, `Completed`, `Failed` or
    /// `ContinuedAsNew`; another word selects no instance. `None` does not filter.
    pub status: Option<String>,
    /// Lists only instances of the orchestration with exactly this name. `None` does not filter.
    pub orchestration: Option<String>,
    /// Lists only instances whose id begins with this text; upper and lower case differ. `None` does not
    /// filter.
    pub id_prefix: Option<String>,
    /// Lists only the direct children of the instance with this id. `None` does not filter.
    pub parent: Option<String>,
    /// Leaves out children. With `false`, the default, children are listed too.
    pub roots_only: bool,
    /// The size of the page; 0 means [`DEFAULT_PAGE`], and no page is larger than [`MAX_PAGE`].
    pub limit: usize,
    /// The [`InstancePage::next`] of the page before; `None` for the first page.
    pub after: Option<Cursor>,
}

/// The number of instances on a page if [`InstanceQuery::limit`] is 0.
pub const DEFAULT_PAGE: usize = 100;

/// The largest number of instances, sessions or other rows on one page, which is held in memory as one
/// answer.
pub const MAX_PAGE: usize = 1_000;

impl InstanceQuery {
    /// Returns the largest number of instances on the page: `limit`, but [`DEFAULT_PAGE`] for 0, and never
    /// more than [`MAX_PAGE`].
    pub fn page_size(&self) -> usize {
        match self.limit {
            0 => DEFAULT_PAGE,
            limit => limit.min(MAX_PAGE),
        }
    }
}

/// Marks the end of a page. Its text has no meaning outside the store that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

/// One page of the instances that match an [`InstanceQuery`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstancePage {
    /// The instances that match, newest first; at most [`InstanceQuery::page_size`].
    pub instances: Vec<InstanceState>,
    /// The cursor for [`InstanceQuery::after`] that asks for the next page; `None` on the last page.
    pub next: Option<Cursor>,
}
