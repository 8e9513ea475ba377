//! Work: leasing an activity, and handing its outcome back.

use std::time::Duration;

use steadfast_core::{SessionKey, TagFilter, WorkItem};

use crate::{LeaseToken, Message};

/// Asks for an activity to run.
#[derive(Debug, Clone)]
pub struct WorkRequest {
    /// Names the worker, for people who ask who runs what.
    pub worker_id: String,
    /// Says how long the lease lasts.
    pub lock_timeout: Duration,
    /// Says how long to wait for an activity; zero answers at once.
    pub poll_timeout: Duration,
    /// Says which tags the worker serves.
    pub tags: TagFilter,
    /// Asks for session work too; `None` asks for activities without a session only.
    pub session: Option<SessionRequest>,
}

/// Says which sessions a fetch may serve.
#[derive(Debug, Clone)]
pub struct SessionRequest {
    /// Names the process that asks.
    pub owner: Owner,
    /// Says how long a session is leased, when this fetch claims it or serves it.
    pub lock_timeout: Duration,
    /// Says which sessions it may serve.
    pub scope: SessionScope,
    /// Names sessions that it must not serve.
    pub leave_out: Vec<SessionKey>,
}

/// Names a worker process to the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Holds the id that all slots of the process share.
    pub id: String,
    /// Holds the number that the store gave this start of a named node; `None` for unnamed processes.
    pub incarnation: Option<u64>,
}

impl Owner {
    /// Names a process that has no node id of its own.
    pub fn unnamed(id: impl Into<String>) -> Self {
        Self { id: id.into(), incarnation: None }
    }
}

/// Says which sessions a fetch may serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionScope {
    /// Serves the sessions that the owner holds, and claims ones that nobody does.
    Claim,
    /// Serves the named sessions, as far as the owner holds them, and claims none: the worker is full.
    Only(Vec<SessionKey>),
}

/// Holds one activity.
#[derive(Debug, Clone)]
pub struct WorkLease {
    /// Proves the lease.
    pub token: LeaseToken,
    /// Holds the activity.
    pub item: WorkItem,
    /// Counts its fetches, this one included.
    pub attempt: u32,
    /// Names the orchestration that scheduled it, or `unknown` when that is gone.
    pub orchestration: String,
    /// Names the version of that orchestration, or `unknown`.
    pub orchestration_version: String,
    /// Holds the W3C trace context it belongs to.
    pub traceparent: Option<String>,
    /// Tells how its session is attached; `None` without a session, or when the store knows no epochs.
    pub session: Option<ClaimedSession>,
    /// Tells since when it could have been taken; `None` when the store cannot tell what waits.
    pub waiting_since_ms: Option<u64>,
    /// Holds the store's time, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// The session that a leased activity runs on, as the fetch that leased it found or claimed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedSession {
    /// Names the session.
    pub key: SessionKey,
    /// Holds the fencing token of this attachment.
    pub epoch: u64,
    /// Says whether this fetch made the attachment, and whose it was before.
    pub claim: Claim,
}

/// Says how a fetch came to serve a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The process held the session already.
    Held,
    /// The session was attached to nobody that the store knows of.
    New,
    /// The session was taken over.
    Taken {
        /// Names the owner it had.
        from: String,
    },
}

/// Hands the outcome of an activity back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Holds the completion to send to the orchestration; `None` sends nothing.
    pub completion: Option<Message>,
}

impl From<WorkItem> for Outcome {
    fn from(completion: WorkItem) -> Self {
        Self { completion: Some(completion.into()) }
    }
}

/// Asks a fetch for session work too, in the compatible form.
#[derive(Debug, Clone)]
pub struct SessionFetchConfig {
    /// Names the worker process that would own the sessions.
    pub owner_id: String,
    /// Says how long a claimed session is leased.
    pub lock_timeout: Duration,
}
