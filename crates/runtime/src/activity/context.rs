//! The context of an activity: its identity, its client, and the signal that it should stop.

use std::sync::{Arc, OnceLock};

use steadfast_client::Client;
use steadfast_core::unrecorded_key;
use tokio_util::sync::CancellationToken;

use crate::session::Session;

/// Gives an activity its identity, its session, its cancellation, a logger and a client. Cheap to clone.
#[derive(Clone)]
pub struct ActivityContext {
    info: Arc<ActivityInfo>,
    cancellation: ActivityCancellation,
    client: Client,
}

/// The identity of an activity run.
#[derive(Debug, Clone)]
pub(crate) struct ActivityInfo {
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
    pub(crate) orchestration_name: String,
    pub(crate) orchestration_version: String,
    pub(crate) activity_name: String,
    pub(crate) activity_id: u64,
    pub(crate) worker_id: String,
    pub(crate) session_id: Option<String>,
    pub(crate) session: Option<Session>,
    pub(crate) tag: Option<String>,
    /// The number of the try, from 1.
    pub(crate) attempt: u32,
    /// How often the work has been leased, from 1.
    pub(crate) delivery: u32,
    /// How many deliveries of this try count towards poison.
    pub(crate) counted_deliveries: u32,
    /// The recorded key of the call; `None` for a call that an engine before 0.3.0 recorded, and for an
    /// activity of the engine itself.
    pub(crate) key: Option<String>,
    pub(crate) traceparent: Option<String>,
    /// Whether this is the rebuild of the session's state for the activity, and not the activity itself.
    pub(crate) is_rebuild: bool,
}

/// Tells why an activity should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// The orchestration cancelled the activity: its future was dropped, or the instance ended. Told at once
    /// in the process that ran the turn, and within one renewal in another. A provider of another author
    /// that cannot tell it answers that the lease is lost: then it is [`LeaseLost`](Self::LeaseLost).
    Withdrawn,
    /// This worker lost the lease, because it was paused or the store was away. The activity runs again.
    LeaseLost,
    /// The runtime shuts down and its time is up. The activity runs again elsewhere.
    Shutdown,
    /// The try took longer than the policy of the call allows. If the policy allows another try, it begins
    /// when this one has ended.
    TimedOut,
}

/// The cancellation of one activity, with its reason.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActivityCancellation {
    pub(crate) token: CancellationToken,
    reason: Arc<OnceLock<CancelReason>>,
}

impl ActivityCancellation {
    /// Cancels the activity. The first reason counts.
    pub(crate) fn cancel(&self, reason: CancelReason) {
        self.reason.get_or_init(|| reason);
        self.token.cancel();
    }

    /// Returns the reason; `None` while the activity is not cancelled.
    pub(crate) fn reason(&self) -> Option<CancelReason> {
        self.reason.get().copied()
    }
}

macro_rules! emit {
    ($level:ident, $context:expr, $message:expr) => {{
        let info = &$context.info;
        tracing::event!(
            target: "steadfast::activity",
            tracing::Level::$level,
            instance_id = %info.instance,
            execution_id = info.execution_id,
            orchestration_name = %info.orchestration_name,
            orchestration_version = %info.orchestration_version,
            activity_name = %info.activity_name,
            activity_id = info.activity_id,
            worker_id = %info.worker_id,
            "{}",
            $message.into()
        )
    }};
}

impl ActivityContext {
    pub(crate) fn new(info: Arc<ActivityInfo>, cancellation: ActivityCancellation, client: Client) -> Self {
        Self { info, cancellation, client }
    }

    /// Returns the id of the instance that scheduled the activity.
    pub fn instance_id(&self) -> &str {
        &self.info.instance
    }

    /// Returns the execution of that instance, from 1.
    pub fn execution_id(&self) -> u64 {
        self.info.execution_id
    }

    /// Returns the name of the orchestration that scheduled the activity, or `unknown` if its instance was
    /// deleted.
    pub fn orchestration_name(&self) -> &str {
        &self.info.orchestration_name
    }

    /// Returns the version of that orchestration, or `unknown` if its instance was deleted.
    pub fn orchestration_version(&self) -> &str {
        &self.info.orchestration_version
    }

    /// Returns the name that the activity is registered under.
    pub fn activity_name(&self) -> &str {
        &self.info.activity_name
    }

    /// Returns the id of the event that scheduled the activity: unique within its execution.
    pub fn activity_id(&self) -> u64 {
        self.info.activity_id
    }

    /// Returns the number of this try, from 1. A try ends with a result, an error or a timeout: an activity
    /// that is delivered again after a crash of its worker is still in the same try.
    pub fn attempt(&self) -> u32 {
        self.info.attempt
    }

    /// Returns how often this activity has been delivered to a worker, from 1. It only rises, with each try
    /// and with each delivery of a try.
    pub fn delivery(&self) -> u32 {
        self.info.delivery
    }

    /// Returns how many deliveries of this try count towards poison, this one included. Deliveries that did
    /// not run the code, or whose process was paused and came back, do not count; when the number is above
    /// `max_attempts`, the activity fails instead of running.
    pub fn counted_deliveries(&self) -> u32 {
        self.info.counted_deliveries
    }

    /// Returns a text that is the same for every delivery and every try of this call, and different for every
    /// other call. Pass it to a service that does a thing once for each key. The orchestration knows it too
    /// ([`key`](steadfast_core::DurableFuture::key)).
    ///
    /// It holds the id of the instance, a random number of its execution, the name of the activity, the
    /// number of the call and a hash of the input: an instance that was deleted and started again has other
    /// keys. The rebuild of a session's state ([`SessionRecoveryPolicy`](crate::SessionRecoveryPolicy)) has a
    /// key of its own.
    pub fn idempotency_key(&self) -> String {
        let ActivityInfo { instance, execution_id, activity_id, is_rebuild, key, .. } = &*self.info;
        let unrecorded = || unrecorded_key(instance, *execution_id, *activity_id);
        let key = key.clone().unwrap_or_else(unrecorded);
        if *is_rebuild { format!("{key}/rebuild") } else { key }
    }

    /// Returns the name of the worker slot that runs the activity: `work-<slot>-<node>`.
    pub fn worker_id(&self) -> &str {
        &self.info.worker_id
    }

    /// Returns the id of the session that the activity runs on, as the orchestration wrote it.
    pub fn session_id(&self) -> Option<&str> {
        self.info.session_id.as_deref()
    }

    /// Returns the session that the activity runs on, as attached to this process.
    pub fn session(&self) -> Option<&Session> {
        self.info.session.as_ref()
    }

    /// Returns the error text for an activity that does not find the state of its session in this process. It
    /// is recorded as `AppErrorKind::SessionLost`, and [`is_session_lost`](steadfast_core::is_session_lost)
    /// recognises it in the orchestration.
    pub fn session_lost(&self, reason: impl std::fmt::Display) -> String {
        steadfast_core::session_lost(reason)
    }

    /// Returns the tag that the activity was scheduled with.
    pub fn tag(&self) -> Option<&str> {
        self.info.tag.as_deref()
    }

    /// Returns the W3C trace context that the orchestration was started with.
    pub fn traceparent(&self) -> Option<&str> {
        self.info.traceparent.as_deref()
    }

    /// Logs at level INFO.
    pub fn trace_info(&self, message: impl Into<String>) {
        emit!(INFO, self, message);
    }

    /// Logs at level WARN.
    pub fn trace_warn(&self, message: impl Into<String>) {
        emit!(WARN, self, message);
    }

    /// Logs at level ERROR.
    pub fn trace_error(&self, message: impl Into<String>) {
        emit!(ERROR, self, message);
    }

    /// Logs at level DEBUG.
    pub fn trace_debug(&self, message: impl Into<String>) {
        emit!(DEBUG, self, message);
    }

    /// Tells whether the activity should stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.token.is_cancelled()
    }

    /// Waits until the activity should stop.
    ///
    /// # Cancel safety
    /// Waits only.
    pub async fn cancelled(&self) {
        self.cancellation.token.cancelled().await;
    }

    /// Returns the token that is cancelled when the activity should stop, to pass to other code.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.cancellation.token.clone()
    }

    /// Tells why the activity should stop. `None` while it should not.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        self.cancellation.reason()
    }

    /// Returns a client of the store that the activity came from. Its messages carry the trace context of the
    /// activity.
    pub fn get_client(&self) -> Client {
        self.client.clone()
    }
}

impl std::fmt::Debug for ActivityContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ActivityInfo { instance, execution_id, activity_name, activity_id, .. } = &*self.info;
        f.debug_struct("ActivityContext")
            .field("instance_id", instance)
            .field("execution_id", execution_id)
            .field("activity_name", activity_name)
            .field("activity_id", activity_id)
            .finish_non_exhaustive()
    }
}
