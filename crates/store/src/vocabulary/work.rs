//! Work: leasing an activity, and returning its outcome.

use std::time::Duration;

use steadfast_core::{CallTerms, SessionKey, TagFilter, WorkItem};

use crate::{LeaseToken, Message, WorkerId};

/// Asks for an activity to run.
#[derive(Debug, Clone)]
pub struct WorkRequest {
    /// The name of the worker. It is shown with the activity while the lease lasts and decides nothing.
    pub worker_id: String,
    /// How long the lease lasts unless it is renewed. Work that takes longer is given to another worker.
    pub lock_timeout: Duration,
    /// How long the call waits for an activity; zero answers at once.
    pub poll_timeout: Duration,
    /// The tags that the worker serves; [`TagFilter::None`] gets no activity.
    pub tags: TagFilter,
    /// The terms for activities on sessions. `None` asks only for activities without a session.
    pub session: Option<SessionRequest>,
    /// The worker that asks ([`report_worker`](crate::Store::report_worker)). It is given no work that was
    /// refused and that other live workers list (S21). `None` is given all.
    pub worker: Option<WorkerId>,
}

/// The process that asks for activities on sessions, and the sessions that a fetch may serve for it.
#[derive(Debug, Clone)]
pub struct SessionRequest {
    /// The process that asks; it becomes the owner of a session that the fetch claims.
    pub owner: Owner,
    /// How long the lease of the session lasts from this fetch on, claimed or held already.
    pub lock_timeout: Duration,
    /// Which sessions the fetch may serve, and whether it may claim sessions.
    pub scope: SessionScope,
    /// Sessions that the fetch must not serve, even if the owner holds or could claim them.
    pub leave_out: Vec<SessionKey>,
}

/// Identifies a worker process to the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The id of the process, which all its slots share: the id of its node, or a random one.
    pub id: String,
    /// The number that the store gave this start of a named node
    /// ([`register_node`](crate::Store::register_node)); `None` for a process without a node id, which is
    /// judged by its id alone.
    pub incarnation: Option<u64>,
}

impl Owner {
    /// Identifies a process that has no node id of its own.
    pub fn unnamed(id: impl Into<String>) -> Self {
        Self { id: id.into(), incarnation: None }
    }
}

/// One start of a process under the name of a node, to be registered
/// ([`register_node`](crate::Store::register_node)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStart {
    /// The name of the node, which all its starts share.
    pub node_id: String,
    /// The id of this start, which no other start has.
    pub start_id: String,
    /// How long ago the process started, when it makes the call. The store takes it off its own time, so that
    /// two starts are compared by one clock (S16).
    pub age: Duration,
    /// The newest incarnation of the node that the process has seen; `None` if it has seen none.
    pub replaces: Option<u64>,
}

impl NodeStart {
    /// Describes a process that starts now and has seen no other start of the node.
    pub fn new(node_id: impl Into<String>, start_id: impl Into<String>) -> Self {
        Self { node_id: node_id.into(), start_id: start_id.into(), age: Duration::ZERO, replaces: None }
    }
}

/// What became of the registration of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeRegistration {
    /// The start is the newest one of its node, and this is its number.
    Registered(u64),
    /// Nothing has changed: another start is the newest, and the process has not seen it yet.
    Taken {
        /// The number of the newest start.
        incarnation: u64,
        /// Whether the process of that start started after the one that asks, by the store's clock. False if
        /// that is not known.
        is_younger: bool,
    },
}

/// The sessions that a fetch may serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionScope {
    /// The sessions that the owner holds, and sessions without a live owner, which the fetch then claims.
    Claim,
    /// Only these sessions, as far as the owner holds them. For a worker that may serve no further session.
    Only(Vec<SessionKey>),
}

/// An activity that is leased to a worker.
#[derive(Debug, Clone)]
pub struct WorkLease {
    /// The proof of the lease for [`finish_work`](crate::Store::finish_work), `renew` and `abandon`.
    pub token: LeaseToken,
    /// The activity: an `ActivityExecute`.
    pub item: WorkItem,
    /// How often the activity was fetched since its last try ended, this time included and without the
    /// deliveries that do not count: the count that finds poison.
    pub attempt: u32,
    /// How often the activity was fetched, this time included. It only rises (S22).
    pub delivery: u32,
    /// The key and the policy of the call; `None` if the work was queued without them.
    pub call: Option<Box<CallTerms>>,
    /// The tries of the call that have ended (S22).
    pub tries: Tries,
    /// The name of the orchestration that scheduled the activity; `unknown` if its instance has no row.
    pub orchestration: String,
    /// The version of that orchestration's handler; `unknown` if its instance has no row.
    pub orchestration_version: String,
    /// The W3C trace context that was queued with the activity; `None` if there was none.
    pub traceparent: Option<String>,
    /// The session that the activity runs on. `None` without a session, or if the store knows no epochs.
    pub session: Option<ClaimedSession>,
    /// Since when the activity could have been leased, in milliseconds since the Unix epoch by the store's
    /// clock; `None` if the store cannot tell.
    pub waiting_since_ms: Option<u64>,
    /// The store's time at which the lease was taken, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// The tries of an activity that have ended with an error, so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tries {
    /// The number of tries that have ended on this work.
    pub ended: u32,
    /// The error of the last one; `None` if there was none.
    pub last_error: Option<String>,
    /// When the activity was first fetched, in milliseconds since the Unix epoch by the store's clock; `None`
    /// if the store cannot tell, and before the first fetch.
    pub first_fetched_ms: Option<u64>,
}

/// A try that ended with an error, after which the activity is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTry {
    /// The text of the error, for people.
    pub error: String,
    /// How long the activity is held back.
    pub retry_after: Duration,
}

/// The session that a leased activity runs on, as the fetch that leased it found or claimed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedSession {
    /// The key of the session: its id, and its instance if it is owned.
    pub key: SessionKey,
    /// The fencing token of the owner's claim: a later claim of any session has a higher one.
    pub epoch: u64,
    /// Whether this fetch claimed the session, and the id of the former owner if it did.
    pub claim: Claim,
}

/// Whether a fetch found the session claimed by its own process, or claimed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The process owned the session already.
    Held,
    /// The fetch claimed a session, and the store knows of no earlier owner.
    New,
    /// The fetch claimed a session that had another owner, or the same owner whose lease had ended.
    Taken {
        /// The id of the earlier owner.
        from: String,
    },
}

/// The outcome of an activity, which its worker reports with [`finish_work`](crate::Store::finish_work).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The completion to send: an `ActivityCompleted` or `ActivityFailed`. `None` sends no message, so the
    /// orchestration does not learn of the end.
    pub completion: Option<Message>,
}

impl From<WorkItem> for Outcome {
    fn from(completion: WorkItem) -> Self {
        Self { completion: Some(completion.into()) }
    }
}

/// Asks a fetch for activities on sessions too, in the compatible form.
#[derive(Debug, Clone)]
pub struct SessionFetchConfig {
    /// The id of the worker process, which becomes the owner of the sessions that the fetch claims.
    pub owner_id: String,
    /// How long the lease of a session lasts from the fetch on, unless it is renewed.
    pub lock_timeout: Duration,
}
