//! The store as the runtime and the client use it.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use steadfast_core::{Event, SessionKey, SystemStats};

use crate::{
    Abandon, Attempt, Committed, DeleteInstanceResult, EndedTry, Envelope, Gauges, InstancePage,
    InstanceQuery, InstanceState, LeaseToken, NewWork, NodeRegistration, NodeStart, OldestWaiting, Outcome,
    Owner, ProviderAdmin, ProviderError, ProviderErrorKind, Refusal, Refused, ReleaseReason, RenewSessions,
    SessionInfo, SessionRef, SessionTrailEntry, SessionsRenewed, SetAside, Started, TurnCommit, TurnLease,
    TurnRequest, TurnState, WaitFor, Waited, WaitingStart, WorkLease, WorkRequest, WorkState, WorkerId,
    WorkerInfo, WorkerReport,
};

/// Keeps histories, queues, leases, sessions and key-value state.
///
/// `CONTRACT.md` says in numbered clauses (S1 and so on) what each method promises; the conformance kit tests
/// them. Every store of this project implements this trait and gets [`Provider`](crate::Provider), the trait
/// of the compatible crate, for free.
///
/// # Cancel safety
/// Each method is one transaction: if its future is dropped, the call took effect as a whole or not at all. A
/// fetch promises more: a dropped fetch leaves no lease and counts no delivery. Only
/// [`delete_ended`](Self::delete_ended) and [`report_worker`](Self::report_worker) may work in steps, each a
/// transaction.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Returns a name for the kind of store, for logs.
    fn name(&self) -> &str;

    /// Returns the version of the store's code, for logs.
    fn version(&self) -> &str;

    /// Returns the management interface; `None` if the store cannot list and delete instances.
    fn admin(&self) -> Option<&dyn ProviderAdmin>;

    /// Tells whether sessions can belong to an instance (S13). False by default; opening such a session then
    /// fails.
    fn supports_owned_sessions(&self) -> bool {
        false
    }

    /// Leases the instance with the oldest visible message, or waits for one (S1, S2, S5, S9, S15, S17, S18).
    /// `None` if there was none within the request's `poll_timeout`.
    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<TurnLease>, ProviderError>;

    /// Commits a turn and ends its lease (S3, S4, S7, S8, S10, S12).
    async fn commit_turn(&self, lease: &LeaseToken, commit: TurnCommit) -> Result<Committed, ProviderError>;

    /// Leases the oldest activity that the request accepts, or waits for one (S5, S9, S13, S14, S15, S18).
    /// `None` if there was none within the request's `poll_timeout`.
    async fn fetch_work(&self, request: WorkRequest) -> Result<Option<WorkLease>, ProviderError>;

    /// Removes an activity and sends its completion, in one transaction (S4, S11).
    async fn finish_work(&self, lease: &LeaseToken, outcome: Outcome) -> Result<(), ProviderError>;

    /// Extends a lease: it ends `extend_for` from now (S4). `Withdrawn` means that the activity was withdrawn
    /// (S12).
    async fn renew(&self, lease: &LeaseToken, extend_for: Duration) -> Result<(), ProviderError>;

    /// Abandons a lease, so that the instance or the activity can be fetched again (S4, S6).
    async fn abandon(&self, lease: &LeaseToken, how: Abandon) -> Result<(), ProviderError>;

    /// Ends a try of an activity that is to be tried again: the lease ends, the error is kept with the
    /// activity, and the activity can be fetched again when `retry_after` has passed (S4, S22). The count
    /// that finds poison begins anew, and no delivery of a try that has ended can be excused.
    ///
    /// The default knows no tries: it abandons the lease, and the delivery counts.
    async fn end_try(&self, lease: &LeaseToken, ended: EndedTry) -> Result<(), ProviderError> {
        let how = Abandon { retry_after: Some(ended.retry_after), attempt: Attempt::Counts };
        self.abandon(lease, how).await
    }

    /// Tells whether the store keeps the terms and the tries of calls (S22). If not, the default, deliveries
    /// count as tries.
    fn keeps_tries(&self) -> bool {
        false
    }

    /// Takes the delivery of a lease that has expired off the count again, and does nothing else: the process
    /// of the holder did not die, it was paused, or the store was away (S5). Works once for a token, as long
    /// as the messages or the activity are there, and whoever holds them now; also for a process whose node
    /// was replaced. Returns whether a delivery was taken off.
    ///
    /// The default takes nothing off.
    async fn excuse(&self, _lease: &LeaseToken) -> Result<bool, ProviderError> {
        Ok(false)
    }

    /// Abandons a lease because the caller lacks the handler (S4, S21). If a live worker lists the handler,
    /// the delivery does not count, and from now on only such workers are given the instance or the activity,
    /// at once. If none does, the lease is abandoned as the refusal says.
    ///
    /// The default knows no workers and abandons.
    async fn refuse(&self, lease: &LeaseToken, refusal: Refusal) -> Result<Refused, ProviderError> {
        self.abandon(lease, refusal.if_unlisted).await?;
        Ok(Refused::Unlisted)
    }

    /// Writes the row of a worker. Work that was refused for a handler that the worker lists becomes runnable
    /// at once (S21). Rows that are older than [`WORKER_KEPT_FOR`](crate::WORKER_KEPT_FOR) are removed.
    ///
    /// # Errors
    /// `Unsupported` if the store keeps no such rows; that is the default.
    async fn report_worker(&self, _report: &WorkerReport) -> Result<(), ProviderError> {
        Err(lacks_workers(self.name(), "report_worker"))
    }

    /// Lists the rows of workers in the order of their ids, at most [`MAX_PAGE`](crate::MAX_PAGE), beginning
    /// behind `after`.
    ///
    /// # Errors
    /// `Unsupported` if the store keeps no such rows; that is the default.
    async fn workers(&self, _after: Option<&WorkerId>) -> Result<Vec<WorkerInfo>, ProviderError> {
        Err(lacks_workers(self.name(), "workers"))
    }

    /// Deletes instances that ended at least `ended_for` ago by the store's clock, oldest end first, each
    /// with its children, until `limit` roots are deleted or the work of one call is done (S16, S20).
    ///
    /// # Errors
    /// `Unsupported` if the store cannot compare its own times; that is the default.
    async fn delete_ended(
        &self,
        _ended_for: Duration,
        _limit: u32,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        Err(ProviderError::new(
            ProviderErrorKind::Unsupported,
            "delete_ended",
            format!("store '{}' cannot delete by age", self.name()),
        ))
    }

    /// Counts what is live, without reading histories or what has ended (S20).
    ///
    /// # Errors
    /// `Unsupported` if the store cannot count so; that is the default.
    async fn gauges(&self) -> Result<Gauges, ProviderError> {
        Err(unsupported(self.name(), "gauges"))
    }

    /// Numbers a start of a named node. From then on calls that carry an older number of the node change
    /// nothing and answer `LeaseLost` (S13). A call that arrives late or twice fences nobody: a start has one
    /// number, and it replaces the incarnation that its process has seen and no newer one.
    async fn register_node(&self, start: &NodeStart) -> Result<NodeRegistration, ProviderError>;

    /// Extends the leases of the sessions that a process owns, and tells which ones were not extended and why
    /// (S13).
    async fn renew_sessions(&self, request: RenewSessions) -> Result<SessionsRenewed, ProviderError>;

    /// Releases sessions: other processes may claim them at once. Returns the claims that were live (S13).
    async fn release_sessions(
        &self,
        owner: &Owner,
        sessions: &[SessionRef],
    ) -> Result<Vec<SessionRef>, ProviderError>;

    /// Releases sessions as [`release_sessions`](Self::release_sessions) does, and writes the reason into
    /// their trails.
    ///
    /// The default drops the reason.
    async fn release_sessions_because(
        &self,
        owner: &Owner,
        sessions: &[SessionRef],
        _reason: ReleaseReason,
    ) -> Result<Vec<SessionRef>, ProviderError> {
        self.release_sessions(owner, sessions).await
    }

    /// Removes the rows of sessions without a live lease and without work, if they are shared or their
    /// instance does not exist. Returns the number of removed rows (S13).
    async fn cleanup_sessions(&self) -> Result<usize, ProviderError>;

    /// Lists sessions in the order of their keys, at most [`MAX_PAGE`](crate::MAX_PAGE), beginning behind
    /// `after`.
    async fn sessions(&self, after: Option<&SessionKey>) -> Result<Vec<SessionInfo>, ProviderError>;

    /// Returns the row of one session, and the number of its activities; `None` if it has no row.
    async fn session(&self, key: &SessionKey) -> Result<Option<SessionInfo>, ProviderError>;

    /// Returns the trail of a session: the changes of its owner, oldest first, at most
    /// [`MAX_SESSION_TRAIL`](crate::MAX_SESSION_TRAIL). Empty if there are none, also for a session that does
    /// not exist.
    ///
    /// # Errors
    /// `Unsupported` if the store keeps no trails; that is the default.
    async fn session_trail(&self, _key: &SessionKey) -> Result<Vec<SessionTrailEntry>, ProviderError> {
        Err(lacks_trails(self.name(), "session_trail"))
    }

    /// Removes entries of trails that are older than `retention`, and those beyond
    /// [`MAX_TRAIL`](crate::MAX_TRAIL), oldest first. One call looks at no more than
    /// [`MAX_PAGE`](crate::MAX_PAGE) entries and returns how many it removed; a caller repeats it until it
    /// removes none.
    ///
    /// # Errors
    /// `Unsupported` if the store keeps no trails; that is the default.
    async fn cleanup_session_trails(&self, _retention: Duration) -> Result<usize, ProviderError> {
        Err(lacks_trails(self.name(), "cleanup_session_trails"))
    }

    /// Starts an instance unless one of that id exists; the transaction that starts it decides. `start` is a
    /// `StartOrchestration`; `also` is sent in either case, behind the start.
    async fn start(&self, start: Envelope, also: Vec<Envelope>) -> Result<Started, ProviderError>;

    /// Sends messages to instances, all or none (S7, S17).
    async fn send(&self, messages: Vec<Envelope>) -> Result<(), ProviderError>;

    /// Queues an activity that no turn scheduled.
    async fn enqueue_work(&self, work: NewWork) -> Result<(), ProviderError>;

    /// Waits for at most `timeout`, and looks at least once even if that is zero. No commit is missed that
    /// happens after the call began.
    ///
    /// A wait for an instance returns the state of the instance ([`Waited::Seen`]), so that the caller need
    /// not read it again; a wait for a turn or an activity returns [`Waited::Woken`]. A wait for the end of
    /// an instance ([`WaitFor::End`]) is not woken by its other commits, so its cost does not grow with their
    /// number.
    async fn wait(&self, what: WaitFor<'_>, timeout: Duration) -> Result<Waited, ProviderError>;

    /// Returns how an instance stands, without reading its history; `None` if there is no such instance.
    async fn state(&self, instance: &str) -> Result<Option<InstanceState>, ProviderError>;

    /// Returns one page of the instances that match the query, newest first.
    async fn instances(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError>;

    /// Reads the events of an execution (`None`: the latest); empty if there are none (S10).
    async fn read_history(
        &self,
        instance: &str,
        execution_id: Option<u64>,
    ) -> Result<Vec<Event>, ProviderError>;

    /// Appends events without a lease; no row but the history changes (S8).
    async fn append_history(
        &self,
        instance: &str,
        execution_id: u64,
        events: Vec<Event>,
    ) -> Result<(), ProviderError>;

    /// Reads the value of one key of an instance, as of its last commit; `None` if it is not set.
    async fn kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError>;

    /// Reads all keys of an instance with their values, as of its last commit.
    async fn kv_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError>;

    /// Returns the sizes of an instance's history, queues and key-value state; `None` if there is no such
    /// instance.
    async fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError>;

    /// Lists rows that were set aside, by rising id, at most [`MAX_PAGE`](crate::MAX_PAGE), beginning behind
    /// `after` (S15).
    async fn set_aside(&self, after: Option<u64>) -> Result<Vec<SetAside>, ProviderError>;

    /// Puts a row that was set aside back into its queue, visible at once and with an attempt count of 0.
    ///
    /// # Errors
    /// `NotFound` if there is no such row.
    async fn retry_set_aside(&self, id: u64) -> Result<(), ProviderError>;

    /// Removes a row that was set aside.
    ///
    /// # Errors
    /// `NotFound` if there is no such row.
    async fn drop_set_aside(&self, id: u64) -> Result<(), ProviderError>;

    /// Tells which messages wait for the turns of an instance; `None` if there is no such instance (S2, S5,
    /// S9).
    ///
    /// # Errors
    /// `Unsupported` if the store cannot tell; that is the default.
    async fn turn_of(&self, _instance: &str) -> Result<Option<TurnState>, ProviderError> {
        Err(unsupported(self.name(), "turn_of"))
    }

    /// Describes the first start of an execution that is in the queue of an instance, delayed and leased ones
    /// included; `None` if no start is, or if it cannot be read.
    ///
    /// # Errors
    /// `Unsupported` if the store cannot tell; that is the default.
    async fn start_of(&self, _instance: &str) -> Result<Option<WaitingStart>, ProviderError> {
        Err(unsupported(self.name(), "start_of"))
    }

    /// Tells how the queued and leased activities of an execution stand, by rising id, at most
    /// [`MAX_PAGE`](crate::MAX_PAGE) (S5, S9).
    ///
    /// # Errors
    /// `Unsupported` if the store cannot tell; that is the default.
    async fn work_of(&self, _instance: &str, _execution_id: u64) -> Result<Vec<WorkState>, ProviderError> {
        Err(unsupported(self.name(), "work_of"))
    }

    /// Tells since when the oldest runnable instance and the oldest runnable activity wait. It costs as much
    /// as a fetch that finds nothing (S18, S20).
    ///
    /// # Errors
    /// `Unsupported` if the store cannot tell; that is the default.
    async fn oldest_waiting(&self) -> Result<OldestWaiting, ProviderError> {
        Err(unsupported(self.name(), "oldest_waiting"))
    }
}

fn lacks_workers(store: &str, operation: &str) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Unsupported,
        operation,
        format!("store '{store}' keeps no rows of workers"),
    )
}

fn lacks_trails(store: &str, operation: &str) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Unsupported,
        operation,
        format!("store '{store}' keeps no trails of sessions"),
    )
}

fn unsupported(store: &str, operation: &str) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Unsupported,
        operation,
        format!("store '{store}' cannot tell what waits"),
    )
}
