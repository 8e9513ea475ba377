//! How the events and the metadata of a commit change the rows beside the history.

use steadfast_core::{ErrorDetails, Event, EventKind, SessionConcurrency};

use crate::{ProviderError, TurnCommit};

use super::{check_message, check_timer, check_work};

/// A change that an event of a commit makes to the sessions of its instance (S13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEffect<'a> {
    /// Opens a session. The options of a session that is open already stay as they are.
    Open {
        /// The id of the session within its instance.
        session_id: &'a str,
        /// After how long without work the session is idle; `None` means never.
        idle_timeout_ms: Option<u64>,
        /// How many activities of the session run at a time; `None` means [`SessionConcurrency::Unbounded`].
        concurrency: Option<SessionConcurrency>,
    },
    /// Closes a session and withdraws its work.
    Close {
        /// The id of the session within its instance.
        session_id: &'a str,
    },
    /// Closes all sessions of the instance, because the instance ends.
    CloseAll,
}

impl<'a> SessionEffect<'a> {
    /// Returns the session changes that these events make, in the order of the events.
    pub fn of(events: &'a [Event]) -> impl Iterator<Item = Self> {
        events.iter().filter_map(|event| match &event.kind {
            EventKind::SessionOpened { session_id, idle_timeout_ms, concurrency } => {
                Some(Self::Open { session_id, idle_timeout_ms: *idle_timeout_ms, concurrency: *concurrency })
            }
            EventKind::SessionClosed { session_id } => Some(Self::Close { session_id }),
            EventKind::OrchestrationCompleted { .. } | EventKind::OrchestrationFailed { .. } => {
                Some(Self::CloseAll)
            }
            _ => None,
        })
    }
}

impl TurnCommit {
    /// Refuses a commit that sends work as a message, queues a message as work, or drops a timer that is none
    /// (S3).
    ///
    /// # Errors
    /// `Invalid`.
    pub fn check(&self) -> Result<(), ProviderError> {
        const OPERATION: &str = "commit_turn";
        self.messages.iter().try_for_each(|message| check_message(OPERATION, &message.item))?;
        self.work.iter().try_for_each(|work| check_work(OPERATION, &work.item))?;
        self.dropped_timers.iter().try_for_each(|item| check_timer(OPERATION, item))
    }

    /// Tells whether the instance ends with this commit, so that callers who wait for the end are woken. An
    /// instance that continues as new does not end.
    pub fn ends_instance(&self) -> bool {
        matches!(self.metadata.status.as_deref(), Some("Completed" | "Failed"))
    }

    /// Tells whether the execution ends with this commit: its key-value changes then become the state that
    /// the next execution starts from, and its watches end.
    pub fn ends_execution(&self) -> bool {
        self.metadata.status.as_deref().is_some_and(|status| status != "Running")
    }

    /// Returns the error that the execution fails with, if it does.
    pub fn failure(&self) -> Option<&ErrorDetails> {
        self.events.iter().find_map(|event| match &event.kind {
            EventKind::OrchestrationFailed { details } => Some(details),
            _ => None,
        })
    }

    /// Returns the custom status that the commit sets (`Some`) or clears (`Some(None)`): the last event
    /// counts.
    pub fn custom_status(&self) -> Option<Option<&str>> {
        self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::CustomStatusUpdated { status } => Some(status.as_deref()),
            _ => None,
        })
    }
}
