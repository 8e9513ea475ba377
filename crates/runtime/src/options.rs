//! How a runtime is set up: flat, public, with defaults. [`Plan`](crate::plan::Plan) checks them and derives
//! the rest.

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::{Clock, SystemClock};
use steadfast_core::limits::{MAX_PAYLOAD_BYTES, MAX_SESSIONS_PER_ORCHESTRATION};
use steadfast_core::replay::CarryForwardOverflow;
use steadfast_core::{SemverRange, TagFilter};

use crate::observability::ObservabilityConfig;
use crate::session::SessionHooks;

/// Says how a runtime works. The defaults suit one process on one machine.
#[derive(Debug, Clone)]
pub struct RuntimeOptions {
    /// Bounds how often a store that does not wait is asked.
    pub dispatcher_min_poll_interval: Duration,
    /// Bounds how long a store may wait for work.
    pub dispatcher_long_poll_timeout: Duration,
    /// Counts the slots for turns; 0 runs none.
    pub orchestration_concurrency: usize,
    /// Counts the slots for activities; 0 runs none.
    pub worker_concurrency: usize,
    /// Says how long a turn is leased.
    pub orchestrator_lock_timeout: Duration,
    /// Says how long before its end the lease of a turn is renewed.
    pub orchestrator_lock_renewal_buffer: Duration,
    /// Says how long an activity is leased.
    pub worker_lock_timeout: Duration,
    /// Says how long before its end the lease of an activity is renewed.
    pub worker_lock_renewal_buffer: Duration,
    /// Says what the runtime tells about itself.
    pub observability: ObservabilityConfig,
    /// Spaces the tries of an item whose handler is not registered.
    pub unregistered_backoff: UnregisteredBackoffConfig,
    /// Bounds the attempts of an item; beyond it, it is poison. 0 poisons at the first.
    pub max_attempts: u32,
    /// Says how long a cancelled activity may take to stop.
    pub activity_cancellation_grace_period: Duration,
    /// Names the engine versions whose executions this runtime runs; `None` means all up to this build.
    pub supported_replay_versions: Option<SemverRange>,
    /// Says how long a session is leased.
    pub session_lock_timeout: Duration,
    /// Says how long before its end the lease of a session is renewed.
    pub session_lock_renewal_buffer: Duration,
    /// Says after how long without work a session is let go.
    pub session_idle_timeout: Duration,
    /// Spaces the clean-ups of ended sessions.
    pub session_cleanup_interval: Duration,
    /// Bounds the sessions that have an activity running here; 0 takes no session work.
    pub max_sessions_per_runtime: usize,
    /// Bounds the sessions that this process keeps, busy or idle: beyond it the least recently used idle one
    /// is released. `None` keeps them until they are idle for long enough.
    pub max_attached_sessions: Option<usize>,
    /// Says how long work of a session may wait that this process will not take soon, before the session is
    /// handed on; `None` is twice `session_lock_timeout`.
    pub session_untaken_after: Option<Duration>,
    /// Releases all sessions when the runtime stops, so that others claim them at once. A node that wants
    /// them back after a restart says no, and has a `worker_node_id`.
    pub release_sessions_on_shutdown: bool,
    /// Is told when a session comes and goes.
    pub session_hooks: Option<Arc<dyn SessionHooks>>,
    /// Bounds each call of a hook.
    pub session_hook_timeout: Duration,
    /// Names this process across restarts.
    pub worker_node_id: Option<String>,
    /// Says which tags the workers serve.
    pub worker_tag_filter: TagFilter,
    /// Bounds the sessions that one orchestration may have open.
    pub max_sessions_per_orchestration: usize,
    /// Refuses activities on sessions that the orchestration did not open.
    pub require_open_sessions: bool,
    /// Bounds every payload that an orchestration writes, in bytes.
    pub max_payload_bytes: usize,
    /// Says what becomes of unread queue messages that a continue-as-new cannot carry.
    pub carry_forward_overflow: CarryForwardOverflow,
    /// Bounds how many orchestrations stay in memory between their turns; 0 replays every turn from its
    /// history.
    pub max_warm_orchestrations: usize,
    /// Bounds how much memory they take together, estimated, in bytes.
    pub max_warm_bytes: usize,
    /// Bounds how long the code of a turn may run. One that takes longer is named in a warning, loses its
    /// lease, and its slot goes on without it.
    pub max_turn_time: Duration,
    /// Deletes instances this long after they ended, with all below them; `None` keeps them.
    pub retain_finished_for: Option<Duration>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            dispatcher_min_poll_interval: Duration::from_millis(100),
            dispatcher_long_poll_timeout: Duration::from_secs(30),
            orchestration_concurrency: 2,
            worker_concurrency: 2,
            orchestrator_lock_timeout: Duration::from_secs(5),
            orchestrator_lock_renewal_buffer: Duration::from_secs(2),
            worker_lock_timeout: Duration::from_secs(30),
            worker_lock_renewal_buffer: Duration::from_secs(5),
            observability: ObservabilityConfig::default(),
            unregistered_backoff: UnregisteredBackoffConfig::default(),
            max_attempts: 10,
            activity_cancellation_grace_period: Duration::from_secs(10),
            supported_replay_versions: None,
            session_lock_timeout: Duration::from_secs(30),
            session_lock_renewal_buffer: Duration::from_secs(5),
            session_idle_timeout: Duration::from_secs(300),
            session_cleanup_interval: Duration::from_secs(300),
            max_sessions_per_runtime: 10,
            max_attached_sessions: None,
            session_untaken_after: None,
            release_sessions_on_shutdown: true,
            session_hooks: None,
            session_hook_timeout: Duration::from_secs(5),
            worker_node_id: None,
            worker_tag_filter: TagFilter::DefaultOnly,
            max_sessions_per_orchestration: MAX_SESSIONS_PER_ORCHESTRATION,
            require_open_sessions: false,
            max_payload_bytes: MAX_PAYLOAD_BYTES,
            carry_forward_overflow: CarryForwardOverflow::Drop,
            max_warm_orchestrations: 1_000,
            max_warm_bytes: 64 << 20,
            max_turn_time: Duration::from_secs(30),
            retain_finished_for: None,
            clock: Arc::new(SystemClock),
        }
    }
}

/// Spaces the tries of an item whose handler is not registered: a deployment may be under way.
#[derive(Debug, Clone)]
pub struct UnregisteredBackoffConfig {
    /// Says how long the first wait is.
    pub base_delay: Duration,
    /// Bounds every wait.
    pub max_delay: Duration,
}

impl Default for UnregisteredBackoffConfig {
    fn default() -> Self {
        Self { base_delay: Duration::from_secs(1), max_delay: Duration::from_secs(60) }
    }
}

impl UnregisteredBackoffConfig {
    /// Returns how long to wait after the given attempt, counted from 1: twice as long each time.
    pub fn delay(&self, attempt_count: u32) -> Duration {
        let doublings = attempt_count.saturating_sub(1).min(6);
        self.base_delay.saturating_mul(1 << doublings).min(self.max_delay)
    }
}
