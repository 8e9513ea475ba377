//! How a runtime is set up: flat, public, with defaults. `Plan` checks the options and derives the rest.

use std::sync::Arc;
use std::time::Duration;

use steadfast_clock::{Clock, Random, SystemClock, SystemRandom};
use steadfast_core::limits::{MAX_PAYLOAD_BYTES, MAX_SESSIONS_PER_ORCHESTRATION};
use steadfast_core::replay::CarryForwardOverflow;
use steadfast_core::{SemverRange, TagFilter};
use steadfast_store::TRAIL_KEPT_FOR;

use crate::observability::ObservabilityConfig;
use crate::session::{SessionHooks, SessionRecoveryPolicy};

/// Sets up a runtime. The defaults suit one process on one machine.
///
/// A *turn* is one step of an orchestration, *work* is an activity in the queue, and both are leased while
/// they are processed. All times are measured by [`clock`](Self::clock).
#[derive(Debug, Clone)]
pub struct RuntimeOptions {
    /// The least time between two fetches of a slot that found nothing. Default: 100 ms.
    ///
    /// It matters only for a store that answers at once instead of waiting for work. Shorter asks such a
    /// store more often; longer delays new work by up to this time.
    pub dispatcher_min_poll_interval: Duration,
    /// How long one fetch may wait in the store for a turn or for work. Default: 30 s. A fetch that may bring
    /// work of a session waits for less than half of `session_lock_timeout`.
    ///
    /// Shorter costs more fetches of an idle runtime. Longer saves little: work that becomes available ends
    /// the wait in a store that has wake-ups.
    pub dispatcher_long_poll_timeout: Duration,
    /// The number of slots for turns: how many turns this process runs at a time. Default: 2. 0 runs no
    /// turns.
    ///
    /// Too few make messages wait although the machine is idle; each slot costs a waiting fetch.
    pub orchestration_concurrency: usize,
    /// The number of slots for activities: how many activities this process runs at a time. Default: 2. 0
    /// runs no activities.
    ///
    /// Too few make work wait; too many let activities compete for the resources that they use.
    pub worker_concurrency: usize,
    /// How long a turn is leased. Default: 5 s. Must not be zero.
    ///
    /// Too short loses the lease when the store is slow, and the turn runs again. Too long delays the
    /// instances of a process that died by up to this time.
    pub orchestrator_lock_timeout: Duration,
    /// How long before its end the lease of a turn is renewed. Default: 2 s.
    ///
    /// A lease is renewed after half its time at the latest, so that one failed renewal does not lose it:
    /// values below half the lease have no effect, and on a lease below 15 s no value has. A larger value
    /// renews more often, at most once a second.
    pub orchestrator_lock_renewal_buffer: Duration,
    /// How long the work of an activity is leased. Default: 30 s. Must not be zero. The lease is renewed
    /// while the activity runs, so an activity may take longer.
    ///
    /// Too short loses the lease when the store or this process is slow, and the activity runs twice. Too
    /// long delays the activities of a process that died by up to this time.
    pub worker_lock_timeout: Duration,
    /// How long before its end the lease of an activity's work is renewed. Default: 5 s. Applies as
    /// [`orchestrator_lock_renewal_buffer`](Self::orchestrator_lock_renewal_buffer).
    pub worker_lock_renewal_buffer: Duration,
    /// What the runtime logs and measures. Default: [`ObservabilityConfig::default`].
    pub observability: ObservabilityConfig,
    /// How long a turn or an activity is delayed if no live worker has its handler registered. Default: 1 s,
    /// doubled with each delivery, at most 60 s.
    pub unregistered_backoff: UnregisteredBackoffConfig,
    /// What happens to a turn or an activity whose handler no live worker has. Default:
    /// [`OnMissingHandler::Fail`].
    ///
    /// Work that another live worker has the handler for is left to that worker in either case: at once, and
    /// uncounted.
    pub on_missing_handler: OnMissingHandler,
    /// How often a message or an activity is delivered before it is poison: its instance or activity then
    /// fails. Default: 10. 0 fails everything at its first delivery.
    ///
    /// Too low fails work that survived a few crashed processes; too high repeats work that crashes its
    /// process.
    pub max_attempts: u32,
    /// How long a cancelled activity may take to stop by itself, before its task is aborted. Default: 10 s.
    ///
    /// Too short aborts activities in the middle of their clean-up; too long keeps a slot busy with an
    /// activity that ignores its cancellation.
    pub activity_cancellation_grace_period: Duration,
    /// The engine versions whose executions this runtime runs. Default: `None`, all versions up to this
    /// build.
    ///
    /// Executions of other versions stay in the store for a runtime that supports them.
    pub supported_replay_versions: Option<SemverRange>,
    /// How long a session is leased to this process. Default: 30 s. Must not be zero.
    ///
    /// Too short detaches sessions when the store is slow, and their state is lost. Too long delays the
    /// sessions of a process that died by up to this time.
    pub session_lock_timeout: Duration,
    /// How long before their end the leases of sessions are renewed. Default: 5 s. Applies as
    /// [`orchestrator_lock_renewal_buffer`](Self::orchestrator_lock_renewal_buffer).
    pub session_lock_renewal_buffer: Duration,
    /// After how long without work a session is detached and released. Default: 5 min. Must be longer than
    /// `worker_lock_timeout - worker_lock_renewal_buffer`.
    ///
    /// Too short loads the state of a session again for each of its activities; too long keeps the state of
    /// conversations in memory that are not continued. A session that an orchestration opened can have its
    /// own time.
    pub session_idle_timeout: Duration,
    /// How often this process removes ended sessions from the store, its own and those of other processes.
    /// Default: 5 min.
    ///
    /// Shorter costs calls of the store; longer keeps rows of sessions that no process uses.
    pub session_cleanup_interval: Duration,
    /// How long the trails of sessions are kept, which tell the processes that owned a session and why that
    /// changed ([`Client::session_trail`](steadfast_client::Client::session_trail)). Default: 7 days. Of
    /// several runtimes over one store the one with the shortest time decides.
    ///
    /// Entries that are older are removed every [`session_cleanup_interval`](Self::session_cleanup_interval).
    /// Of one session at most the last 100 changes are kept, of all sessions the last 100,000. Zero removes
    /// all entries each time.
    pub session_trail_retention: Duration,
    /// How many sessions may have an activity running in this process. Default: 10. 0 takes no work of
    /// sessions.
    ///
    /// At the limit the process claims no more sessions, and work of sessions that do not run waits or moves
    /// on. Above [`worker_concurrency`](Self::worker_concurrency) it limits nothing.
    pub max_sessions_per_runtime: usize,
    /// How many sessions this process keeps attached, busy or idle: this bounds their memory. Default:
    /// `None`, no limit; a session then stays until it is idle for
    /// [`session_idle_timeout`](Self::session_idle_timeout).
    ///
    /// Beyond the limit the least recently used idle session is released. Too low loads the state of sessions
    /// again all the time.
    pub max_attached_sessions: Option<usize>,
    /// How long work of a session may wait before the session is released to another worker, if this process
    /// will not take that work soon. Default: `None`, twice
    /// [`session_lock_timeout`](Self::session_lock_timeout).
    ///
    /// A process will not take work soon if it is at its session limit, refuses the tag of the work, or
    /// drains. Too short moves sessions that would have been served in a moment; too long makes their work
    /// wait.
    pub session_untaken_after: Option<Duration>,
    /// Releases all sessions when the runtime shuts down, so that other workers claim them at once. Default:
    /// `true`.
    ///
    /// A node that wants its sessions back after a restart sets `false` and a
    /// [`worker_node_id`](Self::worker_node_id); other workers can claim them when the leases have expired.
    pub release_sessions_on_shutdown: bool,
    /// Code of the application that runs when a session is attached and detached. Default: `None`.
    pub session_hooks: Option<Arc<dyn SessionHooks>>,
    /// How long one call of a session hook may take before its future is dropped. Default: 5 s. Must not be
    /// zero.
    ///
    /// Too short drops a hook in the middle of saving state; too long delays the move of a session by that
    /// time. The lease of an idle session is not renewed while `on_detach` runs, so another worker may claim
    /// the session if that takes longer than `session_lock_renewal_buffer`.
    pub session_hook_timeout: Duration,
    /// Restores the state of a session that an activity reports as lost, before the failure reaches the
    /// orchestration. Default: `None`, the failure is recorded at once.
    pub session_recovery: Option<SessionRecoveryPolicy>,
    /// After how long without an activity an open session counts as leaked: an orchestration opened it, and
    /// neither uses nor closes it. Default: 24 h. `None` does not look for them. Must not be zero.
    ///
    /// Leaked sessions are named in a warning, once each, and counted (`steadfast_leaked_sessions`);
    /// [`Client::list_leaked_sessions`](steadfast_client::Client::list_leaked_sessions) lists them. Nothing
    /// is closed. The store is looked through every quarter of this time, at least every hour and at most
    /// once a second. Too short names sessions whose orchestration merely waits for long.
    pub session_leak_after: Option<Duration>,
    /// The name of this process across restarts, such as `"worker-3"`. Default: `None`, a new random name at
    /// each start. Must not be empty, and has at most 1,024 bytes.
    ///
    /// The newest process of a name owns the sessions of that name, and older ones lose them: give a name to
    /// one process at a time.
    pub worker_node_id: Option<String>,
    /// A name for this build of the application, such as a commit, for the list of workers
    /// ([`Client::workers`](steadfast_client::Client::workers)). Default: `None`, a hash of the executable
    /// and of the registered names and versions. Must not be empty or contain NUL.
    pub build_id: Option<String>,
    /// The tags of the activities that this process runs. Default: activities without a tag.
    pub worker_tag_filter: TagFilter,
    /// How many sessions one orchestration may have open. Default: 10. Opening one more fails the
    /// orchestration.
    pub max_sessions_per_orchestration: usize,
    /// Fails an orchestration that schedules an activity on a session which it did not open. Default:
    /// `false`, such a session is shared by all orchestrations that name it.
    pub require_open_sessions: bool,
    /// The largest payload that an orchestration may write, in bytes: an input, a result, a value, a status.
    /// Default: 64 MiB ([`MAX_PAYLOAD_BYTES`](steadfast_core::limits::MAX_PAYLOAD_BYTES)). A larger one fails
    /// the orchestration.
    pub max_payload_bytes: usize,
    /// What happens to unread queue messages if there are more than a continue-as-new can carry over.
    /// Default: messages beyond 100 are dropped with a warning.
    pub carry_forward_overflow: CarryForwardOverflow,
    /// How many orchestrations stay in memory between their turns. Default: 1,000. 0 replays every turn from
    /// the history.
    ///
    /// Too few replay long histories again and again; too many cost memory, which
    /// [`max_warm_bytes`](Self::max_warm_bytes) also bounds.
    pub max_warm_orchestrations: usize,
    /// How much memory the orchestrations between their turns may take together, estimated, in bytes.
    /// Default: 64 MiB.
    ///
    /// Beyond it the least recently used orchestration is evicted, and its next turn replays its history.
    pub max_warm_bytes: usize,
    /// How long the code of one turn may run. Default: 30 s. Must not be zero.
    ///
    /// A turn that takes longer is named in a warning, its lease is not renewed, and another task takes over
    /// its slot. Too short punishes a busy machine; too long lets code that blocks its thread hold a slot.
    pub max_turn_time: Duration,
    /// Deletes instances this long after they ended, with their children. Default: `None`, keeps them for
    /// ever.
    ///
    /// An instance is deleted at most a tenth of this time too late, and at most an hour; it needs a store
    /// with the management interface.
    pub retain_finished_for: Option<Duration>,
    /// The clock of the runtime and of its client. Default: [`SystemClock`]. Tests give a `VirtualClock`.
    pub clock: Arc<dyn Clock>,
    /// Where random numbers come from: the name of a runtime without `worker_node_id`, `new_guid`, and how
    /// far apart tries are. Default: [`SystemRandom`]. Tests give a `SeededRandom`, a new one for each
    /// runtime: two runtimes that draw the same numbers have one name.
    pub random: Arc<dyn Random>,
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
            on_missing_handler: OnMissingHandler::Fail,
            max_attempts: 10,
            activity_cancellation_grace_period: Duration::from_secs(10),
            supported_replay_versions: None,
            session_lock_timeout: Duration::from_secs(30),
            session_lock_renewal_buffer: Duration::from_secs(5),
            session_idle_timeout: Duration::from_secs(300),
            session_cleanup_interval: Duration::from_secs(300),
            session_trail_retention: TRAIL_KEPT_FOR,
            max_sessions_per_runtime: 10,
            max_attached_sessions: None,
            session_untaken_after: None,
            release_sessions_on_shutdown: true,
            session_hooks: None,
            session_hook_timeout: Duration::from_secs(5),
            session_recovery: None,
            session_leak_after: Some(Duration::from_secs(24 * 3_600)),
            worker_node_id: None,
            build_id: None,
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
            random: Arc::new(SystemRandom),
        }
    }
}

impl RuntimeOptions {
    /// Returns the defaults that suit a service in production. They differ from
    /// [`default`](Self::default) in these options:
    ///
    /// - [`orchestration_concurrency`](Self::orchestration_concurrency): the number of cores;
    /// - [`worker_concurrency`](Self::worker_concurrency): 100;
    /// - [`max_sessions_per_runtime`](Self::max_sessions_per_runtime): 100;
    /// - [`on_missing_handler`](Self::on_missing_handler): [`OnMissingHandler::Park`];
    /// - [`carry_forward_overflow`](Self::carry_forward_overflow): [`CarryForwardOverflow::Keep`].
    ///
    /// Later versions may add options here. Code that does not fit a recorded history still fails its
    /// instance.
    ///
    /// ```
    /// # mod steadfast { pub use steadfast_runtime as runtime; }
    /// use steadfast::runtime::{OnMissingHandler, RuntimeOptions};
    ///
    /// let options = RuntimeOptions {
    ///     worker_node_id: Some("worker-3".to_owned()),
    ///     ..RuntimeOptions::production()
    /// };
    /// assert_eq!(options.on_missing_handler, OnMissingHandler::Park);
    /// ```
    pub fn production() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            orchestration_concurrency: cores,
            worker_concurrency: 100,
            max_sessions_per_runtime: 100,
            on_missing_handler: OnMissingHandler::Park,
            carry_forward_overflow: CarryForwardOverflow::Keep,
            ..Self::default()
        }
    }
}

/// Says what happens to a turn or an activity whose handler no live worker has registered. A worker is live
/// for a minute after its last report; it reports about every 10 seconds.
///
/// A provider that has only the compatible methods knows no workers: there no worker counts as live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnMissingHandler {
    /// It is tried again with growing delays
    /// ([`unregistered_backoff`](RuntimeOptions::unregistered_backoff)), each delivery counts, and after
    /// [`max_attempts`](RuntimeOptions::max_attempts) it is poison. A worker that has the handler and starts
    /// meanwhile gets it at once.
    #[default]
    Fail,
    /// It waits until a worker has the handler, for ever if need be. Nothing is counted.
    ///
    /// Through a provider that has only the compatible methods it is tried again after
    /// [`base_delay`](UnregisteredBackoffConfig::base_delay), uncounted.
    Park,
}

/// Sets how long a turn or an activity is delayed if its handler is not registered: during a deployment
/// another process may have the handler, or this one after its restart.
#[derive(Debug, Clone)]
pub struct UnregisteredBackoffConfig {
    /// The wait after the first delivery. It doubles with each further delivery. Default: 1 s.
    ///
    /// Too short uses up `max_attempts` before a deployment is through.
    pub base_delay: Duration,
    /// The longest wait. Default: 60 s. A process also excludes a session from its fetches for this long
    /// after it released the session because of a missing handler.
    ///
    /// Too long delays work after the handler was deployed.
    pub max_delay: Duration,
}

impl Default for UnregisteredBackoffConfig {
    fn default() -> Self {
        Self { base_delay: Duration::from_secs(1), max_delay: Duration::from_secs(60) }
    }
}

impl UnregisteredBackoffConfig {
    /// Returns the wait after the given delivery, counted from 1: `base_delay` doubled each time, at most 64
    /// times `base_delay` and at most `max_delay`.
    pub fn delay(&self, attempt_count: u32) -> Duration {
        let doublings = attempt_count.saturating_sub(1).min(6);
        self.base_delay.saturating_mul(1 << doublings).min(self.max_delay)
    }
}
