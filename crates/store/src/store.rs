//! The store as the runtime and the client use it.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_core::{Event, SessionKey, SystemStats, WorkItem};

use crate::{
    Abandon, Committed, Envelope, InstancePage, InstanceQuery, InstanceState, LeaseToken, NewWork,
    OldestWaiting, Outcome, Owner, ProviderAdmin, ProviderError, ProviderErrorKind, RenewSessions,
    SessionInfo, SessionRef, SessionsRenewed, SetAside, Started, TurnCommit, TurnLease, TurnRequest,
    TurnState, WaitFor, Waited, WorkLease, WorkRequest, WorkState,
};

/// Keeps histories, queues, leases, sessions and key-value state.
///
/// What each method promises is in `CONTRACT.md`, in numbered clauses; the conformance kit proves them. Every
/// store of ours implements this trait and gets [`Provider`](crate::Provider), the compatible one, for free.
///
/// # Cancel safety
/// A future that is dropped before it returned has either had its whole effect or none. A dropped fetch leaves
/// no lease and counts no attempt.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Names the kind of store.
    fn name(&self) -> &str;

    /// Names the version of the store.
    fn version(&self) -> &str;

    /// Returns the management interface, if the store has one.
    fn admin(&self) -> Option<&dyn ProviderAdmin>;

    /// Tells whether sessions can belong to an instance.
    fn supports_owned_sessions(&self) -> bool {
        false
    }

    /// Leases the instance with the oldest visible message, or waits for one (S1, S2, S5, S9, S15, S17, S18).
    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<TurnLease>, ProviderError>;

    /// Commits a turn and ends its lease (S3, S4, S7, S8, S10, S12).
    async fn commit_turn(&self, lease: &LeaseToken, commit: TurnCommit) -> Result<Committed, ProviderError>;

    /// Leases the oldest activity that the request accepts, or waits for one (S5, S9, S13, S14, S15, S18).
    async fn fetch_work(&self, request: WorkRequest) -> Result<Option<WorkLease>, ProviderError>;

    /// Removes an activity and sends its completion, together (S4, S11).
    async fn finish_work(&self, lease: &LeaseToken, outcome: Outcome) -> Result<(), ProviderError>;

    /// Extends a lease (S4). `LeaseLost` for work also means that it was withdrawn (S12).
    async fn renew(&self, lease: &LeaseToken, extend_for: Duration) -> Result<(), ProviderError>;

    /// Gives back what was leased (S4, S6).
    async fn abandon(&self, lease: &LeaseToken, how: Abandon) -> Result<(), ProviderError>;

    /// Gives a named node the number of its newest start. Calls with an older number change nothing from
    /// then on and answer `LeaseLost` (S13).
    async fn register_node(&self, node_id: &str) -> Result<u64, ProviderError>;

    /// Extends the leases of a process's sessions and tells what became of the others (S13).
    async fn renew_sessions(&self, request: RenewSessions) -> Result<SessionsRenewed, ProviderError>;

    /// Ends the named attachments, so that others may claim the sessions. Returns those that were live (S13).
    async fn release_sessions(
        &self,
        owner: &Owner,
        sessions: &[SessionRef],
    ) -> Result<Vec<SessionRef>, ProviderError>;

    /// Removes what nobody needs of ended sessions and returns how many there were (S13).
    async fn cleanup_sessions(&self) -> Result<usize, ProviderError>;

    /// Lists sessions in the order of their keys, at most [`MAX_PAGE`](crate::MAX_PAGE) after the given one.
    async fn sessions(&self, after: Option<&SessionKey>) -> Result<Vec<SessionInfo>, ProviderError>;

    /// Shows one session.
    async fn session(&self, key: &SessionKey) -> Result<Option<SessionInfo>, ProviderError>;

    /// Starts an instance if there is none of that id, decided in the transaction that starts it. `start` is a
    /// `StartOrchestration`; `also` is sent to the instance in either case, behind the start.
    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError>;

    /// Sends messages to instances, all or none (S7, S17).
    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError>;

    /// Queues an activity that no turn asked for.
    async fn enqueue_work(&self, work: NewWork) -> Result<(), ProviderError>;

    /// Waits until something may have happened, at most for `timeout`, and looks at least once, also when there is no
    /// time at all. Nothing is missed that is committed after the call began.
    ///
    /// A wait for an instance ends with how it stands ([`Waited::Seen`]), so that the caller need not read it again; a
    /// wait for a turn or an activity ends with [`Waited::Woken`]. A wait for the end of an instance
    /// ([`WaitFor::End`]) sleeps through its other commits: what it reads does not grow with their number.
    async fn wait(&self, what: WaitFor<'_>, timeout: Duration) -> Result<Waited, ProviderError>;

    /// Tells how an instance stands, from one row; `None` when there is none of that id.
    async fn state(&self, instance: &str) -> Result<Option<InstanceState>, ProviderError>;

    /// Lists instances, newest first, page by page.
    async fn instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError>;

    /// Reads the events of an execution, or of the latest one; empty when there are none (S10).
    async fn read_history(
        &self,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError>;

    /// Appends events without a lease; nothing else changes (S8).
    async fn append_history(
        &self,
        instance: &str,
        execution_id: u64,
        events: Vec<Event>,
    ) -> Result<(), ProviderError>;

    /// Reads one key of an instance, as its orchestration would see it after its last commit.
    async fn kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError>;

    /// Reads all keys of an instance, as its orchestration would see them after its last commit.
    async fn kv_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError>;

    /// Measures an instance; `None` when there is none of that id.
    async fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError>;

    /// Lists rows that were set aside, by rising id, at most [`MAX_PAGE`](crate::MAX_PAGE) after the given one
    /// (S15).
    async fn set_aside(&self, after: Option<u64>) -> Result<Vec<SetAside>, ProviderError>;

    /// Puts a row that was set aside back into its queue with no attempts counted.
    ///
    /// # Errors
    /// `NotFound` when there is no such row.
    async fn retry_set_aside(&self, id: u64) -> Result<(), ProviderError>;

    /// Removes a row that was set aside.
    ///
    /// # Errors
    /// `NotFound` when there is no such row.
    async fn drop_set_aside(&self, id: u64) -> Result<(), ProviderError>;

    /// Tells what waits for the turns of an instance; `None` when there is none of that id (S2, S5, S9).
    ///
    /// # Errors
    /// `Unsupported` when the store cannot tell.
    async fn turn_of(&self, _instance: &str) -> Result<Option<TurnState>, ProviderError> {
        Err(unsupported(self.name(), "turn_of"))
    }

    /// Tells how the queued and leased activities of an execution stand, by rising id, at most
    /// [`MAX_PAGE`](crate::MAX_PAGE) (S5, S9).
    ///
    /// # Errors
    /// `Unsupported` when the store cannot tell.
    async fn work_of(&self, _instance: &str, _execution_id: u64) -> Result<Vec<WorkState>, ProviderError> {
        Err(unsupported(self.name(), "work_of"))
    }

    /// Tells since when the oldest runnable instance and the oldest runnable activity wait, at the cost of a fetch
    /// that finds nothing (S18, S20).
    ///
    /// # Errors
    /// `Unsupported` when the store cannot tell.
    async fn oldest_waiting(&self) -> Result<OldestWaiting, ProviderError> {
        Err(unsupported(self.name(), "oldest_waiting"))
    }
}

fn unsupported(store: &str, operation: &str) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Unsupported,
        operation,
        format!("store '{store}' cannot tell what waits"),
    )
}

/// Refuses messages that cannot be sent: an activity is work and has its own queue.
///
/// # Errors
/// `Invalid`, naming the operation.
pub fn check_message(operation: &str, item: &WorkItem) -> Result<(), ProviderError> {
    match item {
        WorkItem::ActivityExecute { name, .. } => Err(ProviderError::new(
            ProviderErrorKind::Invalid,
            operation,
            format!("activity '{name}' is work for a worker, not a message to an instance"),
        )),
        _ => Ok(()),
    }
}
